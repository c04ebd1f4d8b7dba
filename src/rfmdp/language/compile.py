"""Expressions compiled to functions of many states at once.

An `Expressions` is a list of steps, each an operation on the results of earlier ones; equal parts
of different expressions (expanded formulas, say) are one step. A `StateBatch` holds some states and
runs the steps that are asked for, array by array. Ints carry static bounds that follow from the
ranges of variables, so that `x+1` needs no check for overflow.

What a step cannot compute in some states is marked, not raised; only if a value is needed there
does `evaluate` find the message and the place. So errors are those of a lazy evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from rfmdp.language import vector_ops as ops
from rfmdp.language.ast import Binary, Call, Expr, Ite, Literal, Name, Type, Unary, fold
from rfmdp.language.checked import CheckedModel, CheckedVariable
from rfmdp.language.evaluate import evaluate
from rfmdp.language.source import Position, PrismSourceError, SourceText
from rfmdp.language.types import node_type
from rfmdp.language.vector_ops import INT_RANGE, Operand, Operation, Range
from rfmdp.types import AnyArray, BoolArray

CHUNK = 1 << 16  # states evaluated at once over a whole state space


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One step of an expression. One without an operation is a variable, by its column."""

    node: Expr
    operation: Operation | None
    operands: tuple[int, ...]
    type: Type
    bounds: Range | None  # of an int
    column: int = -1


class Expressions:
    """Compiled expressions over the variables of a model; each has a number.

    Examples
    --------
    >>> from rfmdp.language.parse import parse_expression
    >>> x = CheckedVariable("x", 0, 9, False, 0, None)
    >>> expressions = Expressions([x], SourceText(""))
    >>> number = expressions.add(parse_expression("x>0 ? 6/x : mod(x-1, 3)"))
    >>> StateBatch(expressions, np.array([[0], [4]])).value(number).tolist()
    [2.0, 1.5]
    """

    def __init__(self, variables: Sequence[CheckedVariable], source: SourceText) -> None:
        self.variables = tuple(variables)
        self.source = source
        self.steps: list[Term] = []
        self.uses: list[int] = []
        self._texts: dict[int, Expr] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._types = {v.name: v.type for v in self.variables}
        self._columns = {v.name: i for i, v in enumerate(self.variables)}

    def add(self, expr: Expr) -> int:
        """Compile a well-typed expression and return its number."""
        number = fold(expr, self._number)
        self.uses[number] += 1
        self._texts.setdefault(number, expr)
        return number

    def text(self, number: int) -> Expr:
        """Return an expression that was added."""
        return self._texts[number]

    def constant(self, number: int) -> bool:
        """Return whether an expression is a literal."""
        return isinstance(self._texts[number], Literal)

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
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.steps)
            self.steps.append(self._step(node, below))
            self.uses.append(0)
            for operand in below:
                self.uses[operand] += 1
        return found

    def _step(self, node: Expr, below: tuple[int, ...]) -> Term:
        types = tuple(self.steps[number].type for number in below)
        type_ = node_type(node, types, self._types, self.source)
        match node:
            case Literal(value):
                scalar = {Type.BOOL: np.bool_, Type.INT: np.int64, Type.DOUBLE: np.float64}[type_]
                exact = (int(value), int(value)) if type_ is Type.INT else None
                return Term(node, partial(_same, scalar(value)), (), type_, exact)
            case Name(name):
                column = self._columns[name]
                variable = self.variables[column]
                return Term(node, None, (), type_, (variable.lower, variable.upper), column)
            case Ite():
                bounds = self._hull(below[1:]) if type_ is Type.INT else None
                return Term(node, ops.choice, below, type_, bounds)
            case Unary(sign):
                bounds = self._combined("-", (0, 0), below) if type_ is Type.INT else None
                return Term(node, ops.negation(sign, type_, bounds), below, type_, _clipped(bounds))
            case Binary(sign):
                bounds = self._arithmetic(sign, type_, below)
                return Term(node, ops.binary(sign, type_, bounds), below, type_, _clipped(bounds))
            case Call(name):
                bounds = self._call_bounds(name, type_, below)
                return Term(node, ops.function(name, type_, types), below, type_, bounds)
        raise self.source.error(node.position, "expected an expression over variables")

    def _arithmetic(self, sign: str, type_: Type, below: tuple[int, ...]) -> Range | None:
        if type_ is not Type.INT:
            return None
        if sign not in ops.ARITHMETIC:
            return INT_RANGE
        return self._combined(sign, self._int(below[0]), below[1:])

    def _call_bounds(self, name: str, type_: Type, below: tuple[int, ...]) -> Range | None:
        if type_ is not Type.INT:
            return None
        if name in ops.EXTREMA:
            return self._combined(name, self._int(below[0]), below[1:])
        if name == "mod":
            return 0, max(0, self._int(below[1])[1] - 1)
        if name in ops.ROUNDINGS and self.steps[below[0]].type is Type.INT:
            return self._int(below[0])
        return INT_RANGE

    def _combined(self, sign: str, first: Range, rest: tuple[int, ...]) -> Range:
        return reduce(lambda a, b: ops.int_range(sign, a, self._int(b)), rest, first)

    def _hull(self, numbers: tuple[int, ...]) -> Range:
        ranges = [self._int(number) for number in numbers]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def _int(self, number: int) -> Range:
        return self.steps[number].bounds or INT_RANGE


