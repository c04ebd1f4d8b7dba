"""Rows of tables as transitions of a model: which follow each other, and which the model allows.

The rows of an episode stand one after the other. If a column has their times, rows of others may
stand between them: then the last row of every episode is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import find
from rfmdp.sources.index import Index, SuccessorPairs, absorbing
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.sources.log.rows import Decoder, LogRows, Problems
from rfmdp.sources.log.tables import LogTable
from rfmdp.types import AnyArray, BoolArray, IntArray

DISABLED = "have an action that the state does not have"
SUPPORT = "lead where the model says they cannot"
AGAIN = (
    "begin an episode that was there before: shuffled or doubled; sort by episode and time, or "
    "name a column of times, and number the episodes of all tables differently"
)
HIDDEN = (
    "end an episode by an action whose next state is not there; record the last state as a row "
    "without action, or next states"
)
OPEN = (
    "are the last of their episode, have no next state, and may have ended it; record the last "
    "state as a row without action, or next states, or say in a column `terminated` that the "
    "episode was not over"
)
LEFT = (
    "have `terminated` in a state that the structure lets be left; give it no enabled action "
    "(guards), add a variable that says that the episode is over, or, if it was only cut off, call "
    "that `truncated`"
)


class TransitionReader:
    """Turns tables into transitions of a model, after a look at every row."""

    def __init__(
        self, model: FactoredMDP, manifest: Manifest, problems: Problems, *, alone: bool
    ) -> None:
        self._model, self._manifest, self._problems = model, manifest, problems
        self._index, self.pairs = Index(model), SuccessorPairs(model)
        self.episodes = self.unfinished = self.omitted = self.rows = 0
        self.undated = self.unread = False
        self._seen = SeenEpisodes()
        self._absorbing = absorbing(model)
        self._alone = alone  # whether there is one table only
        self.over = np.zeros(model.states, dtype=np.bool_)  # where episodes terminated

    def transitions(self, table: LogTable) -> Iterator[tuple[IntArray, LogRows]]:
        """Yield the transitions of a table, some at a time; note what is wrong with it.

        They are numbers of pairs of a row and its successor, (N,), and where these stand.
        """
        places = Places.find(table.name, table.columns, self._model, self._manifest)
        self.undated |= places.episode is None or places.time is None
        self.unread |= places.unread is not None
        problems, seen = self._problems, self._seen
        decoder = Decoder(table.name, places, self._index, self._manifest, problems, seen.names)
        follower = EpisodeFollower(table.name, problems, seen, alone=self._alone)
        for batch in table.read(places.names):
            rows = decoder.decode(batch)
            steps = follower.transitions(rows)
            if places.terminated is not None:
                last = rows.take(rows.action == -2)
                self._ended(table.name, last, last.state)
                self._ended(table.name, steps, steps.after)
            self.rows += batch.num_rows
            yield self._of_model(table.name, steps)
        follower.finish()
        self.episodes += follower.episodes
        self.unfinished += follower.unfinished

    def _ended(self, table: str, rows: LogRows, last: AnyArray) -> None:
        """Note rows that end an episode in a state (N,), -1: unknown, that the model leaves."""
        assert rows.terminated is not None  # else nobody asks
        over = rows.terminated & (last >= 0)
        self.over[last[over]] = True

        def shown(i: int) -> str:
            return self._model.state_name(int(last[i]))

        self._problems.add(table, LEFT, over & ~self._absorbing[last], rows.number, shown)

    def _of_model(self, table: str, steps: LogRows) -> tuple[IntArray, LogRows]:
        """Return the transitions that the model allows, with their pairs; note the others."""
        model, note = self._model, self._problems.add
        readable = (steps.state >= 0) & (steps.action >= 0) & (steps.after >= 0)
        if not readable.all():
            self.omitted += int(np.count_nonzero(~readable))
            steps = steps.take(readable)
        rows = self._index.rows(steps.state, steps.action)
        disabled = rows < 0
        if disabled.any():

            def choice(i: int, steps: LogRows = steps) -> str:
                state = model.state_name(int(steps.state[i]))
                return f"{model.actions[steps.action[i]]!r} in {state}"

            note(table, DISABLED, disabled, steps.number, choice, omittable=True)
            self.omitted += int(np.count_nonzero(disabled))
            steps, rows = steps.take(~disabled), rows[~disabled]
        pairs = self.pairs.find(rows, steps.after)
        outside = pairs < 0
        if outside.any():

            def move(i: int, after: AnyArray = steps.after) -> str:
                return f"{model.row_name(int(rows[i]))} to {model.state_name(int(after[i]))}"

            note(table, SUPPORT, outside, steps.number, move)
            steps, pairs = steps.take(~outside), pairs[~outside]
        return pairs, steps


class SeenEpisodes:
    """The episodes of all tables so far."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}  # numbers of those that have names
        self._numbers = [np.empty(0, dtype=np.int64)]  # ascending
        self._largest = -math.inf
        self._last: int | None = None

    def again(self, new: IntArray, *, goes_on: bool) -> BoolArray:
        """Return which of the episodes (N,) that begin now were there before.

        `goes_on`: they are the first of their table. The first one of all may then be the last one
        of the table before, which goes on.
        """
        again = np.zeros(len(new), dtype=np.bool_)
        if not len(new):
            return again
        last, self._last = self._last, int(new[-1])
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
        again[0] &= not (goes_on and new[0] == last)
        return again


