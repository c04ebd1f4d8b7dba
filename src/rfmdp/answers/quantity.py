"""What a property evaluates to in every state: a value between proven bounds.

Numbers are float64, truth values bool. Of a truth value, `lower` says where it surely holds and
`upper` where it possibly does. Operators act on both ends, so that `1 - P=? [...]` is as proven
as the probability in it.

A comparison stays open where the ends do not decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from rfmdp.language.ast import Binary, Call, Expr, Ite, Type, Unary
from rfmdp.language.source import SourceText
from rfmdp.language.types import node_type
from rfmdp.rounding import NORMAL
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
        known = value.astype(np.bool_ if type_ is Type.BOOL else np.float64)
        return Quantity(type_, known, known, known)

    @property
    def known(self) -> BoolArray:
        """Where both bounds are the same, (S,)."""
        same: BoolArray = self.lower == self.upper
        return same

    def one_minus(self) -> Quantity:
        """Return 1 - x, which turns the bounds."""
        one = Quantity.exact(self.type, np.ones(1))
        turned = by_corners(ARITHMETIC["-"], [one, self], self.type)
        ends = (self.value == self.lower, self.value == self.upper)  # a proven side stays one
        value = np.select(ends, (turned.upper, turned.lower), turned.value)
        return Quantity(self.type, turned.lower, value, turned.upper)


def compare(operator: str, left: Quantity, right: Quantity) -> Quantity:
    """Return where a comparison of numbers surely and possibly holds.

    >>> half = Quantity(Type.DOUBLE, *(np.array([x]) for x in (0.4, 0.4, 0.6)))
    >>> verdict = compare(">=", half, Quantity.exact(Type.DOUBLE, np.array([0.5])))
    >>> bool(verdict.lower[0]), bool(verdict.upper[0])
    (False, True)
    """
    if operator in (">", ">="):
        return compare({">": "<", ">=": "<="}[operator], right, left)
    if operator == "!=":
        return _not(compare("=", left, right))
    if operator == "<":
        sure, possible = left.upper < right.lower, left.lower < right.upper
    elif operator == "<=":
        sure, possible = left.upper <= right.lower, left.lower <= right.upper
    else:
        sure = left.known & right.known & (left.lower == right.lower)
        possible = (left.lower <= right.upper) & (right.lower <= left.upper)
    return Quantity(Type.BOOL, sure, sure, possible)


def combine(node: Expr, below: Sequence[Quantity]) -> Quantity:
    """Return an operator or function of quantities."""
    kind = node_type(node, tuple(x.type for x in below), {}, SourceText(""))
    match node:
        case Unary("!"):
            return _not(below[0])
        case Unary():
            zero = Quantity.exact(kind, np.zeros(1))
            return by_corners(ARITHMETIC["-"], [zero, below[0]], kind)
        case Binary(operator) if operator in ARITHMETIC:
            return by_corners(ARITHMETIC[operator], below, kind)
        case Binary(operator) if below[0].type is Type.BOOL:
            return _logical(operator, *below)
        case Binary(operator):
            return compare(operator, *below)
        case Ite():
            return _choice(kind, *below)
        case Call(function):
            return by_corners(FUNCTIONS[function], below, kind)
    raise AssertionError(node)  # the static checks let nothing else pass


def _not(x: Quantity) -> Quantity:
    return Quantity(Type.BOOL, ~x.upper, ~x.value, ~x.lower)


def _logical(operator: str, left: Quantity, right: Quantity) -> Quantity:
    match operator:
        case "&":
            parts = [getattr(left, k) & getattr(right, k) for k in ("lower", "value", "upper")]
            return Quantity(Type.BOOL, *parts)
        case "|":
            return _not(_logical("&", _not(left), _not(right)))
        case "=>":
            return _logical("|", _not(left), right)
        case "!=":
            return _not(_logical("=", left, right))
    there, back = _logical("=>", left, right), _logical("=>", right, left)  # = and <=>
    return _logical("&", there, back)


def _choice(kind: Type, condition: Quantity, then: Quantity, other: Quantity) -> Quantity:
    least, most = np.minimum(then.lower, other.lower), np.maximum(then.upper, other.upper)
    ends = []
    for name, hull in (("lower", least), ("upper", most)):
        open_or_else = np.where(condition.upper, hull, getattr(other, name))
        ends.append(np.where(condition.lower, getattr(then, name), open_or_else))
    value = np.where(condition.value, then.value, other.value)
    return Quantity(kind, ends[0], value, ends[1])


@dataclass(frozen=True, slots=True)
class _Function:
    """A function whose extremes over a box lie at corners, wherever `fits` holds.

    error : units in the last place that a float result may be off by, where `exact` does not hold
    exact : where (S,) the float result is the true number; given the operands and the result
    """

    apply: Callable[..., FloatArray]
    fits: Callable[..., AnyArray | bool]
    error: int
    exact: Callable[..., AnyArray | bool]


def by_corners(function: _Function, operands: Sequence[Quantity], kind: Type) -> Quantity:
    """Return a function of quantities, with bounds that are rounded outwards."""
    with np.errstate(all="ignore"):
        value = function.apply(*(x.value for x in operands))
        ends = [
            _rounded_outwards(function, corner)
            for corner in product(*((x.lower, x.upper) for x in operands))
        ]
        low = np.minimum.reduce([below for below, _ in ends])  # nan spreads
        high = np.maximum.reduce([above for _, above in ends])
        known = reduce(np.logical_and, (x.known for x in operands))
        fits = ~np.isnan(low) & ~np.isnan(high) & (known | function.fits(*operands))
    lower, upper = np.where(fits, low, -np.inf), np.where(fits, high, np.inf)
    return Quantity(kind, lower, np.clip(value, lower, upper), upper)


def _rounded_outwards(
    function: _Function, operands: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return numbers below and above what a function of known numbers is."""
    result = function.apply(*operands)
    infinite = reduce(np.logical_or, (np.isinf(x) for x in operands))  # then nothing is rounded
    exact = infinite | function.exact(*operands, result)
    low = high = result
    for _ in range(function.error):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return np.where(exact, result, low), np.where(exact, result, high)


