"""Logs: recorded transitions in tables and files of any size, as a source of counts.

Tables, whatever holds them, are streams of Arrow's record batches: memory does not grow with them.
One pass checks every row of the data, a second one counts. A guarantee needs all transitions,
whatever their outcome: people declare that (`selection: none`), and what the data can tell about it
is checked. `write_log` writes transitions of a model in the layout that is read by default.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rfmdp.errors import DataError, FileError, ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, starts
from rfmdp.record import Assumption
from rfmdp.sources.checks import LEVEL, Check, Evidence
from rfmdp.sources.log.reader import LogReader, Note, Problems
from rfmdp.sources.source import Paid, Payer, Source, Structure, structure_of
from rfmdp.sources.trajectories import DrawnTrajectories, Tally
from rfmdp.types import FloatArray, IntArray
from rfmdp.writing import replacing

SELECTIONS = ("none", "unknown", "outcome")
OFTEN = 0.5  # seconds between two reports of progress
TWINS = 20  # steps from which on equal tables are the same one, and no chance
MANY = 10_000  # faults after which nothing more is read
SINGLE = 1e-6  # tables may hold numbers of single precision
ADVICE = "Nothing is guaranteed from such data: correct them, or declare what is possible."
BATCH = 1 << 18  # rows at a time
BLOCK = 1 << 24  # bytes of a text file at a time
WRITTEN = (".parquet", ".arrow", ".csv")
FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
}  # endings -> what Arrow calls the format


@dataclass(frozen=True, slots=True)
class LogTable:
    """A table that can be read, perhaps several times."""

    name: str  # for messages
    data: Any  # a dataset of Arrow

    def read(self, columns: list[str]) -> Iterator[Any]:
        """Yield record batches with some columns."""
        try:
            yield from self.data.scanner(
                columns, batch_size=BATCH, batch_readahead=1, fragment_readahead=1,
                use_threads=False, cache_metadata=False,
            ).to_batches()  # fmt: skip
        except (arrow().ArrowException, OSError) as error:
            raise DataError(
                f"{self.name}: must be readable to its end, but: {_line(error)}."
            ) from error


def open_table(table: Any, number: int) -> list[LogTable]:
    """Return the tables that something is: a file, those of a folder, a table in memory."""
    library = arrow()
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        inside = sorted(path.glob("*")) if path.is_dir() else [path]
        files = [_file(library, p) for p in inside if p == path or _ending(p) in FORMATS]
        if not files:
            raise FileError(f"{path}: must hold .parquet, .arrow or .csv files, holds none.")
        return files
    try:
        content = library.table(table)
    except TypeError:
        raise UnsupportedError(
            "Data must be files, tables of Arrow, pandas or polars, or arrays by name; found "
            f"{type(table).__name__}."
        ) from None
    names = content.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(
            f"table {number}: columns must have different names, found {twice[0]} twice; rename "
            "one."
        )
    return [LogTable(f"table {number}", library.dataset.dataset(content))]


def arrow() -> Any:
    """Return pyarrow, or say how to get it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as error:
        raise UnsupportedError(
            "Recorded data need pyarrow, which is not installed; install the extra: pip install "
            "'rfmdp[data]'."
        ) from error
    return pyarrow


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _file(library: Any, path: Path) -> LogTable:
    """Return a file; columns of a text are read as texts, so that every odd entry can be named."""
    if not path.exists():
        raise FileError(f"{path}: cannot be read (there is no such file); check the name.")
    ending = _ending(path)
    if ending not in FORMATS:
        raise FileError(
            f"{path}: data must end in one of {', '.join(FORMATS)}, or in these and .gz."
        )
    kind: Any = FORMATS[ending]
    text = kind == "csv"
    if kind == "parquet":
        kind = library.dataset.ParquetFileFormat(pre_buffer=False)
    elif text:
        csv, tab = library.csv, "\t" if ending == ".tsv" else ","
        kind = library.dataset.CsvFileFormat(
            csv.ParseOptions(delimiter=tab, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
            read_options=csv.ReadOptions(block_size=BLOCK),
        )
    try:
        data = library.dataset.dataset(path, format=kind)
    except (library.ArrowException, OSError) as error:
        raise FileError(f"{path}: cannot be read ({_line(error)}).") from error
    if text:
        words = library.dictionary(library.int32(), library.string())
        schema = library.schema([(name, words) for name in data.schema.names])
        data = library.dataset.dataset(path, schema, format=kind)
    return LogTable(str(path), data)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


class Log(Source):
    """Recorded transitions of a system with a known structure; `read_log` makes it."""

    def __init__(
        self,
        model: FactoredMDP,
        tables: list[LogTable],
        selection: str,
        columns: Mapping[str, str | None],
        level: float,
        progress: Callable[[int, float], None] | None,
    ) -> None:
        self.model, self.selection, self.level = model, selection, level
        self.structure = Structure.of(model)
        self._tables, self._columns, self._paid = tables, columns, Paid.nothing(model.rows)
        self.steps = 0  # number of transitions
        problems = Problems()
        reader = LogReader(model, columns, problems)
        digests: dict[str, str] = {}
        started, told = time.monotonic(), 0.0
        for table in tables:
            digest, before = hashlib.sha256(), self.steps
            for steps in reader.transitions(table):
                self.steps += len(steps["pair"])
                if problems.count > MANY:
                    raise problems.error(ADVICE)
                digest.update(np.ascontiguousarray(steps["pair"], dtype=np.int32).tobytes())
                if progress is not None and (now := time.monotonic() - started) - told >= OFTEN:
                    told = now
                    progress(self.steps, now)
            twin = digests.get(digest.hexdigest())
            if twin is not None and self.steps - before >= TWINS:
                raise DataError(
                    f"{table.name}: must not have the same transitions as {twin}, but has."
                )
            digests[digest.hexdigest()] = table.name
        if problems.count:
            raise problems.error(ADVICE)
        self.digest = hashlib.sha256("".join(digests).encode()).hexdigest()  # of the data
        self.words = {
            "source": "log",
            "structure": structure_of(model),
            "data": self.digest,
            "selection": selection,
            "alarm level": repr(level),
        }
        self.trajectories = max(reader.episodes, 1)  # those that tables tell apart
        self.last: IntArray = np.flatnonzero(reader.over)
        self._followed = reader.followed
        sentences: list[str] = [Assumption("recorded")]
        if reader.undated:
            sentences.append(
                "no transition stands twice in the data, which shows only where they have columns "
                "of episodes and times"
            )
        if reader.unread:
            sentences.append("the column of rewards, which was not read, has what is declared")
        self.assumptions = tuple(sentences)

    def tally(
        self, counted: FactoredMDP, declared: FloatArray | None = None
    ) -> tuple[Tally, Evidence]:
        """Return the counts of a learning model's outcomes, and what its assumptions rest on.

        What was paid is noted for `payer`, or compared with what rows must pay: `declared` (R,).
        DataError says why nothing would be guaranteed: data that may have been selected by their
        outcomes, none at all, or other rewards than those that are declared.
        """
        if self.selection != "none":
            raise DataError(
                "Data: a guarantee needs data from which nothing was left out for its outcome, and "
                f"their selection is {self.selection!r}; if it is none, say so "
                '(`selection="none"`).'
            )
        if not self.steps:
            raise DataError("Data: there must be a transition to learn from, the tables are empty.")
        after = np.zeros(0) if declared is None else declared[self.model.row_ptr[self.last]]
        if np.any(after):
            at = int(np.argmax(after != 0.0))
            raise DataError(
                f"Data: an episode terminated in {self.model.state_name(int(self.last[at]))}, "
                f"where the structure goes on to pay {after[at]:g} for ever; let it pay 0 there."
            )
        evidence = Evidence(counted, self._followed)
        self._paid = Paid.nothing(self.model.rows)
        reader, differ = LogReader(self.model, self._columns, Problems()), Problems()
        for table in self._tables:
            for steps in reader.transitions(table):
                rows = steps["row"]
                evidence.add(rows, steps["next state"], steps["before"], steps["age"])
                if "reward" not in steps:
                    continue
                self._paid.add(rows, steps["reward"])
                if declared is not None:
                    note = differ.of(table.name, steps["number"])
                    _compare(declared[rows], steps["reward"], note)
        if differ.count:
            raise differ.error(
                "Correct them, declare what is paid, or learn rewards from them (`rewards=`). If "
                "the column is about something else, do not read it (`columns={'reward': None}`)."
            )
        rows, successors, times = evidence.transitions()
        tally = Tally.empty(counted, visits=True)
        tally.add(counted, rows, successors, times)
        return tally, evidence

    def check(self, counted: FactoredMDP) -> tuple[Check, ...]:
        """Return what the data say about the assumptions of a learning model."""
        return self.tally(counted)[1].checks(self.level)

    def payer(self, reward: str) -> Payer:
        """Return what rows paid, whatever it is called in the model; a column must be named."""
        if self._columns.get("reward") is None:
            raise DataError(
                "Data: to learn rewards, say which column has them (`columns={'reward': NAME}`)."
            )
        return lambda rows, visits: self._paid.take(rows)


def _compare(declared: FloatArray, paid: FloatArray, note: Note) -> None:
    """Note rows (N,) that did not pay what is declared; infinity is no number."""
    alike = np.abs(paid - declared) <= SINGLE * np.maximum(1.0, np.abs(declared))
    note(
        "pay another reward than was declared",
        ~alike,
        lambda i: f"{paid[i]:g} instead of {declared[i]:g}".replace("inf", "no number"),
    )


def read_log(
    model: FactoredMDP,
    *tables: Any,
    selection: str = "unknown",
    columns: Mapping[str, str | None] = MappingProxyType({}),
    level: float = LEVEL,
    progress: Callable[[int, float], None] | None = None,
) -> Log:
    """Return the transitions of some tables, after a look at every row of them.

    Parameters
    ----------
    model
        What is known of the system: variables, actions, outcomes, and sets of distributions; see
        `rfmdp.sources.source`.
    tables
        Files (.parquet, .csv, .arrow, folders of these), tables of Arrow, pandas or polars, or
        arrays by name.
    selection
        Whether rows were left out because of their outcome: "none", everything that happened is
        there; "unknown", nobody knows; "outcome", successes for instance. Only "none" allows a
        guarantee.
    columns
        The column of a variable (`x`), of its next value (`x'`), of the action and of the other
        roles: episode, time, terminated, reward. By default a variable x stands in the column `x`,
        its next value in `next_x` or `x'`. None: there is no such column, or it is not to be read.
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
    number = isinstance(level, int | float | np.floating) and not isinstance(level, bool)
    if not number or not 0.0 < level < 1.0:
        raise DataError(f"level: must be a number above 0 and below 1, found {level!r}.")
    if selection not in SELECTIONS:
        raise DataError(f"selection: must be one of {', '.join(SELECTIONS)}, found {selection!r}.")
    if not tables:
        raise DataError("Data: there must be a table, found none.")
    opened = [one for i, table in enumerate(tables, start=1) for one in open_table(table, i)]
    return Log(model, opened, selection, columns, level, progress)


def table_of(model: FactoredMDP, data: DrawnTrajectories) -> Any:
    """Return an Arrow table: episode, t, variables, action, next values."""
    if not model.variables:
        raise ModelError("A table needs variables, by which states are told; the model has none.")
    library = arrow()
    ptr = starts(data.lengths)
    episode = owners(ptr)
    columns: dict[str, Any] = {"episode": episode, "t": np.arange(len(episode)) - ptr[episode]}
    before = model.row_states[data.rows]
    for name, states in (("{}", before), ("next_{}", data.successors)):
        for i, v in enumerate(model.variables):
            values = model.valuations[states, i]
            columns[name.format(v.name)] = values.astype(np.bool_) if v.boolean else values
    actions = library.array(model.row_actions[data.rows])
    columns["action"] = library.DictionaryArray.from_arrays(actions, list(model.actions))
    return library.table(columns)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise FileError unless tables can be written to a file with this ending."""
    if Path(path).suffix not in WRITTEN:
        raise FileError(f"{path}: must end in one of {', '.join(WRITTEN)}.")


def write_log(model: FactoredMDP, data: DrawnTrajectories, path: str | os.PathLike[str]) -> None:
    """Write recorded transitions of a model to a .parquet, .arrow or .csv file."""
    library = arrow()
    check_ending(path)
    writer = {
        ".parquet": library.parquet.write_table,
        ".arrow": library.feather.write_feather,
        ".csv": library.csv.write_csv,
    }[Path(path).suffix]
    with replacing(path) as temporary:
        writer(table_of(model, data), str(temporary))
