"""The commands of a model: their records in the memory of the machine, and their distributions.

A command has one marginal per vector of probabilities (or of bounds) that it has in some state.
The outcomes of a marginal are the updates that can happen, so rows of different states share it.
A vector in which one update is certain needs no marginal.

Several choices in one state of a DTMC are taken with the same probability each, as in PRISM: the
row of such a state is one marginal with the outcomes of all choices. That is exact for known
probabilities. With intervals the factors would no longer have independent sets, so an interval DTMC
may have such states only where probabilities are known.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from rfmdp.errors import PrismWarning
from rfmdp.kernels import machine
from rfmdp.language.ast import Assignment, Binary, Command, Expr, Literal, Name, Unary, Update
from rfmdp.language.check import CheckedModel, State
from rfmdp.language.expressions import write_expression
from rfmdp.language.program import Expressions, Program
from rfmdp.language.source import NOWHERE, Position
from rfmdp.model.arrays import Variable
from rfmdp.model.packing import Packing
from rfmdp.ragged import starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, IntArray

MOST_BUCKETS = 4096  # values of a variable by which commands are looked up
WORTH = 0.8  # share of commands that a look-up may leave on average
Box = Mapping[str, tuple[float, float]]
MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
RANDOM_FACTOR = "(random choice)"
SCALED_WITHIN = 1e-5  # how far from 1 a sum may be: PRISM's own limit


class CommandRecords:
    """The records of all commands, and what an address in them stands for.

    Emits the code of all expressions; see `kernels.machine` for the fields of records.
    """

    def __init__(self, checked: CheckedModel, packing: Packing) -> None:
        expressions = Expressions(checked.variables, checked.source)
        commands = [command for module in checked.modules for command in module.commands]
        for command in commands:
            for expr in command.children():
                expressions.add(expr)
        self.program = Program(expressions)
        self.node: dict[int, Command | Update | Assignment] = {}  # by the address of its record
        self.outcomes = 0  # of all commands together
        self._checked, self._number = checked, expressions.number
        masks = packing.radix - 1
        shifts = [int(stride).bit_length() - 1 for stride in packing.stride]
        fields = zip(self.program.variables, masks, shifts, packing.word, strict=True)
        self._variables = {
            v.name: self.program.reserve(cell, v.low, v.high, *field)
            for v, (cell, *field) in zip(checked.variables, fields, strict=True)
        }
        self._slots: dict[tuple[str, int], int] = {}  # of a label and a module
        self._labels()
        modules = [
            [(self._command(command, k), command) for command in module.commands]
            for k, module in enumerate(checked.modules)
        ]
        self.program.point(machine.VARIABLES, list(self._variables.values()))
        self.program.point(machine.MODULES, [self._module(commands) for commands in modules])
        most = len(checked.modules) + 1
        self.program.memory[machine.ALONE] = self.program.reserve(*[0] * (len(commands) + 1))
        self.program.memory[machine.CHOSEN] = self.program.reserve(*[0] * most)
        self.program.memory[machine.PLACES] = self.program.reserve(*[0] * most)

    def _labels(self) -> None:
        program, labels = self.program, []
        for number, action in enumerate(self._checked.actions):
            slots = []
            for k, module in enumerate(self._checked.modules):
                count = sum(command.action == action for command in module.commands)
                if count:
                    slots.append(program.reserve(0, 0, *[0] * count))
                    self._slots[action, k] = slots[-1]
            labels.append(program.reserve(number, 0, len(slots), *slots))
            for slot in slots:
                program.memory[slot + machine.LABEL] = labels[-1]
        program.point(machine.LABELS, labels)

    def _command(self, command: Command, module: int) -> int:
        """Lay out a command with its updates and assignments; return its address."""
        rows = [self._update(update) for update in command.updates]
        first = self.program.reserve(*(entry for row in rows for entry in row))
        for k, update in enumerate(command.updates):
            self.node[first + k * machine.UPDATE] = update
        address = self.program.reserve(
            self.program.condition(self._number[id(command.guard)]),
            module,
            0 if command.action is None else self._slots[command.action, module],
            first,
            first + len(rows) * machine.UPDATE,
            int(command.has_intervals),
            -1,
            self.outcomes,
            0,
            0,
        )
        self.node[address] = command
        self.outcomes += len(rows)
        return address

    def _update(self, update: Update) -> tuple[int, ...]:
        """Lay out the assignments of an update; return its own entries."""
        record: list[int] = []
        for assignment in update.assignments:
            value = self.program.value(self._number[id(assignment.value)])
            record += self._variables[assignment.variable], *value
        first = self.program.reserve(*record)
        for i, assignment in enumerate(update.assignments):
            self.node[first + i * machine.ASSIGNMENT] = assignment
        numbers = [self._number[id(end)] for end in update.ends]
        lower, *upper = (self.program.value(number, as_float=True) for number in numbers)
        return *lower, *(upper[0] if upper else lower), first, first + len(record)

    def _module(self, commands: Sequence[tuple[int, Command]]) -> int:
        """Lay out a module: its commands by the value of the variable that tells most."""
        boxes = [(address, implied_ranges(command.guard)) for address, command in commands]
        key, low, buckets = 0, 0, [[address for address, _ in boxes]]
        fewest = WORTH * len(boxes)
        for variable, cell in zip(self._checked.variables, self.program.variables, strict=True):
            candidate = _by_value(variable, boxes)
            average = sum(map(len, candidate)) / max(len(candidate), 1)
            if candidate and average < fewest:
                key, low, buckets, fewest = cell, variable.low, candidate, average
        lists = [self.program.reserve(len(bucket), *bucket) for bucket in buckets]
        return self.program.reserve(key, low, *lists)


def _by_value(variable: Variable, boxes: Sequence[tuple[int, Box]]) -> list[list[int]]:
    """Return, for every value of a variable, the commands that it may enable; [] if all may."""
    size = variable.high - variable.low + 1
    if size > MOST_BUCKETS or not any(variable.name in box for _, box in boxes):
        return []
    buckets: list[list[int]] = [[] for _ in range(size)]
    for address, box in boxes:
        least, most = box.get(variable.name, (-math.inf, math.inf))
        first, last = max(variable.low, least), min(variable.high, most)
        for value in range(int(first), int(last) + 1):
            buckets[value - variable.low].append(address)
    return buckets


def implied_ranges(guard: Expr) -> dict[str, tuple[float, float]]:
    """Return bounds of variables that a condition implies by itself, found in its conjuncts."""
    ranges: dict[str, tuple[float, float]] = {}
    pending = [guard]
    while pending:
        match pending.pop():
            case Binary("&", left, right):
                pending += [right, left]
                continue
            case Name(name):
                sign, value = "=", 1
            case Unary("!", Name(name)):
                sign, value = "=", 0
            case Binary(sign, Name(name), Literal(int(value))) if sign in MIRRORED:
                pass
            case Binary(sign, Literal(int(value)), Name(name)) if sign in MIRRORED:
                sign = MIRRORED[sign]
            case _:
                continue
        low = {"=": value, ">": value + 1, ">=": value}.get(sign, -math.inf)
        high = {"=": value, "<": value - 1, "<=": value}.get(sign, math.inf)
        old = ranges.get(name, (-math.inf, math.inf))
        ranges[name] = max(old[0], low), min(old[1], high)
    return ranges


@dataclass(frozen=True, slots=True, eq=False)
class NamedBox:
    """A marginal: its bounds and what it is called."""

    lower: FloatArray  # (X,)
    upper: FloatArray  # (X,)
    name: str
    position: Position  # of the command
    outcomes: tuple[str, ...]  # their names

    @classmethod
    def mixed(cls, choices: Sequence[tuple[str, Sequence[NamedBox]]], state: State) -> NamedBox:
        """Return the marginal of a random choice among actions and their known marginals."""
        vectors, outcomes = [], []
        for action, boxes in choices:
            vector = np.ones(1)
            for box in boxes:
                if not np.array_equal(box.lower, box.upper):
                    reason = "an interval command of an idtmc must be the only choice"
                    hint = "make guards exclude each other, or declare the model an imdp"
                    raise state.error(box.position, f"{reason}, found several; {hint}")
                vector = np.outer(vector, box.lower).ravel()
            vectors.append(vector)
            texts = product(*(box.outcomes for box in boxes))
            outcomes += [f"[{action}] {' & '.join(text)}".rstrip() for text in texts]
        mixed = np.concatenate(vectors) / len(choices)
        name = f"random choice of {len(choices)}"
        return cls(mixed, mixed, name, NOWHERE, tuple(outcomes))


def packed(boxes: Sequence[NamedBox]) -> tuple[Marginals, list[str], list[str]]:
    """Return the marginals of a model, their names (distinct) and those of their outcomes."""
    many, seen, names = Counter(box.name for box in boxes), Counter[str](), []
    for box in boxes:
        seen[box.name] += 1
        names.append(f"{box.name} #{seen[box.name]}" if many[box.name] > 1 else box.name)
    pointers = starts([len(box.lower) for box in boxes])
    lower = np.concatenate([np.empty(0), *(box.lower for box in boxes)])
    upper = np.concatenate([np.empty(0), *(box.upper for box in boxes)])
    marginals = Marginals.from_boxes(pointers, lower, upper)
    if not (np.array_equal(marginals.lower, lower) and np.array_equal(marginals.upper, upper)):
        marginals = replace(marginals, stated=np.stack([lower, upper]))
    return marginals, names, [name for box in boxes for name in box.outcomes]


def command_distribution(
    command: Command, module: str, lower: FloatArray, upper: FloatArray, state: State
) -> tuple[IntArray, NamedBox | None]:
    """Return what a command does with a vector of bounds: updates that can happen, its marginal.

    An update that is certain has no marginal.

    lower, upper : (updates,) the same numbers if the command has no intervals
    state : where it is met first
    """
    interval = not np.array_equal(lower, upper)
    for update, low, high in zip(command.updates, lower, upper, strict=True):
        for end in (low, high):
            if not 0.0 <= end <= 1.0 + SUM_TOLERANCE:
                reason = f"a probability must be in [0, 1], found {end:.9g}"
                raise state.error(update.position, reason)
        if low > high:
            reason = f"an interval must not be empty, found [{low:.9g}, {high:.9g}]"
            raise state.error(update.position, reason)
    lower, upper = np.minimum(lower, 1.0), np.minimum(upper, 1.0)
    place, least, most = command.updates[0].position, math.fsum(lower), math.fsum(upper)
    if not interval:
        lower = upper = _checked_sum(place, lower, state)
    elif least > 1.0 + SUM_TOLERANCE or most < 1.0 - SUM_TOLERANCE:
        reason = "lower bounds must sum to at most 1, upper bounds to at least 1"
        raise state.error(place, f"{reason}, found {least:.9g} and {most:.9g}")
    certain = np.flatnonzero(lower >= 1.0)
    possible = np.flatnonzero(upper > 0.0)
    if certain.size or (possible.size == 1 and not interval):
        return (certain[:1] if certain.size else possible), None
    name = f"{module}: [{command.action or ''}] line {command.position.line}"
    does = [[_text(a) for a in command.updates[k].assignments] for k in possible]
    outcomes = tuple(" & ".join(texts) or "true" for texts in does)
    box = NamedBox(lower[possible], upper[possible], name, command.position, outcomes)
    return possible, box


def _checked_sum(place: Position, vector: FloatArray, state: State) -> FloatArray:
    """Return probabilities that sum to 1, scaled with a warning if PRISM would take them."""
    total = math.fsum(vector)
    if abs(total - 1.0) <= SUM_TOLERANCE:
        return vector
    reason = f"the probabilities of a command must sum to 1, found {total:.9g}"
    if abs(total - 1.0) > SCALED_WITHIN:
        raise state.error(place, reason)
    scaled = state.error(place, f"{reason}; they are scaled to sum to 1")
    warnings.warn(str(scaled), PrismWarning, stacklevel=2)
    return vector / total


def _text(assignment: Assignment) -> str:
    value = write_expression(assignment.written or assignment.value)
    return f"({assignment.variable}'={value})"
