"""The reachable states of a PRISM model, found by the machine of `kernels.explorer`.

The machine runs until it needs something: room, a distribution that it has not met, the marginal
of a random choice. Then it forgets what it did in that state, is given what it needs and goes on.
The machine only notices that a text has a mistake. The message is made here, by evaluating that
state again.

Compiling the machine takes seconds, once. As long as it is not compiled, exploration begins as
Python: most models that people write by hand are explored before compiling would pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.kernels import explorer, machine
from rfmdp.kernels.decorator import expect
from rfmdp.language.ast import Assignment, Command, Expr, Literal
from rfmdp.language.check import CHAINS, CheckedModel, State, evaluate_states
from rfmdp.language.commands import CommandRecords, NamedBox, command_distribution, implied_ranges
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.frontier import CERTAIN, Progress, arranged
from rfmdp.model.packing import ROOM, Buffer, Packing, StateTable, grow
from rfmdp.types import AnyArray, IntArray

MAX_CANDIDATES, CHUNK = 1 << 28, 1 << 16  # for initial states, of which so many are tried at once
FEW, SLICE = 16, 1 << 16  # states before the first call of `progress`, and between later ones
EFFORT = 40  # instructions and more per successor, about
# rows, marginals and successors that are written so far
COUNTERS = machine.ROWS, machine.MARGINALS, machine.SUCCESSORS


class StateExplorer:
    """Explores one model. Afterwards `marginals` has those that were met, by identifier."""

    def __init__(self, checked: CheckedModel) -> None:
        self.checked = checked
        self.packing = packing = Packing(checked.variables, in_bits=True)
        self.marginals: list[NamedBox] = []
        self.initial = 0  # number of initial states, which are the first ones
        self.records = CommandRecords(checked, packing)
        program = self.records.program
        self.states = StateTable(packing)
        self.memory = program.ints()
        self.memory[machine.CHAIN] = checked.type in CHAINS
        self.memory[machine.DENSE] = self.states.dense
        self.memory[machine.VECTOR] = len(program.floats())
        widest = max((len(c.updates) for m in checked.modules for c in m.commands), default=0)
        self.floats = np.concatenate([program.floats(), np.zeros(2 * widest + 1)])
        self._code = program.code()
        # what vectors of probabilities and random choices stand for, as the machine looks it up
        self._keys = Buffer(np.int64)
        self._key_table: AnyArray = np.zeros(64, dtype=np.int64)
        self._distributions = Buffer(np.int64, 3)
        self._support = Buffer(np.int64)
        rows, marginals = (np.empty((ROOM, n), dtype=np.int32) for n in (4, 2))
        self._written = rows, marginals, np.empty(ROOM, dtype=np.int32)  # and successors
        self._tensor = np.empty((ROOM, packing.words), dtype=np.int64)
        self._delta = np.zeros((self.records.outcomes, packing.words), dtype=np.int64)
        self._key: AnyArray = np.empty(64, dtype=np.int64)
        self._stuck, self._room = -1, 0  # the state for which there was no room, and how much more

    @property
    def reached(self) -> IntArray:
        """The states so far, packed, in the order of discovery, (S, W)."""
        return self.states.packed[: self.memory[machine.STATES]]

    @property
    def mixed(self) -> int:
        """Number of states of a DTMC with several choices."""
        return int(self.memory[machine.MIXED])

    def run(self, progress: Progress | None = None) -> FactoredMDP:
        """Return what can be reached."""
        self._enter()
        for _ in self._slices():
            if progress is not None:
                progress(len(self.reached), int(self.memory[machine.SUCCESSORS]))
        return arranged(self.packing, self.reached, np.arange(self.initial), *self.take())

    def reach(self) -> Iterator[tuple[AnyArray, ...]]:
        """Yield the rows (R, 4), marginals and successors that are met, slice by slice.

        They are valid until the next ones, and forgotten then; `reached` has the states.
        """
        self._enter()
        for _ in self._slices():
            yield self.take()

    def expand(self, words: IntArray, first: int, last: int) -> tuple[AnyArray, ...]:
        """Return the arrays of states first..last of all that can be reached (S, W), ascending."""
        if self.memory[machine.STATES] != len(words):
            self._begin(words)
        self.memory[machine.EXPANDED] = first
        for _ in self._slices(last):
            pass
        return self.take()

    def take(self) -> tuple[AnyArray, ...]:
        """Return views of the rows that were found, and begin again to write rows."""
        views = tuple(a[: self.memory[c]] for a, c in zip(self._written, COUNTERS, strict=True))
        self.memory[list(COUNTERS)] = 0
        return views

    def _slices(self, last: int | None = None) -> Iterator[None]:
        """Expand states up to `last`, or all; yield after every slice of them."""
        pause = FEW if last is None else last
        while True:
            expect(EFFORT * int(self.memory[machine.SUCCESSORS]))
            status, detail = explorer.explore(
                (self.memory, self._code, self.floats, self.floats.view(np.int64)),
                (
                    *(self._key, self._key_table, self._keys.array),
                    *(self._distributions.array, self._support.array),
                ),
                (self.states.packed, self.states.table),
                self._written,
                (self._tensor, self._delta),
                pause,
            )
            if status in (machine.DONE, machine.PAUSE):
                yield
                if status == machine.DONE or last is not None:
                    return
                pause += min(pause, SLICE)
            elif status == machine.GROW:
                self._grow()
            elif status == machine.NEW_VECTOR:
                self._add_vector(int(detail))
            elif status == machine.NEW_MIX:
                self._add_mix(self._key[: self.memory[machine.KEY_SIZE]])
            else:
                self._fail(int(status), int(detail))

    def state(self, number: int | None = None) -> State:
        """Return a state by its number, else the one that is being expanded."""
        number = int(self.memory[machine.EXPANDED]) if number is None else number
        return State(self.checked, self.packing.unpack(self.states.packed[number : number + 1])[0])

    def _enter(self) -> None:
        words = self.packing.pack(initial_valuations(self.checked))
        self.initial = len(words)
        self._begin(words)

    def _begin(self, words: IntArray) -> None:
        """Begin with some states (S, W), numbered as they come."""
        expect(EFFORT * len(words))
        self.states.fill(words)
        self.memory[machine.STATES] = len(words)

    def _grow(self) -> None:
        """Make room for the rows of one more state; twice as much if that was not enough."""
        memory = self.memory
        again = self._stuck == memory[machine.EXPANDED]
        self._stuck = int(memory[machine.EXPANDED])
        self._room = self._room * 2 if again else 1024
        more = self._room + int(memory[machine.WIDEST])
        try:
            self.states.make_room(int(memory[machine.STATES]), more)
        except ModelError as error:
            raise ModelError(f"{self.checked.source.filename}: {error}") from None
        for array, used in zip(self._written, COUNTERS, strict=True):
            grow(array, int(memory[used]) + more)
        grow(self._tensor, int(memory[machine.WIDEST]))
        grow(self._key, int(memory[machine.KEY_SIZE]))

    def _fail(self, status: int, detail: int) -> NoReturn:
        """Raise the mistake that the machine met in the state, found by plain evaluation."""
        state = self.state()
        if status == machine.TOO_LARGE:
            name = self.packing.name(self.states.packed[self.memory[machine.EXPANDED]])
            reason = f"State {name}: a row with 2^31 or more successors is too large."
            raise ModelError(f"{self.checked.source.filename}: {reason}")
        node = self.records.node[detail]
        if isinstance(node, Assignment):
            value = state.value(node.value)
            variable = next(v for v in self.checked.variables if v.name == node.variable)
            reason = f"the new value of '{variable.name}' must be in [{variable.low}.."
            raise state.error(node.position, f"{reason}{variable.high}], found {int(value)}")
        for expr in (node.guard,) if isinstance(node, Command) else node.ends:
            state.value(expr)
        raise AssertionError(node)  # the machine and plain evaluation agree

    def _add_vector(self, address: int) -> None:
        """Enter the vector of a command in the state that is being expanded.

        The machine asks once per command and vector. A renamed module is a copy of text, not a
        claim that both are alike: it has marginals of its own.
        """
        memory, command = self.memory, self.records.node[address]
        assert isinstance(command, Command)
        first = int(memory[machine.VECTOR])
        size = len(command.updates)
        vector = self.floats[first : first + size * (1 + command.has_intervals)].copy()
        module = self.checked.modules[memory[address + machine.MODULE]].name
        lower, upper = vector[:size], vector[-size:]
        updates, box = command_distribution(command, module, lower, upper, self.state())
        begin = self._support.size
        self._support.extend(len(updates))[:] = updates
        number = self._add_distribution(box, begin, self._support.size)
        ends = (end for update in command.updates for end in update.ends)
        if all(isinstance(end, Literal) for end in ends):
            memory[address + machine.CONSTANT] = number
        else:
            self._add_key(address, number, vector.view(np.int64))

    def _add_mix(self, key: IntArray) -> None:
        """Enter the rows (action, number of marginals, marginals) of the state as one choice."""
        names = [*self.checked.actions, ""]
        actions, choices, at = set(), [], 0
        while at < len(key):
            action, size = key[at : at + 2].tolist()
            actions.add(action)
            choices.append((names[action], [self.marginals[j] for j in key[at + 2 :][:size]]))
            at += 2 + size
        action = actions.pop() if len(actions) == 1 else len(names) - 1
        number = self._add_distribution(NamedBox.mixed(choices, self.state()), action, 0)
        self._add_key(machine.NO_OWNER, number, key)

    def _add_distribution(self, box: NamedBox | None, *entries: int) -> int:
        """Enter a distribution or random choice with its marginal, and return its number."""
        identifier = CERTAIN if box is None else len(self.marginals)
        self.marginals += [] if box is None else [box]
        self._distributions.extend(1)[:] = (identifier, *entries)
        return self._distributions.size - 1

    def _add_key(self, owner: int, number: int, entries: IntArray) -> None:
        """Let the machine find a distribution by its key."""
        first = self._keys.size
        record = [owner, len(entries), number, *entries.tolist()]
        self._keys.extend(len(record))[:] = record
        if 2 * self._distributions.size > len(self._key_table):  # there are no more keys than that
            self._key_table = np.zeros(2 * len(self._key_table), dtype=np.int64)
            first = 0
        explorer.fill_keys(self._key_table, self._keys.array, first, self._keys.size)


def initial_valuations(checked: CheckedModel) -> AnyArray:
    """Return the valuations (I, vars) of all initial states, ascending.

    All valuations are tried that simple bounds in the condition of `init` leave.
    """
    condition = checked.init
    if not isinstance(condition, Expr):
        return np.array(condition, dtype=np.int64).reshape(1, -1)
    needs = implied_ranges(condition)
    box = []
    for v in checked.variables:
        least, most = needs.get(v.name, (-math.inf, math.inf))
        box.append(Variable(v.name, int(max(v.low, least)), int(min(v.high, most))))
    count = math.prod(max(0, v.high - v.low + 1) for v in box)
    if count > MAX_CANDIDATES:
        reason = f"the condition of 'init' leaves {count:.3g} states, at most {MAX_CANDIDATES} are"
        reason += " tried; add conjuncts that bound single variables, such as x=0"
        raise checked.source.error(condition.position, reason)
    blocks = [np.empty((0, len(box)), dtype=np.int32)]
    for start in range(0, count, CHUNK):
        valuations = Packing(box).unpack(np.arange(start, min(start + CHUNK, count))[:, None])
        blocks.append(valuations[evaluate_states(condition, checked, valuations)])
    valuations = np.concatenate(blocks)
    if not len(valuations):
        reason = "some state must satisfy the condition of 'init', found none"
        raise checked.source.error(condition.position, reason)
    return valuations
