"""Columns of a table as states and actions of a model, many rows at once, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import Variable
from rfmdp.sources.index import Index
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

SHOWN = 5  # rows of one kind that a message lists
KINDS = 8  # kinds of faults in one message
TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0"), 1),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0"), 0),
}


@dataclass(slots=True)
class Complaint:
    """Rows of one table that have the same fault."""

    table: str
    fault: str  # "have no value of x"
    omittable: bool  # whether such rows may be left out if that is said
    count: int = 0
    rows: list[int] = field(default_factory=list)  # the first ones, counted from 0
    example: str = ""  # what the first one has

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.rows)) + (", ..." if self.count > len(self.rows) else "")
        shown = f": {self.example}" if self.example else ""
        return f"{self.table}, {self.count} row(s) that {self.fault} (row {listed}{shown})"


class Problems:
    """All problems so far, by table and fault."""

    def __init__(self) -> None:
        self._complaints: dict[tuple[str, str], Complaint] = {}

    def add(
        self,
        table: str,
        fault: str,
        where: BoolArray,
        rows: IntArray,
        shown: Callable[[int], object] | None = None,
        *,
        omittable: bool = False,
    ) -> None:
        """Note some of a batch's rows, given by their numbers; `shown` says what one has."""
        at = np.flatnonzero(where)
        if not len(at):
            return
        at = at[np.argsort(rows[at], kind="stable")]
        problem = self._complaints.setdefault((table, fault), Complaint(table, fault, omittable))
        if not problem.rows and shown is not None:
            problem.example = str(shown(int(at[0])))
        problem.rows += rows[at[: SHOWN - len(problem.rows)]].tolist()
        problem.count += len(at)

    @property
    def count(self) -> int:
        """Number of faults of rows."""
        return sum(problem.count for problem in self._complaints.values())

    @property
    def fatal(self) -> bool:
        """Whether there are rows that cannot be left out."""
        return any(not problem.omittable for problem in self._complaints.values())

    def error(self, advice: str) -> DataError:
        """Return all of them as one error."""
        listed = [str(problem) for problem in self._complaints.values()]
        more = f"; and {len(listed) - KINDS} kinds more" if len(listed) > KINDS else ""
        return DataError(f"{'; '.join(listed[:KINDS])}{more}. Rows count from 0. {advice}")


@dataclass(frozen=True, slots=True, eq=False)
class LogRows:
    """Rows of a table: states and actions as numbers of the model, -1 where something is wrong."""

    number: IntArray  # (N,) of its rows in the table
    state: AnyArray  # (N,)
    action: AnyArray  # (N,) -2 where there is none
    after: Any  # (N,) next states; None: they stand in the next rows
    episode: Any  # (N,) or None, as all that follow but the last
    time: Any  # (N,)
    ended: BoolArray | None  # (N,) whether the episode was over then: terminated, or cut off
    terminated: BoolArray | None  # (N,) whether it was over for ever
    reward: FloatArray | None  # (N,) what the action paid
    earlier: IntArray  # (N,) action of the row before, of the same episode; -1: not known (yet)

    def __len__(self) -> int:
        return len(self.state)

    def take(self, which: slice | AnyArray) -> LogRows:
        """Return some of its rows."""
        columns = [getattr(self, f.name) for f in fields(self)]
        taken: list[Any] = [None if column is None else column[which] for column in columns]
        return LogRows(*taken)

    @staticmethod
    def join(batches: Sequence[LogRows]) -> LogRows:
        """Return batches of one table as one."""
        columns = [[getattr(batch, f.name) for batch in batches] for f in fields(LogRows)]
        joined: list[Any] = [None if c[0] is None else np.concatenate(c) for c in columns]
        return LogRows(*joined)


