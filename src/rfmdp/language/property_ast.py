"""The tree of PRISM properties: the expressions of `ast`, and what only properties have.

A property is an expression over `Probability`, `Reward`, `Quantified` and `Filter`, combined by the
ordinary operators. A path formula is a `Path` over state formulas, `!` of one, or a state formula
(which a path satisfies if its first state does).
"""

from __future__ import annotations

from dataclasses import field

from rfmdp.language.ast import Constant, Expr, Formula, LabelDefinition, Node
from rfmdp.language.source import SourceText
from rfmdp.objective import Direction

FILTERS = (
    "state",
    "min",
    "max",
    "avg",
    "sum",
    "count",
    "forall",
    "exists",
    "first",
    "print",
    "printall",
    "range",
    "argmin",
    "argmax",
)
FILTER_ALIASES = {"+": "sum", "&": "forall", "|": "exists"}


class Bound(Node):
    """`operator value` after P or R, as in `P>=0.9`."""

    operator: str  # < <= > >=
    value: Expr


class TimeBound(Node):
    """Steps within which something happens: `lower (<|<=) k (<|<=) upper`, None for no limit.

    `=k` has k on both sides.
    """

    lower: Expr | None
    upper: Expr | None
    lower_strict: bool = False
    upper_strict: bool = False


class Path(Expr):
    """`X right`, `F right`, `G right`, `left U right`, `left W right`, `left R right`.

    discount : only of F, and only inside R
    """

    operator: str  # X F G U W R
    left: Expr | None
    right: Expr
    time: TimeBound | None = None
    discount: Expr | None = None


class CumulativeReward(Expr):
    """`C<=steps` inside R, or the total reward `C` without steps; discounted if so given."""

    steps: Expr | None = None
    discount: Expr | None = None


class InstantaneousReward(Expr):
    """`I=step` inside R: the state reward after exactly so many steps."""

    step: Expr


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
    path : `Path` with F, `CumulativeReward` or `InstantaneousReward`
    """

    structure: str | Expr | None
    agent: Direction | None
    nature: Direction | None
    bound: Bound | None
    path: Expr


class Quantified(Expr):
    """`E [ path ]` or `A [ path ]`: some or every path that is possible satisfies the formula."""

    every: bool
    path: Expr


class Filter(Expr):
    """`filter(operator, operand, states)`; without states it is over all of them."""

    operator: str  # one of FILTERS
    operand: Expr
    states: Expr | None = None


OPERATORS = (Probability, Reward, Quantified, Filter)  # what is evaluated on its own


class Unsupported(Expr):
    """Something PRISM knows and rfmdp does not, kept so that other properties of a file run."""

    construct: str
    text: str


class Unreadable(Expr):
    """The text of a property that is not in the language, kept so that the others of a file run.

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
