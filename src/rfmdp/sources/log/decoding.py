"""Turns columns of a table into states and actions of a model, many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import Variable
from rfmdp.sources.index import Index
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.sources.log.problems import Problems
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")  # types of Arrow


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
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        found: Any = {k: None if v is None else v[which] for k, v in columns.items()}
        return LogRows(**found)

    @staticmethod
    def join(parts: Sequence[LogRows]) -> LogRows:
        """Return batches of one table as one."""
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(LogRows)}
        found: Any = {k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()}
        return LogRows(**found)


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
        self._manifest = manifest
        model = index.model
        self._names = {name: i for i, name in enumerate(model.actions)}
        unknown = sorted(set(manifest.actions.values()) - set(self._names))
        if unknown:
            raise DataError(
                f"actions: the model has no action {unknown[0]!r}; it has {', '.join(self._names)}."
            )
        self._called = {str(k): self._names[v] for k, v in manifest.actions.items()} or self._names
        self._values = _read_values(manifest.values, model.variables)
        self._episodes = episodes
        self._next = 0

    def decode(self, batch: Any) -> LogRows:
        """Return the next batch of the table."""
        rows = self._next + np.arange(batch.num_rows)
        places = self._places
        self._next += batch.num_rows
        state = self._states(batch, places.now, rows, "state")
        after = places.after and self._states(batch, places.after, rows, "next state")
        return LogRows(
            rows,
            state,
            self._actions(batch, rows),
            after,
            self._numbers(batch, places.episode, rows, named=True),
            self._numbers(batch, places.time, rows, named=False),
            *self._ends(batch, rows),
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
            called = self._values.get(variable.name)
            values, missing, odd = integers(entries, called)
            digit = values - variable.low
            odd |= digit.view(np.uint64) > variable.high - variable.low  # negative ones are huge
            if odd.any() or missing.any():
                self._note(f"have no value in column {column!r}", missing, rows, omittable=True)
                fault = f"have no value of {_domain(variable, called)} in column {column!r}"
                self._note(fault, odd & ~missing, rows, _entry(entries), omittable=True)
                faulty |= odd | missing
                digit[odd] = 0
            code += digit * stride
        found = self._index.coded(code)
        fault = f"have a {what} that the model does not reach"
        gone = (found < 0) & ~faulty
        self._note(fault, gone, rows, lambda i: packing.name(code[i : i + 1]), omittable=True)
        found[faulty] = -1
        return found

    def _actions(self, batch: Any, rows: IntArray) -> AnyArray:
        """Return actions, -1 for names that are none, -2 where no action is given."""
        if self._places.action is None:
            return np.zeros(batch.num_rows, dtype=np.int64)
        column = batch.column(self._places.action)
        if not self._manifest.actions and not _is_text(column):
            raise DataError(
                f"{self._table}: the actions in column {self._places.action!r} must be names, "
                f"found {column.type}; say what they mean (actions={{0: 'wait', ...}} in the "
                "manifest)."
            )
        values, missing, odd = integers(column, self._called)
        fault = f"have an action that is none of {', '.join(self._called)}"
        self._note(fault, odd, rows, _entry(column), omittable=True)
        values[odd], values[missing] = -1, -2
        return values

    def _numbers(self, batch: Any, column: str | None, rows: IntArray, *, named: bool) -> Any:
        """Return episodes or times."""
        if column is None:
            return None
        entries = batch.column(column)
        called = None
        if named and _is_text(entries):
            entries = _encoded(entries)
            for name in entries.dictionary.to_pylist():
                self._episodes.setdefault(str(name), len(self._episodes))
            called = self._episodes
        values, missing, odd = integers(entries, called)
        self._note(f"have no value in column {column!r}", missing, rows)
        self._note(f"have no number in column {column!r}", odd, rows)
        return values

    def _ends(self, batch: Any, rows: IntArray) -> tuple[BoolArray | None, BoolArray | None]:
        """Return where an episode was over, terminated or truncated, and where terminated."""
        terminated = self._truths(batch, self._places.terminated, rows)
        truncated = self._truths(batch, self._places.truncated, rows)
        if terminated is None or truncated is None:
            return (truncated if terminated is None else terminated), terminated
        return terminated | truncated, terminated

    def _truths(self, batch: Any, column: str | None, rows: IntArray) -> BoolArray | None:
        """Return the truth values of a column."""
        if column is None:
            return None
        values, missing, odd = integers(batch.column(column), _TRUTH)
        self._note(f"have no value in column {column!r}", missing, rows)
        self._note(f"have no truth value in column {column!r}", odd, rows)
        return np.asarray(values != 0)

    def _rewards(self, batch: Any, rows: IntArray) -> FloatArray | None:
        """Return what actions paid; rows without an action need no reward.

        Where a column that nobody named has no number, that is infinity, which no model declares.
        """
        column = self._places.reward
        if column is None:
            return None
        entries = batch.column(column)
        if _is_text(entries) or hasattr(entries, "dictionary"):
            entries = _encoded(entries)
            known = np.array([_number(entry) for entry in entries.dictionary.to_pylist()] or [0.0])
            paid = known[_codes(entries)]
        elif str(entries.type).startswith(NUMBERS[:-1]):
            paid = entries.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            paid = np.full(len(entries), np.nan)
        none = ~np.isfinite(paid) | _missing(entries)
        action = self._places.action
        acted = True if action is None else ~_missing(batch.column(action))
        if self._manifest.columns.get("reward") is not None:
            self._note(f"have no number in column {column!r}", none & acted, rows)
        return np.where(none, np.where(acted, np.inf, 0.0), paid)


_TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0"), 1),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0"), 0),
}


def integers(
    column: Any, called: Mapping[str, int] | None = None
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the numbers of a column of Arrow, where entries are missing, and where they are odd.

    An odd entry is no whole number, or has no meaning in `called`, which says what entries mean.
    Without `called` texts are read as whole numbers.
    """
    kind = str(column.type)
    if (called is not None and kind != "bool") or _is_text(column) or hasattr(column, "dictionary"):
        return _looked_up(_encoded(column), called)
    missing = _missing(column)
    if not kind.startswith(NUMBERS):
        return np.zeros(len(column), dtype=np.int64), missing, ~missing
    if column.null_count:
        column = column.fill_null(False if kind == "bool" else 0)
    values = column.to_numpy(zero_copy_only=False)
    odd = np.zeros(len(column), dtype=np.bool_)
    if values.dtype.kind == "f":
        missing |= np.isnan(values)
        whole = np.where(np.abs(values) < 2.0**62, values, 0.5)  # infinities and nan are none
        odd = ~missing & (whole != np.floor(whole))
        values = np.where(missing | odd, 0.0, whole)
    return values.astype(np.int64, copy=False), missing, odd