class Decoder:
    """Reads the batches of one table and notes what is wrong with their rows.

    `episodes` are the numbers of episodes that have names; new names are added.
    """

    def __init__(
        self, table: str, places: Places, index: Index, manifest: Manifest, problems: Problems,
        episodes: dict[str, int],
    ) -> None:  # fmt: skip
        self._table, self._places, self._index = table, places, index
        self._note = partial(problems.add, table)
        self._manifest, self._episodes = manifest, episodes
        names = {name: i for i, name in enumerate(index.model.actions)}
        for name in manifest.actions.values():
            if name not in names:
                raise DataError(
                    f"actions: the model has no action {name!r}; it has {', '.join(names)}."
                )
        self._actions = {str(k): names[v] for k, v in manifest.actions.items()} or names
        self._values = _read_values(manifest.values, index.model.variables)
        self._next = 0

    def decode(self, batch: Any) -> LogRows:
        """Return the next batch of the table."""
        rows = self._next + np.arange(batch.num_rows)
        self._next += batch.num_rows
        places = self._places
        terminated = self._truths(batch, places.terminated, rows)
        truncated = self._truths(batch, places.truncated, rows)
        both = terminated is not None and truncated is not None
        return LogRows(
            rows,
            self._states(batch, places.now, rows, "state"),
            self._taken(batch, rows),
            places.after and self._states(batch, places.after, rows, "next state"),
            self._numbers(batch, places.episode, rows),
            self._numbers(batch, places.time, rows),
            terminated | truncated if both else truncated if terminated is None else terminated,
            terminated,
            self._rewards(batch, rows),
            np.full(len(rows), -1),
        )

    def _states(self, batch: Any, columns: tuple[str, ...], rows: IntArray, what: str) -> AnyArray:
        """Return the states of a batch."""
        variables, packing = self._index.model.variables, self._index.packing
        code, faulty = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        strides = packing.stride.tolist()
        for variable, column, stride in zip(variables, columns, strides, strict=True):
            entries = batch.column(column)
            meaning = self._values.get(variable.name)
            values, missing, odd = integers(entries, meaning)
            digit = values - variable.low
            odd |= digit.view(np.uint64) > variable.high - variable.low  # negative ones are huge
            if odd.any() or missing.any():
                self._note(f"have no value in column {column!r}", missing, rows, omittable=True)
                fault = f"have no value of {_domain(variable, meaning)} in column {column!r}"
                self._note(fault, odd & ~missing, rows, _entry(entries), omittable=True)
                faulty |= odd | missing
                digit[odd] = 0
            code += digit * stride
        states = self._index.coded(code)
        fault = f"have a {what} that the model does not reach"
        gone = (states < 0) & ~faulty
        self._note(fault, gone, rows, lambda i: packing.name(code[i : i + 1]), omittable=True)
        states[faulty] = -1
        return states

    def _taken(self, batch: Any, rows: IntArray) -> AnyArray:
        """Return actions, -1 for names that are none, -2 where there is no action."""
        if self._places.action is None:
            return np.zeros(batch.num_rows, dtype=np.int64)
        column = batch.column(self._places.action)
        if not self._manifest.actions and not _is_text(column):
            raise DataError(
                f"{self._table}: the actions in column {self._places.action!r} must be names, "
                f"found {column.type}; say what they mean (actions={{0: 'wait', ...}} in the "
                "manifest)."
            )
        values, missing, odd = integers(column, self._actions)
        fault = f"have an action that is none of {', '.join(self._actions)}"
        self._note(fault, odd, rows, _entry(column), omittable=True)
        values[odd], values[missing] = -1, -2
        return values

    def _numbers(self, batch: Any, column: str | None, rows: IntArray) -> Any:
        """Return episodes, which may have names, or times."""
        if column is None:
            return None
        entries, numbers = batch.column(column), None
        if column == self._places.episode and _is_text(entries):
            entries, numbers = _encoded(entries), self._episodes
            for name in entries.dictionary.to_pylist():
                numbers.setdefault(str(name), len(numbers))
        values, missing, odd = integers(entries, numbers)
        self._note(f"have no value in column {column!r}", missing, rows)
        self._note(f"have no number in column {column!r}", odd, rows)
        return values

    def _truths(self, batch: Any, column: str | None, rows: IntArray) -> Any:
        """Return the truth values of a column."""
        if column is None:
            return None
        values, missing, odd = integers(batch.column(column), TRUTH)
        self._note(f"have no value in column {column!r}", missing, rows)
        self._note(f"have no truth value in column {column!r}", odd, rows)
        return values != 0

    def _rewards(self, batch: Any, rows: IntArray) -> FloatArray | None:
        """Return what actions paid; rows without an action need no reward.

        Where a column that nobody named has no number, that is infinity, which no model declares.
        """
        column = self._places.reward
        if column is None:
            return None
        paid = _floats(batch.column(column))
        action = self._places.action
        acted = True if action is None else ~_missing(batch.column(action))
        none = ~np.isfinite(paid)
        if self._manifest.columns.get("reward") is not None:
            self._note(f"have no number in column {column!r}", none & acted, rows)
        return np.where(none, np.where(acted, np.inf, 0.0), paid)


