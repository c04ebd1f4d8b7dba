"""The commands of a model, laid out in the memory of the machine that explores it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rfmdp.kernels import addresses
from rfmdp.language import ast as tree
from rfmdp.language.checked import CheckedModel
from rfmdp.language.expressions import Binary, Expr, Literal, Name, Unary
from rfmdp.language.program import Expressions, Program
from rfmdp.model.arrays import Variable
from rfmdp.model.packing import Packing

MOST_BUCKETS = 4096  # values of a variable by which commands are looked up
WORTH = 0.8  # share of commands that a look-up may leave on average
Box = Mapping[str, tuple[float, float]]
MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class CommandRecords:
    """The records of all commands, and what an address in them stands for.

    Emits the code of all expressions; see `kernels.addresses` for the fields of records.
    """

    def __init__(self, checked: CheckedModel, packing: Packing) -> None:
        expressions = Expressions(checked.variables, checked.source)
        commands = [command for module in checked.modules for command in module.commands]
        for command in commands:
            for expr in command.children():
                expressions.add(expr)
        self.program = Program(expressions)
        self.node: dict[
            int, tree.Command | tree.Update | tree.Assignment
        ] = {}  # by the address of its record
        self.outcomes = 0  # of all commands together
        self._checked, self._number, self._memory = checked, expressions.number, self.program.memory
        masks = packing.radix - 1
        shifts = [int(stride).bit_length() - 1 for stride in packing.stride]
        fields = zip(self.program.variables, masks, shifts, packing.word, strict=True)
        self._variables = {
            v.name: self._memory.add(cell, v.low, v.high, *field)
            for v, (cell, *field) in zip(checked.variables, fields, strict=True)
        }
        self._slots: dict[tuple[str, int], int] = {}  # of a label and a module
        self._labels()
        modules = [
            [(self._command(command, k), command) for command in module.commands]
            for k, module in enumerate(checked.modules)
        ]
        self._memory.point(addresses.VARIABLES, list(self._variables.values()))
        self._memory.point(addresses.MODULES, [self._module(commands) for commands in modules])
        most = len(checked.modules) + 1
        self._memory.ints[addresses.ALONE] = self._memory.add(*[0] * (len(commands) + 1))
        self._memory.ints[addresses.CHOSEN] = self._memory.add(*[0] * most)
        self._memory.ints[addresses.PLACES] = self._memory.add(*[0] * most)

    def _labels(self) -> None:
        """Lay out labels and their slots."""
        memory, labels = self._memory, []
        for number, action in enumerate(self._checked.actions):
            slots = []
            for k, module in enumerate(self._checked.modules):
                count = sum(command.action == action for command in module.commands)
                if count:
                    slots.append(memory.add(0, 0, *[0] * count))
                    self._slots[action, k] = slots[-1]
            labels.append(memory.add(number, 0, len(slots), *slots))
            for slot in slots:
                memory.ints[slot + addresses.LABEL] = labels[-1]
        memory.point(addresses.LABELS, labels)

    def _command(self, command: tree.Command, module: int) -> int:
        """Lay out a command with its updates and assignments; return its address."""
        rows = [self._update(update) for update in command.updates]
        first = self._memory.add(*(entry for row in rows for entry in row))
        for k, update in enumerate(command.updates):
            self.node[first + k * addresses.UPDATE] = update
        address = self._memory.add(
            self.program.condition(self._number[id(command.guard)]),
            module,
            0 if command.action is None else self._slots[command.action, module],
            first,
            first + len(rows) * addresses.UPDATE,
            int(has_intervals(command)),
            -1,
            self.outcomes,
            0,
            0,
        )
        self.node[address] = command
        self.outcomes += len(rows)
        return address

    def _update(self, update: tree.Update) -> tuple[int, ...]:
        """Lay out the assignments of an update; return its own entries."""
        record: list[int] = []
        for assignment in update.assignments:
            value = self.program.value(self._number[id(assignment.value)])
            record += self._variables[assignment.variable], *value
        first = self._memory.add(*record)
        for i, assignment in enumerate(update.assignments):
            self.node[first + i * addresses.ASSIGNMENT] = assignment
        numbers = [self._number[id(end)] for end in probability_ends(update)]
        lower, *upper = (self.program.value(number, as_float=True) for number in numbers)
        return *lower, *(upper[0] if upper else lower), first, first + len(record)

    def _module(self, commands: Sequence[tuple[int, tree.Command]]) -> int:
        """Lay out a module: its commands by the value of the variable that tells most."""
        boxes = [(address, implied_ranges(command.guard)) for address, command in commands]
        key = 0
        low = 0
        buckets = [[address for address, _ in boxes]]
        fewest = WORTH * len(boxes)
        for variable, cell in zip(self._checked.variables, self.program.variables, strict=True):
            candidate = _by_value(variable, boxes)
            average = sum(map(len, candidate)) / max(len(candidate), 1)
            if candidate and average < fewest:
                key, low, buckets, fewest = cell, variable.low, candidate, average
        lists = [self._memory.add(len(bucket), *bucket) for bucket in buckets]
        return self._memory.add(key, low, *lists)


def probability_ends(update: tree.Update) -> tuple[Expr, ...]:
    """Return the probability of an update, or both ends of its interval."""
    chance = update.probability
    assert chance is not None  # the checker puts 1.0 where the text has none
    return (chance,) if isinstance(chance, Expr) else (chance.lower, chance.upper)


def has_intervals(command: tree.Command) -> bool:
    """Return whether some probability of a command is an interval."""
    return any(
        isinstance(update.probability, tree.ProbabilityInterval) for update in command.updates
    )


def _by_value(variable: Variable, boxes: Sequence[tuple[int, Box]]) -> list[list[int]]:
    """Return, for every value of a variable, the commands that it may enable.

    The list is empty if the variable tells nothing, or has too many values.
    """
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
    """Return bounds of variables that a condition implies by itself, found in its conjuncts.

    >>> from rfmdp.language.parse import parse_expression
    >>> implied_ranges(parse_expression("x=2 & y>1 & (up | x+y<3)"))
    {'x': (2, 2), 'y': (2, inf)}
    """
    ranges: dict[str, tuple[float, float]] = {}
    pending = [guard]
    while pending:
        node = pending.pop()
        if isinstance(node, Binary) and node.operator == "&":
            pending += [node.right, node.left]
            continue
        bound = _simple_bound(node)
        if bound is not None:
            name, low, high = bound
            old = ranges.get(name, (-math.inf, math.inf))
            ranges[name] = max(old[0], low), min(old[1], high)
    return ranges


def _simple_bound(node: Expr) -> tuple[str, float, float] | None:
    """Return the least and largest value of a variable that a comparison allows, maybe too wide."""
    match node:
        case Name(name):
            return name, 1, 1
        case Unary("!", Name(name)):
            return name, 0, 0
        case Binary(sign, Name(name), Literal(int(value))) if sign in MIRRORED:
            pass
        case Binary(sign, Literal(int(value)), Name(name)) if sign in MIRRORED:
            sign = MIRRORED[sign]
        case _:
            return None
    low = {"=": value, ">": value + 1, ">=": value}.get(sign, -math.inf)
    high = {"=": value, "<": value - 1, "<=": value}.get(sign, math.inf)
    return name, low, high