class StateBatch:
    """Some states, and the results of steps on them as far as others will ask for them."""

    def __init__(self, expressions: Expressions, valuations: AnyArray) -> None:
        self.expressions = expressions
        self.valuations = valuations  # (N, vars)
        self._done: dict[int, Operand] = {}

    def __len__(self) -> int:
        return len(self.valuations)

    def value(self, number: int, where: BoolArray | None = None) -> AnyArray:
        """Return an expression in all states, (N,); only those in `where` must have a value.

        Raises
        ------
        PrismError
            If it has no value in a state where it must, with the place and the state.
        """
        with np.errstate(all="ignore"):
            value, bad = self._run(number)
        if bad is not None:
            needed = np.broadcast_to(bad if where is None else bad & where, (len(self),))
            if needed.any():
                raise self._failure(number, int(needed.argmax()))
        array = np.asarray(value)
        return array if array.ndim else np.broadcast_to(array, (len(self),))

    def error(self, position: Position, reason: str, row: int) -> PrismSourceError:
        """Return (not raise) an error that names the state of a row."""
        return self.expressions.source.error(position, f"{reason} in state {self.state(row)}")

    def state(self, row: int) -> str:
        """Return a state as `(x=1, up=true)`."""
        return state_text(self.expressions.variables, self.valuations[row])

    def _run(self, number: int) -> Operand:
        """Run the steps that are missing for a result, depth first, without recursion."""
        steps, uses, done = self.expressions.steps, self.expressions.uses, self._done
        pending = [number]
        while pending:
            current = pending[-1]
            if current in done:
                pending.pop()
                continue
            step = steps[current]
            missing = [operand for operand in step.operands if operand not in done]
            if missing:
                pending.extend(reversed(missing))
                continue
            if step.operation is None:
                column = self.valuations[:, step.column]
                done[current] = (column != 0 if step.type is Type.BOOL else column), None
            else:
                done[current] = step.operation(*(done[operand] for operand in step.operands))
            for operand in step.operands:
                if uses[operand] == 1:
                    del done[operand]
            pending.pop()
        return done[number]

    def _failure(self, number: int, row: int) -> PrismSourceError:
        """Return the error of a value that does not exist, found by plain evaluation."""
        variables, source = self.expressions.variables, self.expressions.source
        names = {
            v.name: bool(x) if v.is_bool else int(x)
            for v, x in zip(variables, self.valuations[row], strict=True)
        }
        try:
            evaluate(self.expressions.text(number), names, source)
        except PrismSourceError as error:
            return self.error(Position(error.line, error.column), error.reason, row)
        position = self.expressions.text(number).position
        return self.error(position, "the expression must have a value, found none", row)


def evaluate_states(
    expr: Expr, model: CheckedModel, valuations: AnyArray, where: BoolArray | None = None
) -> AnyArray:
    """Return a checked expression in many states, (N,) of bool, int64 or float64.

    Parameters
    ----------
    valuations : (N, vars), columns in the order of `model.variables`
    where : (N,) the states in which the expression must have a value, None for all

    Raises
    ------
    PrismError
        If the expression has no value in one of the states where it must.
    """
    expressions = Expressions(model.variables, model.source)
    number = expressions.add(expr)
    dtype = {Type.BOOL: np.bool_, Type.INT: np.int64, Type.DOUBLE: np.float64}
    out: AnyArray = np.empty(len(valuations), dtype=dtype[expressions.steps[number].type])
    for start in range(0, len(valuations), CHUNK):
        part = np.asfortranarray(valuations[start : start + CHUNK], dtype=np.int64)
        needed = None if where is None else where[start : start + CHUNK]
        out[start : start + CHUNK] = StateBatch(expressions, part).value(number, needed)
    return out


def state_text(variables: Sequence[CheckedVariable], values: AnyArray) -> str:
    """Return a valuation as `(x=1, up=true)`."""
    texts = (
        f"{v.name}={('false', 'true')[int(x)] if v.is_bool else int(x)}"
        for v, x in zip(variables, values, strict=True)
    )
    return f"({', '.join(texts)})"


def _same(value: object) -> Operand:
    return value, None


def _clipped(bounds: Range | None) -> Range | None:
    """Return bounds of what is left after results beyond 32 bits were marked as bad."""
    if bounds is None:
        return None
    low, high = max(bounds[0], INT_RANGE[0]), min(bounds[1], INT_RANGE[1])
    return (low, high) if low <= high else INT_RANGE