def integers(
    column: Any, meaning: Mapping[str, int] | None = None
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the numbers of a column of Arrow, where entries are missing, and where they are odd.

    An odd entry is no whole number, or one that `meaning` does not explain. Without `meaning` texts
    are read as whole numbers. Columns are explained by their different entries, but for integers,
    which stand for themselves.
    """
    missing = _missing(column)
    if meaning is None and str(column.type).startswith(("int", "uint")):
        values = column.fill_null(0) if column.null_count else column
        numbers = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return numbers, missing, np.zeros(len(column), dtype=np.bool_)
    if not _is_plain(column):
        return np.zeros(len(column), dtype=np.int64), missing, ~missing
    encoded = _encoded(column)
    entries = encoded.dictionary.to_pylist() or [0]
    known = [_number_of(entry, meaning) for entry in entries]
    at = _codes(encoded)
    missing |= np.array([entry is None or entry != entry for entry in entries])[at]  # nan
    odd = np.array([number is None for number in known])[at] & ~missing
    return np.array([number or 0 for number in known], dtype=np.int64)[at], missing, odd


def _number_of(entry: Any, meaning: Mapping[str, int] | None) -> int | None:
    """Return the number that an entry stands for, None if it stands for none."""
    text = str(entry)
    if meaning is not None:
        return meaning.get(text)
    if text in ("true", "True", "false", "False"):
        return TRUTH[text]
    try:
        number = float(text)
        exact = int(text) if text.lstrip("+-").isdecimal() else int(number)
    except (ValueError, OverflowError):
        return None
    return exact if number.is_integer() and abs(exact) < 1 << 62 else None


def _floats(column: Any) -> FloatArray:
    """Return the numbers of a column of Arrow, nan where there is none."""
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not _is_text(column) and not hasattr(column, "dictionary"):
        return np.full(len(column), np.nan)
    encoded = _encoded(column)
    numbers = []
    for entry in encoded.dictionary.to_pylist() or [None]:
        try:
            numbers.append(float(entry))
        except (TypeError, ValueError):
            numbers.append(np.nan)
    return np.where(_missing(column), np.nan, np.array(numbers)[_codes(encoded)])


def _missing(column: Any) -> BoolArray:
    """Return where (N,) a column has no entry."""
    if column.null_count == 0:
        return np.zeros(len(column), dtype=np.bool_)
    return np.array(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _codes(column: Any) -> IntArray:
    """Return the places (N,) of entries in a column's dictionary, 0 where there is none."""
    codes = column.indices.fill_null(0) if column.null_count else column.indices
    return np.asarray(codes.to_numpy(zero_copy_only=False))


def _encoded(column: Any) -> Any:
    return column if hasattr(column, "dictionary") else column.dictionary_encode()


def _is_text(column: Any) -> bool:
    kind = str(column.type)
    return "string" in kind or "utf8" in kind


def _is_plain(column: Any) -> bool:
    """Return whether a column has entries that may be numbers or names."""
    kinds = ("int", "uint", "float", "double", "halffloat", "bool", "dictionary")
    return _is_text(column) or str(column.type).startswith(kinds)


def _entry(column: Any) -> Callable[[int], str]:
    """Return what shows an entry as it stands in the table."""
    return lambda i: repr(column[i].as_py())


def _domain(variable: Variable, meaning: Mapping[str, int] | None) -> str:
    if meaning is not None:
        return f"{variable.name} in {{{', '.join(meaning)}}}"
    return f"{variable.name} in {variable.low}..{variable.high}"


def _read_values(
    values: Mapping[str, Mapping[Any, int]], variables: tuple[Variable, ...]
) -> dict[str, dict[str, int]]:
    """Return what texts mean, by variable."""
    named = {v.name: v for v in variables}
    for name, meaning in values.items():
        if name not in named:
            raise DataError(f"values: {name!r} must be one of {', '.join(named)}.")
        low, high = named[name].low, named[name].high
        for text, value in meaning.items():
            if not low <= value <= high:
                raise DataError(
                    f"values: {text!r} must be a value of {name} in {low}..{high}, found {value}."
                )
    return {name: {str(k): int(v) for k, v in meaning.items()} for name, meaning in values.items()}
