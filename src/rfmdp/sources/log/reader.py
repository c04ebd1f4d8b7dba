"""One road from a table to transitions: batches -> states and actions -> rows and successors.

Every row of a table is looked at, and what is wrong with rows is collected with their numbers. The
rows of an episode stand one after the other, each with its next state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.index import Index, SuccessorPairs, absorbing
from rfmdp.sources.log.manifest import ROLES, Manifest
from rfmdp.sources.log.tables import LogTable
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

SHOWN = 5  # rows of one kind that a message lists
KINDS = 8  # kinds of faults in one message
TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0"), 1),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0"), 0),
}
DISABLED = "have an action that the state does not have"
SUPPORT = "lead where the model says they cannot"
AGAIN = (
    "begin an episode that was there before: shuffled or doubled; sort by episode and time, and "
    "number the episodes of all tables differently"
)
DOUBLED = "have the time of the row before: doubled rows"
SHUFFLED = "come earlier than the row before of their episode: shuffled or doubled rows"
MISSING = "come more than one step after the row before: missing rows"
ENDED = "come after the end of their episode (`terminated`)"
BROKEN = "do not begin in the next state of the row before, of the same episode"
LEFT = (
    "have `terminated` in a state that the structure lets be left; give it no enabled action "
    "(guards), add a variable that says that the episode is over, or, if it was only cut off, call "
    "that `truncated`"
)

Columns: TypeAlias = dict[str, AnyArray]  # of some rows, by what they mean
Note: TypeAlias = Callable[..., None]  # fault, where (N,), what a row has


class Problems:
    """All faults of rows so far, by table and kind."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[int]] = {}  # counted from 0
        self._examples: dict[tuple[str, str], str] = {}  # what the first one has

    def of(self, table: str, rows: IntArray) -> Note:
        """Return what takes note of faults of a batch, whose rows have these numbers."""

        def note(kind: str, where: BoolArray, shown: Callable[[int], object] | None = None) -> None:
            at = np.flatnonzero(where)
            if not len(at):
                return
            self._rows.setdefault((table, kind), []).extend(rows[at].tolist())
            if shown is not None and (table, kind) not in self._examples:
                self._examples[table, kind] = f": {shown(int(at[0]))}"

        return note

    @property
    def count(self) -> int:
        """Number of faults of rows."""
        return sum(map(len, self._rows.values()))

    def error(self, advice: str) -> DataError:
        """Return all of them as one error."""
        listed = []
        for (table, kind), rows in self._rows.items():
            shown = ", ".join(map(str, rows[:SHOWN])) + ", ..." * (len(rows) > SHOWN)
            example = self._examples.get((table, kind), "")
            listed.append(f"{table}, {len(rows)} row(s) that {kind} (row {shown}{example})")
        more = f"; and {len(listed) - KINDS} kinds more" if len(listed) > KINDS else ""
        return DataError(f"{'; '.join(listed[:KINDS])}{more}. Rows count from 0. {advice}")


class LogTransitions(NamedTuple):
    """Transitions of a model that stand in a table, (N,) each, in their order."""

    pairs: IntArray  # numbers of pairs of a row and its successor
    before: IntArray  # row that was taken before in the same episode; -1 at its start
    ages: IntArray  # steps of the episode before
    reward: FloatArray | None  # what was paid; infinite where there is no number
    number: IntArray  # where they stand in the table


