"""Ranges of variables that a guard, or another condition, implies."""

from __future__ import annotations

import math

from rfmdp.language.ast import Binary, Expr, Literal, Name, Unary

MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def implied_ranges(guard: Expr) -> dict[str, tuple[float, float]]:
    """Return bounds of variables that a condition implies by itself, found in its conjuncts.

    >>> from rfmdp.language.parse import parse_expression
    >>> implied_ranges(parse_expression("x=2 & y>1 & (up | x+y<3)"))
    {'x': (2, 2), 'y': (2, inf)}
    """
    found: dict[str, tuple[float, float]] = {}
    pending = [guard]
    while pending:
        node = pending.pop()
        if isinstance(node, Binary) and node.operator == "&":
            pending += [node.right, node.left]
            continue
        bound = _simple_bound(node)
        if bound is not None:
            name, low, high = bound
            old = found.get(name, (-math.inf, math.inf))
            found[name] = max(old[0], low), min(old[1], high)
    return found


def _simple_bound(node: Expr) -> tuple[str, float, float] | None:
    match node:
        case Name(name):
            return name, 1, 1
        case Unary("!", Name(name)):
            return name, 0, 0
        case Binary(sign, Name(name), Literal(value)) if sign in MIRRORED:
            return name, *_bounds_of(sign, value)
        case Binary(sign, Literal(value), Name(name)) if sign in MIRRORED:
            return name, *_bounds_of(MIRRORED[sign], value)
    return None


def _bounds_of(sign: str, value: bool | int | float) -> tuple[float, float]:
    """Return the integers x with `x sign value` as bounds, possibly too wide."""
    if isinstance(value, float):
        return -math.inf, math.inf
    match sign:
        case "=":
            return value, value
        case "<":
            return -math.inf, value - 1
        case "<=":
            return -math.inf, value
        case ">":
            return value + 1, math.inf
    return value, math.inf