class LastRows:
    """The last row of every episode of a table so far."""

    def __init__(self) -> None:
        self._batches: list[LogRows] = []
        self._sorted = True
        self._largest = -math.inf

    def put(self, rows: LogRows) -> None:
        """Take note of the last rows of some episodes."""
        self._batches.append(rows)
        self._sorted = False
        self._largest = max(self._largest, int(rows.episode.max()))

    def of(self, episodes: IntArray) -> LogRows | None:
        """Return those of some episodes (N,), as far as there are any."""
        least = int(episodes.min())
        if least > self._largest:
            return None
        newest = self._batches[-1].take(slice(-1, None))
        if least == self._largest == newest.episode[0]:
            return newest  # no other one is so large
        rows = self.all()
        assert rows is not None  # else none is the largest
        at = find(rows.episode, np.unique(episodes))
        return rows.take(at[at >= 0]) if np.any(at >= 0) else None

    def all(self) -> LogRows | None:
        """Return those of all episodes, ascending."""
        if not self._sorted:
            every = LogRows.join(self._batches)
            order = np.argsort(every.episode, kind="stable")
            number = every.episode[order]
            self._batches = [every.take(order[np.append(number[1:] != number[:-1], True)])]
            self._sorted = True
        return self._batches[0] if self._batches else None


