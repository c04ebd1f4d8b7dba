"""Expressions and properties back to text, so that `parse_expression(write_expression(e)) == e`.

Parentheses appear where the tree needs them, and where a reader would: `!(x=1)`.
"""

from __future__ import annotations

import math

from rfmdp.language import ast
from rfmdp.language.expressions import (
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
    nodes,
)
from rfmdp.language.types import ARITY

Fragment = tuple[int, str]  # precedence, text

UNARY_PATH, BINARY_PATH = LOOSEST - 1, LOOSEST - 2
INFINITE = "1e999"


def write_expression(expr: Expr) -> str:
    """Return the text of an expression or property.

    >>> write_expression(Unary("-", Binary("+", Name("a"), Name("b"))))
    '-(a+b)'
    """
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
            return TIGHTEST, f"{function}({_separated(below)})"
        case ast.Path():
            return _path(node, below)
    return TIGHTEST, _property(node, below)


def _property(node: Expr, below: tuple[Fragment, ...]) -> str:
    match node:
        case ast.CumulativeReward():
            discount = "" if node.discount is None else f"{{discount={_bound(below[-1])}}}"
            return f"C{discount}" + ("" if node.steps is None else f"<={below[0][1]}")
        case ast.InstantaneousReward():
            return f"I={below[0][1]}"
        case ast.LongRunReward():
            return "S"
        case ast.Probability(path=ast.Path("S")):
            path = below[-1][1].removeprefix("S ")
            return f"S{_quantifier(node)}{_query(node.bound, below)} [ {path} ]"
        case ast.Probability():
            return f"P{_quantifier(node)}{_query(node.bound, below)} [ {below[-1][1]} ]"
        case ast.Reward(structure):
            name = f'"{structure}"' if isinstance(structure, str) else below[0][1]
            head = "R" if structure is None else f"R{{{name}}}"
            return f"{head}{_quantifier(node)}{_query(node.bound, below[-2:])} [ {below[-1][1]} ]"
        case ast.Filter(operator):
            return f"filter({operator}, {_separated(below)})"
        case ast.Unreadable(text):
            return text
    raise TypeError(f"{type(node).__name__} has no text; add it to write.py")


def _path(node: ast.Path, below: tuple[Fragment, ...]) -> Fragment:
    fragments = list(below)
    left = "" if node.left is None else _at_least(fragments.pop(0), UNARY_PATH) + " "
    right = fragments.pop(0)
    time = "" if node.time is None else _time(node.time, fragments)
    # after a bound a '-' would be read as subtraction; F a & (X b) is F (a & (X b)), so write that
    inside = nodes(node.right) if isinstance(node.right, Binary) else []
    apart = right[1].startswith("-") or any(isinstance(each, ast.Path) for each in inside)
    operand = _at_least(right, TIGHTEST if apart else UNARY_PATH)
    return BINARY_PATH if left else UNARY_PATH, f"{left}{node.operator}{time} {operand}"


def _time(time: ast.TimeBound, fragments: list[Fragment]) -> str:
    reward = "" if time.reward is None else f'{{"{time.reward}"}}'
    if time.lower is not None and time.upper is not None:
        if time.lower == time.upper:
            return f"{reward}={_bound(fragments[0])}"
        return f"{reward}[{fragments[0][1]},{fragments[1][1]}]"
    if time.upper is not None:
        return f"{reward}{'<' if time.upper_strict else '<='}{_bound(fragments[0])}"
    return f"{reward}{'>' if time.lower_strict else '>='}{_bound(fragments[0])}"


def _quantifier(node: ast.Probability | ast.Reward) -> str:
    return "".join(d.name.lower() for d in (node.agent, node.nature) if d is not None)


def _query(bound: ast.Bound | None, below: tuple[Fragment, ...]) -> str:
    return "=?" if bound is None else bound.operator + _bound(below[0])


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


def _separated(fragments: tuple[Fragment, ...]) -> str:
    return ", ".join(text for _, text in fragments)