class LogReader:
    """Turns tables into transitions of a model, after a look at every row."""

    def __init__(self, model: FactoredMDP, manifest: Manifest, problems: Problems) -> None:
        self._model, self._manifest, self._problems = model, manifest, problems
        self._index, self.pairs = Index(model), SuccessorPairs(model)
        self._actions = manifest.action_numbers(model)
        self._values = manifest.value_numbers(model)
        self._absorbing = absorbing(model)
        self._names: dict[str, int] = {}  # numbers of episodes that have names
        self._begun = np.empty(0, dtype=np.int64)  # episodes of all tables so far
        self._last: Columns = {}  # the last row
        self.episodes = self.rows = 0
        self.undated = False  # whether some table lacks episodes or times
        self.unread = False  # whether some table has a column of rewards that is not to be read
        self.followed = True  # whether all tables say which rows follow each other
        self.over = np.zeros(model.states, dtype=np.bool_)  # where episodes terminated

    def transitions(self, table: LogTable) -> Iterator[LogTransitions]:
        """Yield the transitions of a table, some at a time; note what is wrong with it."""
        places = self._manifest.places(table.name, table.columns, self._model)
        self.followed &= "episode" in places
        self.undated |= not {"episode", "time"} <= places.keys()
        hidden = self._manifest.columns.get("reward", "") is None
        self.unread |= hidden and ROLES["reward"] in table.columns
        first = 0
        for batch in table.read(list(dict.fromkeys(places.values()))):
            number = first + np.arange(batch.num_rows)
            first += batch.num_rows
            self.rows += batch.num_rows
            note = self._problems.of(table.name, number)
            rows = self._decoded(table.name, batch, places, note)
            pairs = self._pairs_of(rows, note)
            before, ages = self._follow(rows, note)
            fine = pairs >= 0
            paid = rows["reward"][fine] if "reward" in rows else None
            yield LogTransitions(pairs[fine], before[fine], ages[fine], paid, number[fine])

    def _decoded(self, table: str, batch: Any, places: Mapping[str, str], note: Note) -> Columns:
        """Return the columns of a batch as numbers, of states and actions -1 where one is wrong."""
        rows: Columns = {
            "state": self._states(batch, places, "", note, "state"),
            "after": self._states(batch, places, "'", note, "next state"),
            "action": np.zeros(batch.num_rows, dtype=np.int64),
        }
        for role in (role for role in ROLES if role in places and role != "reward"):
            rows[role] = self._role(role, table, batch.column(places[role]), places[role], note)
        if "reward" in places:
            paid = floats(batch.column(places["reward"]))
            none = ~np.isfinite(paid)
            if self._manifest.columns.get("reward") is not None:
                note(f"have no number in column {places['reward']!r}", none)
            rows["reward"] = np.where(none, np.inf, paid)
        return rows

    def _role(self, role: str, table: str, column: Any, name: str, note: Note) -> IntArray:
        """Return actions (-1: none of that name), episodes, times, or truth values."""
        empty, fault = f"have no value in column {name!r}", f"have no number in column {name!r}"
        meaning, shown = None, None
        if role == "action":
            if not self._manifest.actions and not _is_text(column):
                raise DataError(
                    f"{table}: the actions in column {name!r} must be names, found {column.type}; "
                    "say what they mean (actions={0: 'wait', ...} in the manifest)."
                )
            meaning, shown, empty = self._actions, _entry(column), "have no action"
            fault = f"have an action that is none of {', '.join(self._actions)}"
        elif role == "terminated":
            meaning, fault = TRUTH, f"have no truth value in column {name!r}"
        elif role == "episode" and _is_text(column):
            column, meaning = _encoded(column), self._names
            for word in column.dictionary.to_pylist():
                self._names.setdefault(str(word), len(self._names))
        values, missing, odd = integers(column, meaning)
        note(empty, missing)
        note(fault, odd, shown)
        return np.where(odd | missing, -1, values) if role == "action" else values

    def _states(
        self, batch: Any, places: Mapping[str, str], mark: str, note: Note, what: str
    ) -> AnyArray:
        """Return the states of a batch, or its next states: -1 where there is none."""
        packing = self._index.packing
        code = np.zeros(batch.num_rows, dtype=np.int64)
        faulty = np.zeros(batch.num_rows, dtype=np.bool_)
        for variable, stride in zip(self._model.variables, packing.stride.tolist(), strict=True):
            name = places[variable.name + mark]
            entries, meaning = batch.column(name), self._values.get(variable.name)
            values, missing, odd = integers(entries, meaning)
            digit = values - variable.low
            odd |= digit.view(np.uint64) > variable.high - variable.low  # negative ones are huge
            names = f"{variable.low}..{variable.high}"
            domain = names if meaning is None else f"{{{', '.join(meaning)}}}"
            note(f"have no value in column {name!r}", missing)
            fault = f"have no value of {variable.name} in {domain} in column {name!r}"
            note(fault, odd & ~missing, _entry(entries))
            faulty |= odd | missing
            digit[odd] = 0
            code += digit * stride
        states = self._index.coded(code)
        fault = f"have a {what} that the model does not reach"
        note(fault, (states < 0) & ~faulty, lambda i: packing.name(code[i : i + 1]))
        return np.where(faulty, -1, states)

    def _pairs_of(self, rows: Columns, note: Note) -> IntArray:
        """Return the pairs (N,) of the model, -1 where it has none; add the rows `taken`."""
        model, state, action, after = self._model, rows["state"], rows["action"], rows["after"]
        readable = (state >= 0) & (action >= 0)
        chosen_rows = np.where(readable, self._index.rows(state, action), -1)

        def choice(i: int) -> str:
            return f"{model.actions[action[i]]!r} in {model.state_name(int(state[i]))}"

        def move(i: int) -> str:
            return f"{model.row_name(int(chosen_rows[i]))} to {model.state_name(int(after[i]))}"

        note(DISABLED, readable & (chosen_rows < 0), choice)
        readable = (chosen_rows >= 0) & (after >= 0)
        pairs = np.where(readable, self.pairs.find(chosen_rows, after), -1)
        note(SUPPORT, readable & (pairs < 0), move)
        if "terminated" in rows:
            over = (rows["terminated"] != 0) & (after >= 0)
            self.over[after[over]] = True
            left = over & ~self._absorbing[after]
            note(LEFT, left, lambda i: model.state_name(int(after[i])))
        rows["taken"] = chosen_rows
        return pairs

    def _follow(self, rows: Columns, note: Note) -> tuple[IntArray, IntArray]:
        """Return the row (N,) of the model before each, and its age; note a broken order.

        Without episodes rows may come from anywhere.
        """
        count = len(rows["state"])
        if "episode" not in rows or not count:
            self._last = {} if count else self._last
            return np.full(count, -1), np.zeros(count, dtype=np.int64)
        # what the table before has no column of cannot be wrong between the two
        fitting = {name: column[:1] for name, column in rows.items()}
        fitting |= {"time": rows["time"][:1] - 1} if "time" in rows else {}
        fitting |= {"terminated": np.zeros(1, dtype=np.int64)}
        last = fitting | self._last
        joined = {name: np.append(last[name], column) for name, column in rows.items()}
        same = joined["episode"][1:] == joined["episode"][:-1]
        same[0] &= bool(self._last)
        self._check_order(joined, same, note)
        fresh = np.flatnonzero(~same)
        self.episodes += len(fresh)
        again = np.zeros(count, dtype=np.bool_)
        again[fresh] = self._begun_before(rows["episode"][fresh])
        note(AGAIN, again, rows["episode"].__getitem__)
        place = np.arange(count)
        begun = np.maximum.accumulate(np.where(same, -1, place))
        ages = place - begun + np.where(begun < 0, last.get("age", 0), 0)
        self._last = {name: column[-1:] for name, column in (rows | {"age": ages}).items()}
        return np.where(same, joined["taken"][:-1], -1), ages

    def _check_order(self, rows: Columns, same: BoolArray, note: Note) -> None:
        """Note rows (N,), behind the last one before, that do not follow in their episode."""
        follow = same
        if "time" in rows:
            step, times = np.diff(rows["time"]), rows["time"][1:].__getitem__
            note(DOUBLED, same & (step == 0), times)
            note(SHUFFLED, same & (step < 0), times)
            note(MISSING, same & (step > 1), times)
            follow = same & (step == 1)
        if "terminated" in rows:
            note(ENDED, same & (rows["terminated"][:-1] != 0))
        state, after = rows["state"][1:], rows["after"][:-1]
        note(BROKEN, follow & (state >= 0) & (after >= 0) & (state != after))

    def _begun_before(self, new: IntArray) -> BoolArray:
        """Return which of the episodes (N,) that begin now were there before."""
        again = np.isin(new, self._begun)
        _, first = np.unique(new, return_index=True)
        again[np.setdiff1d(np.arange(len(new)), first)] = True
        self._begun = np.append(self._begun, new)
        return again


