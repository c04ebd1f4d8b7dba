"""Expressions as numbered steps, each an operation on the results of earlier ones.

Equal parts of different expressions (expanded formulas, say) are one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rfmdp.language.ast import Binary, Call, Expr, Literal, Name, Type, Unary, fold
from rfmdp.language.source import SourceText
from rfmdp.language.types import node_type
from rfmdp.model.arrays import Variable


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionStep:
    """One step of an expression: an operator, a literal or a variable."""

    node: Expr
    operands: tuple[int, ...]
    type: Type
    column: int = -1  # of a variable


class Expressions:
    """Expressions over the variables of a model; each has a number.

    >>> from rfmdp.language.parse import parse_expression
    >>> x = Variable("x", 0, 9)
    >>> expressions = Expressions([x], SourceText(""))
    >>> number = expressions.add(parse_expression("2*x > 0 ? 2*x : 1"))
    >>> expressions.steps[number].type.value, len(expressions.steps)
    ('int', 7)
    """

    def __init__(self, variables: Sequence[Variable], source: SourceText) -> None:
        self.variables = tuple(variables)
        self.source = source
        self.steps: list[ExpressionStep] = []
        self.uses: list[int] = []
        self.number: dict[int, int] = {}  # of every expression that was added, by its id
        self._numbers: dict[tuple[type[Expr], str, tuple[int, ...]], int] = {}
        self._types = {v.name: Type.BOOL if v.boolean else Type.INT for v in self.variables}
        self._columns = {v.name: i for i, v in enumerate(self.variables)}

    def add(self, expr: Expr) -> int:
        """Enter a well-typed expression and return its number."""
        number = fold(expr, self._number)
        self.uses[number] += 1
        self.number[id(expr)] = number
        return number

    def _number(self, node: Expr, below: tuple[int, ...]) -> int:
        word = ""
        match node:
            case Literal(value):
                word = repr(value)
            case Name(word) | Unary(word) | Binary(word) | Call(word):
                pass
        key = (type(node), word, below)
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
        column = self._columns[node.name] if isinstance(node, Name) else -1
        return ExpressionStep(node, below, type_, column)
