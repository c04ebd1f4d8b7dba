"""Tables of recorded transitions, whatever holds them, as a stream of Arrow's record batches.

Files are read piece by piece: memory does not grow with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rfmdp.errors import DataError, FileError, UnsupportedError
from rfmdp.types import AnyArray

BATCH = 1 << 18  # rows at a time
BLOCK = 1 << 24  # bytes of a text file at a time
PARQUET, ARROW, TEXT = (".parquet", ".pq"), (".arrow", ".feather", ".ipc"), (".csv", ".tsv", ".txt")
FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")  # of an episode


@dataclass(frozen=True, slots=True)
class LogTable:
    """A table that can be read, perhaps several times."""

    name: str  # for messages
    columns: list[str]
    read: Callable[[list[str]], Iterator[Any]]  # columns -> record batches
    place: Path | None = None  # the file
    numbered: bool = False  # whether its episodes are numbered here, and differ from all others


def open_table(given: Any, number: int, variables: Sequence[str]) -> Iterator[LogTable]:
    """Yield the tables that something is: a file, those of a folder, a table in memory, episodes.

    Parameters
    ----------
    given
        A path (.parquet, .csv, .arrow, a folder of these), a table of Arrow, pandas or polars,
        arrays by name, or an iterable of episodes with observations, actions, terminations and
        truncations.
    number
        Its number among all, for messages.
    variables
        Names of the columns that observations of episodes have, in order.

    Raises
    ------
    DataError, FileError, UnsupportedError
        If it is none of these, or cannot be read.
    """
    library = arrow()
    name = f"table {number}"
    if isinstance(given, str | os.PathLike):
        yield from _files(library, Path(given))
    elif hasattr(given, "__arrow_c_stream__"):
        yield _stream(library, name, given)
    elif hasattr(given, "__dataframe__") or type(given).__module__.startswith("pandas"):
        yield _stream(library, name, library.Table.from_pandas(given, preserve_index=False))
    elif isinstance(given, Mapping) and not set(FIELDS[:2]) <= set(given):
        yield _stream(library, name, library.table(dict(given)))
    elif isinstance(given, Iterable) or hasattr(given, "iterate_episodes"):
        yield _episodes(library, f"episodes {number}", given, variables)
    else:
        raise UnsupportedError(
            f"Data must be files, tables of Arrow, pandas or polars, or episodes; found "
            f"{type(given).__name__}."
        )


def arrow() -> ModuleType:
    """Return pyarrow, or say how to get it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise UnsupportedError(
            "Recorded data need pyarrow, which is not installed; install the extra: pip install "
            "'rfmdp[data]'."
        ) from error
    module: ModuleType = pyarrow
    return module


def _files(library: ModuleType, path: Path) -> Iterator[LogTable]:
    """Yield the table of a file, or of every file of a folder, by name."""
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if _ending(p) in (*PARQUET, *ARROW, *TEXT))
        if not inside:
            raise FileError(f"{path}: must hold .parquet, .arrow or .csv files, holds none.")
        for place in inside:
            yield from _files(library, place)
        return
    if not path.exists():
        raise FileError(f"{path}: cannot be read (there is no such file); check the name.")
    readers = {**dict.fromkeys(PARQUET, _parquet), **dict.fromkeys(ARROW, _feather)}
    readers |= dict.fromkeys(TEXT, _csv)
    if _ending(path) not in readers:
        raise FileError(
            f"{path}: data must end in one of {', '.join((*PARQUET, *TEXT, *ARROW))}, or in these "
            "and .gz."
        )
    try:
        yield readers[_ending(path)](library, path)
    except (library.ArrowInvalid, OSError) as error:
        raise FileError(f"{path}: cannot be read ({_line(error)}).") from error


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _parquet(library: ModuleType, path: Path) -> LogTable:
    def read(columns: list[str]) -> Iterator[Any]:
        with library.parquet.ParquetFile(path, pre_buffer=False, memory_map=True) as file:
            yield from _checked(library, path, file.iter_batches(BATCH, columns=columns))

    with library.parquet.ParquetFile(path) as file:
        return LogTable(str(path), list(file.schema_arrow.names), read, path)


def _feather(library: ModuleType, path: Path) -> LogTable:
    def read(columns: list[str]) -> Iterator[Any]:
        with library.memory_map(str(path)) as source, library.ipc.open_file(source) as file:
            parts = (file.get_batch(i) for i in range(file.num_record_batches))
            yield from _checked(library, path, (part.select(columns) for part in parts))

    with library.memory_map(str(path)) as source, library.ipc.open_file(source) as file:
        return LogTable(str(path), list(file.schema.names), read, path)


def _csv(library: ModuleType, path: Path) -> LogTable:
    """Return a text file; columns are read as texts, so that every odd entry can be named."""
    csv = library.csv
    kind = library.dictionary(library.int32(), library.string())
    parse = csv.ParseOptions(
        delimiter="\t" if _ending(path) == ".tsv" else ",", ignore_empty_lines=False
    )

    def reader(columns: list[str] | None) -> Any:
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=parse,
            convert_options=csv.ConvertOptions(
                include_columns=columns,
                column_types=None if columns is None else dict.fromkeys(columns, kind),
                strings_can_be_null=True,
            ),
        )

    def read(columns: list[str]) -> Iterator[Any]:
        with reader(columns) as stream:
            yield from _checked(library, path, stream)

    with reader(None) as stream:
        return LogTable(str(path), list(stream.schema.names), read, path)