def integers(
    column: Any, meaning: Mapping[str, int] | None = None
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the numbers of a column of Arrow, where entries are missing, and where they are odd.

    An odd entry is no whole number, or one that `meaning` does not explain. Without `meaning` texts
    are read as whole numbers. Columns are explained by their different entries, but for integers,
    which stand for themselves.
    """
    missing = np.array(column.is_null(nan_is_null=True))
    if meaning is None and str(column.type).startswith(("int", "uint")):
        numbers = np.asarray(column.fill_null(0)).astype(np.int64, copy=False)
        return numbers, missing, np.zeros(len(column), dtype=np.bool_)
    entries, at = _explained(column)
    numbers_of = [_number_of(entry, meaning) for entry in entries]
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
    if str(column.type).startswith(("int", "uint", "float", "double", "halffloat")):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    entries, at = _explained(column)
    numbers = np.full(len(entries), np.nan)
    for i, entry in enumerate(entries):
        with suppress(TypeError, ValueError):
            numbers[i] = float(entry)
    return np.where(column.is_null(), np.nan, numbers[at])


def _explained(column: Any) -> tuple[list[Any], IntArray]:
    """Return the different entries of a column, and which of them (N,) stands where.

    Lists and other nested entries are not told apart.
    """
    if str(column.type).startswith(("list", "large_list", "fixed_size_list", "struct", "map")):
        return ["a nested entry"], np.zeros(len(column), dtype=np.int64)
    encoded = _encoded(column)
    return encoded.dictionary.to_pylist() or [None], np.asarray(encoded.indices.fill_null(0))


def _encoded(column: Any) -> Any:
    dictionary = str(column.type).startswith("dictionary")
    return column if dictionary else column.dictionary_encode()


def _is_text(column: Any) -> bool:
    kind = str(column.type)
    return "string" in kind or "utf8" in kind


def _entry(column: Any) -> Callable[[int], str]:
    """Return what shows an entry as it stands in the table."""
    return lambda i: repr(column[i].as_py())
