"""The tree of a PRISM model, property or expression as its text says it.

Every node carries its `position`, which takes no part in `==`. A property is an expression over
`Probability`, `Reward` and `Filter`, combined by the ordinary operators. A path formula is a `Path`
over path formulas, a Boolean combination of some, or a state formula (which a path satisfies if its
first state does).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Self, dataclass_transform

from rfmdp.language.source import NOWHERE, Position, SourceText
from rfmdp.objective import Direction

LISTS = ("print", "printall")
FILTERS = ("state", "min", "max", "avg", "sum", "count", "forall", "exists", "first", *LISTS)
FILTER_ALIASES = {"+": "sum", "&": "forall", "|": "exists"}


class Type(Enum):
    """Type of an expression; an `INT` may stand wherever a `DOUBLE` is expected."""

    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Record:
    """Makes its subclasses dataclasses with as few methods of their own as possible.

    Python makes every method of every dataclass from a text when it is imported, which would take
    18 ms of every start. That nobody changes a node is checked by types alone.
    """

    compared: ClassVar[tuple[str, ...]]  # fields that take part in `==` and `repr`

    def __init_subclass__(cls) -> None:
        made: Any = dataclass(eq=False, repr=False)(cls)
        cls.compared = tuple(field.name for field in fields(made) if field.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.compared)

    def __repr__(self) -> str:
        texts = (f"{name}={getattr(self, name)!r}" for name in self.compared)
        return f"{type(self).__name__}({', '.join(texts)})"


class Node(_Record):
    """Anything with a place in the text. Its parts are the fields that take part in `==`."""

    position: Position = field(default=NOWHERE, compare=False, kw_only=True)

    def children(self) -> tuple[Expr, ...]:
        """Return the expressions among its parts and in them, in the order of fields."""
        expressions: list[Expr] = []
        for name in self.compared:
            value = getattr(self, name)
            if isinstance(value, Expr):
                expressions.append(value)
            elif isinstance(value, Node):
                expressions += value.children()
            elif isinstance(value, tuple):
                for entry in value:
                    expressions += (entry,) if isinstance(entry, Expr) else entry.children()
        return tuple(expressions)

    def rebuilt(self, children: Iterable[Expr]) -> Self:
        """Return this node with other expressions, in the order of `children()`."""
        rest = iter(children)
        values = ((name, getattr(self, name)) for name in self.compared)
        return replace(self, **{name: _refilled(value, rest) for name, value in values})


class Expr(Node):
    """An expression; leaves have no children."""


def _refilled(value: Any, rest: Iterator[Expr]) -> Any:
    if isinstance(value, Expr):
        return next(rest)
    if isinstance(value, tuple):
        return tuple(_refilled(entry, rest) for entry in value)
    return value.rebuilt(rest) if isinstance(value, Node) else value


class Literal(Expr):
    """A number or a truth value; the Python type of `value` is the type of the literal."""

    value: bool | int | float
    exact: Fraction | None = field(default=None, compare=False)  # what `value` was rounded from

    @property
    def type(self) -> Type:
        """Return the type of the value."""
        if isinstance(self.value, bool):
            return Type.BOOL
        return Type.INT if isinstance(self.value, int) else Type.DOUBLE

    def __eq__(self, other: object) -> bool:
        """Distinguish 1, 1.0 and true, which Python takes for equal."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


class Name(Expr):
    """A constant, formula or variable, by its name."""

    name: str


class Label(Expr):
    """A quoted name: a label, or in properties also another property."""

    name: str


class Unary(Expr):
    """`-x` or `!x`."""

    operator: str  # "-" or "!"
    operand: Expr


class Binary(Expr):
    """`left operator right`, with one of ^ * / + - < <= > >= = != & | <=> =>."""

    operator: str
    left: Expr
    right: Expr


class Ite(Expr):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


class Call(Expr):
    """A function: min, max, floor, ceil, round, pow, mod or log."""

    function: str
    arguments: tuple[Expr, ...]


PLAIN = (Literal, Name, Label, Unary, Binary, Ite, Call)  # what models may have


