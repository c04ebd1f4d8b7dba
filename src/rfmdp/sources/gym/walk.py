"""Episodes of a Gymnasium environment, and their counts.

A step is a call of the environment, two looks into lists (the row of a state, and its action) and
one into a dictionary (the state of an observation). Transitions are counted in compiled code: those
of many episodes at a time, as often as their number grows by a small share, so that the learner
plans anew about when it wants to.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import chain, islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, starts
from rfmdp.sources.checks import Evidence
from rfmdp.sources.simulator import Trajectories
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import IntArray

if TYPE_CHECKING:
    from rfmdp.sources.gym.source import GymSource

FLUSH = 1 << 16  # transitions that are counted together, at most
SHARE = 64  # episodes are counted when there are 1 / SHARE more of them


class Walker:
    """Runs episodes of an environment under behaviours."""

    def __init__(self, source: GymSource, counted: FactoredMDP, evidence: Evidence | None) -> None:
        self._source, self._counted, self._evidence = source, counted, evidence
        self._row_ptr = counted.row_ptr.tolist()
        # the rows as objects, which lists share: few of them stay in the caches; -1 is the last
        self._numbers = np.append(np.arange(counted.rows), -1).astype(object)
        self._find = state_finder(source)
        # of what is not counted yet: numbers of initial states and steps, by episodes
        self._starts: list[int] = []
        self._lengths: list[int] = []
        self._rows: list[int] = []  # of transitions, and so on
        self._successors: list[int] = []
        self._paid: list[float] = []

    def run_until(self, request: Trajectories, limit: IntArray, tally: Tally) -> tuple[int, int]:
        """Run episodes until an identifier's total has reached its limit; add to the tally."""
        done = steps = 0
        often = max(1, request.first // SHARE)
        for length in self._episodes(request):
            done, steps = done + 1, steps + length
            if done % often == 0 or len(self._rows) >= FLUSH:
                self._count(tally)
                if np.any(tally.totals >= limit):
                    return done, steps
        self._count(tally)
        return done, steps

    def _episodes(self, request: Trajectories) -> Iterator[int]:
        """Run episodes, yield their steps; only the first reset has a seed."""
        source, find = self._source, self._find
        env, pays, note_paid = source.env, source.pays, self._paid.append
        actions = source.actions  # of every row; None where there is none: the episode is over
        note_row, note_successor = self._rows.append, self._successors.append
        other = request.behaviour.other
        # the row of every state, for every step; the last line repeats
        lines: list[list[int]] = self._numbers[request.behaviour.rows].tolist()
        strays = other > 0.0 or bool(np.any(request.behaviour.rows < 0))
        random = Random(f"{request.seed} {request.first}")
        words = {"seed": seed_of(request.seed, request.first)}
        for _ in range(request.count):
            observation, _ = env.reset(**words)
            words = {}
            state = find(observation)
            self._starts.append(source.start(state))
            begin = len(self._rows)
            for rows in islice(chain(lines, repeat(lines[-1])), request.length):
                row = rows[state]
                if strays:
                    row = pick_row(row, self._row_ptr, state, other, random)
                action = actions[row]
                if action is None:
                    break
                observation, paid, terminated, truncated, _ = env.step(action)
                state = find(observation)
                note_row(row)
                note_successor(state)
                if pays:
                    note_paid(paid)
                if terminated:
                    source.check_end(state)
                if terminated or truncated:
                    break
            self._lengths.append(len(self._rows) - begin)
            yield self._lengths[-1]

    def _count(self, tally: Tally) -> None:
        """Add what was observed to a tally."""
        if len(tally.starts):
            np.add.at(tally.starts, self._starts, 1)
        if self._rows:
            rows, successors = np.array(self._rows, dtype=np.int64), np.array(self._successors)
            count_transitions(self._counted, rows, successors, tally)
            if self._source.pays:
                self._source.note_paid(rows, np.array(self._paid, dtype=np.float64))
            if self._evidence is not None:
                ptr = starts(self._lengths)
                ages = np.arange(len(rows)) - ptr[owners(ptr)]
                before = np.where(ages == 0, -1, np.roll(rows, 1))
                self._evidence.add(rows, successors, before, ages)
        for column in (self._starts, self._lengths, self._rows, self._successors, self._paid):
            column.clear()


def state_finder(source: GymSource) -> Callable[[Any], int]:
    """Return what finds the states that observations show, and remembers them."""
    states: dict[Any, int] = {}

    def find(observation: Any) -> int:
        plain = isinstance(observation, np.ndarray) and not observation.dtype.hasobject
        key = observation.tobytes() if plain else pickle.dumps(observation)
        if key not in states:
            states[key] = source.state(observation)
        return states[key]

    return find


def pick_row(row: int, row_ptr: list[int], state: int, other: float, random: Random) -> int:
    """Return any row of a state for -1, else the same one or, by chance `other`, another one."""
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
