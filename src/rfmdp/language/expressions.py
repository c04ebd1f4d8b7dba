"""Expressions as numbered steps, each an operation on the results of earlier ones.

Equal parts of different expressions (expanded formulas, say) are one step. Ints carry static
bounds that follow from the ranges of variables, so that `x+1` needs no check for overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from rfmdp.language.ast import Binary, Call, Expr, Ite, Literal, Name, Type, Unary, fold
from rfmdp.language.evaluate import INT_LIMIT
from rfmdp.language.source import SourceText
from rfmdp.language.types import ROUNDING, node_type
from rfmdp.model.arrays import Variable

Range: TypeAlias = tuple[int, int]

INT_RANGE = (-INT_LIMIT, INT_LIMIT - 1)


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionStep:
    """One step of an expression: an operator, a literal or a variable."""

    node: Expr
    operands: tuple[int, ...]
    type: Type
    bounds: Range  # of an int that exists; of others it says nothing
    column: int = -1  # of a variable


class Expressions:
    """Expressions over the variables of a model; each has a number.

    Examples
    --------
    >>> from rfmdp.language.parse import parse_expression
    >>> x = Variable("x", 0, 9)
    >>> expressions = Expressions([x], SourceText(""))
    >>> number = expressions.add(parse_expression("2*x > 0 ? 2*x : 1"))
    >>> expressions.steps[number].bounds, len(expressions.steps)
    ((0, 18), 7)
    """

    def __init__(self, variables: Sequence[Variable], source: SourceText) -> None:
        self.variables = tuple(variables)
        self.source = source
        self.steps: list[ExpressionStep] = []
        self.uses: list[int] = []
        self.number: dict[int, int] = {}  # of every expression that was added, by its id
        self._numbers: dict[tuple[object, ...], int] = {}
        self._types = {v.name: Type.BOOL if v.boolean else Type.INT for v in self.variables}
        self._columns = {v.name: i for i, v in enumerate(self.variables)}

    def add(self, expr: Expr) -> int:
        """Enter a well-typed expression and return its number."""
        number = fold(expr, self._number)
        self.uses[number] += 1
        self.number[id(expr)] = number
        return number

    def _number(self, node: Expr, below: tuple[int, ...]) -> int:
        key: tuple[object, ...]
        match node:
            case Literal(value):
                key = (Literal, type(value), repr(value))
            case Name(name):
                key = (Name, name)
            case Unary(sign) | Binary(sign):
                key = (type(node), sign, below)
            case Call(function):
                key = (Call, function, below)
            case _:
                key = (type(node), below)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.steps)
            self.steps.append(self._step(node, below))
            self.uses.append(0)
            for operand in below:
                self.uses[operand] += 1
        return number

    def _step(self, node: Expr, below: tuple[int, ...]) -> ExpressionStep:
        types = tuple(self.steps[number].type for number in below)
        type_ = node_type(node, types, self._types, self.source)
        if isinstance(node, Name):
            column = self._columns[node.name]
            variable = self.variables[column]
            return ExpressionStep(node, (), type_, (variable.low, variable.high), column)
        bounds = self._bounds(node, below) if type_ is Type.INT else INT_RANGE
        return ExpressionStep(node, below, type_, bounds)

    def _bounds(self, node: Expr, below: tuple[int, ...]) -> Range:
        """Return bounds of an int that has a value, so they lie within 32 bits."""
        ranges = [self.steps[number].bounds for number in below]
        range_ = INT_RANGE
        match node:
            case Literal(value):
                range_ = int(value), int(value)
            case Ite():
                range_ = min(a for a, _ in ranges[1:]), max(b for _, b in ranges[1:])
            case Unary():
                range_ = _combined("-", (0, 0), ranges[0])
            case Binary("+" | "-" | "*" as sign):
                range_ = _combined(sign, ranges[0], ranges[1])
            case Call("min" | "max" as name):
                range_ = reduce(lambda a, b: _combined(name, a, b), ranges)
            case Call("mod"):
                range_ = 0, max(0, ranges[1][1] - 1)
            case Call(name) if name in ROUNDING:
                range_ = ranges[0]
        low, high = max(range_[0], INT_RANGE[0]), min(range_[1], INT_RANGE[1])
        return (low, high) if low <= high else INT_RANGE


def _combined(sign: str, left: Range, right: Range) -> Range:
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
