"""The order of rows: which of them belong together, and what is missing, double or shuffled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.sources.log.decoding import Decoded
from rfmdp.sources.log.problems import Problems
from rfmdp.types import AnyArray, BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Transitions of a batch."""

    row: IntArray  # number of the row in the table
    state: AnyArray
    action: AnyArray
    after: AnyArray
    earlier: AnyArray  # action of the step before, of the same episode; -1 where none is known
    reward: AnyArray | None  # what the action paid, if that was asked for

    def where(self, kept: BoolArray) -> Steps:
        """Return some of them."""
        paid = None if self.reward is None else self.reward[kept]
        return Steps(
            self.row[kept], self.state[kept], self.action[kept], self.after[kept],
            self.earlier[kept], paid,
        )  # fmt: skip


class SeenEpisodes:
    """The episodes of all tables so far."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}  # numbers of those that have names
        self._known: list[IntArray] = []  # ascending
        self._others: set[int] = set()  # those that came later than a larger one
        self._largest: int | None = None
        self._last: int | None = None

    def again(self, new: IntArray, *, goes_on: bool) -> BoolArray:
        """Return which of some new episodes were there before.

        `goes_on`: they are the first of a table, which may go on with the last of the one before.
        """
        again = np.zeros(len(new), dtype=np.bool_)
        if not len(new):
            return again
        last, self._last = self._last, int(new[-1])
        if np.all(new[1:] > new[:-1]) and (self._largest is None or new[0] > self._largest):
            self._known.append(new)
            self._largest = int(new[-1])
            return again
        known = np.concatenate([*self._known, np.empty(0, np.int64)])
        for i, episode in enumerate(new.tolist()):
            at = int(np.searchsorted(known, episode))
            old = at < len(known) and known[at] == episode
            again[i] = old or episode in self._others
            self._others.add(episode)
        self._largest = max(
            int(new.max()), int(new.max() if self._largest is None else self._largest)
        )
        again[0] &= not (goes_on and new[0] == last)
        return again


class Sequence:
    """Follows the episodes of one table from batch to batch."""

    def __init__(self, table: str, problems: Problems, seen: SeenEpisodes) -> None:
        self._table, self._problems = table, problems
        self._last: Decoded | None = None  # the last row so far
        self._earlier = -1  # action before it
        self._seen = seen
        self.episodes = 0
        self.unfinished = 0  # rows without a next state, which say nothing

    def steps(self, batch: Decoded) -> Steps:
        """Return the transitions of a batch, and note what is wrong with its order."""
        joined = batch if self._last is None else _joined(self._last, batch)
        same = self._together(joined)
        fresh = np.ones(len(batch), dtype=np.bool_)
        fresh[len(batch) - len(same) :] = ~same
        self._begin(batch, fresh)
        ordered = self._in_order(joined, same)
        # without episodes, rows that have their own next states may come from anywhere
        follows = batch.after is None or batch.episode is not None
        earlier = np.full(len(joined), self._earlier if self._last is not None else -1)
        earlier[1:] = np.where(same & follows, np.maximum(joined.action[:-1], -1), -1)
        if len(batch):
            self._last, self._earlier = _row(batch, len(batch) - 1), int(earlier[-1])
        if batch.after is None:
            return self._followed(joined, same, earlier)
        if follows:
            self._chained(joined, same & ordered)
        self._require_actions(batch)
        number = batch.first + np.arange(len(batch))
        earlier = earlier[len(joined) - len(batch) :]
        return Steps(number, batch.state, batch.action, batch.after, earlier, batch.reward)

    def finish(self) -> None:
        """Note what only the end shows."""
        last = self._last
        if last is not None and last.after is None and last.action[0] != -2:
            self._unfinished(last, np.ones(1, dtype=np.bool_))

    def _together(self, rows: Decoded) -> BoolArray:
        """Return where a row and the one before are of the same episode, (N - 1,)."""
        if rows.episode is not None:
            return np.asarray(rows.episode[1:] == rows.episode[:-1])
        if rows.ended is not None:
            return np.asarray(~rows.ended[:-1])
        return np.asarray(rows.action[:-1] != -2)

    def _begin(self, batch: Decoded, fresh: BoolArray) -> None:
        """Count new episodes; note those that were there before."""
        self.episodes += int(fresh.sum())
        if batch.episode is None:
            return
        where = np.zeros(len(batch), dtype=np.bool_)
        where[fresh] = self._seen.again(batch.episode[fresh], goes_on=self._last is None)
        fault = (
            "begin an episode that was there before: shuffled or doubled; sort by episode and t, "
            "and number the episodes of all tables differently"
        )
        self._problems.add(self._table, fault, where, batch.first, batch.episode)

    def _in_order(self, rows: Decoded, same: BoolArray) -> BoolArray:
        """Return where a row follows the one before by one step of time, (N - 1,)."""
        if rows.time is None or rows.episode is None:
            return np.ones(len(same), dtype=np.bool_)
        step = rows.time[1:] - rows.time[:-1]
        wrong = same & (step != 1)
        if wrong.any():
            for fault, where in (
                ("have the time of the row before: doubled rows", step == 0),
                ("come earlier than the row before: shuffled rows", step < 0),
                ("come more than one step after the row before: missing rows", step > 1),
            ):
                self._note(fault, wrong & where, rows.first + 1, rows.time[1:])
        return np.asarray(step == 1)

    def _chained(self, rows: Decoded, follow: BoolArray) -> None:
        """Note rows that do not begin where the row before ended."""
        assert rows.after is not None
        known = (rows.state[1:] >= 0) & (rows.after[:-1] >= 0)
        broken = follow & known & (rows.state[1:] != rows.after[:-1])
        if broken.any():
            fault = "do not begin in the next state of the row before, of the same episode"
            self._note(fault, broken, rows.first + 1)

    def _require_actions(self, batch: Decoded) -> None:
        none = batch.action == -2
        if none.any():
            self._note("have no action, but a next state", none, batch.first)

    def _followed(self, rows: Decoded, same: BoolArray, earlier: IntArray) -> Steps:
        """Return the transitions from rows to the next ones; only these have an outcome."""
        number = rows.first + np.arange(len(same))
        acted = rows.action[:-1] != -2
        self._note(
            "have no action, but another row of the episode follows", same & ~acted, rows.first
        )
        self._unfinished(_cut(rows), ~same & acted)
        paid = None if rows.reward is None else rows.reward[:-1]
        steps = Steps(number, rows.state[:-1], rows.action[:-1], rows.state[1:], earlier[:-1], paid)
        return steps.where(same & acted)

    def _unfinished(self, rows: Decoded, where: BoolArray) -> None:
        """Count rows whose next state was not recorded; ends that hide theirs are faults."""
        hidden = where if rows.ended is None else where & rows.ended
        if rows.ended is not None:
            fault = (
                "end an episode by an action whose next state is not there; record the last state "
                "as a row without action, or next states"
            )
            self._note(fault, hidden, rows.first)
        self.unfinished += int(where.sum())

    def _note(
        self, fault: str, where: BoolArray, first: int, values: AnyArray | None = None
    ) -> None:
        self._problems.add(self._table, fault, where, first, values)


def _row(batch: Decoded, at: int) -> Decoded:
    """Return one row of a batch."""
    return _sliced(batch, slice(at, at + 1), batch.first + at)


def _cut(batch: Decoded) -> Decoded:
    """Return a batch without its last row."""
    return _sliced(batch, slice(0, len(batch) - 1), batch.first)


def _sliced(batch: Decoded, part: slice, first: int) -> Decoded:
    names = ("after", "episode", "time", "ended", "reward")
    optional = {n: None if getattr(batch, n) is None else getattr(batch, n)[part] for n in names}
    return replace(
        batch, first=first, state=batch.state[part], action=batch.action[part], **optional
    )


def _joined(last: Decoded, batch: Decoded) -> Decoded:
    """Return a batch with the row before it."""
    names = ("state", "action", "after", "episode", "time", "ended", "reward")
    parts: dict[str, Any] = {
        n: None if getattr(batch, n) is None
        else np.concatenate([getattr(last, n), getattr(batch, n)])
        for n in names
    }  # fmt: skip
    return Decoded(last.first, **parts)
