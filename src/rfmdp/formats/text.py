"""Files of lines: what the words in them mean, and the place of whatever is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import FileError
from rfmdp.memory import require_memory
from rfmdp.types import AnyArray, BoolArray, IntArray

LINES = 1 << 16  # lines whose words are in memory at a time
ODD = frozenset("_[/")  # in words that are no plain numbers
COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
TRUTH = ("false", "true")
MISREAD = (ValueError, OverflowError, ZeroDivisionError)

Rows: TypeAlias = Sequence[int] | IntArray  # counted from 0; -1 is the head
Kind: TypeAlias = int | str
"""What a column holds: integers below a number, or one of "name" and the words of `KINDS`."""


class Text:
    """The lines of a file: a head, and rows of columns. Blank lines and comments are no rows.

    path : of the file
    separators : characters that are like blanks
    """

    def __init__(self, path: str | os.PathLike[str], separators: str = "") -> None:
        self.path = Path(path)
        try:
            require_memory(COPIES * self.path.stat().st_size, f"{self.path}: reading it")
            data = self.path.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise FileError(f"{self.path}: cannot be read ({reason}); check the name.") from error
        self.lines = data.decode("utf-8", "replace").split("\n")
        self.blanks = str.maketrans(separators, " " * len(separators))
        self.head = next(filter(self.words, self.lines), "")
        self.names = {"": 0}  # in columns of names, with their numbers

    def words(self, line: str) -> list[str]:
        """Return the words of a line, of a comment none."""
        words = (line.translate(self.blanks) if self.blanks else line).split()
        return [] if words and words[0].startswith("#") else words

    def rows(self) -> Iterator[list[str]]:
        """Return the words of all rows but the head."""
        return islice(filter(None, map(self.words, self.lines)), 1, None)

    def columns(
        self, kinds: Sequence[tuple[str, Kind]], promised: int | None = None
    ) -> list[AnyArray]:
        """Return the rows as columns (N,), bounds as pairs (N, 2); a name may be missing.

        The head may promise how many rows there are.
        """
        rows, count = self.rows(), 0
        least = sum(kind != "name" for _, kind in kinds)
        blocks: list[list[AnyArray]] = []
        while (lines := list(islice(rows, LINES))) or not blocks:
            for row, words in enumerate(lines, count):
                if not least <= len(words) <= len(kinds):
                    form = " ".join(f"[{name}]" if kind == "name" else name for name, kind in kinds)
                    self.fail(f"A line must be `{form}`, found {len(words)} entries.", row)
                words += [""] * (len(kinds) - len(words))
            columns = list(zip(*lines, strict=True)) or [()] * len(kinds)
            where = range(count, count + len(lines))
            blocks.append([
                self.column(column, name, kind, where)
                for column, (name, kind) in zip(columns, kinds, strict=True)
            ])  # fmt: skip
            count += len(lines)
        if promised not in (None, count):
            self.fail(
                f"The header promises {promised} lines, but {count} follow; the file may be "
                "truncated, else correct the header."
            )
        return [np.concatenate(column) for column in zip(*blocks, strict=True)]

    def column(self, words: Sequence[str], name: str, kind: Kind, rows: Rows) -> AnyArray:
        """Return what words mean that stand in some rows."""
        if kind == "name":
            names = self.names
            return np.array([names.setdefault(word, len(names)) for word in words], dtype=np.int64)
        plain, parse, form = KINDS["integer" if isinstance(kind, int) else kind]
        try:
            values = list(map(plain if ODD.isdisjoint("".join(words)) else parse, words))
            column = np.array(values, dtype=np.float64 if kind == "bounds" else np.int64)
        except MISREAD:
            for row, word in zip(rows, words, strict=True):
                try:
                    parse(word)
                except MISREAD:
                    self.fail(f"The {name} must be {form}, found {word!r}.", row)
            raise
        good: BoolArray = np.ones(len(words), dtype=np.bool_)
        if kind == "bounds":
            column = column if column.ndim == 2 else np.stack([column, column], axis=1)
            good, form = np.logical_and.reduce(np.isfinite(column), axis=1), "finite"
        elif isinstance(kind, int):
            good, form = (column >= 0) & (column < kind), f"within 0..{kind - 1}"
        self.require(good, lambda i: f"The {name} must be {form}, found {words[i]}.", rows)
        return column

    def fail(self, message: str, row: int = -1) -> NoReturn:
        """Raise a FileError that names the line of a row, by default the head, and repeats it."""
        numbers = (number for number, line in enumerate(self.lines, 1) if self.words(line))
        number = next(islice(numbers, row + 1, None), 1)
        shown = self.lines[number - 1].strip()
        if len(shown) > SHOWN:
            shown = shown[:SHOWN] + "..."
        raise FileError(f"{self.path}:{number}: {message} The line reads: {shown!r}.")

    def require(
        self, good: BoolArray, message: Callable[[int], str], rows: Rows | None = None
    ) -> None:
        """Raise a FileError at the first entry (N,) that is not good; by default one per row."""
        if not good.all():
            first = int(np.argmin(good))
            self.fail(message(first), first if rows is None else int(rows[first]))


def _integer(word: str) -> int:
    """Return an integer of 64 bits; `_`, which Python takes between digits, is none."""
    value = int(word)
    if "_" in word or abs(value) >= 1 << 63:
        raise ValueError(word)
    return value


def _bounds(word: str) -> tuple[float, float]:
    """Return (lower, upper) of a decimal number, a fraction a/b or an interval `[l,u]`."""
    if word[0] == "[" and word[-1] == "]":
        low, high = map(_exact, word[1:-1].split(","))
    else:
        low = high = _exact(word)
    return low, high


def _exact(word: str) -> float:
    """Return a number, exactly rounded; `_`, which Python takes between digits, is none."""
    if "_" in word:
        raise ValueError(word)
    return float(Fraction(word)) if "/" in word else float(word)


KINDS: dict[str, tuple[Callable[[str], object], Callable[[str], object], str]] = {
    "integer": (int, _integer, "an integer"),  # read if plain, and if odd, and what it must be
    "bounds": (float, _bounds, "a number or [l,u]"),
    "truth": (TRUTH.index, TRUTH.index, "true or false"),
}
