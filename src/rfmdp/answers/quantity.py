"""What a property evaluates to in every state: a value between proven bounds; filters of these.

Numbers are float64, truth values bool. Of a truth value, `lower` says where it surely holds and
`upper` where it possibly does. Operators act on both ends, so that `1 - P=? [...]` is as proven
as the probability in it.

A comparison stays open where the ends do not decide it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.language.ast import LISTS, Binary, Call, Expr, Ite, Type, Unary
from rfmdp.language.check_properties import FILTER_TYPES
from rfmdp.language.expressions import node_type
from rfmdp.language.source import SourceText
from rfmdp.model.lattice import AnyModel
from rfmdp.types import AnyArray, BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An expression in every state, with proven bounds."""

    type: Type
    lower: AnyArray  # (S,)
    value: AnyArray  # (S,) the number to report
    upper: AnyArray  # (S,)

    @staticmethod
    def exact(type_: Type, value: AnyArray) -> Quantity:
        """Return a quantity that is known."""
        numbers = value.astype(np.bool_ if type_ is Type.BOOL else np.float64)
        return Quantity(type_, numbers, numbers, numbers)

    @property
    def known(self) -> BoolArray:
        """Where both bounds are the same, (S,)."""
        same: BoolArray = self.lower == self.upper
        return same

    def one_minus(self) -> Quantity:
        """Return 1 - x, which turns the bounds."""
        one = Quantity.exact(self.type, np.ones(1))
        turned = by_corners("-", [one, self], self.type)
        ends = (self.value == self.lower, self.value == self.upper)  # a proven side stays one
        value = np.select(ends, (turned.upper, turned.lower), turned.value)
        return Quantity(self.type, turned.lower, value, turned.upper)


def compare(operator: str, left: Quantity, right: Quantity) -> Quantity:
    """Return where a comparison of numbers surely and possibly holds."""
    if operator == "!=":
        return by_corners("!", [compare("=", left, right)], Type.BOOL)
    if operator != "=":
        return by_corners(operator, [left, right], Type.BOOL)
    sure = left.known & right.known & (left.lower == right.lower)
    possible = (left.lower <= right.upper) & (right.lower <= left.upper)
    return Quantity(Type.BOOL, sure, sure, possible)


def combine(node: Expr, below: Sequence[Quantity], source: SourceText) -> Quantity:
    """Return an operator or function of quantities; powers and roundings are refused."""
    kind = node_type(node, tuple(x.type for x in below), {}, source)
    match node:
        case Ite():
            sign = "?"
        case Unary("-"):
            sign, below = "-", [Quantity.exact(kind, np.zeros(1)), *below]
        case Unary(sign) | Binary(sign) | Call(sign):
            pass
    if kind is Type.BOOL and below[0].type is not Type.BOOL:
        return compare(sign, *below)
    if sign not in FUNCTIONS:
        reason = f"'{sign}' of P, R or a filter is not supported; use + - * / min max"
        raise source.error(node.position, reason)
    return by_corners(sign, below, kind)


def by_corners(sign: str, operands: Sequence[Quantity], kind: Type) -> Quantity:
    """Return a function of quantities whose extremes lie at corners; bounds are rounded outwards.

    A quotient has no bounds where its divisor may be 0.
    """
    corners = list(product(*((x.lower, x.upper) for x in operands)))
    with np.errstate(all="ignore"):
        value = FUNCTIONS[sign](*(x.value for x in operands))
        if kind is Type.BOOL:
            truths = [FUNCTIONS[sign](*corner) for corner in corners]
            return Quantity(kind, np.all(truths, axis=0), value, np.any(truths, axis=0))
        ends = [_rounded_outwards(sign, corner) for corner in corners]
        low = np.minimum.reduce([below for below, _ in ends])  # nan spreads
        high = np.maximum.reduce([above for _, above in ends])
        fits = ~np.isnan(low) & ~np.isnan(high)
        if sign == "/":
            known = operands[0].known & operands[1].known
            fits &= known | (operands[1].lower > 0.0) | (operands[1].upper < 0.0)
    lower, upper = np.where(fits, low, -np.inf), np.where(fits, high, np.inf)
    return Quantity(kind, lower, np.clip(value, lower, upper), upper)