def _looked_up(
    column: Any, called: Mapping[str, int] | None
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the numbers behind the entries of a column that has a dictionary."""
    known = [_meaning(entry, called) for entry in column.dictionary.to_pylist()] or [0]
    meaning = np.array([0 if m is None else m for m in known], dtype=np.int64)
    missing, at = _missing(column), _codes(column)
    if None not in known:
        return meaning[at], missing, np.zeros(len(at), dtype=np.bool_)
    return meaning[at], missing, np.array([m is None for m in known])[at] & ~missing


def _meaning(entry: Any, called: Mapping[str, int] | None) -> int | None:
    """Return the number that an entry stands for, None if it stands for none."""
    text = str(entry)
    if called is not None:
        return called.get(text)
    try:
        return int(text)
    except ValueError:
        pass
    if text in ("true", "True", "false", "False"):
        return int(text in ("true", "True"))
    try:
        return int(float(text)) if float(text).is_integer() else None
    except (ValueError, OverflowError):
        return None


def _number(entry: Any) -> float:
    """Return the number that a text is, nan if it is none."""
    try:
        return float(entry)
    except (TypeError, ValueError):
        return float("nan")


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


def _entry(column: Any) -> Callable[[int], str]:
    """Return what shows an entry as it stands in the table."""
    return lambda i: repr(column[i].as_py())


def _domain(variable: Variable, called: Mapping[str, int] | None) -> str:
    if called is not None:
        return f"{variable.name} in {{{', '.join(called)}}}"
    return f"{variable.name} in {variable.low}..{variable.high}"


def _read_values(
    given: Mapping[str, Mapping[Any, int]], variables: tuple[Variable, ...]
) -> dict[str, dict[str, int]]:
    """Return what texts mean, by variable."""
    known = {v.name: v for v in variables}
    for name, called in given.items():
        if name not in known:
            raise DataError(f"values: {name!r} must be one of {', '.join(known)}.")
        for text, value in called.items():
            if not known[name].low <= value <= known[name].high:
                raise DataError(
                    f"values: {text!r} must be a value of {name} in {known[name].low}.."
                    f"{known[name].high}, found {value}."
                )
    return {name: {str(k): int(v) for k, v in called.items()} for name, called in given.items()}
