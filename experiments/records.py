"""Records of runs: one Parquet table, with a row per run, that grows as runs are finished."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import rfmdp as rf
from rfmdp.domains import find
from rfmdp.errors import FileError
from rfmdp.language.source import read_text
from rfmdp.writing import replacing


class Task(Protocol):
    """One run, by a key; several tasks with other limits may have the same."""

    @property
    def key(self) -> str:
        """Name of the run."""


class Record(Protocol):
    """A dataclass: what a run gave."""

    @property
    def key(self) -> str:
        """Name of the run."""

    def settles(self, task: Any) -> bool:
        """Return whether a task need not be repeated."""
        ...


TaskT = TypeVar("TaskT", bound=Task)
RecordT = TypeVar("RecordT", bound=Record)
Finished = Callable[[rf.TaskResult, int, int], None]
"""Called after a run with its result, the number of finished runs, and of all."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the experiments.

    word : its name in `rfmdp.inner` or `rfmdp.learning.methods`
    column : the published column that it is compared with; empty for ours
    left_out : domains that are not run unless both are named, with the reason
    """

    word: str
    title: str
    column: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The title as the first word of a sentence."""
        return self.title[0].upper() + self.title[1:]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that are not part of a plan, with the reason."""

    domain: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} on {self.domain}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan(Generic[TaskT]):
    """What to run, and what not."""

    tasks: tuple[TaskT, ...]
    left_out: tuple[LeftOut, ...]


class RecordTable(Generic[RecordT]):
    """The records of one kind in a Parquet file; one command at a time may add to it."""

    def __init__(self, file: str | os.PathLike[str], kind: type[RecordT]) -> None:
        self._file, self._kind = Path(file), kind

    def read(self) -> dict[str, RecordT]:
        """Return all records by key, without those that another version wrote.

        Raises
        ------
        FileError
            If the file is no Parquet table.
        """
        if not self._file.exists():
            return {}
        try:
            rows = pq.read_table(self._file).to_pylist()
        except pa.ArrowInvalid as error:
            reason = str(error).partition("\n")[0]
            raise FileError(
                f"{self._file}: must be a table of records, found: {reason}; remove it, or name "
                "another file."
            ) from None
        records = {}
        for row in rows:
            try:
                record = self._kind(**row)
            except TypeError:  # other fields
                continue
            records[record.key] = record
        return records

    def add(self, records: Iterable[RecordT]) -> None:
        """Write the table with more records in it, completely or not at all."""
        every = self.read() | {record.key: record for record in records}
        rows = [finite(asdict(every[key])) for key in sorted(every)]  # type: ignore[call-overload]
        with replacing(self._file) as part:
            pq.write_table(
                pa.Table.from_pylist(rows), part, compression="zstd", compression_level=19
            )

    def run_missing(
        self,
        tasks: Sequence[TaskT],
        work: Callable[[TaskT], RecordT],
        finished: Finished | None = None,
        *,
        jobs: int | None = None,
        scheduler: str | None = None,
    ) -> list[rf.TaskResult]:
        """Run the tasks that have no record yet; return the results of those that failed.

        A record is written as each arrives. `jobs` and `scheduler` are those of `rf.run_many`.
        """
        records = self.read()
        missing = [t for t in tasks if t.key not in records or not records[t.key].settles(t)]
        numbers = count(1)

        def keep(result: rf.TaskResult) -> None:
            if result.error is None:
                self.add([result.value])
            if finished is not None:
                finished(result, next(numbers), len(missing))

        results = rf.run_many(work, missing, jobs=jobs, scheduler=scheduler, done=keep)
        return [result for result in results if result.error is not None]


def finite(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields in which numbers that are not finite are None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder, made if it is not there.

    Raises
    ------
    FileError
        If it cannot be made.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {error.strerror}.") from None
    return folder


@cache
def model_digest(name: str, instance: str, *more: str) -> str:
    """Return a digest of a domain's text, its constants in an instance, and more texts."""
    domain = find(name)
    texts = [read_text(domain.path), json.dumps(domain.constants(instance)), *more]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
