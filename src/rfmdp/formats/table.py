"""The table of columns that all explicit formats share: made into a model here, and from one.

A row is a choice of a state with one distribution over its successors. A format turns a file into
a `ModelTable` and calls `make_model`, or asks `to_table` for one and writes its columns. `Text` is
a file of lines, which knows the place of whatever is wrong.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import FileError, ModelError, PrismWarning
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.flatten import flat_model, flatten, flatten_note, shared, transition_bounds
from rfmdp.ragged import owner, owners, segment_lengths, segment_sum, starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import are_bounds, box_centres
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray
from rfmdp.writing import replacing

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
LINES = 1 << 16  # lines that are put together before they are written
COPIES = 16  # of a text, at the worst, while it is read
SHOWN = 60  # characters of a bad line that a message repeats
QUOTED = re.compile(r'(?:"[^"]*"|\S)+')  # a word; blanks inside quotes belong to it
INSIDE = re.compile(r"(?<=[\[,])\s+|\s+(?=[\],])")  # blanks inside `[a, b]`

Variables: TypeAlias = tuple[tuple[Variable, ...], Int32Array | None]  # and values (S, variables)
Fail: TypeAlias = Callable[[int, str], NoReturn]  # complains about an entry, in words


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """A flat model as columns: rows in the order of their states, successors row after row."""

    states: int
    row_states: IntArray  # (R,) ascending
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray  # (K,)
    lower: FloatArray  # (K,)
    upper: FloatArray  # (K,)
    row_actions: IntArray  # (R,) index into `actions`
    actions: tuple[str, ...]
    initial: IntArray
    labels: Mapping[str, BoolArray] = field(default_factory=dict)
    rewards: Mapping[str, Rewards] = field(default_factory=dict)
    variables: Variables = ((), None)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_states)

    @property
    def row_ptr(self) -> IntArray:
        """First row of every state, (S + 1,)."""
        return starts(np.bincount(self.row_states, minlength=self.states))

    @property
    def choices(self) -> IntArray:
        """Number of every row within its state, (R,)."""
        return np.arange(self.rows) - self.row_ptr[self.row_states]

    @property
    def known(self) -> bool:
        """Whether all probabilities are known."""
        return bool(np.array_equal(self.lower, self.upper))

    @property
    def chain(self) -> bool:
        """Whether every state has one choice."""
        return bool(np.array_equal(self.row_states, np.arange(self.states)))

    def action_names(self, unlabelled: str, before: str = "") -> list[str]:
        """Return the text of every action; names that text files cannot hold are refused."""
        for name in self.actions:
            if name and (re.search(r"\s", name) or '"' in name):
                raise ModelError(
                    f"Action {name!r} cannot be written: names must have no blanks or quotes; "
                    "rename it."
                )
        return [before + name if name else unlabelled for name in self.actions]

    def entries(self, separator: str) -> Iterator[tuple[int, int, str]]:
        """Yield row, successor and probability, or `[l<separator>u]`, of every transition."""
        row, known = owners(self.successor_ptr), self.known
        for begin in range(0, len(row), LINES):
            block = slice(begin, begin + LINES)
            texts = [number(x) for x in self.lower[block].tolist()]
            if not known:
                ends = zip(texts, self.upper[block].tolist(), strict=True)
                texts = [f"[{low}{separator}{number(high)}]" for low, high in ends]
            yield from zip(row[block].tolist(), self.successors[block].tolist(), texts, strict=True)


def make_model(table: ModelTable, name: str, fail: Fail | None = None) -> FactoredMDP:
    """Return the model of a table; rows with equal distributions share a marginal.

    A state without a row gets a self-loop, which pays nothing, and the label "deadlock". Entries
    of a row with the same successor are added up.

    Parameters
    ----------
    table
        The columns; what is wrong with their numbers is found here.
    name
        What the table comes from, for messages.
    fail
        Complains about an entry; by default with its state and action.
    """

    def complain(entry: int, message: str) -> NoReturn:
        row = owner(table.successor_ptr, entry)
        action = table.actions[table.row_actions[row]]
        where = f"state {table.row_states[row]}" + (f", action {action}" if action else "")
        raise ModelError(f"{name}: {where}: {message}")

    _check(table, fail or complain)
    table = _with_loops(_merged(table), name)
    variables, valuations = table.variables
    centres = box_centres(table.successor_ptr, table.lower, table.upper)
    return flat_model(
        table.row_ptr,
        table.successors.astype(np.int32),
        *shared((table.successor_ptr, table.lower, table.upper, centres)),
        initial=table.initial,
        row_actions=table.row_actions,
        actions=table.actions,
        labels=table.labels,
        rewards=table.rewards,
        variables=variables,
        valuations=valuations,
    )


def _check(table: ModelTable, fail: Fail) -> None:
    """Complain about the first entry or row that cannot be one."""
    inside = (table.successors >= 0) & (table.successors < table.states)
    if not inside.all():
        at = int(np.argmin(inside))
        where = f"0..{table.states - 1}, found {table.successors[at]}"
        fail(at, f"The target state must be within {where}.")
    good = are_bounds(table.lower, table.upper)
    if not good.all():
        at = int(np.argmin(good))
        low, high = table.lower[at], table.upper[at]
        value = f"{low:.12g}" if low == high else f"[{low:.12g}, {high:.12g}]"
        hint = "rates (ctmc) are not supported."
        fail(at, f"Probabilities must satisfy 0 <= l <= u <= 1, found {value}; {hint}")
    low_sum = segment_sum(table.lower, table.successor_ptr)
    high_sum = segment_sum(table.upper, table.successor_ptr)
    bad = (low_sum > 1.0 + SUM_TOLERANCE) | (high_sum < 1.0 - SUM_TOLERANCE)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    sums = low_sum[row], high_sum[row]
    where = f"of state {table.row_states[row]}"
    message = (
        f"The probabilities {where} sum to {sums[0]:.12g} in the row that starts here, must sum to "
        "1; write them with more digits (17 lose nothing)."
        if sums[0] == sums[1]
        else f"The intervals {where} admit no distribution in the row that starts here: lower "
        f"bounds sum to {sums[0]:.12g}, upper bounds to {sums[1]:.12g}, 1 must lie between."
    )
    fail(int(table.successor_ptr[row]), message)


def _merged(table: ModelTable) -> ModelTable:
    """Return the table with entries of a row that meet in one state added up."""
    row = owners(table.successor_ptr)
    key = row * table.states + table.successors
    if np.all(key[1:] > key[:-1]):
        return table
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return table
    sums = [np.minimum(np.bincount(place, side), 1.0) for side in (table.lower, table.upper)]
    ptr = starts(np.bincount(row[first], minlength=table.rows))
    return replace(
        table, successor_ptr=ptr, successors=table.successors[first], lower=sums[0], upper=sums[1]
    )


def _with_loops(table: ModelTable, name: str) -> ModelTable:
    """Return the table with a self-loop for states without a row."""
    stuck = segment_lengths(table.row_ptr) == 0
    alone = np.flatnonzero(stuck)
    if not len(alone):
        return table
    warnings.warn(
        f"{name}: {len(alone)} state(s) have no transition, the first is {alone[0]}; each gets a "
        'self-loop and the label "deadlock".',
        PrismWarning,
        stacklevel=4,
    )
    at = np.searchsorted(table.row_states, alone)
    places = table.successor_ptr[at]
    actions = table.actions if "" in table.actions else (*table.actions, "")
    return replace(
        table,
        row_states=np.insert(table.row_states, at, alone),
        row_actions=np.insert(table.row_actions, at, actions.index("")),
        actions=actions,
        successor_ptr=starts(np.insert(segment_lengths(table.successor_ptr), at, 1)),
        successors=np.insert(table.successors, places, alone),
        lower=np.insert(table.lower, places, 1.0),
        upper=np.insert(table.upper, places, 1.0),
        labels={**table.labels, "deadlock": stuck | table.labels.get("deadlock", stuck)},
        rewards={
            key: Rewards(paid.state, np.insert(paid.row, at, 0.0))
            for key, paid in table.rewards.items()
        },
    )


def to_table(model: FactoredMDP) -> tuple[ModelTable, str]:
    """Return any model as columns, and what that changed, in words; the label init is among them.

    Several marginals of a row are multiplied out by `flatten`.
    """
    flat = flatten(model)
    lower, upper = transition_bounds(flat)
    variables = (tuple(flat.variables), flat.valuations if flat.variables else None)
    table = ModelTable(
        flat.states, flat.row_states, flat.successor_ptr, flat.successors.astype(np.int64), lower,
        upper, flat.row_actions.astype(np.int64), tuple(flat.actions), flat.initial,
        {"init": flat.label("init"), **flat.labels}, flat.rewards, variables,
    )  # fmt: skip
    zeros = 0 if table.known else int(np.count_nonzero(flat.marginals.lower == 0.0))
    refused = f"{zeros} intervals have the lower bound 0, which PRISM and Storm refuse."
    return table, " ".join(filter(None, [flatten_note(model), refused if zeros else ""]))


def state_variables(columns: Iterable[tuple[str, IntArray, bool]]) -> Variables:
    """Return variables with the ranges that occur, and the valuations of states.

    None if there are no variables, or if a value needs more than 32 bits.

    columns : name, values (S,) and whether they are booleans
    """
    variables, valuations = [], []
    for name, values, boolean in columns:
        low, high = (0, 1) if boolean else (int(values.min()), int(values.max()))
        if low <= -(1 << 31) or high >= 1 << 31:
            return (), None
        variables.append(Variable(name, low, high, boolean))
        valuations.append(values.astype(np.int32))
    return tuple(variables), np.stack(valuations, axis=1) if valuations else None


def state_labels(
    name: str, states: int, names: list[str], state: IntArray, label: IntArray
) -> dict[str, BoolArray]:
    """Return where labels hold, from pairs (N,) of a state and the number of its label."""
    require_memory(float(states) * len(names), f"{name}: {len(names)} labels of {states} states")
    where = np.zeros((len(names), states), dtype=np.bool_)
    where[label, state] = True
    return dict(zip(names, where, strict=True))


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: the files, and what of the model they cannot say (may be empty)."""

    paths: tuple[Path, ...]
    note: str


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, many at a time; it is complete or untouched."""
    rest = iter(lines)
    with replacing(path) as temporary, temporary.open("x", encoding="utf-8", newline="\n") as file:
        while block := list(islice(rest, LINES)):
            file.write("\n".join(block) + "\n")


def number(x: float) -> str:
    """Return the shortest text that reads back as x; integers without a point."""
    return repr(x).removesuffix(".0")


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
                pair = _exact(low), _exact(high)
            else:
                pair = (_exact(word),) * 2
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


def _exact(word: str) -> float:
    """Return a number, exactly rounded; `_`, which Python takes between digits, is none."""
    if "_" in word:
        raise ValueError(word)
    return float(Fraction(word)) if "/" in word else float(word)
