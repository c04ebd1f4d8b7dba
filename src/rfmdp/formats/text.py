"""Text files as words, with the file and the line of whatever is wrong.

Words are cut by `bytes.split` and read by `int` and `float`, a column at a time: a million
transitions take about a second, and numbers are rounded exactly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import methodcaller
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from rfmdp.errors import FileError
from rfmdp.memory import require_memory
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
NEWLINE, BLANK = 10, 32  # all bytes up to BLANK separate words
GAP, LOW = b"\xfe", b"\xff"  # no bytes of UTF-8; they stand for a blank inside quotes, and for _,
# which Python takes for a separator of digits
QUOTED = re.compile(rb'"[^"\n]*"')
MISREAD = (ValueError, OverflowError, ZeroDivisionError)  # what is no number raises one of these


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """The bytes of a file."""

    path: Path
    data: bytes

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Text:
        """Return the text of a file."""
        place = Path(path)
        try:
            require_memory(COPIES * place.stat().st_size, f"{place}: reading it")
            return Text(place, place.read_bytes())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise FileError(f"{place}: cannot be read ({reason}); check the name.") from error

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a FileError that names the line and repeats it."""
        shown = self.line(line).strip()
        if len(shown) > SHOWN:
            shown = shown[:SHOWN] + "..."
        raise FileError(f"{self.path}:{line}: {message} The line reads: {shown!r}.")

    def line(self, number: int) -> str:
        """Return a line by its number, which starts at 1."""
        return self.data.split(b"\n", number)[number - 1].decode("utf-8", "replace")

    def words(self, begin: int = 0, *, comment: bytes, separators: bytes = b"") -> Words:
        """Return the words from the byte `begin`, a start of a line, on.

        Lines that start with `comment` are left out. Blanks inside quotes belong to the word, and
        so do those beside the brackets and commas of `[a, b]`.
        """
        data = self.data[begin:]
        if comment in data:
            data = re.sub(rb"(?m)^[ \t\r]*" + comment + b".*", b"", data)
        if b'"' in data:
            data = QUOTED.sub(lambda match: match.group().replace(b" ", GAP), data)
        data = data.translate(bytes.maketrans(separators + b"_", b" " * len(separators) + LOW))
        if b"[" in data:
            for pair in (b"[ ", b" ]", b" ,", b", "):
                while pair in data:
                    data = data.replace(pair, pair.strip())
        words = objects(data.split())
        return Words(self, words, self._lines(data, begin, len(words)))

    def _lines(self, data: bytes, begin: int, count: int) -> IntArray:
        """Return the line of every word of the data, which begin at a byte of the text."""
        byte = np.frombuffer(b" " + data + b"\n", dtype=np.uint8)
        blank = byte <= BLANK
        starts = np.flatnonzero(blank[:-1] & ~blank[1:])
        if len(starts) != count:
            raise FileError(f"{self.path}: must be a text, but has control characters.")
        sizes = np.diff(np.searchsorted(starts, np.flatnonzero(byte == NEWLINE)), prepend=0)
        first = self.data.count(b"\n", 0, begin) + 1
        return np.repeat(np.arange(first, first + len(sizes)), sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Some words of a text, in order."""

    text: Text
    words: AnyArray  # (N,) bytes objects
    line: IntArray  # (N,)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, which: IntArray | BoolArray | slice) -> Words:
        return Words(self.text, self.words[which], self.line[which])

    def word(self, i: int) -> str:
        """Return a word as it stands in the text."""
        return _shown(self.words[i])

    def begin_with(self, prefix: bytes) -> BoolArray:
        """Return which words begin with some bytes."""
        begins = map(methodcaller("startswith", prefix), self.words)
        return np.fromiter(begins, np.bool_, len(self))

    def lines(self) -> tuple[IntArray, IntArray]:
        """Return the first word and the number of words of every line that has any."""
        first = np.flatnonzero(np.diff(self.line, prepend=0))
        return first, np.diff(first, append=len(self))

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
        message = f"The {what} must be an integer, found "
        value: IntArray = self._converted(int, np.int64, message)
        if below is not None:
            self.require(
                (value >= 0) & (value < below),
                lambda i: f"The {what} must be within 0..{below - 1}, found {value[i]}.",
            )
        return value

    def _converted(self, convert: Callable[[bytes], Any], kind: Any, message: str) -> AnyArray:
        """Return what every word means; the first that means nothing is an error."""
        try:
            return np.fromiter(map(convert, self.words.tolist()), kind, len(self))
        except MISREAD:
            for i, word in enumerate(self.words):
                try:
                    np.array(convert(word), dtype=kind)
                except MISREAD:
                    self.fail(i, f"{message}{self.word(i)!r}.")
            raise

    def values(
        self, what: str, placeholders: Mapping[bytes, bytes] = MappingProxyType({})
    ) -> tuple[FloatArray, FloatArray]:
        """Return words as (lower, upper): decimal numbers, fractions a/b, intervals `[l,u]`.

        Placeholders are words that stand for one of these.
        """
        pairs = self._plain_values()
        if pairs is None:

            def convert(word: bytes) -> tuple[float, float]:
                return _bounds(placeholders.get(word, word))

            message = f"The {what} must be a number or [l,u], found "
            pairs = self._converted(convert, np.dtype((np.float64, 2)), message)
        self.require(
            np.isfinite(pairs[:, 0]) & np.isfinite(pairs[:, 1]),
            lambda i: f"The {what} must be finite, found {self.word(i)}.",
        )
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _plain_values(self) -> FloatArray | None:
        """Return (N, 2) bounds if all words are decimal numbers or all are intervals of them."""
        words = self.words.tolist()
        if not words or words[0][:1] != b"[":
            try:
                numbers = np.fromiter(map(float, words), np.float64, len(words))
            except ValueError:
                return None
            return np.stack([numbers, numbers], axis=1)
        inner = [word[1:-1] for word in words]
        if set(map(methodcaller("count", b","), inner)) != {1} or {
            word[:1] + word[-1:] for word in words
        } != {b"[]"}:
            return None
        try:
            ends = b",".join(inner).split(b",")
            return np.fromiter(map(float, ends), np.float64, len(ends)).reshape(-1, 2)
        except ValueError:
            return None

    def numbers(self, what: str) -> FloatArray:
        """Return words as single numbers."""
        lower, upper = self.values(what)
        self.require(
            lower == upper, lambda i: f"The {what} must be one number, found {self.word(i)}."
        )
        return lower

    def distinct(self) -> tuple[IntArray, list[str]]:
        """Return the number of every word among the different ones, and these."""
        words = self.words.tolist()
        number = {word: i for i, word in enumerate(dict.fromkeys(words))}
        ids = np.fromiter(map(number.__getitem__, words), np.int64, len(words))
        return ids, list(map(_shown, number))


def objects(words: list[bytes]) -> AnyArray:
    """Return an array of bytes objects of any length."""
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return array


def as_words(text: str) -> bytes:
    """Return a text in the form in which words have it."""
    return text.encode().replace(b"_", LOW).replace(b" ", GAP)


def _shown(word: bytes) -> str:
    """Return a word as it stands in the text."""
    return word.replace(GAP, b" ").replace(LOW, b"_").decode("utf-8", "replace")


def _bounds(word: bytes) -> tuple[float, float]:
    """Return (lower, upper) of one word, exactly rounded."""
    if not word.startswith(b"["):
        return (_number(word),) * 2
    if not word.endswith(b"]"):
        raise ValueError(word)
    low, high = word[1:-1].split(b",")
    return _number(low), _number(high)


def _number(word: bytes) -> float:
    return float(Fraction(word.decode("ascii"))) if b"/" in word else float(word)
