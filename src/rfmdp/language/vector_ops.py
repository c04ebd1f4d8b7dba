"""PRISM's operators on arrays: the vectorised twins of `evaluate`.

An operand is a pair (value, bad): one entry per state, or a scalar that stands for all of them.
`bad` marks the states in which the value does not exist (a `mod` by zero, an int beyond 32 bits)
and is None where nothing can go wrong, which is nearly always. A bad entry is an error only if
something depends on it: `& | => ?:` look at the operand that decides, as PRISM does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from rfmdp.language.ast import Type
from rfmdp.language.evaluate import INT_LIMIT
from rfmdp.types import AnyArray, BoolArray

Operand: TypeAlias = tuple[Any, BoolArray | None]  # (N,) or scalar each
Operation: TypeAlias = Callable[..., Operand]
Range: TypeAlias = tuple[int, int]

INT_RANGE = (-INT_LIMIT, INT_LIMIT - 1)


def either(first: BoolArray | None, second: BoolArray | None) -> BoolArray | None:
    """Return where one of two masks holds; None is nowhere."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def total(function: Callable[..., Any], *operands: Operand) -> Operand:
    """Apply a function that has a value wherever its operands have one."""
    return function(*(value for value, _ in operands)), _bad(operands)


def checked_int(function: Callable[..., Any], *operands: Operand) -> Operand:
    """Apply an operation on ints whose result may leave 32 bits."""
    value, bad = total(function, *operands)
    outside = (value < INT_RANGE[0]) | (value > INT_RANGE[1])
    return np.where(outside, 0, value), either(bad, outside)


def modulo(dividend: Operand, divisor: Operand) -> Operand:
    """Return the remainder in 0..n-1, bad where n <= 0."""
    wrong = divisor[0] <= 0
    safe = np.where(wrong, 1, divisor[0])
    return dividend[0] % safe, either(_bad((dividend, divisor)), wrong)


def int_power(base: Operand, exponent: Operand) -> Operand:
    """Raise ints to ints, bad where the exponent is negative or the result leaves 32 bits."""
    size = np.power(np.asarray(base[0], np.float64), np.asarray(exponent[0], np.float64))
    small = (size >= INT_RANGE[0]) & (size <= INT_RANGE[1])
    wrong = (exponent[0] < 0) | ~small
    # |base| <= 1 allows huge exponents; only whether they are odd matters then
    bounded = np.minimum(exponent[0], 62 + exponent[0] % 2)
    value = np.power(np.where(wrong, 0, base[0]), np.where(wrong, 1, bounded))
    return value, either(_bad((base, exponent)), wrong)


def rounding(function: Callable[[Any], Any], operand: Operand) -> Operand:
    """Round doubles to ints, bad where that gives no int of 32 bits."""
    rounded = function(operand[0])
    inside = (rounded >= INT_RANGE[0]) & (rounded <= INT_RANGE[1])
    value = np.where(inside, rounded, 0.0).astype(np.int64)
    return value, either(operand[1], ~inside)


def half_up(value: Any) -> Any:
    """Round doubles to the nearest whole number, halves up."""
    whole = np.floor(value)
    return whole + (value - whole >= 0.5)


def logarithm(x: Any, base: Any) -> Any:
    """Return log(x, base), nan where it does not exist."""
    x, base = np.asarray(x, np.float64), np.asarray(base, np.float64)
    exists = (x >= 0) & (base > 0) & (base < np.inf) & (base != 1)
    return np.where(exists, np.log(x) / np.log(base), np.nan)


def decided(sign: str, left: Operand, right: Operand) -> Operand:
    """Apply `&`, `|` or `=>`: the right operand matters only where the left does not decide."""
    first, second = left[0], right[0]
    if sign == "&":
        value, open_ = first & second, first
    elif sign == "|":
        value, open_ = first | second, ~first
    else:
        value, open_ = ~first | second, first
    return value, either(left[1], None if right[1] is None else right[1] & open_)


def choice(condition: Operand, then: Operand, otherwise: Operand) -> Operand:
    """Apply `?:`: only the branch that is chosen matters."""
    chosen = condition[0]
    bad = condition[1]
    if then[1] is not None:
        bad = either(bad, then[1] & chosen)
    if otherwise[1] is not None:
        bad = either(bad, otherwise[1] & ~chosen)
    return np.where(chosen, then[0], otherwise[0]), bad


COMPARISONS: dict[str, Callable[..., Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<=>": np.equal,
}
ARITHMETIC: dict[str, Callable[..., Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
EXTREMA: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum}
ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": half_up,
}


def binary(sign: str, result: Type, bounds: Range | None) -> Operation:
    """Return the operation of a binary operator; `bounds` enclose an int result."""
    if sign in ("&", "|", "=>"):
        return partial(decided, sign)
    if sign in COMPARISONS:
        return partial(total, COMPARISONS[sign])
    if sign == "/":
        return partial(total, np.true_divide)
    if sign == "^":
        return power(result)
    return _int_or_total(ARITHMETIC[sign], result, bounds)


def power(result: Type) -> Operation:
    """Return the operation of `^` and `pow`."""
    return int_power if result is Type.INT else partial(total, _float_power)


def negation(sign: str, result: Type, bounds: Range | None) -> Operation:
    """Return the operation of `!` or unary minus."""
    if sign == "!":
        return partial(total, np.logical_not)
    return _int_or_total(np.negative, result, bounds)


def function(name: str, result: Type, operands: tuple[Type, ...]) -> Operation:
    """Return the operation of a function of the language."""
    if name in EXTREMA:
        # Python's min of one argument wants an iterable; here min(x) is x
        choose = EXTREMA[name]
        as_type = np.float64 if result is Type.DOUBLE else np.int64
        return partial(total, lambda *values: as_array(reduce(choose, values), as_type))
    if name in ROUNDINGS:
        if operands[0] is Type.INT:
            return partial(total, np.positive)
        return partial(rounding, ROUNDINGS[name])
    if name == "mod":
        return modulo
    return power(result) if name == "pow" else partial(total, logarithm)


def as_array(value: Any, dtype: type) -> AnyArray:
    """Convert without copying where the type fits."""
    return np.asarray(value, dtype=dtype)


def int_range(sign: str, left: Range, right: Range) -> Range:
    """Return bounds of the result of `+ - * min max` on ints within bounds."""
    if sign == "+":
        return left[0] + right[0], left[1] + right[1]
    if sign == "-":
        return left[0] - right[1], left[1] - right[0]
    if sign == "*":
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    choose = min if sign == "min" else max
    return choose(left[0], right[0]), choose(left[1], right[1])


def _int_or_total(apply: Callable[..., Any], result: Type, bounds: Range | None) -> Operation:
    if result is not Type.INT or bounds is None:
        return partial(total, apply)
    safe = INT_RANGE[0] <= bounds[0] and bounds[1] <= INT_RANGE[1]
    return partial(total if safe else checked_int, apply)


def _float_power(base: Any, exponent: Any) -> Any:
    return np.power(np.asarray(base, np.float64), np.asarray(exponent, np.float64))


def _bad(operands: tuple[Operand, ...]) -> BoolArray | None:
    return reduce(either, (bad for _, bad in operands), None)
