"""PRISM texts: how they are read, where something stands in them, errors that show the place."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from rfmdp.errors import FileError, PrismError

MAX_SHOWN = 200  # characters of a source line that an error message repeats
ALIKE = 0.74  # likeness of words, from 0 to 1; "Pmix" and "Pmin" have 0.75


class Position(NamedTuple):
    """A place in a text; line and column count from 1, (0, 0) is no place at all."""

    line: int
    column: int


NOWHERE = Position(0, 0)


class PrismSourceError(PrismError):
    """A `PrismError` that knows its place; `reason` is the message without it."""

    def __init__(self, text: str, position: Position, reason: str) -> None:
        super().__init__(text)
        self.line, self.column = position
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text with the name under which errors mention it."""

    text: str = field(repr=False)
    filename: str = "<text>"

    def error(self, position: Position, reason: str) -> PrismSourceError:
        """Return (not raise) the error for `position`: place, reason, source line, caret."""
        head = f"{self.filename}:{position.line}:{position.column}: {reason}"
        if position == NOWHERE:
            head = f"{self.filename}: {reason}"
        # not splitlines(): only '\n' ends a line here, as in the lexer
        for line in self.text.split("\n")[position.line - 1 : position.line]:
            start = max(0, position.column - MAX_SHOWN // 2)
            before = line[start : position.column - 1]
            caret = "".join("\t" if c == "\t" else " " for c in before) + "^"
            head += "\n" + line.rstrip("\r")[start : start + MAX_SHOWN] + "\n" + caret
        return PrismSourceError(head, position, reason)


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file in UTF-8, or raise FileError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{path}: the file cannot be read: {reason}.") from None
    except ValueError as error:
        raise FileError(f"{path!r}: this is no file name: {error}.") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{path}: the file must be text in UTF-8, found byte 0x{data[error.start]:02x} "
            f"in line {line}."
        ) from None


def nearest(word: str, words: Collection[str]) -> str | None:
    """Return which of some words another one was probably meant to be."""
    if word in words:
        return None
    matches = get_close_matches(word, [k for k in words if k[:1] == word[:1]], 1, ALIKE)
    return matches[0] if matches else None


def question(word: str, words: Collection[str]) -> str:
    """Return a question about a word that is not among some words, or nothing if none is near."""
    meant = nearest(word, words)
    return "" if meant is None else f"; did you mean '{meant}'?"
