"""One road from a table to transitions: batches -> states and actions -> rows and successors.

Every row of a table is looked at, and what is wrong with rows is collected with their numbers. The
rows of an episode stand one after the other, each with its next state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rfmdp.errors import DataError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.trajectories import Index, SuccessorPairs, absorbing
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.sources.log.source import LogTable

SHOWN = 5  # rows of one kind that a message lists
KINDS = 8  # kinds of faults in one message
TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "1", "1.0"), 1),
    **dict.fromkeys(("false", "False", "FALSE", "0", "0.0"), 0),
}
ROLES = ("action", "episode", "time", "terminated", "reward")  # of columns beside variables
NESTED = ("list", "large_list", "fixed_size_list", "struct", "map")  # types of Arrow
AGAIN = (
    "begin an episode that was there before: shuffled or doubled; sort by episode and time, and "
    "number the episodes of all tables differently"
)
LEFT = (
    "have `terminated` in a state that the structure lets be left; give it no enabled action "
    "(guards), add a variable that says that the episode is over, or, if it was only cut off, call "
    "that `truncated`"
)

Columns: TypeAlias = dict[str, AnyArray]  # of some rows, by what they mean
Named: TypeAlias = Mapping[str, tuple[str, Any]]  # names and columns of Arrow, by meaning
Note: TypeAlias = Callable[..., None]  # fault, where (N,), what a row has


class Problems:
    """All faults of rows so far, by table and kind."""

    def __init__(self) -> None:
        self._rows: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._examples: dict[tuple[str, str], str] = {}  # what the first one has
        self.count = 0

    def of(self, table: str, rows: IntArray) -> Note:
        """Return what takes note of faults of a batch, whose rows have these numbers."""

        def note(kind: str, where: BoolArray, shown: Callable[[int], object] | None = None) -> None:
            at = np.flatnonzero(where)
            if len(at):
                self.count += len(at)
                self._rows[table, kind].extend(rows[at].tolist())
                example = "" if shown is None else f": {shown(int(at[0]))}"
                self._examples.setdefault((table, kind), example)

        return note

    def error(self, advice: str) -> DataError:
        """Return all of them as one error."""
        listed = []
        for (table, kind), rows in self._rows.items():
            shown = ", ".join(map(str, rows[:SHOWN])) + ", ..." * (len(rows) > SHOWN)
            shown += self._examples[table, kind]
            listed.append(f"{table}, {len(rows)} row(s) that {kind} (row {shown})")
        more = f"; and {len(listed) - KINDS} kinds more" if len(listed) > KINDS else ""
        return DataError(f"{'; '.join(listed[:KINDS])}{more}. Rows count from 0. {advice}")


class LogReader:
    """Turns tables into transitions of a model, after a look at every row."""

    def __init__(
        self, model: FactoredMDP, columns: Mapping[str, str | None], problems: Problems
    ) -> None:
        self._model, self._columns, self._problems = model, columns, problems
        self._index, self._pairs = Index(model), SuccessorPairs(model)
        self._actions = {name: i for i, name in enumerate(model.actions)}
        self._absorbing = absorbing(model)
        self._names: dict[str, int] = {}  # numbers of episodes that have names
        self._begun = np.empty(0, dtype=np.int64)  # episodes of all tables so far
        self._last: Columns = {}  # the last row
        self.episodes = 0
        self.undated = False  # whether some table lacks episodes or times
        self.unread = False  # whether some table has a column of rewards that is not to be read
        self.followed = True  # whether all tables say which rows follow each other
        self.over = np.zeros(model.states, dtype=np.bool_)  # where episodes terminated

    def transitions(self, table: LogTable) -> Iterator[Columns]:
        """Yield the transitions of a table, some at a time; note what is wrong with it.

        They are the `row` of the model that was taken and the `next state`, both as one `pair`; the
        row `before` in the same episode, -1 at its start; the `age`, steps of the episode before;
        the `number` in the table; and if there is a column what was paid: `reward`, infinite where
        there is no number.
        """
        places = self._places(table)
        self.followed &= "episode" in places
        self.undated |= not {"episode", "time"} <= places.keys()
        self.unread |= (
            self._columns.get("reward", "") is None and "reward" in table.data.schema.names
        )
        first = 0
        for batch in table.read(list(dict.fromkeys(places.values()))):
            number = first + np.arange(batch.num_rows)
            first += batch.num_rows
            note = self._problems.of(table.name, number)
            columns = {meaning: (place, batch.column(place)) for meaning, place in places.items()}
            rows = self._decoded(table.name, columns, note) | {"number": number}
            self._find(rows, note)
            self._follow(rows, note)
            yield rows

    def _places(self, table: LogTable) -> dict[str, str]:
        """Return the column of every variable (x), next value (x') and role that a table has."""
        variables = [v.name for v in self._model.variables]
        defaults: dict[str, tuple[str, ...]] = {x: (x,) for x in variables}
        defaults |= {f"{x}'": (f"next_{x}", f"{x}'") for x in variables}
        needed = {*defaults, *(name for name, word in self._columns.items() if word is not None)}
        needed |= {"action"} if len(self._model.actions) > 1 else set()
        defaults |= {role: (role,) for role in ROLES} | {"time": ("t",)}
        if other := sorted(self._columns.keys() - defaults.keys()):
            raise DataError(f"columns: {other[0]!r} must be one of {', '.join(defaults)}.")
        columns: list[str] = table.data.schema.names
        places: dict[str, str] = {}
        for meaning, names in defaults.items():
            word = self._columns.get(meaning)
            choices = names if word is None else (word,)
            taken = () if meaning in needed else places.values()
            fitting = [c for c in choices if c in columns and c not in taken]
            if fitting and (meaning in needed or meaning not in self._columns):
                places[meaning] = fitting[0]
            elif meaning in needed:
                raise DataError(
                    f"{table.name}: must have a column for {meaning} "
                    f"({' or '.join(map(repr, choices))}), has {', '.join(columns)}; say "
                    f"which one it is (`columns={{{meaning!r}: NAME}}`)."
                )
        return places

    def _decoded(self, table: str, columns: Named, note: Note) -> Columns:
        """Return columns as numbers: states and actions, -1 where one is wrong, and all roles."""
        count = len(next(iter(columns.values()))[1])
        rows: Columns = {"action": np.zeros(count, dtype=np.int64)}
        for role in (role for role in ROLES if role in columns and role != "reward"):
            (name, column), meaning, what = columns[role], None, "number"
            if role == "action":
                if not _is_text(column):
                    raise DataError(
                        f"{table}: the actions in column {name!r} must be names, found "
                        f"{column.type}; write the names of the model."
                    )
                meaning, what = self._actions, f"action of {', '.join(self._actions)}"
            elif role == "terminated":
                meaning, what = TRUTH, "truth value"
            elif role == "episode" and _is_text(column):
                meaning = self._names
                for word in column.unique().to_pylist():
                    self._names.setdefault(str(word), len(self._names))
            values, odd = _noted(name, column, meaning, what, note)
            rows[role] = np.where(odd, -1, values) if role == "action" else values
        for what, mark in (("state", ""), ("next state", "'")):
            rows[what] = self._states(columns, mark, note, what)
        if "reward" in columns:
            name, column = columns["reward"]
            paid = floats(column)
            none = ~np.isfinite(paid)
            if self._columns.get("reward") is not None:
                note(f"have no number in column {name!r}", none)
            rows["reward"] = np.where(none, np.inf, paid)
        return rows

    def _states(self, columns: Named, mark: str, note: Note, name: str) -> AnyArray:
        """Return the states of a batch, or its next states: -1 where there is none."""
        packing = self._index.packing
        code: Any = 0
        faulty: Any = False
        for variable, stride in zip(self._model.variables, packing.stride.tolist(), strict=True):
            ends = (variable.low, variable.high)
            what = f"value of {variable.name} in {ends[0]}..{ends[1]}"
            values, odd = _noted(*columns[variable.name + mark], None, what, note, ends)
            faulty = faulty | odd
            code = code + np.where(odd, 0, values - variable.low) * stride
        states = self._index.coded(code)
        fault = f"have a {name} that the model does not reach"
        note(fault, (states < 0) & ~faulty, lambda i: packing.name(code[i : i + 1]))
        return np.where(faulty, -1, states)

    def _find(self, rows: Columns, note: Note) -> None:
        """Add rows and pairs of the model, -1 where it has none."""
        model, state, action, after = self._model, rows["state"], rows["action"], rows["next state"]
        readable = (state >= 0) & (action >= 0)
        taken = rows["row"] = np.where(readable, self._index.rows[state, action], -1)

        def choice(i: int) -> str:
            return f"{model.actions[action[i]]!r} in {model.state_name(int(state[i]))}"

        def move(i: int) -> str:
            return f"{model.row_name(int(taken[i]))} to {model.state_name(int(after[i]))}"

        note("have an action that the state does not have", readable & (taken < 0), choice)
        readable = (taken >= 0) & (after >= 0)
        rows["pair"] = np.where(readable, self._pairs.find(taken, after), -1)
        note("lead where the model says they cannot", readable & (rows["pair"] < 0), move)
        if "terminated" in rows:
            over = (rows["terminated"] != 0) & (after >= 0)
            self.over[after[over]] = True
            left = over & ~self._absorbing[after]
            note(LEFT, left, lambda i: model.state_name(int(after[i])))

    def _follow(self, rows: Columns, note: Note) -> None:
        """Add the row of the model before each, and its age; note a broken order.

        Without episodes rows may come from anywhere.
        """
        count = len(rows["state"])
        if "episode" not in rows or not count:
            self._last = {} if count else self._last
            rows["before"], rows["age"] = np.full(count, -1), np.zeros(count, dtype=np.int64)
            return
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
        begun = rows["episode"][fresh]
        again = np.zeros(count, dtype=np.bool_)
        again[fresh] = True
        again[fresh[np.unique(begun, return_index=True)[1]]] = False
        again[fresh] |= np.isin(begun, self._begun)
        note(AGAIN, again, rows["episode"].__getitem__)
        self._begun = np.append(self._begun, begun)
        self.episodes += len(fresh)
        place = np.arange(count)
        start = np.maximum.accumulate(np.where(same, -1, place))
        rows["age"] = place - start + np.where(start < 0, last.get("age", 0), 0)
        rows["before"] = np.where(same, joined["row"][:-1], -1)
        self._last = {name: column[-1:] for name, column in rows.items()}

    def _check_order(self, rows: Columns, same: BoolArray, note: Note) -> None:
        """Note rows (N,), behind the last one before, that do not follow in their episode."""
        follow = same
        if "time" in rows:
            step, times = np.diff(rows["time"]), rows["time"][1:].__getitem__
            note("have the time of the row before: doubled rows", same & (step == 0), times)
            fault = "come earlier than the row before of their episode: shuffled or doubled rows"
            note(fault, same & (step < 0), times)
            fault = "come more than one step after the row before: missing rows"
            note(fault, same & (step > 1), times)
            follow = same & (step == 1)
        if "terminated" in rows:
            fault = "come after the end of their episode (`terminated`)"
            note(fault, same & (rows["terminated"][:-1] != 0))
        state, after = rows["state"][1:], rows["next state"][:-1]
        fault = "do not begin in the next state of the row before, of the same episode"
        note(fault, follow & (state >= 0) & (after >= 0) & (state != after))


def _noted(
    name: str,
    column: Any,
    meaning: Mapping[str, int] | None,
    what: str,
    note: Note,
    ends: tuple[int, int] | None = None,
) -> tuple[IntArray, BoolArray]:
    """Return the numbers of a column, and where there are none, which is noted.

    An odd entry is no whole number, outside of `ends`, or one that `meaning` does not explain.
    Columns are explained by their different entries, but for integers without a meaning.
    """
    missing = np.array(column.is_null(nan_is_null=True))
    if meaning is None and str(column.type).startswith(("int", "uint")):
        values = np.asarray(column.fill_null(0)).astype(np.int64, copy=False)
        odd = np.zeros(len(column), dtype=np.bool_)
    else:
        entries, at = _explained(column)
        numbers = [_number_of(str(entry), meaning) for entry in entries]
        values = np.array([number or 0 for number in numbers], dtype=np.int64)[at]
        odd = np.array([number is None for number in numbers])[at]
    if ends is not None:
        odd |= (values < ends[0]) | (values > ends[1])
    note(f"have no value in column {name!r}", missing)
    fault = f"have no {what} in column {name!r}"
    note(fault, odd & ~missing, lambda i: repr(column[i].as_py()))
    return values, odd | missing


def _number_of(text: str, meaning: Mapping[str, int] | None) -> int | None:
    """Return the number that an entry stands for, None if it stands for none."""
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
    """Return the different entries of a column, and which of them (N,) stands where."""
    if str(column.type).startswith(NESTED):
        return ["a nested entry"], np.zeros(len(column), dtype=np.int64)
    dictionary = str(column.type).startswith("dictionary")
    encoded = column if dictionary else column.dictionary_encode()
    return encoded.dictionary.to_pylist() or [None], np.asarray(encoded.indices.fill_null(0))


def _is_text(column: Any) -> bool:
    kind = str(column.type)
    return "string" in kind or "utf8" in kind
