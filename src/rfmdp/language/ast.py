"""The tree of a PRISM model as its text says it: nothing expanded, nothing evaluated.

Every node carries its `position`, which takes no part in `==`. Trees can be very deep (a label
that lists ten thousand states is a chain of ten thousand `|`), so passes over expressions do not
recurse: they use `fold` (compute something bottom-up) or `rewrite` (change nodes bottom-up).
Both visit a node that several parents share only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import TypeVar

from rfmdp.language.source import NOWHERE, Position, SourceText

T = TypeVar("T")


class Type(Enum):
    """Type of an expression; an `INT` may stand wherever a `DOUBLE` is expected."""

    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"


class ModelType(Enum):
    """Kind of model that a text declares."""

    DTMC = "dtmc"
    MDP = "mdp"
    IDTMC = "idtmc"
    IMDP = "imdp"


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the text."""

    position: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """An expression; leaves have no children."""

    def children(self) -> tuple[Expr, ...]:
        """Return the operands from left to right."""
        return ()

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return this node with other operands, in the order of `children()`."""
        return self


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A number or a truth value; the Python type of `value` is the type of the literal.

    exact : the number as it was written or computed, where the float `value` was rounded
    """

    value: bool | int | float
    exact: Fraction | None = field(default=None, repr=False)

    @property
    def type(self) -> Type:
        """Return the type of the value."""
        return type_of_value(self.value)

    def __eq__(self, other: object) -> bool:
        """Distinguish 1, 1.0 and true, which Python takes for equal."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A constant, formula or variable, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Label(Expr):
    """A quoted name: a label, or in properties also another property."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`-x` or `!x`."""

    operator: str  # "-" or "!"
    operand: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return the operand."""
        return (self.operand,)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator on another operand."""
        return replace(self, operand=children[0])


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`left operator right`, with one of ^ * / + - < <= > >= = != & | <=> =>."""

    operator: str
    left: Expr
    right: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return left and right."""
        return (self.left, self.right)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same operator on other operands."""
        return replace(self, left=children[0], right=children[1])


@dataclass(frozen=True, slots=True)
class Ite(Expr):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr

    def children(self) -> tuple[Expr, ...]:
        """Return condition, then, otherwise."""
        return (self.condition, self.then, self.otherwise)

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return a choice between other operands."""
        condition, then, otherwise = children
        return replace(self, condition=condition, then=then, otherwise=otherwise)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function: min, max, floor, ceil, round, pow, mod or log."""

    function: str
    arguments: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """Return the arguments."""
        return self.arguments

    def rebuilt(self, children: Sequence[Expr]) -> Expr:
        """Return the same function of other arguments."""
        return replace(self, arguments=tuple(children))


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """`const type name = value;`, undefined if `value` is None."""

    name: str
    type: Type
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Formula(Node):
    """`formula name = value;`."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class LabelDefinition(Node):
    """`label "name" = value;`."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class VariableDeclaration(Node):
    """`name : [lower..upper] init init;`, or a bool if both bounds are None."""

    name: str
    lower: Expr | None
    upper: Expr | None
    init: Expr | None

    @property
    def is_bool(self) -> bool:
        """Return whether this is a bool variable."""
        return self.lower is None


@dataclass(frozen=True, slots=True)
class ProbabilityInterval(Node):
    """`[lower, upper]` in the place of a probability."""

    lower: Expr
    upper: Expr


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`(variable' = value)`; `written` is the value with its formulas by their names."""

    variable: str
    value: Expr
    written: Expr | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update(Node):
    """`probability : assignments`; no assignment is `true`, no probability is certainty."""

    probability: Expr | ProbabilityInterval | None
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Command(Node):
    """`[action] guard -> updates;`, without action for `[]`."""

    action: str | None
    guard: Expr
    updates: tuple[Update, ...]


@dataclass(frozen=True, slots=True)
class Module(Node):
    """`module name ... endmodule`."""

    name: str
    variables: tuple[VariableDeclaration, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Renaming(Node):
    """`old = new` in a renamed module."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenamedModule(Node):
    """`module name = base [ renamings ] endmodule`."""

    name: str
    base: str
    renamings: tuple[Renaming, ...]


@dataclass(frozen=True, slots=True)
class RewardItem(Node):
    """`guard : value;` of states, or `[action] guard : value;` of transitions.

    action : None for states, "" for `[]`, otherwise the action
    """

    action: str | None
    guard: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class RewardStructure(Node):
    """`rewards "name" ... endrewards`; the name is None where the text has none."""

    name: str | None
    items: tuple[RewardItem, ...]


@dataclass(frozen=True, slots=True)
class ModelFile(Node):
    """A whole model file. Each kind of definition keeps the order of the text."""

    type: ModelType | None  # None: not declared
    constants: tuple[Constant, ...] = ()
    formulas: tuple[Formula, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    globals: tuple[VariableDeclaration, ...] = ()
    modules: tuple[Module | RenamedModule, ...] = ()
    rewards: tuple[RewardStructure, ...] = ()
    init: Expr | None = None
    source: SourceText = field(default=SourceText(""), compare=False, repr=False)


def type_of_value(value: bool | int | float) -> Type:
    """Return the PRISM type of a Python value.

    >>> type_of_value(True), type_of_value(1), type_of_value(1.0)
    (<Type.BOOL: 'bool'>, <Type.INT: 'int'>, <Type.DOUBLE: 'double'>)
    """
    if isinstance(value, bool):
        return Type.BOOL
    return Type.INT if isinstance(value, int) else Type.DOUBLE


def fold(expr: Expr, combine: Callable[[Expr, tuple[T, ...]], T]) -> T:
    """Compute a value bottom-up without recursion, once per distinct node.

    Parameters
    ----------
    combine
        Gets a node and the values of its children, returns the value of the node.

    Examples
    --------
    >>> one = Literal(1)
    >>> fold(Binary("+", one, Unary("-", one)), lambda node, below: 1 + sum(below))
    4
    """
    done: dict[int, T] = {}
    pending = [expr]
    while pending:
        node = pending[-1]
        if id(node) in done:
            pending.pop()
            continue
        children = node.children()
        missing = [child for child in children if id(child) not in done]
        if missing:
            pending.extend(reversed(missing))
        else:
            done[id(node)] = combine(node, tuple(done[id(child)] for child in children))
            pending.pop()
    return done[id(expr)]


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Apply `change` to every node bottom-up; parts that stay the same stay shared.

    >>> rewrite(Unary("-", Name("N")), lambda e: Literal(3) if e == Name("N") else e)
    Unary(operator='-', operand=Literal(value=3))
    """

    def combine(node: Expr, children: tuple[Expr, ...]) -> Expr:
        same = all(new is old for new, old in zip(children, node.children(), strict=True))
        return change(node if same else node.rebuilt(children))

    return fold(expr, combine)


def nodes(expr: Expr) -> list[Expr]:
    """Return every distinct node of an expression, children before parents, left to right."""
    found: list[Expr] = []
    fold(expr, lambda node, below: found.append(node))
    return found