def _rounded_outwards(sign: str, operands: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return numbers below and above what a function of known numbers is."""
    result = FUNCTIONS[sign](*operands)
    if sign in ("min", "max", "?"):
        return result, result
    infinite = reduce(np.logical_or, (np.isinf(x) for x in operands))  # then nothing is rounded
    exact = infinite | _is_exact(sign, operands[0], operands[1], result)
    below, above = np.nextafter(result, -np.inf), np.nextafter(result, np.inf)
    return np.where(exact, result, below), np.where(exact, result, above)


def _is_exact(sign: str, a: FloatArray, b: FloatArray, result: FloatArray) -> BoolArray:
    """Return where a result of + - * / was not rounded, as far as that is easy to see."""
    exact: BoolArray
    if sign in ("+", "-"):
        shift = result - a  # the error of a sum is a float [Knuth]
        exact = (a - (result - shift)) + ((b if sign == "+" else -b) - shift) == 0.0
        return exact
    small = ((x == np.floor(x)) & (np.abs(x) < 2.0**45) for x in (a, b, result))
    whole = reduce(np.logical_and, small)  # a wrong result would not be whole
    powers = [np.abs(np.frexp(x)[0]) == 0.5 for x in (a, b)]  # of two, or their opposites
    scaled = powers[1] if sign == "/" else powers[0] | powers[1]
    normal = np.isfinite(result) & (np.abs(result) >= 2.0**-1022)
    exact = whole | (scaled & normal) | (a == 0.0) | (b == 0.0)
    return exact


FUNCTIONS: dict[str, Callable[..., AnyArray]] = {
    "!": np.logical_not,
    "&": np.logical_and,
    "|": np.logical_or,
    "=>": np.less_equal,
    "<=>": np.equal,
    "=": np.equal,  # of truth values, as all before
    "!=": np.not_equal,
    **{"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal},
    "?": np.where,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
}
REDUCTIONS: dict[str, Callable[[AnyArray], Any]] = {
    "state": np.min,  # of one state
    "first": np.min,
    "min": np.min,
    "max": np.max,
    "count": np.count_nonzero,
    "forall": np.all,
    "exists": np.any,
}


def apply_filter(name: str, model: AnyModel, operand: Quantity, where: BoolArray) -> Quantity:
    """Return a filter of values over a set of states, the same in all but for lists of these."""
    if not where.any():
        raise ModelError("A filter must be over at least one state; its condition holds in none.")
    if name in LISTS:
        return operand
    states = np.flatnonzero(where)
    if name == "state" and len(states) > 1:
        names = ", ".join(model.state_name(int(s)) for s in states[:5])
        more = ", ..." if len(states) > 5 else ""
        raise ModelError(
            f"A value must be that of one state, found {len(states)}: {names}{more}; "
            "use filter(min|max|avg|print, ...)."
        )
    if name in ("state", "first"):
        states = states[:1]
    chosen = [getattr(operand, end)[states] for end in ("lower", "value", "upper")]
    if name in REDUCTIONS:
        low, value, high = (REDUCTIONS[name](x) for x in chosen)
    else:
        low, value, high = map(_sum, chosen)
        if operand.type is not Type.INT:
            low = math.nextafter(low, -math.inf) if math.isfinite(low) else low
            high = math.nextafter(high, math.inf) if math.isfinite(high) else high
    kind = FILTER_TYPES.get(name, (None, None))[1] or operand.type
    dtype = np.bool_ if kind is Type.BOOL else np.float64
    result = Quantity(kind, *(np.full(len(where), end, dtype) for end in (low, value, high)))
    if name != "avg":
        return result
    return by_corners("/", [result, Quantity.exact(Type.INT, np.array([len(states)]))], kind)


def _sum(numbers: AnyArray) -> float:
    """Return a sum that is rounded once."""
    with np.errstate(invalid="ignore"):
        total = float(np.sum(numbers))
    return math.fsum(numbers) if math.isfinite(total) else total
