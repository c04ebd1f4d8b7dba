"""Tables of recorded transitions, whatever holds them, as a stream of Arrow's record batches.

Files are datasets of Arrow, read piece by piece: memory does not grow with them. `write_log` writes
transitions of a model in the layout that is read by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import DataError, FileError, ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, starts
from rfmdp.sources.simulator import DrawnTrajectories
from rfmdp.writing import replacing

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
