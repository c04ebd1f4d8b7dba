"""The tree of PRISM properties: the expressions of `ast`, and what only properties have.

A property is an expression over `Probability`, `Reward`, `Quantified` and `Filter`, combined by the
ordinary operators. A path formula is a `Path` over state formulas, `!` of one, or a state formula
(which a path satisfies if its first state does).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from rfmdp.language.ast import Constant, Expr, Formula, LabelDefinition, Node
from rfmdp.language.source import SourceText

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


class Optimum(Enum):
    """What agent or nature is after."""

    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Bound(Node):
    """`operator value` after P or R, as in `P>=0.9`."""

    operator: str  # < <= > >=
    value: Expr


@dataclass(frozen=True, slots=True)
class TimeBound(Node):
    """Steps within which something happens: `lower (<|<=) k (<|<=) upper`, None for no limit.

    `=k` has k on both sides.
    """

    lower: Expr | None
    upper: Expr | None
    lower_strict: bool = False
    upper_strict: bool = False


@dataclass(frozen=True, slots=True)
class Path(Expr):
    """`X right`, `F right`, `G right`, `left U right`, `left W right`, `left R right`.

    discount : only of F, and only inside R
    """

    operator: str  # X F G U W R
    left: Expr | None
    right: Expr
    time: TimeBound | None = None
    discount: Expr | None = None

    def children(self) -> tuple[Expr, ...]:
        """Return left, right, the bounds of time and the discount, those that exist."""
        time = self.time or TimeBound(None, None)
        return _present(self.left, self.right, time.lower, time.upper, self.discount)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator with other operands."""
        rest = list(children)
        left = rest.pop(0) if self.left is not None else None
        right, time = rest.pop(0), self.time
        if time is not None:
            lower = rest.pop(0) if time.lower is not None else None
            upper = rest.pop(0) if time.upper is not None else None
            time = replace(time, lower=lower, upper=upper)
        discount = rest.pop(0) if self.discount is not None else None
        return replace(self, left=left, right=right, time=time, discount=discount)


@dataclass(frozen=True, slots=True)
class CumulativeReward(Expr):
    """`C<=steps` inside R, or the total reward `C` without steps; discounted if so given."""

    steps: Expr | None = None
    discount: Expr | None = None

    def children(self) -> tuple[Expr, ...]:
        """Return steps and discount, those that exist."""
        return _present(self.steps, self.discount)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same with other steps and discount."""
        rest = list(children)
        steps = rest.pop(0) if self.steps is not None else None
        return replace(self, steps=steps, discount=rest.pop(0) if rest else None)


@dataclass(frozen=True, slots=True)
class InstantaneousReward(Expr):
    """`I=step` inside R: the state reward after exactly so many steps."""

    step: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return the step."""
        return (self.step,)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same with another step."""
        return replace(self, step=children[0])


@dataclass(frozen=True, slots=True)
class Probability(Expr):
    """`P agent nature bound [ path ]`; without bound it is `=?`.

    agent, nature : None where the text does not say
    """

    agent: Optimum | None
    nature: Optimum | None
    bound: Bound | None
    path: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return the bound, if there is one, and the path formula."""
        return _present(_bound_value(self.bound), self.path)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator with another bound and path formula."""
        bound = None if self.bound is None else replace(self.bound, value=children[0])
        return replace(self, bound=bound, path=children[-1])


@dataclass(frozen=True, slots=True)
class Reward(Expr):
    """`R{structure} agent nature bound [ path ]`.

    structure : name, number from 1, or None for the first; a checked property has the number
    path : `Path` with F, `CumulativeReward` or `InstantaneousReward`
    """

    structure: str | Expr | None
    agent: Optimum | None
    nature: Optimum | None
    bound: Bound | None
    path: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return the number of the structure and the bound, those that exist, and the path."""
        number = self.structure if isinstance(self.structure, Expr) else None
        return _present(number, _bound_value(self.bound), self.path)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator with other parts."""
        rest = list(children)
        structure = rest.pop(0) if isinstance(self.structure, Expr) else self.structure
        bound = None if self.bound is None else replace(self.bound, value=rest.pop(0))
        return replace(self, structure=structure, bound=bound, path=rest.pop())


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """`E [ path ]` or `A [ path ]`: some or every path that is possible satisfies the formula."""

    every: bool
    path: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return the path formula."""
        return (self.path,)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator of another path formula."""
        return replace(self, path=children[0])


@dataclass(frozen=True, slots=True)
class Filter(Expr):
    """`filter(operator, operand, states)`; without states it is over all of them."""

    operator: str  # one of FILTERS
    operand: Expr
    states: Expr | None = None

    def children(self) -> tuple[Expr, ...]:
        """Return the operand and the states, if given."""
        return _present(self.operand, self.states)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same filter of another operand over other states."""
        states = children[1] if self.states is not None else None
        return replace(self, operand=children[0], states=states)


@dataclass(frozen=True, slots=True)
class Unsupported(Expr):
    """Something PRISM knows and rfmdp does not, kept so that other properties of a file run."""

    construct: str
    text: str


@dataclass(frozen=True, slots=True)
class PropertyDefinition(Node):
    """One property of a file, with its name if it has one."""

    name: str | None
    expression: Expr


@dataclass(frozen=True, slots=True)
class PropertyFile(Node):
    """A whole property file."""

    properties: tuple[PropertyDefinition, ...] = ()
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    source: SourceText = field(default=SourceText(""), compare=False, repr=False)


def _bound_value(bound: Bound | None) -> Expr | None:
    return None if bound is None else bound.value


def _present(*parts: Expr | None) -> tuple[Expr, ...]:
    return tuple(part for part in parts if part is not None)
