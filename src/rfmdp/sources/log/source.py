"""Logs: recorded transitions in tables and files of any size, as a source of counts.

    log = read_log(model, "log.parquet", manifest=Manifest("none"))
    run = learn(log, 'Pmaxmin=? [ G<=100 !"down" ]')       # one look at all of it

One pass checks every row of the data and counts pairs of a row of the model and its successor. It
takes as much memory as the model, however large the data are. A guarantee needs all transitions,
whatever their outcome: people declare that (`selection: none`), and what the data can tell about it
is checked.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import starts
from rfmdp.sources.checks import LEVEL, Check, checks
from rfmdp.sources.index import SuccessorPairs
from rfmdp.sources.log.manifest import Manifest, Selection, member
from rfmdp.sources.log.rows import LogRows, Problems
from rfmdp.sources.log.tables import LogTable, open_table
from rfmdp.sources.log.transitions import TransitionReader
from rfmdp.sources.paid import Paid, Payer, Payments, unlike
from rfmdp.sources.recorded import ALL, structure_of
from rfmdp.sources.structure import Structure
from rfmdp.sources.tally import Tally, count_transitions, tally_pairs
from rfmdp.types import FloatArray, IntArray

BINS = 4  # parts of the data, by their order, that are counted apart
OFTEN = 0.5  # seconds between two reports of progress
LARGE = 1 << 24  # counts by the action before that are kept, at most
MANY = 10_000  # faults after which nothing more is read
TWINS = 20  # steps from which on equal tables are the same one, and no chance
PAYS = "pay another reward than was declared"


class Bad(Enum):
    """What to do with rows that cannot be read."""

    REFUSE = "refuse"  # an error that lists them
    OMIT = "omit"  # they are left out, which the statement says


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Counted transitions of a system with a known structure; `read_log` makes it."""

    model: FactoredMDP  # what is known
    manifest: Manifest
    pairs: SuccessorPairs
    bins: IntArray  # (bins, pairs) transitions, early ones first
    contexts: IntArray  # (1 + actions, pairs) transitions by the action before; first: not known
    paid: Paid  # (pairs,) what transitions paid, if a column says so
    last: IntArray  # states in which episodes terminated, ascending
    episodes: int
    unfinished: int  # rows at the end of an episode without a next state
    omitted: int  # rows that could not be read
    undated: bool  # whether some table lacks episodes or times, so that rows may stand twice
    unread: bool  # whether some table has a column of rewards that was not to be read
    problems: Problems  # what was wrong with them
    digest: str
    level: float
    tables: tuple[LogTable, ...]

    @property
    def structure(self) -> Structure:
        """What is known."""
        return Structure.of(self.model)

    @property
    def steps(self) -> int:
        """Number of transitions."""
        return int(self.bins.sum())

    @property
    def trajectories(self) -> int:
        """Number of episodes."""
        return max(self.episodes, 1)

    @property
    def words(self) -> dict[str, str]:
        """A log, of this structure with these transitions."""
        return {
            "source": "log",
            "structure": structure_of(self.model),
            "data": self.digest,
            "selection": self.manifest.selection.value,
            "omitted rows": str(self.omitted),
            "alarm level": repr(self.level),
        }

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee from these data assumes about them."""
        found: list[str] = [ALL]
        if self.omitted:
            found.append(
                f"{self.omitted} rows that could not be read were left out, and whether a row can "
                "be read does not depend on its outcome"
            )
        if self.unfinished:
            found.append(
                f"{self.unfinished} rows have no next state, and that does not depend on what it "
                "would have been"
            )
        if self.undated:
            found.append(
                "no transition stands twice in the data, which shows only where they have columns "
                "of episodes and times"
            )
        if self.unread:
            found.append("the column of rewards, which was not read, has what is declared")
        return tuple(found)

    def counts(self, counted: FactoredMDP, *, ordered: bool = False) -> Tally:
        """Return the counts of a learning model's outcomes; `ordered` reads the data again.

        Raises
        ------
        DataError
            If the data may have been selected by their outcomes: nothing would be guaranteed. Or
            if there are none.
        """
        if self.manifest.selection is not Selection.NONE:
            raise DataError(
                "Data: a guarantee needs data from which nothing was left out for its outcome, and "
                f"their selection is {self.manifest.selection.value!r}; if it is none, say so "
                '(`manifest={"selection": "none"}`).'
            )
        if not self.steps:
            why = f"{self.omitted} rows were left out" if self.omitted else "the tables are empty"
            raise DataError(f"Data: there must be a transition to learn from, found none: {why}.")
        if not ordered:
            return tally_pairs(counted, self.pairs.rows, self.pairs.successors, self.bins.sum(0))
        tally = Tally.empty(counted, visits=True)
        for _, pairs, _ in self._again():
            rows, successors = self.pairs.rows[pairs], self.pairs.successors[pairs]
            count_transitions(counted, rows, successors, tally)
        return tally

    def payer(self, reward: str, ends: tuple[float, float] | None) -> Payer:
        """Return what rows paid, whatever it is called in the model.

        Raises
        ------
        DataError
            If the manifest names no column of rewards.
        """
        if self.manifest.columns.get("reward") is None:
            raise DataError(
                "Data: to learn rewards, say which column has them (`columns={'reward': NAME}`)."
            )
        by_row = self.paid.joined(starts(np.bincount(self.pairs.rows))[:-1])
        return lambda rows, visits, seed, trajectory: by_row.take(rows)

    def expect(self, paid: Payments) -> None:
        """Compare the column of rewards, if there is one, with what transitions must pay.

        Raises
        ------
        DataError
            If they differ; the data are read again to name the rows. Or if transitions must pay
            in states in which episodes are over.
        """
        after = paid(self.model.row_ptr[self.last], self.last)
        if np.any(after):
            at = int(np.argmax(after != 0.0))
            raise DataError(
                f"Data: an episode terminated in {self.model.state_name(int(self.last[at]))}, "
                f"where the structure goes on to pay {after[at]:g} for ever; let it pay 0 there."
            )
        declared = paid(self.pairs.rows, self.pairs.successors)
        if not self.paid.differs(declared):
            return
        problems = Problems()
        for table, pairs, steps in self._again():
            must, was = declared[pairs], steps.reward
            assert was is not None  # else nothing was paid that could differ

            def shown(i: int, must: FloatArray = must, was: FloatArray = was) -> str:
                paid = f"{was[i]:g}" if np.isfinite(was[i]) else "no number"
                return f"{paid} instead of {must[i]:g}"

            problems.add(table, PAYS, unlike(was, must), steps.number, shown)
        raise problems.error(
            "Correct them, declare what is paid, or learn rewards from them (`rewards=`). If the "
            "column is about something else, do not read it (`columns={'reward': None}`)."
        )

    def _again(self) -> Iterator[tuple[str, IntArray, LogRows]]:
        """Read the data once more: a table's name and some of its transitions, with their pairs."""
        reader = TransitionReader(
            self.model, self.manifest, Problems(), alone=len(self.tables) == 1
        )
        for table in self.tables:
            for pairs, steps in reader.transitions(table):
                yield table.name, pairs, steps

    def check(self, counted: FactoredMDP) -> tuple[Check, ...]:
        """Return what the data say about the assumptions of a learning model."""
        used = int(np.count_nonzero(self.bins.any(axis=1)))
        early = self.bins[: used // 2].sum(axis=0)
        pairs = (self.pairs.rows, self.pairs.successors)
        late = self.bins.sum(axis=0) - early
        return checks(counted, *pairs, early, late, self.contexts, self.level)


def read_log(
    model: FactoredMDP,
    *tables: Any,
    manifest: Manifest | None = None,
    bad: Bad | str = Bad.REFUSE,
    level: float = LEVEL,
    progress: Callable[[int, float], None] | None = None,
) -> Log:
    """Return the counted transitions of some tables, after one pass over them.

    Parameters
    ----------
    model
        What is known of the system: variables, actions, outcomes, and sets of distributions; see
        `rfmdp.sources.structure`.
    tables
        Files (.parquet, .csv, .arrow, folders of these), tables of Arrow, pandas or polars, or
        arrays by name.
    manifest
        How rows were chosen and which column holds what; see `Manifest`.
    bad
        What becomes of rows that cannot be read; a `Bad` or its word.
    level
        Probability, above 0 and below 1, with which some check of the assumptions gives a false
        alarm.
    progress
        Called now and then with the number of rows so far and the seconds.

    Raises
    ------
    DataError
        If rows are not as they must be; the message names them, counted from 0. A successor that
        the model does not allow, and missing, doubled or shuffled rows are never left out.
    """
    about = Manifest() if manifest is None else manifest
    rule = member(Bad, "bad", bad)
    _require_level(level)
    if not tables:
        raise DataError("Data: there must be a table, found none.")
    opened = [
        source
        for number, table in enumerate(tables, start=1)
        for source in open_table(table, number)
    ]
    _refuse_twice(opened)
    problems = Problems()
    reader = TransitionReader(model, about, problems, alone=len(opened) == 1)
    size, contexts = len(reader.pairs), len(model.actions) + 1
    counter, paid = BinnedCounts(size), Paid.nothing(size)
    after = np.zeros((contexts if contexts * size <= LARGE else 0, size), dtype=np.int64)
    digests: dict[str, str] = {}
    started, told = time.monotonic(), 0.0
    for table in opened:
        digest = hashlib.sha256()
        before = counter.total
        for pairs, steps in reader.transitions(table):
            counter.add(pairs)
            if len(after):
                np.add.at(after.reshape(-1), (steps.earlier + 1) * size + pairs, 1)
            if steps.reward is not None:
                paid.add(pairs, steps.reward)
            if problems.count > MANY:
                _raise(problems, rule)
            digest.update(np.ascontiguousarray(pairs, dtype=np.int32).tobytes())
            if progress is not None and (now := time.monotonic() - started) - told >= OFTEN:
                told = now
                progress(reader.rows, now)
        twin = digests.setdefault(digest.hexdigest(), table.name)
        if twin != table.name and counter.total - before >= TWINS:
            raise DataError(f"{table.name}: must not have the same transitions as {twin}, but has.")
    _raise(problems, rule)
    everything = hashlib.sha256("".join(digests).encode()).hexdigest()
    return Log(
        model, about, reader.pairs, counter.bins, after, paid, np.flatnonzero(reader.over),
        reader.episodes, reader.unfinished, reader.omitted, reader.undated, reader.unread,
        problems, everything, level, tuple(opened),
    )  # fmt: skip


def _require_level(level: float) -> None:
    """Raise DataError unless a level is a probability that a false alarm can have."""
    number = isinstance(level, int | float | np.floating) and not isinstance(level, bool)
    if not number or not 0.0 < level < 1.0:
        raise DataError(f"level: must be a number above 0 and below 1, found {level!r}.")


class BinnedCounts:
    """Counts of pairs in up to `BINS` parts of the data, of equal numbers of transitions."""

    def __init__(self, pairs: int) -> None:
        self.bins = np.zeros((BINS, pairs), dtype=np.int64)
        self.total, self._width = 0, 1

    def add(self, pairs: IntArray) -> None:
        """Count the pairs of further transitions."""
        while self.total + len(pairs) > BINS * self._width:
            half = BINS // 2
            self.bins[:half] = self.bins[0::2] + self.bins[1::2]
            self.bins[half:] = 0
            self._width *= 2
        begin = 0
        while begin < len(pairs):
            place = self.total // self._width
            end = begin + min(len(pairs) - begin, (place + 1) * self._width - self.total)
            np.add.at(self.bins[place], pairs[begin:end], 1)
            self.total += end - begin
            begin = end


def _raise(problems: Problems, bad: Bad) -> None:
    """Raise the problems, if there are any that may not be passed over."""
    if problems.fatal:
        raise problems.error(
            "Nothing is guaranteed from such data: correct them, or declare what is possible."
        )
    if problems.count and bad is Bad.REFUSE:
        raise problems.error(
            "Correct them, or leave such rows out (`bad='omit'`), which is then an assumption."
        )


def _refuse_twice(tables: list[LogTable]) -> None:
    """Raise DataError if a file is given twice."""
    seen: set[Any] = set()
    for table in tables:
        if table.place is not None and table.place.resolve() in seen:
            raise DataError(f"{table.name}: must be given once, was given twice.")
        seen.add(None if table.place is None else table.place.resolve())