def _always(*operands: object) -> bool:
    return True


def _never(*operands: object) -> bool:
    return False


def _sum_is_exact(a: FloatArray, b: FloatArray, total: FloatArray) -> AnyArray:
    """Return where a + b needed no rounding: the error of a sum is a float [Knuth, 4.2.2]."""
    rest = total - a
    error: FloatArray = (a - (total - rest)) + (b - rest)
    exact: BoolArray = error == 0.0
    return exact


def _product_is_exact(a: FloatArray, b: FloatArray, total: FloatArray) -> AnyArray:
    """Return where a * b needed no rounding; some such places may be missing."""
    factors = [np.frexp(x)[0] for x in (a, b)]
    heads = [np.round(x * 2.0**26) * 2.0**-26 for x in factors]  # products of halves are exact
    tails = [x - head for x, head in zip(factors, heads, strict=True)]
    whole = factors[0] * factors[1]
    error = heads[0] * heads[1] - whole + heads[0] * tails[1] + tails[0] * heads[1]
    normal = (np.abs(total) > NORMAL) & np.isfinite(total)
    exact: BoolArray = (a == 0.0) | (b == 0.0) | (normal & (error + tails[0] * tails[1] == 0.0))
    return exact


def _quotient_is_exact(a: FloatArray, b: FloatArray, ratio: FloatArray) -> AnyArray:
    exact: BoolArray = (b == 0.0) | ((ratio * b == a) & _product_is_exact(ratio, b, a))
    return exact


def _power_fits(base: Quantity, exponent: Quantity) -> AnyArray:
    return (base.lower > 0.0) | ((base.lower >= 0.0) & (exponent.lower > 0.0))


def _log_fits(x: Quantity, base: Quantity) -> AnyArray:
    return (x.lower > 0.0) & (base.lower > 0.0) & ((base.upper < 1.0) | (base.lower > 1.0))


def _whole(*numbers: FloatArray) -> AnyArray:
    """Return where numbers are whole, and so small that a wrong result would not be whole."""
    return reduce(np.logical_and, ((x == np.floor(x)) & (np.abs(x) < 2.0**45) for x in numbers))


def _smallest(*values: FloatArray) -> FloatArray:
    least: FloatArray = np.minimum.reduce(np.broadcast_arrays(*values))
    return least


def _largest(*values: FloatArray) -> FloatArray:
    most: FloatArray = np.maximum.reduce(np.broadcast_arrays(*values))
    return most


def _nearest(x: FloatArray) -> FloatArray:
    """Return whole numbers, halves upwards; x + 0.5 would be rounded."""
    return np.floor(x) + (x - np.floor(x) >= 0.5)


ARITHMETIC: dict[str, _Function] = {
    "+": _Function(np.add, _always, 1, _sum_is_exact),
    "-": _Function(np.subtract, _always, 1, lambda a, b, total: _sum_is_exact(a, -b, total)),
    "*": _Function(np.multiply, _always, 1, _product_is_exact),
    "/": _Function(
        np.divide, lambda a, b: (b.lower > 0.0) | (b.upper < 0.0), 1, _quotient_is_exact
    ),
    "^": _Function(np.power, _power_fits, 4, _whole),
}
FUNCTIONS: dict[str, _Function] = {
    "min": _Function(_smallest, _always, 0, _always),
    "max": _Function(_largest, _always, 0, _always),
    "floor": _Function(np.floor, _always, 0, _always),
    "ceil": _Function(np.ceil, _always, 0, _always),
    "round": _Function(_nearest, _always, 0, _always),
    "pow": ARITHMETIC["^"],
    "mod": _Function(np.mod, _never, 1, _whole),
    "log": _Function(lambda x, base: np.log(x) / np.log(base), _log_fits, 16, _never),
}
