"""Turns columns of a table into states and actions of a model, many rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.ragged import owners
from rfmdp.sources.index import Index
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.sources.log.problems import Problems
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")  # types of Arrow
DENSE = 1 << 25  # entries of a table of pairs; a larger one is searched


@dataclass(frozen=True, slots=True, eq=False)
class LogRows:
    """Rows of a table: states and actions as numbers of the model, -1 where something is wrong."""

    number: IntArray  # (N,) of its rows in the table
    state: AnyArray  # (N,)
    action: AnyArray  # (N,) -2 where there is none
    after: Any  # (N,) next states; None: they stand in the next rows
    episode: IntArray | None  # (N,)
    time: IntArray | None  # (N,)
    ended: BoolArray | None  # (N,) whether the episode was over then
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
        self._problems, self._manifest = problems, manifest
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
        rows, places = self._next + np.arange(batch.num_rows), self._places
        self._next += batch.num_rows
        state = self._states(batch, places.now, rows, "state")
        after = (
            None if places.after is None else self._states(batch, places.after, rows, "next state")
        )
        return LogRows(
            rows,
            state,
            self._actions(batch, rows),
            after,
            self._numbers(batch, places.episode, rows, named=True),
            self._numbers(batch, places.time, rows, named=False),
            self._ends(batch, rows),
            self._rewards(batch, rows),
            np.full(len(rows), -1),
        )

    def _states(self, batch: Any, columns: tuple[str, ...], rows: IntArray, what: str) -> AnyArray:
        """Return the states of a batch."""
        digits, faulty = [], None
        for variable, column in zip(self._index.model.variables, columns, strict=True):
            called = self._values.get(variable.name)
            values, missing, odd = integers(batch.column(column), called)
            self._note(f"have no value in column {column!r}", missing, rows, omittable=True)
            digit = values - variable.low if variable.low else values
            outside = digit.view(np.uint64) > variable.high - variable.low  # negative ones are huge
            outside = outside if odd is None else outside | odd
            wrong = outside if missing is None else outside & ~missing
            if wrong.any():
                fault = f"have no value of {_domain(variable, called)} in column {column!r}"
                shown = _shown(batch.column(column), wrong)
                self._problems.add(self._table, fault, wrong, rows, shown, omittable=True)
            if missing is not None or outside.any():
                bad = outside if missing is None else outside | missing
                faulty = bad if faulty is None else faulty | bad
            digits.append(digit)
        if faulty is not None:
            digits = [np.where(faulty, 0, digit) for digit in digits]
        strides = self._index.codec.stride.tolist()
        code = digits[0] * strides[0]
        for digit, stride in zip(digits[1:], strides[1:], strict=True):
            code += digit * stride
        found = self._index.coded(code)
        gone = found < 0 if faulty is None else (found < 0) & ~faulty
        if gone.any():
            shown = _named(self._index.model.variables, digits, gone)
            fault = f"have a {what} that the model does not reach"
            self._problems.add(self._table, fault, gone, rows, shown, omittable=True)
        return found if faulty is None else np.where(faulty, -1, found)

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
        if odd is not None:
            fault = f"have an action that is none of {', '.join(self._called)}"
            shown = _shown(column, odd)
            self._problems.add(self._table, fault, odd, rows, shown, omittable=True)
            values = np.where(odd, -1, values)
        return values if missing is None else np.where(missing, -2, values)

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

    def _ends(self, batch: Any, rows: IntArray) -> BoolArray | None:
        """Return where an episode was over: terminated or truncated."""
        found = None
        for column in (self._places.terminated, self._places.truncated):
            if column is not None:
                values, missing, odd = integers(batch.column(column), _TRUTH)
                self._note(f"have no value in column {column!r}", missing, rows)
                self._note(f"have no truth value in column {column!r}", odd, rows)
                ended = values != 0
                found = ended if found is None else found | ended
        return found

    def _rewards(self, batch: Any, rows: IntArray) -> FloatArray | None:
        """Return what actions paid; rows without an action need no reward."""
        column = self._places.reward
        if column is None:
            return None
        entries = batch.column(column)
        if _is_text(entries) or hasattr(entries, "dictionary"):
            entries = _encoded(entries)
            known = np.array([_number(entry) for entry in entries.dictionary.to_pylist()] or [0.0])
            paid = known[entries.indices.fill_null(0).to_numpy(zero_copy_only=False)]
        elif str(entries.type).startswith(NUMBERS[:-1]):
            paid = entries.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            paid = np.full(len(entries), np.nan)
        missing = _missing(entries)
        paid = paid if missing is None else np.where(missing, np.nan, paid)
        none = ~np.isfinite(paid)
        if none.any():
            acted = self._actions_there(batch)
            self._note(f"have no number in column {column!r}", _somewhere(none & acted), rows)
            paid = np.where(none, 0.0, paid)
        return np.asarray(paid)

    def _actions_there(self, batch: Any) -> BoolArray:
        """Return which rows have an action."""
        missing = None
        if self._places.action is not None:
            missing = _missing(batch.column(self._places.action))
        return np.ones(batch.num_rows, dtype=np.bool_) if missing is None else ~missing

    def _note(
        self, fault: str, where: BoolArray | None, rows: IntArray, *, omittable: bool = False
    ) -> None:
        if where is not None:
            self._problems.add(self._table, fault, where, rows, omittable=omittable)


_TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0"), 1),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0"), 0),
}


def integers(
    column: Any, called: Mapping[str, int] | None = None
) -> tuple[IntArray, BoolArray | None, BoolArray | None]:
    """Return the numbers of a column of Arrow, where entries are missing, and where they are odd.

    An odd entry is no whole number, or has no meaning in `called`, which says what entries mean.
    Without `called` texts are read as whole numbers. None in place of an array means "nowhere".
    """
    kind = str(column.type)
    if (called is not None and kind != "bool") or _is_text(column) or hasattr(column, "dictionary"):
        return _looked_up(_encoded(column), called)
    missing = _missing(column)
    if not kind.startswith(NUMBERS):
        nothing = np.zeros(len(column), dtype=np.int64)
        none = np.ones(len(column), dtype=np.bool_)
        return nothing, missing, _somewhere(none if missing is None else ~missing)
    if missing is not None:
        column = column.fill_null(False if kind == "bool" else 0)
    values = column.to_numpy(zero_copy_only=False)
    odd = None
    if values.dtype.kind == "f":
        lost = np.isnan(values)
        missing = lost if missing is None else missing | lost
        whole = np.where(np.abs(values) < 2.0**62, values, 0.5)  # infinities and nan are none
        odd = ~missing & (whole != np.floor(whole))
        values = np.where(missing | odd, 0.0, whole)
    return values.astype(np.int64, copy=False), _somewhere(missing), _somewhere(odd)


def _looked_up(
    column: Any, called: Mapping[str, int] | None
) -> tuple[IntArray, BoolArray | None, BoolArray | None]:
    """Return the numbers behind the entries of a column that has a dictionary."""
    known = [_meaning(entry, called) for entry in column.dictionary.to_pylist()]
    meaning = np.array([0 if m is None else m for m in known] or [0], dtype=np.int64)
    missing = _missing(column)
    codes = column.indices if missing is None else column.indices.fill_null(0)
    at = codes.to_numpy(zero_copy_only=False)
    odd = None
    if None in known:
        odd = np.array([m is None for m in known])[at]
        odd = odd if missing is None else odd & ~missing
    return meaning[at], missing, _somewhere(odd)


def _somewhere(where: BoolArray | None) -> BoolArray | None:
    """Return None if it is nowhere."""
    return where if where is not None and where.any() else None


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


def _missing(column: Any) -> BoolArray | None:
    if column.null_count == 0:
        return None
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _encoded(column: Any) -> Any:
    return column if hasattr(column, "dictionary") else column.dictionary_encode()


def _is_text(column: Any) -> bool:
    kind = str(column.type)
    return "string" in kind or "utf8" in kind


def _shown(column: Any, where: BoolArray) -> AnyArray:
    """Return entries as they stand in the table; only the first of `where` is asked for."""
    shown = np.full(len(column), None, dtype=object)
    first = int(np.argmax(where))
    shown[first] = repr(column[first].as_py())
    return shown


def _named(variables: Iterable[Variable], digits: list[IntArray], where: BoolArray) -> AnyArray:
    """Return states as `(x=1, y=0)`; only the first of `where` is asked for."""
    shown = np.full(len(where), None, dtype=object)
    first = int(np.argmax(where))
    pairs = zip(variables, digits, strict=True)
    shown[first] = "(" + ", ".join(f"{v.name}={v.low + d[first]}" for v, d in pairs) + ")"
    return shown


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


class SuccessorPairs:
    """The different (row, successor) pairs of a model, numbered."""

    def __init__(self, model: FactoredMDP) -> None:
        self._states = model.states
        row = owners(model.successor_ptr)
        keys = np.sort(row * model.states + model.successors)  # np.unique takes ten times as long
        self._keys = keys[np.append(True, keys[1:] != keys[:-1])]
        self.rows: IntArray = self._keys // model.states
        self.successors: IntArray = self._keys % model.states
        self._table: Int32Array | None = None
        if model.rows * model.states <= DENSE:
            self._table = np.full(model.rows * model.states, -1, dtype=np.int32)
            self._table[self._keys] = np.arange(len(self._keys), dtype=np.int32)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, rows: AnyArray, successors: AnyArray) -> AnyArray:
        """Return the numbers of pairs, -1 where the row does not lead to the successor."""
        key = rows * np.int64(self._states) + successors
        if self._table is not None:
            return self._table[key]
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[at] == key, at, -1)