def _checked(library: ModuleType, path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches; what Arrow finds wrong with a file names it."""
    try:
        yield from batches
    except (library.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: must be readable to its end, but: {_line(error)}.") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _stream(library: ModuleType, name: str, given: Any) -> LogTable:
    """Return anything that Arrow can stream from."""
    once = isinstance(given, library.RecordBatchReader)
    reader = given if once else library.RecordBatchReader.from_stream(given)
    used: list[bool] = []

    def read(columns: list[str]) -> Iterator[Any]:
        if once and used:
            raise DataError(f"{name}: this stream was read already; give a table or a file.")
        used.append(True)
        stream = given if once else library.RecordBatchReader.from_stream(given)
        for batch in stream:
            for begin in range(0, batch.num_rows, BATCH):
                yield batch.select(columns).slice(begin, BATCH)

    return LogTable(name, list(reader.schema.names), read)


def _episodes(library: ModuleType, name: str, given: Any, variables: Sequence[str]) -> LogTable:
    """Return episodes as Minari has them, with one observation more than actions, as a table.

    It has a column per variable, its next value, and the roles. Observations are (T + 1,), (T + 1,
    variables), or a mapping or tuple of (T + 1,) arrays. They must be discrete: values that were
    rounded into bins do not follow a Markov process.
    """

    def batch(parts: list[dict[str, AnyArray]], columns: list[str]) -> Any:
        joined = {column: np.concatenate([part[column] for part in parts]) for column in columns}
        return library.RecordBatch.from_pydict(joined)

    def read(columns: list[str]) -> Iterator[Any]:
        listed = given.iterate_episodes() if hasattr(given, "iterate_episodes") else given
        parts: list[dict[str, AnyArray]] = []
        rows = 0
        for number, episode in enumerate(listed):
            parts.append(_transitions(f"{name}, episode {number}", number, episode, variables))
            rows += len(parts[-1]["t"])
            if rows >= BATCH:
                yield batch(parts, columns)
                parts, rows = [], 0
        if parts:
            yield batch(parts, columns)

    if not hasattr(given, "iterate_episodes") and iter(given) is given:
        given = list(given)  # it may be read again
    listed = given.iterate_episodes() if hasattr(given, "iterate_episodes") else given
    first = next(iter(listed), None)
    after = [f"next_{x}" for x in variables]
    roles = ["action", "episode", "t", "terminated", "truncated"]
    if first is not None and _field(first, "rewards") is not None:
        roles.append("reward")
    return LogTable(name, [*variables, *after, *roles], read, numbered=True)


def _transitions(
    where: str, number: int, episode: Any, variables: Sequence[str]
) -> dict[str, AnyArray]:
    """Return the transitions of an episode by column."""
    fields = {name: _field(episode, name) for name in FIELDS}
    if fields["observations"] is None or fields["actions"] is None:
        raise DataError(f"{where}: must have observations and actions.")
    actions = np.asarray(fields["actions"])
    steps = len(actions)
    columns: dict[str, AnyArray] = {"action": actions.reshape(steps, -1)[:, 0]}
    for x, values in zip(
        variables, _observed(where, fields["observations"], variables), strict=True
    ):
        if len(values) != steps + 1:
            raise DataError(
                f"{where}: must have one observation more than its {steps} actions, has "
                f"{len(values)}."
            )
        columns[x], columns[f"next_{x}"] = values[:-1], values[1:]
    for name, column in (("terminations", "terminated"), ("truncations", "truncated")):
        ends = fields[name]
        ended = np.zeros(steps, dtype=np.bool_) if ends is None else np.asarray(ends, np.bool_)
        if len(ended) != steps or np.any(ended[:-1]):
            raise DataError(f"{where}: {name} must be one per action, true for the last only.")
        columns[column] = ended
    rewards = fields["rewards"]
    paid = np.full(steps, np.nan) if rewards is None else np.asarray(rewards, np.float64)
    if paid.shape != (steps,):
        raise DataError(f"{where}: rewards must be one per action, {steps}; found {paid.shape}.")
    return columns | {"episode": np.full(steps, number), "t": np.arange(steps), "reward": paid}


def _field(episode: Any, name: str) -> Any:
    """Return what an episode has under a name, None if nothing."""
    return episode.get(name) if isinstance(episode, Mapping) else getattr(episode, name, None)


def _observed(where: str, given: Any, variables: Sequence[str]) -> list[AnyArray]:
    """Return the values of every variable, (T + 1,) each."""
    if isinstance(given, Mapping):
        missing = [x for x in variables if x not in given]
        if missing:
            raise DataError(f"{where}: observations must have {missing[0]}.")
        found = [np.asarray(given[x]) for x in variables]
    elif isinstance(given, tuple):
        found = [np.asarray(part) for part in given]
    else:
        values = np.asarray(given)
        found = list(values.reshape(len(values), -1).T)
    if len(found) != len(variables):
        raise DataError(
            f"{where}: observations must have {len(variables)} values "
            f"({', '.join(variables)}), have {len(found)}."
        )
    if any(values.dtype.kind not in "iub" for values in found):
        raise DataError(
            f"{where}: observations must be integers; bins of real numbers would not be Markov."
        )
    return found
