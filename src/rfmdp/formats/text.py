"""Files of lines: what the words in them mean, and the place of whatever is wrong."""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import FileError
from rfmdp.memory import require_memory
from rfmdp.types import AnyArray, BoolArray, IntArray

LINES = 1 << 16  # lines whose words are in memory at a time
ODD = set("_[/")  # in words that are no plain numbers
COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
INSIDE = re.compile(r"(?<=[\[,])\s+|\s+(?=[\],])")  # blanks inside `[a, b]`
TRUTH = {"true": 1, "false": 0}

Kind: TypeAlias = int | str
"""What a column holds: integers below a number, or "integer", "bounds", "truth", "name"."""


class Text:
    """The lines of a file, read as columns."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            require_memory(COPIES * self.path.stat().st_size, f"{self.path}: reading it")
            data = self.path.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise FileError(f"{self.path}: cannot be read ({reason}); check the name.") from error
        self.lines = data.decode("utf-8", "replace").split("\n")
        self.number = 1  # of the line under way
        self.names = {"": 0}  # in columns of names, with their numbers

    def rows(self, separators: str = "") -> Iterator[list[str]]:
        """Yield the words of every line that has any and is no comment.

        Blanks inside `[a, b]` belong to the word.
        """
        blanks = str.maketrans(separators, " " * len(separators))
        for number, full in enumerate(self.lines, 1):
            line = full.translate(blanks) if separators else full
            words = (INSIDE.sub("", line) if "[" in line else line).split()
            if words and not words[0].startswith("#"):
                self.number = number
                yield words

    def columns(
        self,
        rows: Iterator[list[str]],
        kinds: Sequence[tuple[str, Kind]],
        promised: int | None = None,
    ) -> tuple[list[AnyArray], IntArray]:
        """Return the rest of the lines as columns (N,), and their numbers; a name may be missing.

        Bounds are pairs (N, 2). The header, the line under way, may promise how many lines.
        """
        head, lines, more = self.number, array("q"), True
        least = sum(kind != "name" for _, kind in kinds)
        blocks: list[list[AnyArray]] = []
        while more:
            pending: list[list[str]] = [[] for _ in kinds]
            for words in islice(rows, LINES):
                if not least <= len(words) <= len(kinds):
                    form = " ".join(f"[{name}]" if kind == "name" else name for name, kind in kinds)
                    self.fail(f"A line must be `{form}`, found {len(words)} entries.")
                if len(words) < len(kinds):
                    words.append("")
                for column, word in zip(pending, words, strict=True):
                    column.append(word)
                lines.append(self.number)
            more = bool(pending[0])
            numbers = lines[len(lines) - len(pending[0]) :]
            blocks.append([
                self._column(column, numbers, name, kind)
                for column, (name, kind) in zip(pending, kinds, strict=True)
            ])  # fmt: skip
        if promised is not None and len(lines) != promised:
            self.fail(
                f"The header promises {promised} lines, but {len(lines)} follow; the file may be "
                "truncated, else correct the header.",
                head,
            )
        return [np.concatenate(column) for column in zip(*blocks, strict=True)], np.array(lines)

    def _column(
        self, words: Sequence[str], lines: Sequence[int], name: str, kind: Kind
    ) -> AnyArray:
        """Return what words mean: all at once if none of them is odd, else one by one."""
        if kind == "name":
            names = self.names
            return np.array([names.setdefault(word, len(names)) for word in words], dtype=np.int64)
        below = kind if isinstance(kind, int) else None
        if kind != "truth" and not ODD & set("".join(words)):
            with suppress(ValueError, OverflowError):
                if kind == "bounds":
                    numbers = np.array(list(map(float, words)), dtype=np.float64)
                    if np.isfinite(numbers).all():
                        return np.stack([numbers, numbers], axis=1)
                else:
                    integers = np.array(list(map(int, words)), dtype=np.int64)
                    if below is None or np.all((integers >= 0) & (integers < below)):
                        return integers
        values: list[object] = []
        for self.number, word in zip(lines, words, strict=True):
            if kind == "bounds":
                values.append(self.bounds(word, name))
            elif kind == "truth" and word in TRUTH:
                values.append(TRUTH[word])
            elif kind == "truth":
                self.fail(f"The {name} must be true or false, found {word!r}.")
            else:
                values.append(self.integer(word, name, below))
        return np.array(values, dtype=np.float64 if kind == "bounds" else np.int64)

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        """Raise a FileError that names a line, that under way by default, and repeats it."""
        number = line or self.number
        shown = self.lines[number - 1].strip()
        if len(shown) > SHOWN:
            shown = shown[:SHOWN] + "..."
        raise FileError(f"{self.path}:{number}: {message} The line reads: {shown!r}.")

    def require(self, good: BoolArray, line: IntArray, message: Callable[[int], str]) -> None:
        """Raise a FileError at the first line (N,) that is not good."""
        if not good.all():
            first = int(np.argmin(good))
            self.fail(message(first), int(line[first]))

    def integer(self, word: str, name: str, below: int | None = None) -> int:
        """Return a word as an integer; `below` bounds it to 0 <= i < below."""
        try:
            value = int(word)
        except ValueError:
            value = 1 << 63
        if "_" in word or abs(value) >= 1 << 63:
            self.fail(f"The {name} must be an integer, found {word!r}.")
        if below is not None and not 0 <= value < below:
            self.fail(f"The {name} must be within 0..{below - 1}, found {value}.")
        return value

    def bounds(self, word: str, name: str) -> tuple[float, float]:
        """Return (lower, upper) of a decimal number, a fraction a/b or an interval `[l,u]`."""
        try:
            if word[0] == "[" and word[-1] == "]":
                low, high = map(_exact, word[1:-1].split(","))
            else:
                low = high = _exact(word)
        except (ValueError, OverflowError, ZeroDivisionError):
            self.fail(f"The {name} must be a number or [l,u], found {word!r}.")
        if not (math.isfinite(low) and math.isfinite(high)):
            self.fail(f"The {name} must be finite, found {word}.")
        return low, high


def _exact(word: str) -> float:
    """Return a number, exactly rounded; `_`, which Python takes between digits, is none."""
    if "_" in word:
        raise ValueError(word)
    return float(Fraction(word)) if "/" in word else float(word)
