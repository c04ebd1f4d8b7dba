"""Text files line by line, with the file and the line of whatever is wrong.

A million transitions take some seconds; UMB is the format for large models. Numbers are rounded
exactly.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np

from rfmdp.errors import FileError
from rfmdp.memory import require_memory
from rfmdp.types import BoolArray, IntArray

COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
QUOTED = re.compile(r'(?:"[^"]*"|\S)+')  # a word; blanks inside quotes belong to it
INSIDE = re.compile(r"(?<=[\[,])\s+|\s+(?=[\],])")  # blanks inside `[a, b]`


class Text:
    """The lines of a file, and what words in them mean."""

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

    def rows(self, comment: str, *, separators: str = "", begin: int = 0) -> Iterator[list[str]]:
        """Yield the words of every line that has any, from the line after `begin` on.

        Blanks inside quotes and inside `[a, b]` belong to the word.
        """
        blanks = str.maketrans(separators, " " * len(separators))
        for number in range(begin, len(self.lines)):
            line = self.lines[number].translate(blanks) if separators else self.lines[number]
            if "[" in line:
                line = INSIDE.sub("", line)
            words = QUOTED.findall(line) if '"' in line else line.split()
            if words and not words[0].startswith(comment):
                self.number = number + 1
                yield words

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

    def integer(self, word: str, what: str, below: int | None = None) -> int:
        """Return a word as an integer; `below` bounds it to 0 <= i < below."""
        try:
            value = int(word)
        except ValueError:
            value = None
        if value is None or "_" in word or abs(value) >= 1 << 63:
            self.fail(f"The {what} must be an integer, found {word!r}.")
        if below is not None and not 0 <= value < below:
            self.fail(f"The {what} must be within 0..{below - 1}, found {value}.")
        return value

    def bounds(self, word: str, what: str) -> tuple[float, float]:
        """Return (lower, upper) of a decimal number, a fraction a/b or an interval `[l,u]`."""
        try:
            if word[0] == "[" and word[-1] == "]":
                low, high = word[1:-1].split(",")
                pair = _number(low), _number(high)
            else:
                pair = (_number(word),) * 2
        except (ValueError, OverflowError, ZeroDivisionError):
            self.fail(f"The {what} must be a number or [l,u], found {word!r}.")
        if not (math.isfinite(pair[0]) and math.isfinite(pair[1])):
            self.fail(f"The {what} must be finite, found {word}.")
        return pair

    def one_number(self, word: str, what: str) -> float:
        """Return a word as a single number."""
        low, high = self.bounds(word, what)
        if low != high:
            self.fail(f"The {what} must be one number, found {word}.")
        return low


def _number(word: str) -> float:
    """Return a number, exactly rounded; `_`, which Python takes between digits, is none."""
    if "_" in word:
        raise ValueError(word)
    return float(Fraction(word)) if "/" in word else float(word)
