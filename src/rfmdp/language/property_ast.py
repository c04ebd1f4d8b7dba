"""The tree of PRISM properties: the expressions of `ast`, and what only properties have.

A property is an expression over `Probability`, `Reward` and `Filter`, combined by the ordinary
operators. A path formula is a `Path` over path formulas, a Boolean combination of some, or
a state formula (which a path satisfies if its first state does).
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from rfmdp.language.ast import (
    Binary,
    Constant,
    Expr,
    Formula,
    LabelDefinition,
    Node,
    Unary,
    fold,
    nodes,
)
from rfmdp.language.source import SourceText
from rfmdp.objective import Direction

FILTERS = ("state", "min", "max", "avg", "sum", "count", "forall", "exists", "first", "print",
           "printall", "range")  # fmt: skip
FILTER_ALIASES = {"+": "sum", "&": "forall", "|": "exists"}
JOINS = ("&", "|", "=>", "<=>")  # of path formulas
DEEPEST = 100  # operators of a path formula inside each other


class Bound(Node):
    """`operator value` after P or R, as in `P>=0.9`."""

    operator: str  # < <= > >=
    value: Expr


class TimeBound(Node):
    """Steps within which something happens: `lower (<|<=) k (<|<=) upper`, None for no limit.

    `=k` has k on both sides. With the name of a `reward`, what was paid counts, not steps.
    """

    lower: Expr | None
    upper: Expr | None
    lower_strict: bool = False
    upper_strict: bool = False
    reward: str | None = None


class Path(Expr):
    """`X right`, `F right`, `G right`, `left U right`, `left W right`, `left R right`.

    `S=? [ right ]` is a `Probability` of the operator S: the share of all steps in which it holds.
    """

    operator: str  # X F G U W R S
    left: Expr | None
    right: Expr
    time: TimeBound | None = None


class CumulativeReward(Expr):
    """`C<=steps` inside R, or the total reward `C` without steps; discounted if so given."""

    steps: Expr | None = None
    discount: Expr | None = None


class InstantaneousReward(Expr):
    """`I=step` inside R: the state reward after exactly so many steps."""

    step: Expr


class LongRunReward(Expr):
    """`S` inside R: the mean reward of a step in the long run."""


class Probability(Expr):
    """`P agent nature bound [ path ]`; without bound it is `=?`.

    agent, nature : None where the text does not say
    """

    agent: Direction | None
    nature: Direction | None
    bound: Bound | None
    path: Expr


class Reward(Expr):
    """`R{structure} agent nature bound [ path ]`.

    structure : name, number from 1, or None for the first; a checked property has the number
    path : `Path` with F, `CumulativeReward`, `InstantaneousReward` or `LongRunReward`
    """

    structure: str | Expr | None
    agent: Direction | None
    nature: Direction | None
    bound: Bound | None
    path: Expr


class Filter(Expr):
    """`filter(operator, operand, states)`; without states it is over all of them."""

    operator: str  # one of FILTERS
    operand: Expr
    states: Expr | None = None


OPERATORS = (Probability, Reward, Filter)  # what is evaluated on its own


class Unreadable(Expr):
    """The text of a property that cannot be read, or is not supported; others of a file still run.

    Its position is that of the mistake.
    """

    text: str
    reason: str


class PropertyDefinition(Node):
    """One property of a file, with its name if it has one."""

    name: str | None
    expression: Expr


class PropertyFile(Node):
    """A whole property file."""

    properties: tuple[PropertyDefinition, ...] = ()
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    source: SourceText = field(default=SourceText(""), compare=False)


class FormulaKind(Enum):
    """What kind of formula an expression is."""

    STATE = 0
    PATH = 1
    REWARD = 2


def require_supported(expr: Expr, source: SourceText) -> None:
    """Raise PrismError unless the property is built of supported parts in the supported way."""
    form = fold(expr, lambda node, below: _form(node, below, source))
    if form is not FormulaKind.STATE:
        reason = "a path formula must stand inside P or R, for example P=? [ F x=1 ]"
        raise source.error(expr.position, reason)


def _form(node: Expr, below: tuple[FormulaKind, ...], source: SourceText) -> FormulaKind:
    match node:
        case Unreadable(_, reason):
            raise source.error(node.position, reason)
        case CumulativeReward() | InstantaneousReward() | LongRunReward():
            return FormulaKind.REWARD
        case Path():
            _check_path(node, source)
            return FormulaKind.PATH
        case Unary("!"):
            return below[0]
        case Binary(operator) if operator in JOINS and FormulaKind.REWARD not in below:
            return max(below, key=lambda form: form is FormulaKind.PATH)
        case Probability(path=path):
            if is_nested(path):
                _check_nested(path, source)
            return FormulaKind.STATE
        case Reward(path=path):
            if not isinstance(path, CumulativeReward | InstantaneousReward | LongRunReward):
                _check_reward(path, source)
            return FormulaKind.STATE
    if all(form is FormulaKind.STATE for form in below):
        return FormulaKind.STATE
    what = "a filter" if isinstance(node, Filter) else "an operator or function"
    reason = f"the operand of {what} must be a state formula, found a path formula"
    raise source.error(node.children()[0].position, reason)


def _check_path(node: Path, source: SourceText) -> None:
    if node.operator == "X" and node.time is not None:
        raise source.error(node.time.position, "'X' must have no bound on steps")
    if node.time is not None and node.time.reward is not None and node.time.upper is None:
        raise source.unsupported(
            node.time.position, "a lower bound on rewards", 'use <= or <, as in F{"r"}<=5'
        )


def path_operators(path: Expr) -> list[Path]:
    """Return the operators X, F, G, U, W and R of a path formula, not those of nested P or R."""
    return [node for node in nodes(path, leaves=OPERATORS) if isinstance(node, Path)]


def is_nested(path: Expr) -> bool:
    """Return whether a path formula has operators inside each other, or joined by & and |."""
    while isinstance(path, Unary):
        path = path.operand
    return len(path_operators(path)) > isinstance(path, Path)


def _check_nested(path: Expr, source: SourceText) -> None:
    """Raise if operators inside each other are too deep, or count rewards."""

    def depth(node: Expr, below: tuple[int, ...]) -> int:
        return max(below, default=0) + 1

    if fold(path, depth, leaves=OPERATORS) > DEEPEST:
        reason = f"operators of a path formula must be nested at most {DEEPEST} deep"
        raise source.error(path.position, reason)
    for node in path_operators(path):
        if node.time is not None and node.time.reward is not None:
            construct = "a bound on a reward inside R, or with other path operators"
            raise source.unsupported(node.time.position, construct, "count steps instead")


def _check_reward(path: Expr, source: SourceText) -> None:
    if not path_operators(path):
        forms = "a path formula, C, C<=k, C{discount=d} or I=k"
        raise source.error(path.position, f"R must be over {forms}; write F before a state formula")
    _check_nested(path, source)
