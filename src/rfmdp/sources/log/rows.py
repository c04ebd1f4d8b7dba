"""Columns of a table as states and actions of a model, many rows at once, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
NUMBERS = ("int", "uint", "float", "double", "halffloat")


@dataclass(slots=True)
class Complaint:
    """Rows of one table that have the same fault."""

    table: str
    fault: str  # "have no value of x"
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
    ) -> None:
        """Note some of a batch's rows, given by their numbers; `shown` says what one has."""
        at = np.flatnonzero(where)
        if not len(at):
            return
        problem = self._complaints.setdefault((table, fault), Complaint(table, fault))
        if not problem.rows and shown is not None:
            problem.example = str(shown(int(at[0])))
        problem.rows += rows[at[: SHOWN - len(problem.rows)]].tolist()
        problem.count += len(at)

    @property
    def count(self) -> int:
        """Number of faults of rows."""
        return sum(problem.count for problem in self._complaints.values())

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
    action: AnyArray  # (N,)
    after: AnyArray  # (N,) next states
    episode: IntArray | None  # (N,), as all that follow
    time: IntArray | None
    terminated: BoolArray | None  # whether the episode was over for ever
    reward: FloatArray | None  # what the action paid

    def behind(self, before: LogRows | None) -> LogRows:
        """Return the rows with the last one of others in front of them, if there are any."""
        if before is None or not len(before.number):
            return self
        columns = [(getattr(before, f.name), getattr(self, f.name)) for f in fields(self)]
        joined: list[Any] = [
            None if last is None or column is None else np.append(last[-1:], column)
            for last, column in columns
        ]
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
        return LogRows(
            rows,
            self._states(batch, places.now, rows, "state"),
            self._taken(batch, rows),
            self._states(batch, places.after, rows, "next state"),
            self._numbers(batch, places.episode, rows),
            self._numbers(batch, places.time, rows),
            self._truths(batch, places.terminated, rows),
            self._rewards(batch, rows),
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
                self._note(f"have no value in column {column!r}", missing, rows)
                fault = f"have no value of {_domain(variable, meaning)} in column {column!r}"
                self._note(fault, odd & ~missing, rows, _entry(entries))
                faulty |= odd | missing
                digit[odd] = 0
            code += digit * stride
        states = self._index.coded(code)
        fault = f"have a {what} that the model does not reach"
        gone = (states < 0) & ~faulty
        self._note(fault, gone, rows, lambda i: packing.name(code[i : i + 1]))
        return np.where(faulty, -1, states)

    def _taken(self, batch: Any, rows: IntArray) -> AnyArray:
        """Return actions, -1 where there is none of that name."""
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
        self._note(fault, odd, rows, _entry(column))
        self._note("have no action", missing, rows)
        return np.where(odd | missing, -1, values)

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
        """Return what actions paid.

        Where a column that nobody named has no number, that is infinity, which no model declares.
        """
        column = self._places.reward
        if column is None:
            return None
        paid = floats(batch.column(column))
        none = ~np.isfinite(paid)
        if self._manifest.columns.get("reward") is not None:
            self._note(f"have no number in column {column!r}", none, rows)
        return np.where(none, np.inf, paid)


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
    plain = _is_text(column) or str(column.type).startswith((*NUMBERS, "bool", "dictionary"))
    if not plain:
        return np.zeros(len(column), dtype=np.int64), missing, ~missing
    entries, at = _explained(column)
    numbers_of = [_number_of(entry, meaning) for entry in entries]
    missing |= np.array([entry is None or entry != entry for entry in entries])[at]  # nan
    odd = np.array([number is None for number in numbers_of])[at] & ~missing
    return np.array([number or 0 for number in numbers_of], dtype=np.int64)[at], missing, odd


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


def floats(column: Any) -> FloatArray:
    """Return the numbers of a column of Arrow, nan where there is none."""
    if str(column.type).startswith(NUMBERS):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not _is_text(column) and not str(column.type).startswith("dictionary"):
        return np.full(len(column), np.nan)
    entries, at = _explained(column)
    numbers = []
    for entry in entries:
        try:
            numbers.append(float(entry))
        except (TypeError, ValueError):
            numbers.append(np.nan)
    return np.where(_missing(column), np.nan, np.array(numbers)[at])


def _explained(column: Any) -> tuple[list[Any], IntArray]:
    """Return the different entries of a column, and which of them (N,) stands where."""
    encoded = _encoded(column)
    codes = encoded.indices.fill_null(0) if encoded.null_count else encoded.indices
    return encoded.dictionary.to_pylist() or [None], np.asarray(
        codes.to_numpy(zero_copy_only=False)
    )


def _missing(column: Any) -> BoolArray:
    """Return where (N,) a column has no entry."""
    if column.null_count == 0:
        return np.zeros(len(column), dtype=np.bool_)
    return np.array(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _encoded(column: Any) -> Any:
    dictionary = str(column.type).startswith("dictionary")
    return column if dictionary else column.dictionary_encode()


def _is_text(column: Any) -> bool:
    kind = str(column.type)
    return "string" in kind or "utf8" in kind


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
