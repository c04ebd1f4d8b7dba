"""Episodes of a Gymnasium environment, and their counts.

A step is a call of the environment, two looks into lists (the row of a state, and its action) and
one into a dictionary (the state of an observation). Transitions are counted in compiled code: many
at a time, and earlier if an identifier may have reached the limit at which the learner plans anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, segment_lengths
from rfmdp.sources.checks import Evidence
from rfmdp.sources.gym.spaces import finite, read, require_gymnasium
from rfmdp.sources.simulator import Trajectories
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.sources.gym.source import GymSource

FLUSH = 1 << 16  # transitions that are counted together
CLOSE = 1000  # samples of an identifier before its limit

Lines: TypeAlias = list[list[int]]  # the row of every state, for every step


class PendingTransitions:
    """Transitions that were observed and not counted yet."""

    def __init__(self, source: GymSource, counted: FactoredMDP, evidence: Evidence | None) -> None:
        self._source, self._counted, self._evidence = source, counted, evidence
        self.starts: list[int] = []  # numbers of initial states
        self.rows: list[int] = []
        self.successors: list[int] = []
        self.before: list[int] = []  # rows one step earlier, -1 at the start of an episode
        self.ages: list[int] = []  # steps since the start
        self.paid: list[float] = []

    def count(self, tally: Tally) -> None:
        """Add everything to a tally."""
        if len(tally.starts):
            np.add.at(tally.starts, self.starts, 1)
        self.starts.clear()
        if self.rows:
            rows = np.array(self.rows, dtype=np.int64)
            successors = np.array(self.successors)
            count_transitions(self._counted, rows, successors, tally)
            if self._source.pays:
                self._pay(rows, np.array(self.paid, dtype=np.float64))
            if self._evidence is not None:
                self._evidence.add(rows, successors, np.array(self.before), np.array(self.ages))
            for column in (self.rows, self.successors, self.before, self.ages, self.paid):
                column.clear()

    def _pay(self, rows: IntArray, paid: FloatArray) -> None:
        """Have the source compare what was paid with what was declared, or else note it."""
        self._source.check_finite(rows, paid)
        declared = self._source.declared
        if declared is None:
            self._source.note_paid(rows, paid)
        else:
            self._source.check_paid(rows, declared[rows], paid)


class LimitWatch:
    """Says when an identifier has reached its limit; transitions are counted when one may have.

    `_rare` are the rows of identifiers that are close to their limits. No other identifier can
    reach its limit before there are `_patience` transitions.
    """

    def __init__(self, counted: FactoredMDP, limit: IntArray, tally: Tally) -> None:
        self._limit, self._tally = limit, tally
        self._often = max(1, int(np.max(segment_lengths(counted.marginal_ptr), initial=1)))
        self._close = limit - tally.totals < CLOSE
        near = owners(counted.marginal_ptr)[self._close[counted.row_marginals]]
        self._rare = frozenset(near.tolist())
        self._looked = 0
        self._renew()

    def reached(self, seen: PendingTransitions) -> bool:
        """Return whether an identifier has reached its limit with what was seen."""
        new = seen.rows[self._looked :]
        self._looked = len(seen.rows)
        if self._looked < self._patience and self._rare.isdisjoint(new):
            return False
        seen.count(self._tally)
        self._looked = 0
        self._renew()
        return bool(np.any(self._tally.totals >= self._limit))

    def _renew(self) -> None:
        """Look at the totals as they are now."""
        left = (self._limit - self._tally.totals)[~self._close]
        least = int(np.min(left, initial=FLUSH * self._often))
        self._patience = max(1, min(FLUSH, -(-least // self._often)))


class Walker:
    """Runs episodes of an environment under behaviours; a `Sampler`."""

    def __init__(
        self,
        source: GymSource,
        counted: FactoredMDP,
        evidence: Evidence | None = None,
    ) -> None:
        self._source, self._counted = source, counted
        self._row_ptr = counted.row_ptr.tolist()
        # the rows as objects, which lists share: few of them stay in the caches; -1 is the last
        self._numbers = np.append(np.arange(counted.rows), -1).astype(object)
        self._seen = PendingTransitions(source, counted, evidence)
        self._find = state_finder(source)

    def run_until(self, request: Trajectories, limit: IntArray, tally: Tally) -> tuple[int, int]:
        """Run episodes until an identifier's total reaches its limit; add to the tally."""
        done = 0
        steps = 0
        watch = LimitWatch(self._counted, limit, tally)
        for length in self._episodes(request):
            done, steps = done + 1, steps + length
            if watch.reached(self._seen):
                return done, steps
        self._seen.count(tally)
        return done, steps

    def _episodes(self, request: Trajectories) -> Iterator[int]:
        """Run episodes, yield their steps; only the first reset has a seed."""
        source, seen, find = self._source, self._seen, self._find
        actions = source.actions  # of every row; None where there is none: the episode is over
        env, pays, note_paid = source.env, source.pays, seen.paid.append
        note_row, note_successor = seen.rows.append, seen.successors.append
        note_before, note_age = seen.before.append, seen.ages.append
        other = request.behaviour.other
        # the row of every state, for every step; the last line repeats
        lines: Lines = self._numbers[request.behaviour.rows].tolist()
        strays = other > 0.0 or bool(np.any(request.behaviour.rows < 0))
        random = Random(f"{request.seed} {request.first}")
        words = {"seed": seed_of(request.seed, request.first)}
        for _ in range(request.count):
            observation, _ = env.reset(**words)
            words = {}
            state = find(observation)
            seen.starts.append(source.start(state))
            begin = len(seen.rows)
            row = -1
            for age, rows in enumerate(islice(chain(lines, repeat(lines[-1])), request.length)):
                before, row = row, rows[state]
                if strays:
                    row = pick_row(row, self._row_ptr, state, other, random)
                action = actions[row]
                if action is None:
                    break
                observation, paid, terminated, truncated, _ = env.step(action)
                state = find(observation)
                note_row(row)
                note_successor(state)
                note_before(before)
                note_age(age)
                if pays:
                    note_paid(paid)
                if terminated:
                    source.check_end(state)
                if terminated or truncated:
                    break
            yield len(seen.rows) - begin


def state_finder(source: GymSource) -> Callable[[Any], int]:
    """Return what finds the states that observations show, and remembers them."""
    spaces = require_gymnasium().spaces
    if isinstance(source.space, spaces.Discrete):
        return cache(source.state)
    nested = isinstance(source.space, spaces.Tuple | spaces.Dict)
    if nested and not finite(source.space):  # two of them may have the same values
        return source.state
    states: dict[Any, int] = {}

    def find(observation: Any) -> int:
        if nested:
            key: Any = tuple(read(source.space, observation))
        else:
            array = np.asarray(observation)
            if array.dtype.hasobject:  # its bytes are addresses
                return source.state(observation)
            key = array.tobytes()
        if key not in states:
            states[key] = source.state(observation)
        return states[key]

    return find


def pick_row(row: int, row_ptr: list[int], state: int, other: float, random: Random) -> int:
    """Return any row of a state for -1, else the given one or, by chance `other`, another one."""
    first, choices = row_ptr[state], row_ptr[state + 1] - row_ptr[state]
    if row < 0:
        return first + random.randrange(choices)
    if choices > 1 and random.random() < other:
        pick = first + random.randrange(choices - 1)
        return pick if pick < row else pick + 1
    return row


def seed_of(seed: int, number: int) -> int:
    """Return a seed for Gymnasium, a function of both numbers."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
