"""Expressions of a model or a property, as nodes of a tree, and passes over them.

Every node carries its `position`, which takes no part in `==`. Trees can be very deep (a label
that lists ten thousand states is a chain of ten thousand `|`), so passes over expressions do not
recurse: they use `fold` (compute something bottom-up) or `rewrite` (change nodes bottom-up).
Both visit a node that several parents share only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from operator import is_
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from rfmdp.language.source import NOWHERE, Position

T = TypeVar("T")

# Precedences of operators, loosest first. Unary minus binds tighter than `^`, so `-a^b` is
# `(-a)^b`; `!` binds looser than comparisons, so `!a=b` is `!(a=b)`. Looser than all is `?:`.
LEVELS = (("=>",), ("<=>",), ("|",), ("&",), ("!",), ("=", "!="), ("<", "<=", ">", ">="),
          ("+", "-"), ("*", "/"), ("^",))  # fmt: skip
BINARY = {sign: level for level, signs in enumerate(LEVELS, start=1) for sign in signs}
UNARY = {"!": BINARY.pop("!"), "-": len(LEVELS) + 1}
RIGHT = frozenset({"=>", "^"})
LOOSEST, TIGHTEST = 0, len(LEVELS) + 2  # of ?: and temporal operators, and of atoms


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
        """Return the expressions among its parts and in them, in the order of fields.

        >>> Binary("+", Name("x"), Literal(1)).children()
        (Name(name='x'), Literal(value=1))
        """
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
    """A number or a truth value; the Python type of `value` is the type of the literal.

    exact : the number as it was written or computed, where the float `value` was rounded
    """

    value: bool | int | float
    exact: Fraction | None = field(default=None, compare=False)

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


def fold(
    expr: Expr, combine: Callable[[Expr, tuple[T, ...]], T], leaves: tuple[type[Expr], ...] = ()
) -> T:
    """Compute a value bottom-up without recursion, once per distinct node.

    combine : from a node and the values of its children to its own
    leaves : kinds of nodes that are taken as a whole, without their children

    >>> one = Literal(1)
    >>> fold(Binary("+", one, Unary("-", one)), lambda node, below: 1 + sum(below))
    4
    """
    results: dict[int, T] = {}
    for node, children in _bottom_up(expr, leaves):
        results[id(node)] = combine(node, tuple([results[id(child)] for child in children]))
    return results[id(expr)]


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Apply `change` to every node bottom-up; parts that stay the same stay shared.

    >>> rewrite(Unary("-", Name("N")), lambda e: Literal(3) if e == Name("N") else e)
    Unary(operator='-', operand=Literal(value=3))
    """
    results: dict[int, Expr] = {}
    for node, children in _bottom_up(expr):
        new = [results[id(child)] for child in children]
        results[id(node)] = change(node if all(map(is_, new, children)) else node.rebuilt(new))
    return results[id(expr)]


def nodes(expr: Expr, leaves: tuple[type[Expr], ...] = ()) -> list[Expr]:
    """Return every distinct node of an expression, children before parents, left to right."""
    return [node for node, _ in _bottom_up(expr, leaves)]


def _bottom_up(
    expr: Expr, leaves: tuple[type[Expr], ...] = ()
) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Yield every distinct node of an expression with its children, these first."""
    visited: set[int] = set()
    pending: list[tuple[Expr, tuple[Expr, ...] | None]] = [(expr, None)]
    while pending:
        node, children = pending.pop()
        if id(node) in visited:
            continue
        if children is None:
            children = () if isinstance(node, leaves) else node.children()
            if children:
                pending.append((node, children))
                pending.extend([(child, None) for child in reversed(children)])
                continue
        visited.add(id(node))
        yield node, children
