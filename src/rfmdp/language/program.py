"""Expressions as code of the machine of `kernels.machine`.

Every step of `Expressions` has a cell, in `ints` (also for truth values) or in `floats`. Conditions
become jumps, so that `& | => ?:` look only at the operands that decide, and a value that does not
exist is an error only where it is needed. A part that several expressions share is a subroutine,
which runs once per state. Trees can be deep: the methods that emit code are generators, and yield
what has to be emitted before they go on.

    x<3 & y=1   ->   IF_GE x 3 no;  IF_NE y 1 no;  YES;  no: NO

Functions compiled for the model would be quicker still, but compiling takes seconds for every text.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.kernels import machine as op
from rfmdp.language.ast import Binary, Call, Expr, Ite, Literal, Name, Type, Unary
from rfmdp.language.evaluate import DECIDED_BY
from rfmdp.language.expressions import fold, node_type
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import Variable
from rfmdp.types import AnyArray, FloatArray, IntArray

Emission: TypeAlias = Generator["Emission", None, None]

CHEAP = 2  # operations that are rather done again than shared
JUMPS = {"=": op.IF_EQ, "!=": op.IF_NE, "<": op.IF_LT, "<=": op.IF_LE}
JUMPS |= {">": op.IF_GT, ">=": op.IF_GE}
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
INT_OPERATIONS = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "^": op.POWER}
INT_OPERATIONS |= {"min": op.MIN, "max": op.MAX, "mod": op.MODULO, "pow": op.POWER}
OPERATIONS = {"+": op.FADD, "-": op.FSUBTRACT, "*": op.FMULTIPLY, "/": op.FDIVIDE, "^": op.FPOWER}
OPERATIONS |= {"min": op.FMIN, "max": op.FMAX, "pow": op.FPOWER, "log": op.FLOG}
ROUNDINGS = {"floor": op.FLOOR, "ceil": op.CEIL, "round": op.ROUND}
COMPARISONS = {"=": op.EQ, "!=": op.NE, "<": op.LT, "<=": op.LE}
FLOAT_COMPARISONS = {"=": op.FEQ, "!=": op.FNE, "<": op.FLT, "<=": op.FLE}


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionStep:
    """One step of an expression: an operator, a literal or a variable."""

    node: Expr
    operands: tuple[int, ...]
    type: Type
    cost: int  # operations, CHEAP + 1 for more of them
    column: int = -1  # of a variable


class Expressions:
    """Expressions as numbered steps, each an operation on the results of earlier ones.

    Equal parts of different expressions (expanded formulas, say) are one step.
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
        if isinstance(node, Literal | Name):
            column = self._columns[node.name] if isinstance(node, Name) else -1
            return ExpressionStep(node, below, type_, 0, column)
        cost = 1 + sum(self.steps[number].cost for number in below)
        return ExpressionStep(node, below, type_, min(cost, CHEAP + 1))


class Target:
    """A place in the code that is not known yet."""

    place = -1


