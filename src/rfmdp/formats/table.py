"""The columns that all explicit formats share: read from lines, made into a model, and from one.

A row is a choice of a state with one distribution over its successors. A format turns a file into
`Columns` and calls `make_model`, or asks `to_columns` for those of a model and writes them. `Text`
reads files of lines: what the words in them mean, and the place of whatever is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import FileError, ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import flat_model, flatten, flatten_note, shared, transition_bounds
from rfmdp.ragged import owner, owners, segment_lengths, segment_sum, starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import box_centres
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

LINES = 1 << 16  # lines whose words are in memory at a time
ODD = frozenset("_[/")  # in words that are no plain numbers
COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
TRUTH = ("false", "true")
MISREAD = (ValueError, OverflowError, ZeroDivisionError)

Fail: TypeAlias = Callable[[int, str], NoReturn]  # complains about an entry, in words
Rows: TypeAlias = Sequence[int] | IntArray  # counted from 0; -1 is the head
Kind: TypeAlias = int | str
"""What a column holds: integers below a number, or one of "name" and the words of `KINDS`."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What states may do: rows in the order of their states, successors row after row."""

    row_ptr: IntArray  # (S + 1,)
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray  # (K,)
    lower: FloatArray  # (K,)
    upper: FloatArray  # (K,)
    row_actions: IntArray  # (R,) index into `actions`
    actions: tuple[str, ...]

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_actions)

    @property
    def known(self) -> bool:
        """Whether all probabilities are known."""
        return bool(np.array_equal(self.lower, self.upper))


def make_model(columns: Columns, name: str, fail: Fail | None = None, **fields: Any) -> FactoredMDP:
    """Return the model of columns; rows with equal distributions share a marginal.

    Every state needs a row. Entries of a row with the same successor are added up. `name` says in
    messages what the columns come from; `fail` complains about an entry, by default with its state
    and action. `fields` are those of the model that are no transitions.
    """

    def complain(entry: int, message: str) -> NoReturn:
        row = owner(columns.successor_ptr, entry)
        action = columns.actions[columns.row_actions[row]]
        where = f"state {owner(columns.row_ptr, row)}" + (f", action {action}" if action else "")
        raise ModelError(f"{name}: {where}: {message}")

    _check(columns, fail or complain)
    alone = np.flatnonzero(segment_lengths(columns.row_ptr) == 0)
    if len(alone):
        raise ModelError(
            f"{name}: every state must have a transition, but {len(alone)} have none, the first is "
            f"{alone[0]}; give them self-loops."
        )
    c = _merged(columns)
    centres = box_centres(c.successor_ptr, c.lower, c.upper)
    return flat_model(
        c.row_ptr,
        c.successors.astype(np.int32),
        *shared((c.successor_ptr, c.lower, c.upper, centres)),
        row_actions=c.row_actions,
        actions=c.actions,
        **fields,
    )


def _check(columns: Columns, fail: Fail) -> None:
    """Complain about the first entry or row that cannot be one."""
    inside = (columns.successors >= 0) & (columns.successors < columns.states)
    if not inside.all():
        at = int(np.argmin(inside))
        where = f"0..{columns.states - 1}, found {columns.successors[at]}"
        fail(at, f"The target state must be within {where}.")
    good = (columns.lower >= 0.0) & (columns.lower <= columns.upper) & (columns.upper <= 1.0)
    if not good.all():
        at = int(np.argmin(good))
        low, high = columns.lower[at], columns.upper[at]
        value = f"{low:.12g}" if low == high else f"[{low:.12g}, {high:.12g}]"
        must = "Probabilities must satisfy 0 <= l <= u <= 1"
        fail(at, f"{must}, found {value}; rates (ctmc) are not supported.")
    low_sum = segment_sum(columns.lower, columns.successor_ptr)
    high_sum = segment_sum(columns.upper, columns.successor_ptr)
    bad = (low_sum > 1.0 + SUM_TOLERANCE) | (high_sum < 1.0 - SUM_TOLERANCE)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    fail(
        int(columns.successor_ptr[row]),
        f"The probabilities of state {owner(columns.row_ptr, row)} sum to {low_sum[row]:.12g} at "
        f"least and {high_sum[row]:.12g} at most in the row that starts here, 1 must lie between; "
        "17 digits lose nothing.",
    )


def _merged(columns: Columns) -> Columns:
    """Return the columns with entries of a row that meet in one state added up."""
    row = owners(columns.successor_ptr)
    key = row * columns.states + columns.successors
    if np.all(key[1:] > key[:-1]):
        return columns
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return columns
    sums = [np.minimum(np.bincount(place, side), 1.0) for side in (columns.lower, columns.upper)]
    ptr = starts(np.bincount(row[first], minlength=columns.rows))
    successors = columns.successors[first]
    return replace(columns, successor_ptr=ptr, successors=successors, lower=sums[0], upper=sums[1])


def to_columns(model: FactoredMDP) -> tuple[FactoredMDP, Columns, str]:
    """Return any model as a flat one, with its columns, and what that changed, in words.

    Several marginals of a row are multiplied out by `flatten`.
    """
    flat = flatten(model)
    columns = Columns(
        flat.row_ptr, flat.successor_ptr, flat.successors.astype(np.int64),
        *transition_bounds(flat), flat.row_actions.astype(np.int64), tuple(flat.actions),
    )  # fmt: skip
    zeros = 0 if columns.known else int(np.count_nonzero(flat.marginals.lower == 0.0))
    refused = f"{zeros} intervals have the lower bound 0, which PRISM and Storm refuse."
    return flat, columns, " ".join(filter(None, [flatten_note(model), refused if zeros else ""]))


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: the files, and what of the model they cannot say (may be empty)."""

    paths: tuple[Path, ...]
    note: str


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
        rows, count, more = self.rows(), 0, True
        least = sum(kind != "name" for _, kind in kinds)
        blocks: list[list[AnyArray]] = []
        while more:
            pending: list[list[str]] = [[] for _ in kinds]  # lists of lines would be slow
            for words in islice(rows, LINES):
                if not least <= len(words) <= len(kinds):
                    form = " ".join(f"[{name}]" if kind == "name" else name for name, kind in kinds)
                    message = f"A line must be `{form}`, found {len(words)} entries."
                    self.fail(message, count + len(pending[0]))
                if len(words) < len(kinds):
                    words.append("")
                for column, word in zip(pending, words, strict=True):
                    column.append(word)
            blocks.append([
                self.column(column, name, kind, range(count, count + len(column)))
                for column, (name, kind) in zip(pending, kinds, strict=True)
            ])  # fmt: skip
            count, more = count + len(pending[0]), bool(pending[0])
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
