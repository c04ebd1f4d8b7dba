"""Logs: recorded transitions in tables and files of any size, as a source of counts.

    log = read_log(model, "log.parquet", manifest=Manifest("none"))
    run = learn(log, 'Pmaxmin=? [ G<=100 !"down" ]')       # one look at all of it

One pass checks every row of the data, a second one counts outcomes of a learning model, and what
its assumptions are checked by. Both take as much memory as the model, however large the data are. A
guarantee needs all transitions, whatever their outcome: people declare that (`selection: none`),
and what the data can tell about it is checked.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import starts
from rfmdp.record import Assumption
from rfmdp.sources.checks import LEVEL, Check, Evidence
from rfmdp.sources.index import SuccessorPairs
from rfmdp.sources.log.manifest import Manifest, Selection
from rfmdp.sources.log.reader import LogTransitions, TransitionReader
from rfmdp.sources.log.rows import Problems
from rfmdp.sources.log.tables import LogTable, open_table
from rfmdp.sources.source import Paid, Payer, unlike
from rfmdp.sources.structure import Structure, structure_of
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import FloatArray, IntArray

OFTEN = 0.5  # seconds between two reports of progress
MANY = 10_000  # faults after which nothing more is read
TWINS = 20  # steps from which on equal tables are the same one, and no chance
ADVICE = "Nothing is guaranteed from such data: correct them, or declare what is possible."
PAYS = "pay another reward than was declared"


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Recorded transitions of a system with a known structure; `read_log` makes it."""

    model: FactoredMDP  # what is known
    manifest: Manifest
    pairs: SuccessorPairs
    steps: int  # number of transitions
    paid: Paid  # (pairs,) what transitions paid, if a column says so
    last: IntArray  # states in which episodes terminated, ascending
    episodes: int
    followed: bool  # whether all tables have episodes, which say what was before
    undated: bool  # whether some table lacks episodes or times, so that rows may stand twice
    unread: bool  # whether some table has a column of rewards that was not to be read
    digest: str
    level: float
    tables: tuple[LogTable, ...]

    @property
    def structure(self) -> Structure:
        """What is known."""
        return Structure.of(self.model)

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
            "alarm level": repr(self.level),
        }

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee from these data assumes about them."""
        sentences: list[str] = [Assumption("recorded")]
        if self.undated:
            sentences.append(
                "no transition stands twice in the data, which shows only where they have columns "
                "of episodes and times"
            )
        if self.unread:
            sentences.append("the column of rewards, which was not read, has what is declared")
        return tuple(sentences)

    def tally(self, counted: FactoredMDP) -> tuple[Tally, Evidence]:
        """Return the counts of a learning model's outcomes, and what its assumptions rest on.

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
            raise DataError("Data: there must be a transition to learn from, the tables are empty.")
        tally, evidence = Tally.empty(counted, visits=True), Evidence(counted, self.followed)
        for _, steps in self._again():
            rows, successors = self.pairs.rows[steps.pairs], self.pairs.successors[steps.pairs]
            count_transitions(counted, rows, successors, tally)
            evidence.add(rows, successors, steps.before, steps.ages)
        return tally, evidence

    def check(self, counted: FactoredMDP) -> tuple[Check, ...]:
        """Return what the data say about the assumptions of a learning model."""
        return self.tally(counted)[1].checks(self.level)

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

    def expect(self, paid: FloatArray) -> None:
        """Compare the column of rewards, if there is one, with what rows must pay, (R,).

        Raises
        ------
        DataError
            If they differ; the data are read again to name the rows. Or if rows must pay in states
            in which episodes are over.
        """
        after = paid[self.model.row_ptr[self.last]]
        if np.any(after):
            at = int(np.argmax(after != 0.0))
            raise DataError(
                f"Data: an episode terminated in {self.model.state_name(int(self.last[at]))}, "
                f"where the structure goes on to pay {after[at]:g} for ever; let it pay 0 there."
            )
        declared = paid[self.pairs.rows]
        if not self.paid.differs(declared):
            return
        problems = Problems()
        for table, steps in self._again():
            must, was = declared[steps.pairs], steps.reward
            assert was is not None  # else nothing was paid that could differ

            def shown(i: int, must: FloatArray = must, was: FloatArray = was) -> str:
                paid = f"{was[i]:g}" if np.isfinite(was[i]) else "no number"
                return f"{paid} instead of {must[i]:g}"

            problems.add(table, PAYS, unlike(was, must), steps.number, shown)
        raise problems.error(
            "Correct them, declare what is paid, or learn rewards from them (`rewards=`). If the "
            "column is about something else, do not read it (`columns={'reward': None}`)."
        )

    def _again(self) -> Iterator[tuple[str, LogTransitions]]:
        """Read the data once more: a table's name and some of its transitions."""
        reader = TransitionReader(self.model, self.manifest, Problems())
        for table in self.tables:
            for steps in reader.transitions(table):
                yield table.name, steps


def read_log(
    model: FactoredMDP,
    *tables: Any,
    manifest: Manifest | None = None,
    level: float = LEVEL,
    progress: Callable[[int, float], None] | None = None,
) -> Log:
    """Return the transitions of some tables, after a look at every row of them.

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
    level
        Probability, above 0 and below 1, with which some check of the assumptions gives a false
        alarm.
    progress
        Called now and then with the number of rows so far and the seconds.

    Raises
    ------
    DataError
        If rows are not as they must be; the message names them, counted from 0.
    """
    about = Manifest() if manifest is None else manifest
    _require_level(level)
    if not tables:
        raise DataError("Data: there must be a table, found none.")
    opened = [
        source
        for number, table in enumerate(tables, start=1)
        for source in open_table(table, number)
    ]
    problems = Problems()
    reader = TransitionReader(model, about, problems)
    paid, total = Paid.nothing(len(reader.pairs)), 0
    digests: dict[str, str] = {}
    started, told = time.monotonic(), 0.0
    for table in opened:
        digest = hashlib.sha256()
        before = total
        for steps in reader.transitions(table):
            total += len(steps.pairs)
            if steps.reward is not None:
                paid.add(steps.pairs, steps.reward)
            if problems.count > MANY:
                raise problems.error(ADVICE)
            digest.update(np.ascontiguousarray(steps.pairs, dtype=np.int32).tobytes())
            if progress is not None and (now := time.monotonic() - started) - told >= OFTEN:
                told = now
                progress(reader.rows, now)
        twin = digests.get(digest.hexdigest())
        if twin is not None and total - before >= TWINS:
            raise DataError(f"{table.name}: must not have the same transitions as {twin}, but has.")
        digests[digest.hexdigest()] = table.name
    if problems.count:
        raise problems.error(ADVICE)
    everything = hashlib.sha256("".join(digests).encode()).hexdigest()
    return Log(
        model, about, reader.pairs, total, paid, np.flatnonzero(reader.over), reader.episodes,
        reader.followed, reader.undated, reader.unread, everything, level, tuple(opened),
    )  # fmt: skip


def _require_level(level: float) -> None:
    """Raise DataError unless a level is a probability that a false alarm can have."""
    number = isinstance(level, int | float | np.floating) and not isinstance(level, bool)
    if not number or not 0.0 < level < 1.0:
        raise DataError(f"level: must be a number above 0 and below 1, found {level!r}.")
