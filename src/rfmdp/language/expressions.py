"""Expressions and properties: passes over their trees, their types, and back to text.

Trees can be very deep (a label that lists ten thousand states is a chain of ten thousand `|`), so
passes do not recurse: they use `fold` (compute something bottom-up) or `rewrite` (change nodes
bottom-up). Both visit a node that several parents share only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import TypeVar

from rfmdp.language import ast as tree
from rfmdp.language.ast import Binary, Call, Expr, Ite, Label, Literal, Name, Type, Unary
from rfmdp.language.source import Position, SourceText, question

T = TypeVar("T")
Fragment = tuple[int, str]  # precedence, text

# Precedences of operators, loosest first. Unary minus binds tighter than `^`, so `-a^b` is
# `(-a)^b`; `!` binds looser than comparisons, so `!a=b` is `!(a=b)`. Looser than all is `?:`.
LEVELS = (("=>",), ("<=>",), ("|",), ("&",), ("!",), ("=", "!="), ("<", "<=", ">", ">="),
          ("+", "-"), ("*", "/"), ("^",))  # fmt: skip
BINARY = {sign: level for level, signs in enumerate(LEVELS, start=1) for sign in signs}
UNARY = {"!": BINARY.pop("!"), "-": len(LEVELS) + 1}
RIGHT = frozenset({"=>", "^"})
LOOSEST, TIGHTEST = 0, len(LEVELS) + 2  # of ?: and temporal operators, and of atoms
UNARY_PATH, BINARY_PATH = LOOSEST - 1, LOOSEST - 2
INFINITE = "1e999"

# What operators and functions need, and what they give; None: int or double, as their operands
SIGNATURES: dict[str, tuple[Type, Type | None]] = {
    **dict.fromkeys(("&", "|", "=>", "<=>", "!"), (Type.BOOL, Type.BOOL)),
    **dict.fromkeys(("<", "<=", ">", ">="), (Type.DOUBLE, Type.BOOL)),
    **dict.fromkeys(("+", "-", "*", "^", "min", "max", "pow"), (Type.DOUBLE, None)),
    **dict.fromkeys(("floor", "ceil", "round"), (Type.DOUBLE, Type.INT)),
    **dict.fromkeys(("/", "log"), (Type.DOUBLE, Type.DOUBLE)),
    "mod": (Type.INT, Type.INT),
}
ARITY = {"min": None, "max": None, "floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}


def fold(
    expr: Expr, combine: Callable[[Expr, tuple[T, ...]], T], leaves: tuple[type[Expr], ...] = ()
) -> T:
    """Compute a value bottom-up without recursion, once per distinct node.

    combine : from a node and the values of its children to its own
    leaves : kinds of nodes that are taken as a whole, without their children
    """
    results: dict[int, T] = {}
    for node, children in _bottom_up(expr, leaves):
        results[id(node)] = combine(node, tuple([results[id(child)] for child in children]))
    return results[id(expr)]


def rewrite(
    expr: Expr, change: Callable[[Expr], Expr], leaves: tuple[type[Expr], ...] = ()
) -> Expr:
    """Apply `change` to every node bottom-up; parts that stay the same stay shared."""
    results: dict[int, Expr] = {}
    for node, children in _bottom_up(expr, leaves):
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


def type_of(expr: Expr, names: Mapping[str, Type], source: SourceText) -> Type:
    """Return the type of an expression over names with types, or raise its first mistake."""
    return fold(expr, lambda node, below: node_type(node, below, names, source))


def require(expr: Expr, expected: Type, type_: Type, what: str, source: SourceText) -> None:
    """Raise unless a type fits the one expected."""
    if type_ is not expected and (expected, type_) != (Type.DOUBLE, Type.INT):
        listed = "int or double" if expected is Type.DOUBLE else expected.value
        reason = f"{what} must be of type {listed}, found {type_.value}"
        raise source.error(expr.position, reason)


def node_type(
    node: Expr, below: tuple[Type, ...], names: Mapping[str, Type], source: SourceText
) -> Type:
    """Return the type of one node, given the types of its children."""
    match node:
        case Literal():
            return node.type
        case Name(name) if name in names:
            return names[name]
        case Name(name):
            reason = f"unknown name '{name}'; it must be a constant, formula or variable"
            raise source.error(node.position, reason + question(name, names))
        case Label():
            return Type.BOOL
        case Binary("=" | "!=" as sign):
            _require_alike(below, node.position, f"both sides of '{sign}'", source)
            return Type.BOOL
        case Ite(condition, then):
            require(condition, Type.BOOL, below[0], "the condition of '?'", source)
            _require_alike(below[1:], then.position, "both results of '?'", source)
            return below[1] if below[1] is below[2] else Type.DOUBLE
        case Unary(word):
            what = "the operand"
        case Binary(word):
            what = "an operand"
        case Call(word):
            what = "an argument"
            if word not in ARITY:
                reason = f"unknown function '{word}'; there are {', '.join(ARITY)}"
                raise source.error(node.position, reason)
            if ARITY[word] not in (None, len(below)):
                reason = f"'{word}' must have {ARITY[word]} argument(s), found {len(below)}"
                raise source.error(node.position, reason)
        case _:
            reason = "expected an expression without P, R or path operators"
            raise source.error(node.position, reason)
    expected, result = SIGNATURES[word]
    for child, type_ in zip(node.children(), below, strict=True):
        require(child, expected, type_, f"{what} of '{word}'", source)
    return result or (Type.DOUBLE if Type.DOUBLE in below else Type.INT)


def _require_alike(types: tuple[Type, ...], place: Position, what: str, source: SourceText) -> None:
    """Raise unless two types are both bool, or none is."""
    if (types[0] is Type.BOOL) != (types[1] is Type.BOOL):
        found = " and ".join(type_.value for type_ in types)
        raise source.error(place, f"{what} must be of one type, found {found}")


def path_operators(path: Expr) -> list[tree.Path]:
    """Return the operators X, F, G, U, W and R of a path formula, not those of nested P or R."""
    return [node for node in nodes(path, leaves=tree.OPERATORS) if isinstance(node, tree.Path)]


def is_nested(path: Expr) -> bool:
    """Return whether a path formula has operators inside each other, or joined by & and |."""
    while isinstance(path, Unary):
        path = path.operand
    return len(path_operators(path)) > isinstance(path, tree.Path)


def write_expression(expr: Expr) -> str:
    """Return the text of an expression or property."""
    return fold(expr, _fragment)[1]


def _fragment(node: Expr, below: tuple[Fragment, ...]) -> Fragment:
    match node:
        case Literal():
            return _literal(node.value)
        case Name(name):
            return TIGHTEST, name
        case Label(name):
            return TIGHTEST, f'"{name}"'
        case Unary(sign):
            precedence = UNARY[sign]
            inner = TIGHTEST if sign == "!" and isinstance(node.operand, Binary) else precedence
            return precedence, sign + _at_least(below[0], inner)
        case Binary(sign):
            precedence = BINARY[sign]
            left = _at_least(below[0], precedence + (sign in RIGHT))
            right = _at_least(below[1], precedence + (sign not in RIGHT))
            return precedence, f"{left}{sign}{right}"
        case Ite():
            condition, then = (_at_least(fragment, LOOSEST + 1) for fragment in below[:2])
            return LOOSEST, f"{condition} ? {then} : {_at_least(below[2], LOOSEST)}"
        case Call(function):
            return TIGHTEST, f"{function}({', '.join(text for _, text in below)})"
        case tree.Path():
            return _path(node, below)
    return TIGHTEST, _property(node, below)


def _property(node: Expr, below: tuple[Fragment, ...]) -> str:
    match node:
        case tree.CumulativeReward():
            discount = "" if node.discount is None else f"{{discount={_bound(below[-1])}}}"
            return f"C{discount}" + ("" if node.steps is None else f"<={below[0][1]}")
        case tree.InstantaneousReward():
            return f"I={below[0][1]}"
        case tree.LongRunReward():
            return "S"
        case tree.Probability(path=tree.Path("S")):
            path = below[-1][1].removeprefix("S ")
            return f"S{_query(node, below)} [ {path} ]"
        case tree.Probability():
            return f"P{_query(node, below)} [ {below[-1][1]} ]"
        case tree.Reward(structure):
            name = f'"{structure}"' if isinstance(structure, str) else below[0][1]
            head = "R" if structure is None else f"R{{{name}}}"
            return f"{head}{_query(node, below[-2:])} [ {below[-1][1]} ]"
        case tree.Filter(operator):
            return f"filter({operator}, {', '.join(text for _, text in below)})"
        case tree.Unreadable(text):
            return text
    raise TypeError(f"{type(node).__name__} has no text; add it here")


def _path(node: tree.Path, below: tuple[Fragment, ...]) -> Fragment:
    fragments = list(below)
    left = "" if node.left is None else _at_least(fragments.pop(0), UNARY_PATH) + " "
    right = fragments.pop(0)
    time = "" if node.time is None else _time(node.time, fragments)
    # after a bound a '-' would be read as subtraction; F a & (X b) is F (a & (X b)), so write that
    inside = nodes(node.right) if isinstance(node.right, Binary) else []
    apart = right[1].startswith("-") or any(isinstance(each, tree.Path) for each in inside)
    operand = _at_least(right, TIGHTEST if apart else UNARY_PATH)
    return BINARY_PATH if left else UNARY_PATH, f"{left}{node.operator}{time} {operand}"


def _time(time: tree.TimeBound, fragments: list[Fragment]) -> str:
    reward = "" if time.reward is None else f'{{"{time.reward}"}}'
    if time.lower is not None and time.upper is not None:
        if time.lower == time.upper:
            return f"{reward}={_bound(fragments[0])}"
        return f"{reward}[{fragments[0][1]},{fragments[1][1]}]"
    if time.upper is not None:
        return f"{reward}{'<' if time.upper_strict else '<='}{_bound(fragments[0])}"
    return f"{reward}{'>' if time.lower_strict else '>='}{_bound(fragments[0])}"


def _query(node: tree.Probability | tree.Reward, below: tuple[Fragment, ...]) -> str:
    players = "".join(d.name.lower() for d in (node.agent, node.nature) if d is not None)
    return players + ("=?" if node.bound is None else node.bound.operator + _bound(below[0]))


def _bound(fragment: Fragment) -> str:
    """Put parentheses around all but atoms; a name before '(' must not look like a function."""
    precedence, text = fragment
    return text if precedence == TIGHTEST and text not in ARITY else f"({text})"


def _literal(value: bool | int | float) -> Fragment:
    if isinstance(value, bool):
        return TIGHTEST, "true" if value else "false"
    if math.isnan(value):
        return TIGHTEST, "(0/0)"
    text = repr(abs(value)) if math.isfinite(value) else INFINITE
    negative = math.copysign(1.0, value) < 0
    return (UNARY["-"], f"-{text}") if negative else (TIGHTEST, text)


def _at_least(fragment: Fragment, precedence: int) -> str:
    return fragment[1] if fragment[0] >= precedence else f"({fragment[1]})"
