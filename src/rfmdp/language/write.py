"""Expressions and properties back to text, so that `parse_expression(write_expression(e)) == e`.

Parentheses appear where the tree needs them, and where a reader would: `!(x=1)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rfmdp.language import property_ast as props
from rfmdp.language.ast import (
    BINARY,
    LOOSEST,
    RIGHT,
    TIGHTEST,
    UNARY,
    Binary,
    Call,
    Expr,
    Ite,
    Label,
    Literal,
    Name,
    Unary,
    fold,
)
from rfmdp.language.types import ARITY

# A text in pieces that share their parts: joined once at the end, chains stay linear.
Pieces = tuple["str | Pieces", ...]
Part = tuple[int, Pieces]  # precedence, text

UNARY_PATH, BINARY_PATH = LOOSEST - 1, LOOSEST - 2
INFINITE = "1e999"


def write_expression(expr: Expr) -> str:
    """Return the text of an expression or property.

    >>> write_expression(Binary("*", Binary("+", Name("a"), Name("b")), Literal(2)))
    '(a+b)*2'
    """
    return _joined(fold(expr, _part)[1])


def _part(node: Expr, below: tuple[Part, ...]) -> Part:
    match node:
        case Literal():
            return _literal(node.value)
        case Name(name):
            return TIGHTEST, (name,)
        case Label(name):
            return TIGHTEST, (f'"{name}"',)
        case Unary(sign):
            precedence = UNARY[sign]
            inner = TIGHTEST if sign == "!" and isinstance(node.operand, Binary) else precedence
            return precedence, (sign, _at_least(below[0], inner))
        case Binary(sign):
            precedence = BINARY[sign]
            left = precedence + (sign in RIGHT)
            right = precedence + (sign not in RIGHT)
            return precedence, (_at_least(below[0], left), sign, _at_least(below[1], right))
        case Ite():
            condition, then = (_at_least(part, LOOSEST + 1) for part in below[:2])
            return LOOSEST, (condition, " ? ", then, " : ", _at_least(below[2], LOOSEST))
        case Call(function):
            return TIGHTEST, (function, "(", *_separated(below), ")")
    return _property_part(node, below)


def _property_part(node: Expr, below: tuple[Part, ...]) -> Part:
    match node:
        case props.Path():
            return _path(node, below)
        case props.CumulativeReward():
            discount: Pieces = ()
            if node.discount is not None:
                discount = ("{discount=", _bound(below[-1]), "}")
            steps = ("<=", below[0][1]) if node.steps is not None else ()
            return TIGHTEST, ("C", discount, steps)
        case props.InstantaneousReward():
            return TIGHTEST, ("I=", below[0][1])
        case props.LongRunReward():
            return TIGHTEST, ("S",)
        case props.Probability(path=props.Path("S")):
            head: Pieces = ("S", _quantifier(node), _query(node.bound, below))
            return TIGHTEST, (head, " [ ", below[-1][1][-1], " ]")
        case props.Probability():
            head = ("P", _quantifier(node), _query(node.bound, below))
            return TIGHTEST, (head, " [ ", below[-1][1], " ]")
        case props.Reward():
            query = _query(node.bound, below[-2:])
            head = ("R", _structure(node, below), _quantifier(node), query)
            return TIGHTEST, (head, " [ ", below[-1][1], " ]")
        case props.Filter(operator):
            return TIGHTEST, ("filter(", operator, ", ", *_separated(below), ")")
        case props.Unreadable():
            return TIGHTEST, (node.text,)
    raise TypeError(f"{type(node).__name__} has no text; add it to write.py")


def _path(node: props.Path, below: tuple[Part, ...]) -> Part:
    parts = list(below)
    left = parts.pop(0) if node.left is not None else None
    right = parts.pop(0)
    time: Pieces = () if node.time is None else _time(node.time, parts)
    if node.time is not None and node.time.reward is not None:
        time = (f'{{"{node.time.reward}"}}', *time)
    # after a bound a '-' would be read as subtraction
    operand = _at_least(right, TIGHTEST if _starts_with_minus(right[1]) else UNARY_PATH)
    text: Pieces = (node.operator, time, " ", operand)
    if left is None:
        return UNARY_PATH, text
    return BINARY_PATH, (_at_least(left, UNARY_PATH), " ", *text)


def _time(time: props.TimeBound, parts: list[Part]) -> Pieces:
    if time.lower is not None and time.upper is not None:
        lower, upper = parts
        if time.lower == time.upper:
            return ("=", _bound(lower))
        return ("[", lower[1], ",", upper[1], "]")
    if time.upper is not None:
        return ("<" if time.upper_strict else "<=", _bound(parts[0]))
    return (">" if time.lower_strict else ">=", _bound(parts[0]))


def _structure(node: props.Reward, below: tuple[Part, ...]) -> Pieces:
    if node.structure is None:
        return ()
    if isinstance(node.structure, str):
        return (f'{{"{node.structure}"}}',)
    return ("{", below[0][1], "}")


def _quantifier(node: props.Probability | props.Reward) -> str:
    return "".join(d.name.lower() for d in (node.agent, node.nature) if d is not None)


def _query(bound: props.Bound | None, below: tuple[Part, ...]) -> Pieces:
    return ("=?",) if bound is None else (bound.operator, _bound(below[0]))


def _bound(part: Part) -> Pieces:
    """Put parentheses around all but atoms; a name before '(' must not look like a function."""
    precedence, text = part
    plain = precedence == TIGHTEST and not (len(text) == 1 and text[0] in ARITY)
    return text if plain else ("(", text, ")")


def _literal(value: bool | int | float) -> Part:
    if isinstance(value, bool):
        return TIGHTEST, ("true" if value else "false",)
    if math.isnan(value):
        return TIGHTEST, ("(0/0)",)
    text = repr(abs(value)) if math.isfinite(value) else INFINITE
    negative = math.copysign(1.0, value) < 0
    return (UNARY["-"], ("-", text)) if negative else (TIGHTEST, (text,))


def _at_least(part: Part, precedence: int) -> Pieces:
    return part[1] if part[0] >= precedence else ("(", part[1], ")")


def _separated(parts: Iterable[Part]) -> list[str | Pieces]:
    pieces: list[str | Pieces] = []
    for _, text in parts:
        pieces += [", ", text] if pieces else [text]
    return pieces


def _starts_with_minus(pieces: Pieces) -> bool:
    first: str | Pieces = pieces
    while not isinstance(first, str):
        first = next((piece for piece in first if piece), "")
    return first.startswith("-")


def _joined(pieces: Pieces) -> str:
    texts: list[str] = []
    pending: list[str | Pieces] = [pieces]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            pending.extend(reversed(piece))
    return "".join(texts)
