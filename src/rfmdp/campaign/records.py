"""One record per run, a JSON file each, written at once or not at all."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rfmdp import __version__
from rfmdp.errors import FileError
from rfmdp.writing import replacing

FINISHED = ("CERTIFIED", "GAP_OPEN")


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a domain at a radius by a method, with its limit."""

    domain: str
    radius: float
    method: str
    timeout: float  # seconds
    precision: float = 1e-6

    @property
    def key(self) -> str:
        """Name of the record."""
        return f"{self.domain}_{self.radius:g}_{self.method}"


@dataclass(frozen=True, slots=True)
class Record:
    """What a run gave; a side that nobody proved is None."""

    domain: str
    radius: float
    method: str
    status: str
    value: float | None  # the guarantee
    lower: float | None
    upper: float | None
    seconds_build: float
    seconds_solve: float
    seconds_processor: float
    robust_sweeps: int
    cheap_sweeps: int
    states: int
    rows: int
    transitions: int
    precision: float
    timeout: float
    model: str  # digest of the domain's text, constants and bounds
    version: str = __version__
    message: str = ""

    @property
    def finished(self) -> bool:
        """Whether the method came to its end."""
        return self.status in FINISHED

    @property
    def relative_width(self) -> float | None:
        """Upper minus lower over upper, if both are proven."""
        if self.lower is None or self.upper is None:
            return None
        return (self.upper - self.lower) / max(abs(self.upper), 1e-12)


class Store:
    """The records in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be made: {error.strerror}.") from None

    def read(self, key: str) -> Record | None:
        """Return a record, None if there is none that can be read."""
        try:
            return Record(**json.loads(self._path(key).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            return None  # damaged, or of another version: the run is repeated

    def done(self, task: Task, model: str) -> bool:
        """Tell whether a run need not be repeated."""
        found = self.read(task.key)
        if found is None or found.model != model or found.precision > task.precision:
            return False
        return found.finished or found.timeout >= task.timeout

    def write(self, task: Task, record: Record) -> None:
        """Write a record; whatever interrupts, the file is complete or not there."""
        text = json.dumps(_plain(asdict(record)), indent=1) + "\n"
        replace_file(self._path(task.key), text.encode())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there when it is complete.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    with replacing(path) as part:
        part.write_bytes(data)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Infinities become None: JSON has none."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in fields.items()
    }
