"""The order of rows: which rows follow each other, and which are missing, doubled or shuffled.

The rows of an episode stand one after the other. If a column has their times, rows of others may
stand between them: then the last row of every episode is kept.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rfmdp.ragged import find
from rfmdp.sources.log.decoding import LogRows
from rfmdp.sources.log.problems import Problems
from rfmdp.types import AnyArray, BoolArray, IntArray


class SeenEpisodes:
    """The episodes of all tables so far."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}  # numbers of those that have names
        self._known = [np.empty(0, dtype=np.int64)]  # ascending
        self._largest = -math.inf
        self._last: int | None = None

    def again(self, new: IntArray, *, goes_on: bool) -> BoolArray:
        """Return which of the episodes (N,) that begin now were there before.

        `goes_on`: they are the first of their table. The first one of all may then be the last one
        of the table before, which goes on.
        """
        if not len(new):
            return np.zeros(0, dtype=np.bool_)
        last = self._last
        self._last = int(new[-1])
        ahead = bool(new[0] > self._largest and np.all(new[1:] > new[:-1]))
        self._largest = max(self._largest, int(new.max()))
        if ahead:
            self._known.append(new)
            return np.zeros(len(new), dtype=np.bool_)
        known = np.concatenate(self._known)
        different, first = np.unique(new, return_index=True)
        fresh = find(known, different) < 0
        again = np.ones(len(new), dtype=np.bool_)
        again[first[fresh]] = False
        added = different[fresh]
        self._known = [np.insert(known, np.searchsorted(known, added), added)]
        again[0] &= not (goes_on and new[0] == last)
        return again


class LastRows:
    """The last row of every episode of a table so far."""

    def __init__(self) -> None:
        self._parts: list[LogRows] = []
        self._sorted = True
        self._largest = -math.inf

    def put(self, rows: LogRows) -> None:
        """Take note of the last rows of some episodes."""
        self._parts.append(rows)
        self._sorted = False
        self._largest = max(self._largest, int(rows.episode.max()))

    def of(self, episodes: IntArray) -> LogRows | None:
        """Return those of some episodes (N,), as far as there are any."""
        least = int(episodes.min())
        if least > self._largest:
            return None
        newest = self._parts[-1].take(slice(-1, None))
        if least == self._largest == newest.episode[0]:
            return newest  # no other one is so large
        known = self.all()
        assert known is not None
        at = find(known.episode, np.unique(episodes))
        return known.take(at[at >= 0]) if np.any(at >= 0) else None

    def all(self) -> LogRows | None:
        """Return those of all episodes, ascending."""
        if not self._sorted:
            every = LogRows.join(self._parts)
            order = np.argsort(every.episode, kind="stable")
            number = every.episode[order]
            self._parts = [every.take(order[np.append(number[1:] != number[:-1], True)])]
            self._sorted = True
        return self._parts[0] if self._parts else None


class EpisodeFollower:
    """Follows the episodes of one table from batch to batch."""

    def __init__(self, table: str, problems: Problems, seen: SeenEpisodes, *, alone: bool) -> None:
        self._table, self._problems = table, problems
        self._alone = alone  # whether there is no other table
        self._last: LogRows | None = None  # the last row so far, if rows have no times
        self._open = LastRows()  # if they have
        self._seen = seen
        self.episodes = 0
        self.unfinished = 0  # rows without a next state, which say nothing

    def transitions(self, batch: LogRows) -> LogRows:
        """Return the rows of a batch that are transitions; note what is wrong with their order.

        Each of them has its next state (`after`) and the action before (`earlier`).
        """
        rows, old, mixed = self._continued(batch)
        same = self._together(rows)
        self._begin(rows, np.append(True, ~same)[: len(rows)] & ~old)
        ordered = self._in_order(rows, same)
        self._over(rows, same)
        # without episodes, rows that have their own next states may come from anywhere
        follows = rows.after is None or rows.episode is not None
        if follows:
            rows.earlier[1:] = np.where(same, np.maximum(rows.action[:-1], -1), rows.earlier[1:])
        self._keep(rows, same)
        if rows.after is None:
            found = self._followed(rows, same)
        else:
            if follows:
                self._chained(rows, same & ordered)
            found = rows.take(~old if mixed else slice(len(rows) - len(batch), None))
            self._note("have no action, but a next state", found.action == -2, found)
        return found.take(np.argsort(found.number)) if mixed else found

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
            rows = rows.take(order)
            old = old[order]
        return rows, old, mixed

    def _keep(self, rows: LogRows, same: BoolArray) -> None:
        """Keep the last row; with times, that of every episode."""
        if len(rows) and _timed(rows):
            self._open.put(rows.take(np.append(~same, True)))
        elif len(rows):
            self._last = rows.take(slice(-1, None))

    def _together(self, rows: LogRows) -> BoolArray:
        """Return where a row and the one before are of the same episode, (N - 1,)."""
        if rows.episode is not None:
            return np.asarray(rows.episode[1:] == rows.episode[:-1])
        if rows.ended is not None:
            return np.asarray(~rows.ended[:-1])
        return np.asarray(rows.action[:-1] != -2)

    def _begin(self, rows: LogRows, fresh: BoolArray) -> None:
        """Count new episodes; note those that were there before."""
        goes_on = self.episodes == 0
        self.episodes += int(fresh.sum())
        if rows.episode is None:
            return
        where = np.zeros(len(rows), dtype=np.bool_)
        where[fresh] = self._seen.again(rows.episode[fresh], goes_on=goes_on)
        fault = (
            "begin an episode that was there before: shuffled or doubled; sort by episode and "
            "time, or name a column of times, and number the episodes of all tables differently"
        )
        self._note(fault, where, rows, rows.episode)

    def _in_order(self, rows: LogRows, same: BoolArray) -> BoolArray:
        """Return where a row follows the one before by one step of time, (N - 1,)."""
        if rows.time is None or rows.episode is None:
            return np.ones(len(same), dtype=np.bool_)
        step = rows.time[1:] - rows.time[:-1]
        wrong = same & (step != 1)
        if wrong.any():
            for fault, where in (
                ("have the time of the row before: doubled rows", step == 0),
                ("come earlier than the row before of their episode: shuffled or doubled rows",
                 step < 0),
                ("come more than one step after the row before: missing rows", step > 1),
            ):  # fmt: skip
                self._note(fault, wrong & where, rows.take(slice(1, None)), rows.time[1:])
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
        known = (rows.state[1:] >= 0) & (rows.after[:-1] >= 0)
        broken = follow & known & (rows.state[1:] != rows.after[:-1])
        if broken.any():
            fault = "do not begin in the next state of the row before, of the same episode"
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
            fault = (
                "end an episode by an action whose next state is not there; record the last state "
                "as a row without action, or next states"
            )
            self._note(fault, where & rows.ended, rows)
        if rows.terminated is None and not (rows.episode is None and self._alone):
            fault = (
                "are the last of their episode, have no next state, and may have ended it; record "
                "the last state as a row without action, or next states, or say in a column "
                "`terminated` that the episode was not over"
            )
            self._note(fault, where if rows.ended is None else where & ~rows.ended, rows)
        self.unfinished += int(where.sum())

    def _note(
        self, fault: str, where: BoolArray, rows: LogRows, values: AnyArray | None = None
    ) -> None:
        shown = None if values is None else values.__getitem__
        self._problems.add(self._table, fault, where, rows.number, shown)


def _timed(rows: LogRows) -> bool:
    """Return whether rows say to which moment of which episode they belong."""
    return rows.episode is not None and rows.time is not None
