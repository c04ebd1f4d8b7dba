"""Values of expressions by PRISM's rules, one at a time in plain Python.

Constants are evaluated so, and single states where the machine found no value.

`/` is real division and gives infinity or nan instead of failing; `mod` is never negative;
`round` rounds halves up; an int must fit in 32 bits; `& | => ?:` need only the operands that
decide them. What has no value is an `Undefined` with a reason, and becomes an error only if the
result depends on it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from rfmdp.language.ast import Binary, Call, Expr, Ite, Literal, Name, Unary
from rfmdp.language.expressions import fold, rewrite
from rfmdp.language.source import Position, SourceText

Value = bool | int | float

INT_LIMIT = 2**31
MAX_EXACT = 10**2000  # denominator of a number that is kept exactly


@dataclass(frozen=True, slots=True)
class Undefined:
    """Why an expression has no value, and the place of the cause."""

    reason: str
    position: Position


# a value of the left operand that decides alone, and the result
DECIDED_BY = {"&": (False, False), "|": (True, True), "=>": (False, True)}


def evaluate(expr: Expr, names: Mapping[str, Value], source: SourceText) -> Value:
    """Return the value of a well-typed expression, or raise why it has none."""
    value = fold(expr, lambda node, below: _value(node, below, names))
    if isinstance(value, Undefined):
        raise source.error(value.position, value.reason)
    return value


def exact_value(node: Expr, below: tuple[Fraction | None, ...]) -> Fraction | None:
    """Return the value of a sum, difference, product or quotient of exact ones, None for others."""
    if isinstance(node, Literal):
        return Fraction(node.value) if isinstance(node.value, int) else node.exact
    operands = [x for x in below if x is not None]
    if len(operands) < len(below) or max((x.denominator for x in operands), default=1) > MAX_EXACT:
        return None
    match node:
        case Unary("-"):
            return -operands[0]
        case Binary("/") if operands[1]:
            return operands[0] / operands[1]
        case Binary("+" | "-" | "*" as sign):
            exact: Fraction = OPERATIONS[sign](*operands)
            return exact
    return None


def simplify(expr: Expr) -> Expr:
    """Replace every part without names by its value; parts without a value stay."""

    def change(node: Expr) -> Expr:
        values = [child.value for child in node.children() if isinstance(child, Literal)]
        if not values or len(values) < len(node.children()):
            return node
        value = _value(node, tuple(values), {})
        return node if isinstance(value, Undefined) else Literal(value, position=node.position)

    return rewrite(expr, change)


def _value(
    node: Expr, below: tuple[Value | Undefined, ...], names: Mapping[str, Value]
) -> Value | Undefined:
    match node:
        case Literal():
            return node.value
        case Name(name):
            reason = f"expected a constant expression, found '{name}'"
            return names[name] if name in names else Undefined(reason, node.position)
        case Ite() if not isinstance(below[0], Undefined):
            chosen, other = below[1:] if below[0] else below[:0:-1]
            # int ? double promotes, so that 'true ? 1 : 0.5' is 1.0
            promoted = isinstance(other, float) and not isinstance(chosen, Undefined)
            return float(chosen) if promoted else chosen  # type: ignore[arg-type]
        case Ite():
            return below[0]
        case Binary(sign) if sign in DECIDED_BY and not isinstance(below[0], Undefined):
            deciding, result = DECIDED_BY[sign]
            return result if bool(below[0]) is deciding else below[1]
        case Unary(word) | Binary(word) | Call(word):
            pass
        case _:
            return Undefined("expected a constant expression", node.position)
    for value in below:
        if isinstance(value, Undefined):
            return value
    try:
        answer: Value = OPERATIONS[word](*below)
    except ArithmeticError as error:
        return Undefined(str(error), node.position)
    if isinstance(answer, int) and not -INT_LIMIT <= answer < INT_LIMIT:
        return Undefined("an integer must fit in 32 bits, found a larger result", node.position)
    return answer


def divide(left: float, right: float) -> float:
    """Divide as IEEE numbers do: 1/0 is infinite, 0/0 is nan."""
    if right != 0:
        return float(left) / float(right)
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def power(base: Value, exponent: Value) -> Value:
    """Raise to a power; ints stay ints and must have an exponent >= 0."""
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0:
            reason = "an integer power must have an exponent >= 0"
            raise ArithmeticError(f"{reason}, found {exponent}; use {base}.0")
        result: int = base ** min(exponent, 32 + exponent % 2)  # what is larger does not fit
        return result
    base, exponent = float(base), float(exponent)
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == math.floor(exponent) and exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def modulo(dividend: int, divisor: int) -> int:
    """Return the remainder in 0..n-1."""
    if divisor <= 0:
        raise ArithmeticError(f"the second argument of 'mod' must be > 0, found {divisor}")
    return dividend % divisor


def logarithm(x: float, base: float) -> float:
    """Return log(x, base), nan where it does not exist."""
    if math.isnan(x) or not 0 < base < math.inf or base == 1 or x < 0:
        return math.nan
    if x == 0:
        return -math.inf if base > 1 else math.inf
    return math.log(x) / math.log(base)


def rounded(name: str, function: Callable[[float], int], value: Value) -> int:
    """Return a whole number near a finite one."""
    if not math.isfinite(value):
        raise ArithmeticError(f"'{name}' must have a finite argument, found {value}")
    return function(value)


def extremum(choose: Callable[[tuple[Value, ...]], Value], *values: Value) -> Value:
    """Return the least or largest value: a float if one of them is, nan if one is."""
    if not any(isinstance(value, float) for value in values):
        return choose(values)
    return math.nan if any(value != value for value in values) else float(choose(values))


OPERATIONS: dict[str, Callable[..., Any]] = {  # that need all their operands
    **{"=": operator.eq, "!=": operator.ne, "<=>": operator.eq, "!": operator.not_},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"+": operator.add, "*": operator.mul, "/": divide, "^": power, "pow": power},
    "-": lambda left, *right: left - right[0] if right else -left,
    **{"min": partial(extremum, min), "max": partial(extremum, max)},
    **{"mod": modulo, "log": logarithm},
    **{"floor": partial(rounded, "floor", math.floor), "ceil": partial(rounded, "ceil", math.ceil)},
    "round": partial(rounded, "round", lambda x: math.floor(x) + (x - math.floor(x) >= 0.5)),
}
