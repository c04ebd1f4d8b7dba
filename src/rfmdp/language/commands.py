"""The commands of a model, laid out in the memory of the machine that explores it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rfmdp.kernels import addresses
from rfmdp.language.ast import Assignment, Command, Expr, Literal, ProbabilityInterval
from rfmdp.language.boxes import necessary
from rfmdp.language.checked import CheckedModel
from rfmdp.language.expressions import Expressions
from rfmdp.language.program import Program
from rfmdp.model.arrays import Variable
from rfmdp.model.packing import Packing

MOST_BUCKETS = 4096  # values of a variable by which commands are looked up
WORTH = 0.8  # share of commands that a look-up may leave on average

Box = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCommand:
    """A command with the numbers of its expressions in `Expressions`."""

    text: Command
    module: int
    guard: int
    lower: tuple[int, ...]  # per update: its probability, or the lower end of its interval
    upper: tuple[int, ...]
    assigned: tuple[tuple[int, ...], ...]  # per update: values of its assignments

    @property
    def has_upper(self) -> bool:
        """Whether some probability is an interval."""
        return self.lower != self.upper


def compiled(checked: CheckedModel, expressions: Expressions) -> list[CompiledCommand]:
    """Return all commands of a model, module by module."""
    found = []
    for index, module in enumerate(checked.modules):
        for command in module.commands:
            bounds = [_bounds(update.probability) for update in command.updates]
            values = [[a.value for a in update.assignments] for update in command.updates]
            found.append(
                CompiledCommand(
                    command,
                    index,
                    expressions.add(command.guard),
                    tuple(expressions.add(low) for low, _ in bounds),
                    tuple(expressions.add(high) for _, high in bounds),
                    tuple(tuple(expressions.add(value) for value in row) for row in values),
                )
            )
    return found


class CommandRecords:
    """The records of all commands, and what an address in an error stands for.

    Emits the code of all expressions; see `kernels.addresses` for the fields of records.
    """

    def __init__(
        self,
        checked: CheckedModel,
        commands: Sequence[CompiledCommand],
        program: Program,
        packing: Packing,
    ) -> None:
        self.commands = commands
        self.number: dict[int, int] = {}  # of a command by its address
        self.probability: dict[int, tuple[Expr, Expr]] = {}  # of an update
        self.assignment: dict[int, Assignment] = {}
        self.outcomes = sum(len(c.lower) for c in commands)
        self._checked, self._program, self._memory = checked, program, program.memory
        self._variables = {
            v.name: self._memory.add(column, v.low, v.high, *packing.fields[k, 1:])
            for k, (v, column) in enumerate(zip(checked.variables, program.variables, strict=True))
        }
        slots = self._labels()
        outcomes = 0
        for k, command in enumerate(commands):
            self.number[self._command(command, slots, outcomes)] = k
            outcomes += len(command.lower)
        self._memory.point(addresses.VARIABLES, list(self._variables.values()))
        self._modules()
        most = len(checked.modules) + 1
        self._memory.ints[addresses.ALONE] = self._memory.add(*[0] * (len(commands) + 1))
        self._memory.ints[addresses.CHOSEN] = self._memory.add(*[0] * most)
        self._memory.ints[addresses.PLACES] = self._memory.add(*[0] * most)

    def _labels(self) -> dict[tuple[str, int], int]:
        """Lay out labels and their slots; return the slot of a label and a module."""
        memory, labels, slots = self._memory, [], {}
        for number, action in enumerate(self._checked.actions):
            count: dict[int, int] = {}
            for command in self.commands:
                if command.text.action == action:
                    count[command.module] = count.get(command.module, 0) + 1
            own = {m: memory.add(0, 0, *[0] * n) for m, n in sorted(count.items())}
            label = memory.add(number, 0, len(own), *own.values())
            for module, slot in own.items():
                memory.ints[slot + addresses.LABEL] = label
                slots[action, module] = slot
            labels.append(label)
        memory.point(addresses.LABELS, labels)
        return slots

    def _command(
        self, command: CompiledCommand, slots: Mapping[tuple[str, int], int], outcomes: int
    ) -> int:
        """Lay out a command with its updates and assignments; return its address."""
        rows = [self._update(command, k) for k in range(len(command.lower))]
        first = self._memory.add(*(entry for row in rows for entry in row))
        for k, update in enumerate(command.text.updates):
            self.probability[first + k * addresses.UPDATE] = _bounds(update.probability)
        action = command.text.action
        return self._memory.add(
            self._program.condition(command.guard),
            command.module,
            0 if action is None else slots[action, command.module],
            first,
            first + len(rows) * addresses.UPDATE,
            int(command.has_upper),
            -1,
            outcomes,
            0,
            0,
        )

    def _update(self, command: CompiledCommand, k: int) -> tuple[int, ...]:
        """Lay out the assignments of an update; return its own entries."""
        found: list[int] = []
        assignments = command.text.updates[k].assignments
        for assignment, number in zip(assignments, command.assigned[k], strict=True):
            found += self._variables[assignment.variable], *self._program.value(number)
        first = self._memory.add(*found)
        for i, assignment in enumerate(assignments):
            self.assignment[first + i * addresses.ASSIGNMENT] = assignment
        lower = self._program.value(command.lower[k], as_float=True)
        upper = self._program.value(command.upper[k], as_float=True)
        return *lower, *upper, first, first + len(found)

    def _modules(self) -> None:
        """Lay out modules with their commands by the value of the variable that tells most."""
        memory, variables = self._memory, self._checked.variables
        address = {k: a for a, k in self.number.items()}
        modules = []
        for index in range(len(self._checked.modules)):
            own = [
                (address[k], necessary(c.text.guard))
                for k, c in enumerate(self.commands)
                if c.module == index
            ]
            chosen, buckets = 0, [[a for a, _ in own]]
            low, fewest = 0, WORTH * len(own)
            for variable, cell in zip(variables, self._program.variables, strict=True):
                found = _by_value(variable, own)
                average = sum(map(len, found)) / max(len(found), 1)
                if found and average < fewest:
                    chosen, buckets, low, fewest = cell, found, variable.low, average
            lists = [memory.add(len(bucket), *bucket) for bucket in buckets]
            modules.append(memory.add(chosen, low, *lists))
        memory.point(addresses.MODULES, modules)


def _by_value(variable: Variable, own: Sequence[tuple[int, Box]]) -> list[list[int]]:
    """Return the commands that every value of a variable leaves; nothing if it is no help."""
    size = variable.high - variable.low + 1
    if size > MOST_BUCKETS or not any(variable.name in box for _, box in own):
        return []
    found: list[list[int]] = [[] for _ in range(size)]
    for address, box in own:
        least, most = box.get(variable.name, (-math.inf, math.inf))
        first, last = max(variable.low, least), min(variable.high, most)
        for value in range(int(first), int(last) + 1):
            found[value - variable.low].append(address)
    return found


def _bounds(chance: Expr | ProbabilityInterval | None) -> tuple[Expr, Expr]:
    if isinstance(chance, ProbabilityInterval):
        return chance.lower, chance.upper
    # the checker puts 1.0 where the text has no probability
    expr = Literal(1.0) if chance is None else chance
    return expr, expr
