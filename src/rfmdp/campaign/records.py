"""Tasks that leave a record each, a JSON file in a folder: only those without one are run."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rfmdp.campaign.runner import Runner
from rfmdp.errors import FileError
from rfmdp.writing import replacing


class RecordedTask(Protocol):
    """A task with the name of its record."""

    @property
    def key(self) -> str:
        """Name of the record."""


class TaskRecord(Protocol):
    """A dataclass that knows which tasks need not be repeated."""

    def settles(self, task: Any) -> bool:
        """Return whether a task need not be repeated."""
        ...


TaskT = TypeVar("TaskT", bound=RecordedTask)
RecordT = TypeVar("RecordT", bound=TaskRecord)
RecordDone: TypeAlias = Callable[[TaskT, RecordT, int, int], None]
"""Called after a run with task, record, number of finished runs, and runs."""


class RecordFolder(Generic[RecordT]):
    """The records of one kind in a folder, by the keys of their tasks."""

    def __init__(self, folder: str | os.PathLike[str], kind: type[RecordT]) -> None:
        self._folder = make_folder(folder)
        self._kind = kind

    def read(self, task: RecordedTask) -> RecordT | None:
        """Return the record of a task; None if it is missing, damaged, or of another version."""
        return self._read(self._file(task))

    def all(self) -> list[RecordT]:
        """Return all records, by name; without those that are damaged, or of another kind."""
        found = (self._read(file) for file in sorted(self._folder.glob("*.json")))
        return [record for record in found if record is not None]

    def _read(self, file: Path) -> RecordT | None:
        try:
            return self._kind(**json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, task: RecordedTask, record: RecordT) -> None:
        """Write a record, completely or not at all; infinities become null."""
        plain = without_infinities(asdict(record))  # type: ignore[call-overload]
        with replacing(self._file(task)) as part:
            part.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")

    def run_missing(
        self,
        tasks: Sequence[TaskT],
        runner: Runner,
        work: Callable[[Any, TaskT], RecordT],
        shared: Any = None,
        done: RecordDone[TaskT, RecordT] | None = None,
    ) -> None:
        """Run the tasks that have no record yet; a record is written as each arrives.

        Parameters
        ----------
        work, shared
            As for `Runner.run`.
        done
            Called here after each run.
        """
        missing = [t for t in tasks if (old := self.read(t)) is None or not old.settles(t)]
        finished = 0

        def write(number: int, record: RecordT) -> None:
            nonlocal finished
            finished += 1
            self.write(missing[number], record)
            if done is not None:
                done(missing[number], record, finished, len(missing))

        runner.run(work, shared, missing, write)

    def _file(self, task: RecordedTask) -> Path:
        return self._folder / f"{task.key}.json"


def without_infinities(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as JSON has them: numbers that are not finite are None."""
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
