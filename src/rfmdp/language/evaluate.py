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

from rfmdp.language.ast import Binary, Call, Expr, Ite, Literal, Name, Unary, fold, rewrite
from rfmdp.language.source import Position, SourceText

Value = bool | int | float

INT_LIMIT = 2**31
MAX_EXACT = 10**2000  # denominator of a number that is kept exactly


@dataclass(frozen=True, slots=True)
class Undefined:
    """Why an expression has no value, and the place of the cause."""

    reason: str
    position: Position


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": operator.eq,
}
# a value of the left operand that decides alone, and the result
DECIDED_BY = {"&": (False, False), "|": (True, True), "=>": (False, True)}


def evaluate(expr: Expr, names: Mapping[str, Value], source: SourceText) -> Value:
    """Return the value of a well-typed expression, or raise why it has none.

    >>> from rfmdp.language.ast import Literal
    >>> evaluate(Call("mod", (Literal(-1), Literal(3))), {}, SourceText(""))
    2
    """
    value = fold(expr, lambda node, below: _value(node, below, names))
    if isinstance(value, Undefined):
        raise source.error(value.position, value.reason)
    return value


def exact_value(expr: Expr) -> Fraction | None:
    """Return the value of a sum, difference, product or quotient of literals, None for others.

    >>> from rfmdp.language.parse import parse_expression
    >>> str(exact_value(parse_expression("1/3 + 0.1")))
    '13/30'
    """
    return fold(expr, _exact)


def _exact(node: Expr, below: tuple[Fraction | None, ...]) -> Fraction | None:
    if isinstance(node, Literal):
        return Fraction(node.value) if isinstance(node.value, int) else node.exact
    operands = [x for x in below if x is not None]
    if len(operands) < len(below) or max((x.denominator for x in operands), default=1) > MAX_EXACT:
        return None
    match node:
        case Unary("-"):
            return -operands[0]
        case Binary("/"):
            return operands[0] / operands[1] if operands[1] else None
        case Binary("+" | "-" | "*" as sign):
            return EXACT[sign](operands[0], operands[1])
    return None


def simplify(expr: Expr) -> Expr:
    """Replace every part without names by its value; parts without a value stay.

    >>> from rfmdp.language.ast import Literal, Name
    >>> simplify(Binary("*", Name("x"), Binary("-", Literal(3), Literal(1))))
    Binary(operator='*', left=Name(name='x'), right=Literal(value=2))
    """
    return rewrite(expr, _simplified)


def _simplified(node: Expr) -> Expr:
    children = node.children()
    if not children or not all(isinstance(child, Literal) for child in children):
        return node
    value = _value(node, tuple(c.value for c in children if isinstance(c, Literal)), {})
    return node if isinstance(value, Undefined) else Literal(value, position=node.position)


def _value(
    node: Expr, below: tuple[Value | Undefined, ...], names: Mapping[str, Value]
) -> Value | Undefined:
    match node:
        case Literal():
            return node.value
        case Name(name):
            if name in names:
                return names[name]
            return Undefined(f"expected a constant expression, found '{name}'", node.position)
        case Ite():
            return _choice(below)
        case Binary(sign) if sign in DECIDED_BY:
            return _short_circuit(sign, below[0], below[1])
    values: list[Value] = []
    for value in below:
        if isinstance(value, Undefined):
            return value
        values.append(value)
    return _strict(node, values)


def _choice(below: tuple[Value | Undefined, ...]) -> Value | Undefined:
    condition, then, otherwise = below
    if isinstance(condition, Undefined):
        return condition
    chosen, other = (then, otherwise) if condition else (otherwise, then)
    # int ? double promotes, so that 'true ? 1 : 0.5' is 1.0
    if isinstance(other, float) and not isinstance(chosen, Undefined):
        return float(chosen)
    return chosen


def _short_circuit(
    sign: str, left: Value | Undefined, right: Value | Undefined
) -> Value | Undefined:
    deciding, result = DECIDED_BY[sign]
    if isinstance(left, Undefined):
        return left
    return result if bool(left) is deciding else right


def _strict(node: Expr, values: list[Value]) -> Value | Undefined:
    """Apply an operator or function that needs all its operands."""
    try:
        match node:
            case Unary("-"):
                result: Value = -values[0]
            case Unary():
                result = not values[0]
            case Binary(sign) if sign in COMPARISONS:
                result = COMPARISONS[sign](values[0], values[1])
            case Binary(sign):
                result = ARITHMETIC[sign](values[0], values[1])
            case Call(function) if function in FUNCTIONS:
                result = FUNCTIONS[function](values)
            case _:
                return Undefined("expected a constant expression", node.position)
    except ArithmeticError as error:
        return Undefined(str(error), node.position)
    if isinstance(result, int) and not -INT_LIMIT <= result < INT_LIMIT:
        return Undefined("an integer must fit in 32 bits, found a larger result", node.position)
    return result


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
            raise ArithmeticError(
                f"an integer power must have an exponent >= 0, found {exponent}; use {base}.0"
            )
        if abs(base) <= 1:
            exponent = min(exponent, 2 + exponent % 2)
        if exponent > 31:
            raise ArithmeticError("an integer must fit in 32 bits, found a larger power")
        result: int = base**exponent
        return result
    return _float_power(float(base), float(exponent))


def _float_power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == math.floor(exponent) and exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def modulo(values: list[Value]) -> Value:
    """Return the remainder in 0..n-1."""
    dividend, divisor = (int(value) for value in values)
    if divisor <= 0:
        raise ArithmeticError(f"the second argument of 'mod' must be > 0, found {divisor}")
    return dividend % divisor


def logarithm(values: list[Value]) -> float:
    """Return log(x, base), nan where it does not exist."""
    x, base = (float(value) for value in values)
    if math.isnan(x) or not 0 < base < math.inf or base == 1 or x < 0:
        return math.nan
    if x == 0:
        return -math.inf if base > 1 else math.inf
    return math.log(x) / math.log(base)


def _rounding(name: str, function: Callable[[float], int]) -> Callable[[list[Value]], Value]:
    def rounded(values: list[Value]) -> Value:
        value = values[0]
        if isinstance(value, int):
            return value
        if not math.isfinite(value):
            raise ArithmeticError(f"'{name}' must have a finite argument, found {value}")
        return function(value)

    return rounded


def _extremum(choose: Callable[[list[Value]], Value]) -> Callable[[list[Value]], Value]:
    def chosen(values: list[Value]) -> Value:
        floats = any(isinstance(value, float) for value in values)
        if floats and any(value != value for value in values):
            return math.nan
        return float(choose(values)) if floats else choose(values)

    return chosen


def _half_up(value: float) -> int:
    return math.floor(value) + (value - math.floor(value) >= 0.5)


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "^": power,
}
FUNCTIONS: dict[str, Callable[[list[Value]], Value]] = {
    "min": _extremum(min),
    "max": _extremum(max),
    "floor": _rounding("floor", math.floor),
    "ceil": _rounding("ceil", math.ceil),
    "round": _rounding("round", _half_up),
    "pow": lambda values: power(values[0], values[1]),
    "mod": modulo,
    "log": logarithm,
}
