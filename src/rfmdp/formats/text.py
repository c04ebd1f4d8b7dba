"""Large text files as arrays of words, with the file and line of whatever is wrong.

Own code because it pays: of a million transitions, words and numbers take 0.3 to 0.6 seconds, and
1.9 to 2.4 by array operations of NumPy (`.tra` and DRN alike). `numpy.loadtxt` with given types is
almost as fast as this where all lines have one form, pyarrow faster; but they know neither
intervals, nor lines of different forms, nor the line of what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from rfmdp.errors import FileError
from rfmdp.kernels import text as kernels
from rfmdp.kernels.tables import number_segments
from rfmdp.memory import require_memory
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int8Array, IntArray, frozen

BLANKS = " \t\r"
COPIES = 8  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """The bytes of a file."""

    path: Path
    data: Bytes  # read-only, as kernels know them

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Text:
        """Return the text of a file."""
        place = Path(path)
        try:
            require_memory(COPIES * place.stat().st_size, f"{place}: reading it")
            content = place.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise FileError(f"{place}: cannot be read ({reason}); check the name.") from error
        return Text(place, np.frombuffer(content, dtype=np.uint8))

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a FileError that names the line and repeats it."""
        shown = self.line(line).strip()
        if len(shown) > SHOWN:
            shown = shown[:SHOWN] + "..."
        raise FileError(f"{self.path}:{line}: {message} The line reads: {shown!r}.")

    def line(self, number: int) -> str:
        """Return a line by its number, which starts at 1."""
        ends = np.flatnonzero(self.data == kernels.NEWLINE)
        begin = 0 if number == 1 else int(ends[number - 2]) + 1
        end = int(ends[number - 1]) if number <= len(ends) else len(self.data)
        return bytes(self.data[begin:end]).decode("utf-8", "replace")

    def words(
        self, begin: int = 0, line: int = 1, *, separators: str = BLANKS, comment: str = ""
    ) -> Words:
        """Return the words from the byte `begin` on, which is the start of the line `line`."""
        table = np.zeros(256, dtype=np.uint8)
        table[[ord(c) for c in '\n"[]']] = range(kernels.ENDS, kernels.CLOSES + 1)
        table[[ord(c) for c in separators]] = kernels.BLANK
        mark = ord(comment) if comment else 0
        none = np.empty(0, dtype=np.int64)
        rest = (begin, line, table, mark)
        count = kernels.split_words(self.data, *rest, False, none, none, none)
        start, end, lines = (np.empty(count, dtype=np.int64) for _ in range(3))
        kernels.split_words(self.data, *rest, True, start, end, lines)
        return Words(self, start, end, lines)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Some words of a text, in order."""

    text: Text
    start: IntArray  # (N,)
    end: IntArray  # (N,)
    line: IntArray  # (N,)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, which: IntArray | BoolArray | slice) -> Words:
        return Words(self.text, self.start[which], self.end[which], self.line[which])

    def word(self, i: int) -> str:
        """Return a word."""
        return bytes(self.text.data[self.start[i] : self.end[i]]).decode("utf-8", "replace")

    @property
    def first_bytes(self) -> Bytes:
        """The first byte of every word."""
        return self.text.data[self.start]

    def lines(self) -> tuple[IntArray, IntArray]:
        """Return the first word and the number of words of every line that has any."""
        fresh = np.ones(len(self), dtype=np.bool_)
        fresh[1:] = self.line[1:] != self.line[:-1]
        first = np.flatnonzero(fresh)
        return first, np.diff(np.append(first, len(self)))

    def fail(self, i: int, message: str) -> NoReturn:
        """Raise a FileError at the line of word i."""
        self.text.fail(int(self.line[i]), message)

    def require(self, good: BoolArray, message: Callable[[int], str]) -> None:
        """Raise a FileError at the first word that is not good."""
        bad = np.flatnonzero(~good)
        if bad.size:
            self.fail(int(bad[0]), message(int(bad[0])))

    def integers(self, what: str, below: int | None = None) -> IntArray:
        """Return words as integers; `below` bounds them to 0 <= i < below."""
        value, kind = self.integers_and_kinds()
        self.require(
            kind == kernels.INTEGER,
            lambda i: f"The {what} must be an integer, found {self.word(i)!r}.",
        )
        if below is not None:
            self.require(
                (value >= 0) & (value < below),
                lambda i: f"The {what} must be within 0..{below - 1}, found {value[i]}.",
            )
        return value

    def integers_and_kinds(self) -> tuple[IntArray, Int8Array]:
        """Return words as integers (`true` is 1), and what they are, see `kernels.text`."""
        value = np.empty(len(self), dtype=np.int64)
        kind = np.empty(len(self), dtype=np.int8)
        kernels.read_integers(self.text.data, self.start, self.end, value, kind)
        return value, kind

    def values(
        self, what: str, other: Callable[[str], str] = lambda word: word
    ) -> tuple[FloatArray, FloatArray]:
        """Return words as (lower, upper): decimal numbers, fractions a/b, intervals `[l,u]`.

        `other` may replace a word that is none of these before it is given up.
        """
        lower, upper = np.empty(len(self)), np.empty(len(self))
        status = np.empty(len(self), dtype=np.int8)
        kernels.read_values(self.text.data, self.start, self.end, lower, upper, status)
        plain = self.first_bytes != kernels.OPEN
        long = np.flatnonzero((status == kernels.LONG) & plain)
        lower[long] = upper[long] = self[long].as_bytes().astype(np.float64)
        boxes = np.flatnonzero((status == kernels.LONG) & ~plain)
        inner = self[boxes].inside_brackets().words(separators=BLANKS + ",")
        lower[boxes], upper[boxes] = inner.as_bytes().astype(np.float64).reshape(-1, 2).T
        for i in np.flatnonzero(status == kernels.OTHER):
            try:
                lower[i], upper[i] = _read_value(other(self.word(int(i))))
            except (ValueError, ZeroDivisionError, OverflowError):
                shown = self.word(int(i))
                self.fail(int(i), f"The {what} must be a number or [l,u], found {shown!r}.")
        self.require(
            np.isfinite(lower) & np.isfinite(upper),
            lambda i: f"The {what} must be finite, found {self.word(i)}.",
        )
        return lower, upper

    def numbers(self, what: str) -> FloatArray:
        """Return words as single numbers."""
        lower, upper = self.values(what)
        self.require(
            lower == upper, lambda i: f"The {what} must be one number, found {self.word(i)}."
        )
        return lower

    def distinct(self) -> tuple[IntArray, list[str]]:
        """Return the number of every word among the different ones, and these."""
        table = np.zeros(1 << max(4, int(2 * len(self)).bit_length()), dtype=np.int64)
        ids, first = np.empty((2, len(self)), dtype=np.int64)
        count = number_segments(self.text.data, self.start, self.end, table, ids, first)
        return ids, [self.word(int(i)) for i in first[:count]]

    def as_bytes(self) -> AnyArray:
        """Return words as an array of byte strings."""
        width = int(np.max(self.end - self.start, initial=1))
        out = np.zeros(len(self) * width, dtype=np.uint8)
        kernels.copy_words(self.text.data, self.start, self.end, width, out)
        return out.view(f"S{width}")

    def inside_brackets(self) -> Text:
        """Return a text whose line i + 1 is what stands inside the brackets of word i."""
        out = np.empty(int(np.sum(self.end - self.start)), dtype=np.uint8)
        length = kernels.join_lines(self.text.data, self.start, self.end, out)
        return Text(self.text.path, frozen(out[:length]))


def _read_value(word: str) -> tuple[float, float]:
    """Return (lower, upper) of one word, exactly rounded."""
    if word.startswith("["):
        if not word.endswith("]"):
            raise ValueError(word)
        low, high = word[1:-1].split(",")
        return _read_number(low), _read_number(high)
    return (_read_number(word),) * 2


def _read_number(word: str) -> float:
    if "_" in word:
        raise ValueError(word)
    return float(Fraction(word)) if "/" in word else float(word)