class EpisodeFollower:
    """Follows the episodes of one table from batch to batch."""

    def __init__(self, table: str, problems: Problems, seen: SeenEpisodes, *, alone: bool) -> None:
        self._table, self._problems, self._seen, self._alone = table, problems, seen, alone
        self._last: LogRows | None = None  # the last row so far, if rows have no times
        self._open = LastRows()  # if they have
        self.episodes = 0
        self.unfinished = 0  # rows without a next state, which say nothing

    def transitions(self, batch: LogRows) -> LogRows:
        """Return the rows of a batch that are transitions; note what is wrong with their order.

        Each of them has its next state (`after`) and the action before (`earlier`).
        """
        rows, old, mixed = self._continued(batch)
        same = _together(rows)
        self._begin(rows, np.append(True, ~same)[: len(rows)] & ~old)
        ordered = self._in_order(rows, same)
        self._over(rows, same)
        # without episodes, rows that have their own next states may come from anywhere
        follows = rows.after is None or rows.episode is not None
        if follows:
            rows.earlier[1:] = np.where(same, np.maximum(rows.action[:-1], -1), rows.earlier[1:])
        if len(rows) and _timed(rows):
            self._open.put(rows.take(np.append(~same, True)))
        elif len(rows):
            self._last = rows.take(slice(-1, None))
        if rows.after is None:
            steps = self._followed(rows, same)
        else:
            if follows:
                self._chained(rows, same & ordered)
            steps = rows.take(~old if mixed else slice(len(rows) - len(batch), None))
            self._note("have no action, but a next state", steps.action == -2, steps)
        return steps.take(np.argsort(steps.number)) if mixed else steps

    def finish(self) -> None:
        """Note what is wrong at the end of the table."""
        for rows in (self._last, self._open.all()):
            if rows is not None and rows.after is None:
                self._unfinished(rows, rows.action != -2)

    def _continued(self, batch: LogRows) -> tuple[LogRows, BoolArray, bool]:
        """Return a batch with the last rows of its episodes before it.

        Returns also which rows are such old ones, and whether all had to be sorted by episodes.
        """
        before, mixed = self._last, False
        if _timed(batch) and len(batch):
            begins = batch.episode[np.append(True, batch.episode[1:] != batch.episode[:-1])]
            before = self._open.of(begins)
            mixed = bool(np.any(begins[1:] <= begins[:-1])) and len(np.unique(begins)) < len(begins)
            if before is not None:
                mixed |= len(before) > 1 or bool(before.episode[0] != begins[0])
        rows = batch if before is None else LogRows.join([before, batch])
        old = np.arange(len(rows)) < len(rows) - len(batch)
        if mixed:
            order = np.argsort(rows.episode, kind="stable")
            rows, old = rows.take(order), old[order]
        return rows, old, mixed

    def _begin(self, rows: LogRows, fresh: BoolArray) -> None:
        """Count new episodes; note those that were there before."""
        goes_on = self.episodes == 0
        self.episodes += int(fresh.sum())
        if rows.episode is not None:
            again = np.zeros(len(rows), dtype=np.bool_)
            again[fresh] = self._seen.again(rows.episode[fresh], goes_on=goes_on)
            self._note(AGAIN, again, rows, rows.episode)

    def _in_order(self, rows: LogRows, same: BoolArray) -> BoolArray:
        """Return where a row follows the one before by one step of time, (N - 1,)."""
        if not _timed(rows):
            return np.ones(len(same), dtype=np.bool_)
        step = rows.time[1:] - rows.time[:-1]
        if np.any(same & (step != 1)):
            later = rows.take(slice(1, None))
            for fault, where in (
                ("have the time of the row before: doubled rows", step == 0),
                ("come earlier than the row before of their episode: shuffled or doubled rows",
                 step < 0),
                ("come more than one step after the row before: missing rows", step > 1),
            ):  # fmt: skip
                self._note(fault, same & where, later, later.time)
        return np.asarray(step == 1)

    def _over(self, rows: LogRows, same: BoolArray) -> None:
        """Note rows after which an episode was over, and goes on."""
        if rows.after is not None:  # what was cut off may go on, its next state is there
            over, more = rows.terminated, same
        else:  # the next row may be the last state
            over, more = rows.ended, same & (rows.action[1:] != -2)
        if over is not None:
            fault = "end an episode, but another row of the episode follows"
            self._note(fault, over[:-1] & more, rows.take(slice(0, -1)))

    def _chained(self, rows: LogRows, follow: BoolArray) -> None:
        """Note rows that do not begin where the row before ended."""
        readable = (rows.state[1:] >= 0) & (rows.after[:-1] >= 0)
        broken = follow & readable & (rows.state[1:] != rows.after[:-1])
        fault = "do not begin in the next state of the row before, of the same episode"
        if broken.any():
            self._note(fault, broken, rows.take(slice(1, None)))

    def _followed(self, rows: LogRows, same: BoolArray) -> LogRows:
        """Return rows with the states of the next ones as theirs; only these have an outcome."""
        before = rows.take(slice(0, -1))
        acted = rows.action[:-1] != -2
        fault = "have no action, but another row of the episode follows"
        self._note(fault, same & ~acted, before)
        if not _timed(rows):  # else it may go on later
            self._unfinished(before, ~same & acted)
        return replace(before, after=rows.state[1:]).take(same & acted)

    def _unfinished(self, rows: LogRows, where: BoolArray) -> None:
        """Count rows without a next state; where one may end an episode, that is a fault.

        If all rows are one sequence, its last outcome alone may be missing: sets that hold at all
        times together hold at the time before it.
        """
        if rows.ended is not None:
            self._note(HIDDEN, where & rows.ended, rows)
        if rows.terminated is None and not (rows.episode is None and self._alone):
            self._note(OPEN, where if rows.ended is None else where & ~rows.ended, rows)
        self.unfinished += int(where.sum())

    def _note(
        self, fault: str, where: BoolArray, rows: LogRows, values: AnyArray | None = None
    ) -> None:
        shown = None if values is None else values.__getitem__
        self._problems.add(self._table, fault, where, rows.number, shown)


def _timed(rows: LogRows) -> bool:
    """Return whether rows say to which moment of which episode they belong."""
    return rows.episode is not None and rows.time is not None


def _together(rows: LogRows) -> BoolArray:
    """Return where a row and the one before are of the same episode, (N - 1,)."""
    if rows.episode is not None:
        return np.asarray(rows.episode[1:] == rows.episode[:-1])
    if rows.ended is not None:
        return np.asarray(~rows.ended[:-1])
    return np.asarray(rows.action[:-1] != -2)
