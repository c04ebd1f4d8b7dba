"""Commands compiled: where they are enabled, and what they do to the codes of states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rfmdp.language.ast import Assignment, Binary, Command, Expr, Interval, Literal, Name, Unary
from rfmdp.language.compile import Batch, Expressions
from rfmdp.language.distributions import CommandDistributions, supports
from rfmdp.model.codes import Codec
from rfmdp.model.frontier import CERTAIN
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """What commands of one module do in some rows, in the terms of `frontier.BlockMove`."""

    marginal: Int32Array  # (N,)
    size: Int32Array  # (N,)
    contribution: IntArray  # (N, largest size)

    def take(self, rows: IntArray) -> Moves:
        """Return some rows, which may repeat."""
        return Moves(self.marginal[rows], self.size[rows], self.contribution[rows])


@dataclass(frozen=True, slots=True, eq=False)
class CompiledAssignment:
    """`(variable' = value)` with what is needed to apply and check it."""

    column: int
    value: int  # number in `Expressions`
    in_range: bool  # for all states, by static bounds
    text: Assignment


class CompiledCommand:
    """A command of a module, ready for whole batches of states."""

    def __init__(
        self,
        command: Command,
        module: int,
        expressions: Expressions,
        codec: Codec,
        distributions: CommandDistributions,
    ) -> None:
        self.module = module
        self.distributions = distributions
        self.guard = expressions.add(command.guard)
        self.needs = necessary(command.guard)
        self._codec = codec
        bounds = [_bounds(update.probability) for update in command.updates]
        self._lower = [expressions.add(low) for low, _ in bounds]
        self._upper = [expressions.add(high) for _, high in bounds]
        self._constant = all(expressions.constant(k) for k in (*self._lower, *self._upper))
        self._updates = [
            [_assignment(a, expressions) for a in update.assignments] for update in command.updates
        ]
        self._only: int | None = None  # of a command with constant probabilities

    @property
    def width(self) -> int:
        """Largest number of outcomes."""
        return len(self._updates)

    def moves(self, batch: Batch) -> Moves:
        """Return what the command does in states where it is taken.

        Raises
        ------
        PrismError
            If its probabilities are none, or an update that can happen leaves a variable's range.
        """
        numbers, found = self._numbers(batch), self.distributions.found
        marginal = np.array([d.identifier for d in found], dtype=np.int32)[numbers]
        size = np.array([len(d.updates) for d in found], dtype=np.int32)[numbers]
        contribution = np.zeros((len(batch), int(size.max())), dtype=np.int64)
        groups = supports(found, numbers)
        for rows in groups:
            part = batch if len(groups) == 1 else batch.select(rows)
            for outcome, update in enumerate(found[numbers[rows[0]]].updates):
                contribution[rows, outcome] = self._change(int(update), part)
        return Moves(marginal, size, contribution)

    def _numbers(self, batch: Batch) -> IntArray:
        """Return which of the command's distributions every state has."""
        if self._constant:
            if self._only is None:
                lower, upper = self._vectors(batch.select(np.zeros(1, dtype=np.int64)))
                self._only = self.distributions.number(lower[0], upper[0], batch, 0)
            return np.full(len(batch), self._only, dtype=np.int64)
        return self.distributions.numbers(*self._vectors(batch), batch)

    def _vectors(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Evaluate the bounds of all updates, (N, U); the same array twice for probabilities."""
        lower = _stacked(self._lower, batch)
        upper = lower if self._upper == self._lower else _stacked(self._upper, batch)
        return lower, upper

    def _change(self, update: int, batch: Batch) -> AnyArray | int:
        """Return by how much an update changes the codes of states."""
        change: AnyArray | int = 0
        for assignment in self._updates[update]:
            value = batch.value(assignment.value)
            if value.dtype == np.bool_:
                value = value.astype(np.int64)
            if not assignment.in_range:
                self._check_range(assignment, value, batch)
            stride = self._codec.stride[assignment.column]
            change = change + (value - batch.column(assignment.column)) * stride
        return change

    def _check_range(self, assignment: CompiledAssignment, value: AnyArray, batch: Batch) -> None:
        variable = self._codec.variables[assignment.column]
        outside = (value < variable.low) | (value > variable.high)
        if outside.any():
            row = int(outside.argmax())
            reason = (
                f"the new value of '{variable.name}' must be in "
                f"[{variable.low}..{variable.high}], found {value[row]}"
            )
            raise batch.error(assignment.text.position, reason, row)


def necessary(guard: Expr) -> dict[str, tuple[float, float]]:
    """Return bounds of variables that a condition implies by itself, found in its conjuncts.

    >>> from rfmdp.language.parse import parse_expression
    >>> necessary(parse_expression("x=2 & y>1 & (up | x+y<3)"))
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


def possible(commands: Sequence[CompiledCommand], names: Mapping[str, int]) -> Possible:
    """Return the filter that leaves out commands whose guards fail by simple bounds."""
    low = np.full((len(commands), len(names)), -np.inf)
    high = np.full((len(commands), len(names)), np.inf)
    for k, command in enumerate(commands):
        for name, (least, most) in command.needs.items():
            low[k, names[name]], high[k, names[name]] = least, most
    return Possible(low, high)


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """Bounds (C, vars) that the guards of commands imply."""

    low: FloatArray
    high: FloatArray

    def among(self, valuations: AnyArray) -> IntArray:
        """Return the commands that can be enabled in one of some states."""
        if valuations.shape[1] == 0:
            return np.arange(len(self.low))
        least, most = valuations.min(axis=0), valuations.max(axis=0)
        return np.flatnonzero(((self.low <= most) & (self.high >= least)).all(axis=1))


def joined(parts: Sequence[tuple[IntArray, Moves]]) -> tuple[IntArray, Moves]:
    """Put the moves of several commands together, ordered by state, then by command.

    Parameters
    ----------
    parts : the states (ascending) and moves of every command
    """
    if len(parts) == 1:
        return parts[0]
    states = np.concatenate([states for states, _ in parts])
    order = np.argsort(states, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    width = max(moves.contribution.shape[1] for _, moves in parts)
    marginal = np.full(len(order), CERTAIN, dtype=np.int32)
    size = np.ones(len(order), dtype=np.int32)
    contribution = np.zeros((len(order), width), dtype=np.int64)
    at = 0
    for part_states, moves in parts:
        rows = place[at : at + len(part_states)]
        marginal[rows], size[rows] = moves.marginal, moves.size
        contribution[rows, : moves.contribution.shape[1]] = moves.contribution
        at += len(part_states)
    return states[order], Moves(marginal, size, contribution)


def guard_values(commands: Sequence[CompiledCommand], batch: Batch, some: IntArray) -> Guards:
    """Return where commands are enabled, for those that are somewhere."""
    values = {int(k): batch.value(commands[k].guard) for k in some}
    return {k: value for k, value in values.items() if value.any()}


Guards = dict[int, BoolArray]


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


def _bounds(chance: Expr | Interval | None) -> tuple[Expr, Expr]:
    if isinstance(chance, Interval):
        return chance.lower, chance.upper
    # the checker puts 1.0 where the text has no probability
    expr = Literal(1.0) if chance is None else chance
    return expr, expr


def _assignment(assignment: Assignment, expressions: Expressions) -> CompiledAssignment:
    column = next(k for k, v in enumerate(expressions.variables) if v.name == assignment.variable)
    variable = expressions.variables[column]
    value = expressions.add(assignment.value)
    bounds = expressions.bounds(value)
    inside = bounds is not None and variable.lower <= bounds[0] and bounds[1] <= variable.upper
    return CompiledAssignment(column, value, inside, assignment)


def _stacked(numbers: Sequence[int], batch: Batch) -> FloatArray:
    out = np.empty((len(batch), len(numbers)))
    for column, number in enumerate(numbers):
        out[:, column] = batch.value(number)
    return out
