"""Path formulas in normal form, and the directions of agent and nature.

Every path formula is X, or an until that may be negated (PRISM's rules):

    F b = true U b        G a = !(true U !a)
    a W b = !((a & !b) U (!a & !b))        a R b = !(!a U !b)

with the same step bounds. The probability of a negated formula is one minus that of the formula,
with both players pushing the other way.
"""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.language.ast import Binary, Expr, Literal, ModelType, Unary
from rfmdp.language.property_ast import Optimum, Path, Probability, Reward, TimeBound
from rfmdp.language.source import SourceText
from rfmdp.objective import MAX, MIN, Direction

TRUE = Literal(True)
DIRECTIONS = {Optimum.MIN: MIN, Optimum.MAX: MAX}


@dataclass(frozen=True, slots=True)
class NextFormula:
    """`X target`, or its negation."""

    target: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class UntilFormula:
    """`stay U[earliest,latest] target`, or its negation; `latest=None` is unbounded."""

    stay: Expr
    target: Expr
    earliest: int
    latest: int | None
    negated: bool


@dataclass(frozen=True, slots=True)
class NowFormula:
    """A state formula as a path formula: it speaks about the first state."""

    holds: Expr


def normal(path: Expr) -> NextFormula | UntilFormula | NowFormula:
    """Return a checked path formula in normal form.

    >>> from rfmdp.language.ast import Name
    >>> normal(Path("G", None, Name("safe"))).negated
    True
    """
    whole, negated = path, False
    while isinstance(path, Unary) and path.operator == "!":
        path, negated = path.operand, not negated
    if not isinstance(path, Path):
        return NowFormula(whole)
    if path.operator == "X":
        return NextFormula(path.right, negated)
    earliest, latest = steps(path.time)
    left, right = path.left or TRUE, path.right
    stay: Expr
    target: Expr
    match path.operator:
        case "G":
            stay, target, negated = TRUE, _not(right), not negated
        case "W":
            first = Binary("&", left, _not(right), position=left.position)
            both = Binary("&", _not(left), _not(right), position=left.position)
            stay, target, negated = first, both, not negated
        case "R":
            stay, target, negated = _not(left), _not(right), not negated
        case _:
            stay, target = left, right
    return UntilFormula(stay, target, earliest, latest, negated)


def steps(time: TimeBound | None) -> tuple[int, int | None]:
    """Return the first and last step that count; None for no last one."""
    if time is None:
        return 0, None
    earliest = 0 if time.lower is None else _int(time.lower) + time.lower_strict
    latest = None if time.upper is None else _int(time.upper) - time.upper_strict
    return earliest, latest


def directions(
    node: Probability | Reward, kind: ModelType | None, source: SourceText
) -> tuple[Direction, Direction]:
    """Return the directions of (agent, nature), by PRISM's rules.

    A bound such as >= must hold whatever both do. Nature has the agent's direction unless the text
    gives it one (`Pmaxmin`). Where nobody has a choice, the text need not say min or max.

    Parameters
    ----------
    kind
        What the model amounts to, None if that is not known.

    Raises
    ------
    PrismError
        If somebody has a choice and neither min nor max is asked for.
    """
    if node.agent is not None:
        agent = DIRECTIONS[node.agent]
    elif node.bound is not None:
        agent = MIN if node.bound.operator.startswith(">") else MAX
    elif kind in (None, ModelType.DTMC):
        agent = MAX
    else:
        who = "agent" if kind is ModelType.MDP else "nature" if kind is ModelType.IDTMC else "both"
        letter = "P" if isinstance(node, Probability) else "R"
        pair = f", or a pair such as {letter}maxmin=?" if kind is ModelType.IMDP else ""
        reason = (
            f"'{letter}=?' must say min or max on a model with choices (here: {who}); "
            f"use {letter}min=? or {letter}max=?{pair}"
        )
        raise source.error(node.position, reason)
    return agent, agent if node.nature is None else DIRECTIONS[node.nature]


def _not(expr: Expr) -> Expr:
    return Unary("!", expr, position=expr.position)


def _int(expr: Expr) -> int:
    assert isinstance(expr, Literal)  # the static checks evaluated it
    return int(expr.value)
