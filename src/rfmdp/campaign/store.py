"""One record per task, a JSON file each, written at once or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from rfmdp.errors import FileError
from rfmdp.writing import replacing


class Store:
    """The records in a folder, by their keys."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be made: {error.strerror}.") from None

    def read(self, key: str) -> dict[str, Any] | None:
        """Return the fields of a record, None if there is none that can be read."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None  # missing or damaged: the task is repeated
        return found if isinstance(found, dict) else None

    def write(self, key: str, fields: dict[str, Any]) -> None:
        """Write a record; infinities become null, since JSON has none."""
        plain = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in fields.items()
        }
        replace_file(self._path(key), (json.dumps(plain, indent=1) + "\n").encode())

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
