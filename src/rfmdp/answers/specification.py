"""What P and R measure: path formulas in normal form, directions of the players, objectives.

A path formula over state formulas is X, or an until that may be negated (PRISM's rules):

    F b = true U b        G a = !(true U !a)
    a W b = !((a & !b) U (!a & !b))        a R b = !(!a U !b)

with the same bounds on steps or on a reward. The probability of a negated formula is one minus that
of the formula, with both players pushing the other way. W, R, a negated U, and path formulas with
operators inside each other become the trees of `rfmdp.temporal`.

`solve` takes a single P or R as the `Spec` that `Property.spec` makes of it. `check` makes an
objective of every P and R that it meets. Both bring a function that makes a set of states of a
formula: one that waits for its model, or one that is decided already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Binary, Expr, Literal, ModelType, Unary, nodes
from rfmdp.language.checked import Work
from rfmdp.language.source import SourceText
from rfmdp.language.write import write_expression
from rfmdp.objective import (
    MAX,
    MIN,
    BudgetUntil,
    Cumulative,
    Direction,
    Discounted,
    Globally,
    Instantaneous,
    LongRunAverage,
    LongRunShare,
    Next,
    Objective,
    Reach,
    ReachReward,
    Temporal,
    TemporalReward,
    Total,
    Until,
)
from rfmdp.state_sets import PathFormula, StateSet

Sets = Callable[[Expr], StateSet]
TRUE = Literal(True)
HALVINGS = 30  # of what is left to come, until a discounted value is as precise as most want


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
    path: Expr  # as it was written
    reward: str | None = None  # what `latest` counts, if not steps

    @property
    def weak(self) -> bool:
        """Whether it is W, R or a negated U over steps, which an automaton reads."""
        return self.negated and self.stay != TRUE and self.reward is None


@dataclass(frozen=True, slots=True)
class ShareFormula:
    """How often a state formula holds in the long run."""

    holds: Expr


@dataclass(frozen=True, slots=True)
class NowFormula:
    """A state formula as a path formula: it speaks about the first state."""

    holds: Expr


@dataclass(frozen=True, slots=True)
class NestedFormula:
    """Path operators inside each other, or joined: a tree of `rfmdp.temporal.formula`."""

    text: str
    tree: tuple[Any, ...]
    atoms: tuple[Expr, ...]

    def over(self, states: Sets) -> PathFormula:
        """Return the formula over sets of states."""
        return PathFormula(self.text, self.tree, tuple(states(atom) for atom in self.atoms))


def normal(
    path: Expr,
) -> NextFormula | UntilFormula | ShareFormula | NowFormula | NestedFormula:
    """Return a checked path formula in normal form.

    >>> from rfmdp.language.ast import Name
    >>> normal(tree.Path("G", None, Name("safe"))).negated
    True
    """
    if tree.is_nested(path):
        return nested(path)
    whole, negated = path, False
    while isinstance(path, Unary) and path.operator == "!":
        path, negated = path.operand, not negated
    if not isinstance(path, tree.Path):
        return NowFormula(whole)
    if path.operator == "X":
        return NextFormula(path.right, negated)
    if path.operator == "S":
        return ShareFormula(path.right)
    earliest, latest = steps(path.time)
    left, right = path.left or TRUE, path.right
    stay: Expr
    target: Expr
    match path.operator:
        case "G":
            stay = TRUE
            target = _not(right)
            negated = not negated
        case "W":
            first = Binary("&", left, _not(right), position=left.position)
            both = Binary("&", _not(left), _not(right), position=left.position)
            stay, target, negated = first, both, not negated
        case "R":
            stay = _not(left)
            target = _not(right)
            negated = not negated
        case _:
            stay, target = left, right
    reward = None if path.time is None else path.time.reward
    return UntilFormula(stay, target, earliest, latest, negated, whole, reward)


def nested(path: Expr) -> NestedFormula:
    """Return a path formula as a tree over its state formulas."""
    atoms: list[Expr] = []
    formula = _tree(path, atoms)
    return NestedFormula(write_expression(path), formula, tuple(atoms))


def _tree(path: Expr, atoms: list[Expr]) -> tuple[Any, ...]:
    if path == TRUE:
        return ("true",)
    if not tree.path_operators(path):
        if path not in atoms:
            atoms.append(path)
        return ("atom", atoms.index(path))
    below = [_tree(part, atoms) for part in _operands(path)]
    match path:
        case Unary():
            return ("!", *below)
        case Binary("=>"):
            return ("|", ("!", below[0]), below[1])
        case Binary("<=>"):
            left, right = below
            return ("|", ("&", left, right), ("&", ("!", left), ("!", right)))
        case Binary(sign):
            return (sign, *below)
        case tree.Path("X"):
            return ("X", *below)
    assert isinstance(path, tree.Path)
    times = steps(path.time)
    first, right = below[0], below[-1]
    match path.operator:
        case "F":
            return ("U", ("true",), right, *times)
        case "G":
            return ("!", ("U", ("true",), ("!", right), *times))
        case "W":
            both = ("&", ("!", first), ("!", right))
            return ("!", ("U", ("&", first, ("!", right)), both, *times))
        case "R":
            return ("!", ("U", ("!", first), ("!", right), *times))
    return ("U", first, right, *times)


def _operands(path: Expr) -> list[Expr]:
    if isinstance(path, tree.Path):
        return [path.right] if path.left is None else [path.left, path.right]
    return list(path.children())


def steps(time: tree.TimeBound | None) -> tuple[int, int | None]:
    """Return the first and last step that count; None for no last one."""
    if time is None:
        return 0, None
    earliest = 0 if time.lower is None else int(number(time.lower)) + time.lower_strict
    latest = None if time.upper is None else int(number(time.upper)) - time.upper_strict
    return earliest, latest


def directions(
    node: tree.Probability | tree.Reward, kind: ModelType | None, source: SourceText
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
        agent = node.agent
    elif node.bound is not None:
        agent = MIN if node.bound.operator.startswith(">") else MAX
    elif kind in (None, ModelType.DTMC):
        agent = MAX
    else:
        who = "agent" if kind is ModelType.MDP else "nature" if kind is ModelType.IDTMC else "both"
        letter = "P" if isinstance(node, tree.Probability) else "R"
        pair = f", or a pair such as {letter}maxmin=?" if kind is ModelType.IMDP else ""
        reason = (
            f"'{letter}=?' must say min or max on a model with choices (here: {who}); "
            f"use {letter}min=? or {letter}max=?{pair}"
        )
        raise source.error(node.position, reason)
    return agent, node.nature or agent


def backward_steps(expr: Expr) -> Work | None:
    """Return how many steps back from their ends the numbers of a checked property are.

    None: it is about more states than the initial ones, or of a kind that only a model with written
    transitions answers.
    """
    outermost, all_ = (
        [node for node in nodes(expr, leaves) if isinstance(node, tree.OPERATORS)]
        for leaves in (tree.OPERATORS, ())
    )
    return None if len(all_) > len(outermost) else all_work(map(_steps_of, outermost))


def all_work(questions: Iterable[Work | int | None]) -> Work | None:
    """Return what some questions ask together; None if that is not known of one."""
    steps, ends = 0, list[Expr]()
    for question in questions:
        if question is None:
            return None
        work = Work(question) if isinstance(question, int) else question
        steps, ends = max(steps, work.steps), [*ends, *work.ends]
    return Work(steps, tuple(ends))


def _steps_of(operator: Expr) -> Work | int | None:
    match operator:
        case tree.Probability(path=path):
            match normal(path):
                case UntilFormula(weak=True):
                    return None
                case UntilFormula(stay, target, earliest=0, latest=None):
                    return Work(ends=(Binary("|", target, _not(stay), position=target.position),))
                case UntilFormula(latest=latest, reward=None):
                    return latest
                case NextFormula():
                    return 1
                case NowFormula():
                    return 0
        case tree.Reward(path=tree.Path(operator="F", right=target)):
            return Work(ends=(target,))
        case tree.Reward(path=tree.InstantaneousReward(step)):
            return int(number(step))
        case tree.Reward(path=tree.CumulativeReward(count, discount)):
            if count is not None:
                return int(number(count))
            if discount is not None and number(discount) < 1.0:
                return int(HALVINGS / (1.0 - number(discount))) + 1
    return None


def _not(expr: Expr) -> Expr:
    return Unary("!", expr, position=expr.position)


def probability(
    form: NextFormula | UntilFormula | ShareFormula | NestedFormula, states: Sets
) -> tuple[Objective, bool]:
    """Return the objective of a path formula, and whether the answer is one minus its value."""
    if isinstance(form, NestedFormula):
        return Temporal(form.over(states)), False
    if isinstance(form, ShareFormula):
        return LongRunShare(states(form.holds)), False
    if isinstance(form, UntilFormula) and form.weak:
        return Temporal(nested(form.path).over(states)), False
    target = form.target
    if isinstance(form, NextFormula):
        return Next(states(Unary("!", target) if form.negated else target)), False
    if form.reward is not None and form.latest is not None:
        goal = states(form.stay), states(target)
        return BudgetUntil(*goal, form.latest, form.reward), form.negated
    if form.negated and form.stay == TRUE:
        stay = target.operand if isinstance(target, Unary) else Unary("!", target)
        return Globally(states(stay), form.latest, form.earliest), False
    if form.stay == TRUE and (form.earliest, form.latest) == (0, None):
        return Reach(states(target)), form.negated
    return Until(states(form.stay), states(target), form.latest, form.earliest), form.negated


def reward(path: Expr, name: str | None, states: Sets) -> Objective:
    """Return the objective of a reward formula."""
    match path:
        case tree.Path("F", right=target, time=None) if not tree.is_nested(path):
            return ReachReward(states(target), name)
        case tree.LongRunReward():
            return LongRunAverage(name)
        case tree.InstantaneousReward(step):
            return Instantaneous(int(number(step)), name)
        case tree.CumulativeReward(steps, discount):
            limit = None if steps is None else int(number(steps))
            factor = 1.0 if discount is None else float(number(discount))
            return _cumulated(limit, factor, name)
    return TemporalReward(nested(path).over(states), name)


def number(expr: Expr) -> int | float:
    """Return a number that the static checks evaluated."""
    assert isinstance(expr, Literal)
    return expr.value


def _cumulated(steps: int | None, discount: float, name: str | None) -> Objective:
    if discount == 0.0:  # only the first step pays
        return Cumulative(1 if steps is None else min(steps, 1), name)
    if steps is not None:
        return Cumulative(steps, name, discount)
    return Total(name) if discount == 1.0 else Discounted(discount, name)