class ModelType(Enum):
    """Kind of model that a text declares."""

    DTMC = "dtmc"
    MDP = "mdp"
    IDTMC = "idtmc"
    IMDP = "imdp"


class Definition(Node):
    """`const type name = value;`, `formula name = value;` or `label "name" = value;`."""

    kind: str  # "constant", "formula" or "label"; in scopes of properties, also "property"
    name: str
    value: Expr | None  # None for a constant that the text leaves open
    type: Type | None = None  # of a constant

    @property
    def key(self) -> str:
        """The name as expressions have it: in quotes, but for constants and formulas."""
        return f'"{self.name}"' if self.kind in ("label", "property") else self.name


class SourceFile(Node):
    """What all files have."""

    definitions: tuple[Definition, ...] = ()
    source: SourceText = field(default=SourceText(""), compare=False)

    @property
    def open(self) -> set[str]:
        """The constants without a value."""
        return {d.name for d in self.definitions if d.kind == "constant" and d.value is None}


class VariableDeclaration(Node):
    """`name : [lower..upper] init init;`, or a bool if both bounds are None."""

    name: str
    lower: Expr | None
    upper: Expr | None
    init: Expr | None


class ProbabilityInterval(Node):
    """`[lower, upper]` in the place of a probability."""

    lower: Expr
    upper: Expr


class Assignment(Node):
    """`(variable' = value)`; `written` is the value with its formulas by their names."""

    variable: str
    value: Expr
    written: Expr | None = field(default=None, compare=False)


class Update(Node):
    """`probability : assignments`; no assignment is `true`."""

    probability: Expr | ProbabilityInterval
    assignments: tuple[Assignment, ...]

    @property
    def ends(self) -> tuple[Expr, ...]:
        """Its probability, or both ends of its interval."""
        chance = self.probability
        return (chance,) if isinstance(chance, Expr) else chance.children()


class Command(Node):
    """`[action] guard -> updates;`, without action for `[]`."""

    action: str | None
    guard: Expr
    updates: tuple[Update, ...]

    @property
    def has_intervals(self) -> bool:
        """Whether some probability is an interval."""
        return any(len(update.ends) > 1 for update in self.updates)


class Module(Node):
    """`module name ... endmodule`."""

    name: str
    variables: tuple[VariableDeclaration, ...]
    commands: tuple[Command, ...]

    @property
    def alphabet(self) -> tuple[str, ...]:
        """Its actions in order of appearance, without the unlabelled one."""
        return tuple(dict.fromkeys(c.action for c in self.commands if c.action is not None))


class Renaming(Node):
    """`old = new` in a renamed module."""

    old: str
    new: str


class RenamedModule(Node):
    """`module name = base [ renamings ] endmodule`."""

    name: str
    base: str
    renamings: tuple[Renaming, ...]


class RewardItem(Node):
    """`guard : value;` of states, or `[action] guard : value;` of transitions."""

    action: str | None  # None for states, "" for `[]`
    guard: Expr
    value: Expr


class RewardStructure(Node):
    """`rewards "name" ... endrewards`; the name is None where the text has none."""

    name: str | None
    items: tuple[RewardItem, ...]


class ModelFile(SourceFile):
    """A whole model file. Each kind of part keeps the order of the text."""

    type: ModelType | None = None  # None: not declared
    globals: tuple[VariableDeclaration, ...] = ()
    modules: tuple[Module | RenamedModule, ...] = ()
    rewards: tuple[RewardStructure, ...] = ()
    init: Expr | None = None


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
    """`P agent nature bound [ path ]`; without bound it is `=?`."""

    agent: Direction | None  # None: the text does not say
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
    """The text of a property that cannot be read, or is not supported, placed at the mistake."""

    text: str
    reason: str


class PropertyDefinition(Node):
    """One property of a file, with its name if it has one."""

    name: str | None
    expression: Expr


class PropertyFile(SourceFile):
    """A whole property file."""

    properties: tuple[PropertyDefinition, ...] = ()