class Program:
    """Code for expressions; all of them must have been added before."""

    def __init__(self, expressions: Expressions) -> None:
        self.memory: list[int] = [0] * op.HEADER  # the ints of the machine as they are laid out
        self.variables = [self.reserve(0) for _ in expressions.variables]  # their cells
        self._steps, self._uses = expressions.steps, expressions.uses
        self._code: list[tuple[int, int, int, int | Target]] = []
        self._floats: list[float] = []
        self._cells: dict[int, int] = {}
        self._as_float: dict[int, int] = {}
        self._constants: dict[int, int] = {}
        self._routines: dict[int, tuple[Target, int]] = {}  # entry, cell of the stamp
        self._waiting: list[int] = []  # routines to emit

    def reserve(self, *values: int) -> int:
        """Append a record to the memory and return its address."""
        self.memory += values
        return len(self.memory) - len(values)

    def point(self, header: int, entries: list[int]) -> None:
        """Append a list to the memory and write its address into the header."""
        self.memory[header] = self.reserve(len(entries), *entries)

    def condition(self, number: int) -> int:
        """Emit a condition that answers yes or no, and return its place."""
        place = len(self._code)
        no = Target()
        self._emit(self._jump(number, no, False))
        self._add(op.YES)
        no.place = len(self._code)
        self._add(op.NO)
        self._emit_routines()
        return place

    def value(self, number: int, as_float: bool = False) -> tuple[int, int]:
        """Emit an expression; return its place, and the cell that then holds its value."""
        place = len(self._code)
        self._emit(self._value(number))
        cell = self._float(number) if as_float else self._cell(number)
        self._add(op.YES)
        self._emit_routines()
        return place, cell

    def code(self) -> AnyArray:
        """Return all instructions, (N, 4); unsigned, as a negative index takes time to look for."""
        code = []
        for operation, x, y, z in self._code:
            place = z.place if isinstance(z, Target) else z
            code.append((operation, *((place, y, 0) if operation == op.CALL else (x, y, place))))
        return np.array(code, dtype=np.uint32).reshape(-1, 4)

    def ints(self) -> IntArray:
        """Return the memory, with room for the stack of calls at its end."""
        self.memory[op.STACK] = len(self.memory)
        return np.array([*self.memory, *[0] * (len(self._routines) + 1)], dtype=np.int64)

    def floats(self) -> FloatArray:
        """Return the cells of floats."""
        return np.array(self._floats, dtype=np.float64)

    def _emit(self, first: Emission) -> None:
        """Run generators depth first, without recursion."""
        pending = [first]
        while pending:
            try:
                pending.append(next(pending[-1]))
            except StopIteration:
                pending.pop()

    def _emit_routines(self) -> None:
        while self._waiting:
            number = self._waiting.pop()
            entry, stamp = self._routines[number]
            entry.place = len(self._code)
            self._emit(self._compute(number))
            self._add(op.RETURN, stamp)

    def _add(self, operation: int, x: int = 0, y: int = 0, z: int | Target = 0) -> None:
        self._code.append((operation, x, y, z))

    def _cell(self, number: int) -> int:
        """Return the cell of a step, in ints or floats by its type."""
        if number not in self._cells:
            node = self._steps[number].node
            if isinstance(node, Name):
                self._cells[number] = self.variables[self._steps[number].column]
            elif isinstance(node, Literal) and not isinstance(node.value, float):
                self._cells[number] = self._constant(int(node.value))
            elif self._steps[number].type is Type.DOUBLE:
                self._cells[number] = len(self._floats)
                self._floats.append(node.value if isinstance(node, Literal) else 0.0)
            else:
                self._cells[number] = self.reserve(0)
        return self._cells[number]

    def _constant(self, value: int) -> int:
        if value not in self._constants:
            self._constants[value] = self.reserve(value)
        return self._constants[value]

    def _float(self, number: int) -> int:
        """Return a cell of floats with the value of a step that was computed just now."""
        step = self._steps[number]
        if step.type is Type.DOUBLE:
            return self._cell(number)
        if number not in self._as_float:
            self._as_float[number] = len(self._floats)
            self._floats.append(float(step.node.value) if isinstance(step.node, Literal) else 0.0)
        if not isinstance(step.node, Literal):
            self._add(op.FLOAT, self._as_float[number], self._cell(number))
        return self._as_float[number]

    def _value(self, number: int) -> Emission:
        """Emit what brings the value of a step into its cell."""
        if self._steps[number].cost == 0:
            return
        if not self._shared(number):
            yield self._compute(number)
            return
        if number not in self._routines:
            self._routines[number] = Target(), self.reserve(0)
            self._waiting.append(number)
        entry, stamp = self._routines[number]
        self._add(op.CALL, 0, stamp, entry)

    def _shared(self, number: int) -> bool:
        return self._uses[number] > 1 and self._steps[number].cost > CHEAP

    def _compute(self, number: int) -> Emission:
        step = self._steps[number]
        match step.node:
            case Ite():
                yield from self._choice(number, step)
            case Unary("-"):
                yield self._value(step.operands[0])
                target = self._cell(number)
                if step.type is Type.DOUBLE:  # times -1, as 0 minus 0 would not be -0
                    self._floats.append(-1.0)
                    minus = len(self._floats) - 1
                    self._add(op.FMULTIPLY, target, self._float(step.operands[0]), minus)
                else:
                    self._add(op.SUBTRACT, target, self._constant(0), self._cell(step.operands[0]))
                    self._add(op.CHECK, target)
            case Call(name) if name in ROUNDINGS:
                yield self._value(step.operands[0])
                whole = self._steps[step.operands[0]].type is not Type.DOUBLE
                operation = op.MOVE if whole else ROUNDINGS[name]
                self._add(operation, self._cell(number), self._cell(step.operands[0]))
            case Call(word) | Binary(word) if step.type is not Type.BOOL:
                operations = OPERATIONS if step.type is Type.DOUBLE else INT_OPERATIONS
                yield from self._folded(number, step, operations[word])
            case Binary(sign) if sign not in DECIDED_BY:
                yield from self._compared(number, step, sign)
            case _:
                yield from self._truth(number)

    def _folded(self, number: int, step: ExpressionStep, operation: int) -> Emission:
        """Emit an operation on two operands, or on one after the other."""
        for operand in step.operands:
            yield self._value(operand)
        cell = self._float if step.type is Type.DOUBLE else self._cell
        target = self._cell(number)
        first = cell(step.operands[0])
        if len(step.operands) == 1:
            self._add(op.FMOVE if step.type is Type.DOUBLE else op.MOVE, target, first)
        for operand in step.operands[1:]:
            self._add(operation, target, first, cell(operand))
            if operation in (op.ADD, op.SUBTRACT, op.MULTIPLY):
                self._add(op.CHECK, target)  # an int must fit in 32 bits
            first = target

    def _choice(self, number: int, step: ExpressionStep) -> Emission:
        condition, then, otherwise = step.operands
        other, end = Target(), Target()
        yield self._jump(condition, other, False)
        for branch, after in ((then, end), (otherwise, None)):
            yield self._value(branch)
            if step.type is Type.DOUBLE:
                self._add(op.FMOVE, self._cell(number), self._float(branch))
            else:
                self._add(op.MOVE, self._cell(number), self._cell(branch))
            if after is not None:
                self._add(op.JUMP, 0, 0, after)
                other.place = len(self._code)
        end.place = len(self._code)

    def _compared(self, number: int, step: ExpressionStep, sign: str) -> Emission:
        """Emit a comparison whose truth is asked for as a value."""
        for operand in step.operands:
            yield self._value(operand)
        floats = self._has_floats(step)
        first, second = (self._float(k) if floats else self._cell(k) for k in step.operands)
        if sign in (">", ">="):
            sign, first, second = {">": "<", ">=": "<="}[sign], second, first
        operations = FLOAT_COMPARISONS if floats else COMPARISONS
        sign = "=" if sign == "<=>" else sign
        self._add(operations[sign], self._cell(number), first, second)

    def _truth(self, number: int) -> Emission:
        """Emit a condition whose truth is asked for as a value."""
        no, end = Target(), Target()
        yield self._branch(number, no, False)
        self._add(op.MOVE, self._cell(number), self._constant(1))
        self._add(op.JUMP, 0, 0, end)
        no.place = len(self._code)
        self._add(op.MOVE, self._cell(number), self._constant(0))
        end.place = len(self._code)

    def _has_floats(self, step: ExpressionStep) -> bool:
        return any(self._steps[k].type is Type.DOUBLE for k in step.operands)

    def _jump(self, number: int, target: Target, when: bool) -> Emission:
        """Emit a jump that is taken if a condition has a truth value."""
        step = self._steps[number]
        direct = isinstance(step.node, Unary | Binary | Literal) and not self._shared(number)
        if direct and not self._has_floats(step):
            yield self._branch(number, target, when)
            return
        yield self._value(number)
        self._add(op.IF if when else op.IF_NOT, self._cell(number), 0, target)

    def _branch(self, number: int, target: Target, when: bool) -> Emission:
        """Emit the jump of an operator on truth values or ints."""
        step = self._steps[number]
        match step.node:
            case Literal(value):
                if bool(value) is when:
                    self._add(op.JUMP, 0, 0, target)
            case Unary():
                yield self._jump(step.operands[0], target, not when)
            case Binary(sign) if sign in DECIDED_BY:
                decides, result = DECIDED_BY[sign]
                after = Target()
                yield self._jump(step.operands[0], target if result is when else after, decides)
                yield self._jump(step.operands[1], target, when)
                after.place = len(self._code)
            case Binary(sign):
                for operand in step.operands:
                    yield self._value(operand)
                sign = "=" if sign == "<=>" else sign
                sign = sign if when else OPPOSITE[sign]
                left, right = (self._cell(operand) for operand in step.operands)
                self._add(JUMPS[sign], left, right, target)
