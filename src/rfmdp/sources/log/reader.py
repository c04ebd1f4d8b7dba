"""Rows of tables as transitions of a model: which follow each other, and which the model allows.

The rows of an episode stand one after the other, each with its next state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import find
from rfmdp.sources.index import Index, SuccessorPairs, absorbing
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.sources.log.rows import Decoder, LogRows, Problems
from rfmdp.sources.log.tables import LogTable
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

DISABLED = "have an action that the state does not have"
SUPPORT = "lead where the model says they cannot"
AGAIN = (
    "begin an episode that was there before: shuffled or doubled; sort by episode and time, and "
    "number the episodes of all tables differently"
)
ORDER = {  # by what was done to the rows
    "doubled": "have the time of the row before: doubled rows",
    "shuffled": "come earlier than the row before of their episode: shuffled or doubled rows",
    "missing": "come more than one step after the row before: missing rows",
}
ENDED = "end an episode, but another row of the episode follows"
BROKEN = "do not begin in the next state of the row before, of the same episode"
LEFT = (
    "have `terminated` in a state that the structure lets be left; give it no enabled action "
    "(guards), add a variable that says that the episode is over, or, if it was only cut off, call "
    "that `truncated`"
)


class LogTransitions(NamedTuple):
    """Transitions of a model that stand in a table, (N,) each, in their order."""

    pairs: IntArray  # numbers of pairs of a row and its successor
    before: IntArray  # row that was taken before in the same episode; -1 at its start
    ages: IntArray  # steps of the episode before
    reward: FloatArray | None  # what was paid
    number: IntArray  # where they stand in the table


class TransitionReader:
    """Turns tables into transitions of a model, after a look at every row."""

    def __init__(self, model: FactoredMDP, manifest: Manifest, problems: Problems) -> None:
        self._model, self._manifest, self._problems = model, manifest, problems
        self._index, self.pairs = Index(model), SuccessorPairs(model)
        self._absorbing = absorbing(model)
        self._names: dict[str, int] = {}  # numbers of episodes that have names
        self._seen = SeenEpisodes()
        self._last: tuple[LogRows, IntArray, int] | None = None  # rows, of the model, age
        self.episodes = self.rows = 0
        self.undated = self.unread = False
        self.followed = True  # whether all tables say which rows follow each other
        self.over = np.zeros(model.states, dtype=np.bool_)  # where episodes terminated

    def transitions(self, table: LogTable) -> Iterator[LogTransitions]:
        """Yield the transitions of a table, some at a time; note what is wrong with it."""
        places = Places.find(table.name, table.columns, self._model, self._manifest)
        self.followed &= places.episode is not None
        self.undated |= places.episode is None or places.time is None
        self.unread |= places.unread is not None
        decoder = Decoder(
            table.name, places, self._index, self._manifest, self._problems, self._names
        )
        for batch in table.read(places.names):
            rows = decoder.decode(batch)
            self.rows += batch.num_rows
            taken, pairs = self._of_model(table.name, rows)
            self._ended(table.name, rows)
            before, ages = self._follow(table.name, rows, taken)
            fine = pairs >= 0
            columns = (pairs, before, ages, rows.reward, rows.number)
            yield LogTransitions(*(None if c is None else c[fine] for c in columns))  # type: ignore[arg-type]

    def _of_model(self, table: str, rows: LogRows) -> tuple[IntArray, IntArray]:
        """Return rows of the model and their pairs, -1 where it has none; note where."""
        model, note = self._model, self._problems.add
        readable = (rows.state >= 0) & (rows.action >= 0)
        taken = np.where(readable, self._index.rows(rows.state, rows.action), -1)

        def choice(i: int) -> str:
            state = model.state_name(int(rows.state[i]))
            return f"{model.actions[rows.action[i]]!r} in {state}"

        note(table, DISABLED, readable & (taken < 0), rows.number, choice)
        readable = (taken >= 0) & (rows.after >= 0)
        pairs = np.where(readable, self.pairs.find(taken, rows.after), -1)

        def move(i: int) -> str:
            return f"{model.row_name(int(taken[i]))} to {model.state_name(int(rows.after[i]))}"

        note(table, SUPPORT, readable & (pairs < 0), rows.number, move)
        return taken, pairs

    def _ended(self, table: str, rows: LogRows) -> None:
        """Note rows that end an episode in a state that the model leaves."""
        if rows.terminated is None:
            return
        over = rows.terminated & (rows.after >= 0)
        self.over[rows.after[over]] = True

        def shown(i: int) -> str:
            return self._model.state_name(int(rows.after[i]))

        left = over & ~self._absorbing[rows.after]
        self._problems.add(table, LEFT, left, rows.number, shown)

    def _follow(self, table: str, rows: LogRows, taken: IntArray) -> tuple[IntArray, IntArray]:
        """Return the row (N,) of the model before each, and its age; note a broken order.

        Without episodes rows may come from anywhere.
        """
        count = len(rows.number)
        nothing = np.full(count, -1), np.zeros(count, dtype=np.int64)
        if rows.episode is None or not count:
            self._last = None if count else self._last
            return nothing
        last = self._last
        both = rows.behind(None if last is None else last[0])
        held = last is not None
        assert both.episode is not None
        same = both.episode[1:] == both.episode[:-1]
        fresh = ~same if held else np.append(True, ~same)
        self._begin(table, rows, fresh)
        self._check_order(table, both, same)
        before = np.append(-1 if last is None else last[1][-1:], taken[:-1])
        place = np.arange(count)
        begun = np.maximum.accumulate(np.where(fresh, place, -1))
        age = 0 if last is None else last[2]
        ages = place - begun + np.where(begun < 0, age, 0)
        self._last = rows, taken, int(ages[-1])
        return np.where(fresh, -1, before), ages

    def _begin(self, table: str, rows: LogRows, fresh: BoolArray) -> None:
        """Count new episodes; note those that were there before."""
        assert rows.episode is not None  # else nobody asks
        self.episodes += int(fresh.sum())
        again = np.zeros(len(fresh), dtype=np.bool_)
        again[fresh] = self._seen.again(rows.episode[fresh])
        self._problems.add(table, AGAIN, again, rows.number, rows.episode.__getitem__)

    def _check_order(self, table: str, rows: LogRows, same: BoolArray) -> None:
        """Note rows (N + 1,) that do not follow the one before where they are of one episode."""
        note, number = self._problems.add, rows.number[1:]
        follow = same
        if rows.time is not None:
            step, times = np.diff(rows.time), rows.time[1:]
            faults = {"doubled": step == 0, "shuffled": step < 0, "missing": step > 1}
            for fault, where in faults.items():
                note(table, ORDER[fault], same & where, number, times.__getitem__)
            follow = same & (step == 1)
        if rows.terminated is not None:
            note(table, ENDED, same & rows.terminated[:-1], rows.number[:-1])
        readable = (rows.state[1:] >= 0) & (rows.after[:-1] >= 0)
        note(table, BROKEN, follow & readable & (rows.state[1:] != rows.after[:-1]), number)


class SeenEpisodes:
    """The episodes of all tables so far."""

    def __init__(self) -> None:
        self._numbers = [np.empty(0, dtype=np.int64)]  # ascending
        self._largest = -math.inf

    def again(self, new: IntArray) -> BoolArray:
        """Return which of the episodes (N,) that begin now were there before."""
        again: AnyArray = np.zeros(len(new), dtype=np.bool_)
        if not len(new):
            return again
        ahead = bool(new[0] > self._largest and np.all(new[1:] > new[:-1]))
        self._largest = max(self._largest, int(new.max()))
        if ahead:
            self._numbers.append(new)
            return again
        before = np.concatenate(self._numbers)
        different, first = np.unique(new, return_index=True)
        fresh = find(before, different) < 0
        again[:] = True
        again[first[fresh]] = False
        self._numbers = [np.sort(np.append(before, different[fresh]))]
        return again
