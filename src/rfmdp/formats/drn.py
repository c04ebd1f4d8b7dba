"""Read Storm's DRN format: dtmc and mdp, with probabilities or intervals.

A header of `@` lines, then per state `state N [rewards] labels`, its choices `action NAME
[rewards]` and their `target : probability` lines. Comments `//[x=1 & y=2]`, as Storm and
`write_drn` write them, give the state's variables if every state has one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.formats.explicit import ExplicitType, FileRows, state_variables
from rfmdp.formats.text import BLANKS, Text, Words
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.frontier import Deadlock
from rfmdp.ragged import owners, starts
from rfmdp.sets.boxes import are_bounds
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

VALUE_TYPES = ("double", "double-interval", "rational", "rational-interval")
WORDED = ("@type", "@value_type")  # fields with a word behind a colon
FIELDS = (*WORDED, "@parameters", "@placeholders", "@reward_models", "@nr_states", "@nr_choices")
TYPES = {"DTMC": ExplicitType.DTMC, "MDP": ExplicitType.MDP}
ASSIGNMENT = re.compile(rb"(!?)([A-Za-z_][A-Za-z0-9_]*)(?:=(-?\d+|true|false))?")
COUNT = re.compile(r"[0-9]{1,18}\Z")
NO_LABEL = "__NOLABEL__"


def read_drn(path: str | os.PathLike[str], *, deadlock: Deadlock = Deadlock.LOOP) -> FactoredMDP:
    """Return the model in a DRN file; rows with equal distributions share a marginal.

    Parameters
    ----------
    path
        The file.
    deadlock
        What to do with states that have no transition.

    Raises
    ------
    FileError
        With file and line, for whatever is not as it must be.
    UnsupportedError
        For types other than dtmc and mdp, parameters, and rewards that are intervals.
    """
    text = Text.read(path)
    head = _read_header(text)
    body = _Body.split(text, head)
    rows, rewards, labels = body.rows(), body.rewards(), body.labels()
    if "init" not in labels:
        text.fail(head.line, 'Some state must have the label "init".')
    initial = np.flatnonzero(labels.pop("init"))
    variables, valuations = _read_valuations(text, head)
    return rows.model(
        head.states,
        deadlock,
        initial=initial,
        labels=labels,
        rewards=rewards,
        variables=variables,
        valuations=valuations,
    )


@dataclass(slots=True)
class _Header:
    """What stands before `@model`."""

    type: ExplicitType | None = None
    states: int = 0
    choices: int | None = None
    rewards: list[str] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    line: int = 0  # of `@model`
    end: int = 0  # the byte after it


def _read_header(text: Text) -> _Header:
    """Read up to and including `@model`."""
    found = re.search(rb"^@model[ \t\r]*(\n|\Z)", bytes(text.data), re.MULTILINE)
    if found is None:
        text.fail(1, "A DRN file must have a line `@model`; this one may be truncated.")
    head = _Header()
    end = found.end()
    lines = bytes(text.data[:end]).decode("utf-8", "replace").splitlines()
    head.line = len(lines)
    head.end = end
    at = 0
    while at < len(lines) - 1:
        line = lines[at].strip()
        after = lines[at + 1]
        at += 1
        if not line or line.startswith("//"):
            continue
        key, _, value = line.partition(":") if line.startswith(WORDED) else (line, "", "")
        match key:
            case "@type":
                head.type = _type(text, at, value.strip())
            case "@value_type":
                _require_numbers(text, at, value.strip())
            case "@parameters":
                if after.strip() and not after.startswith("@"):
                    raise UnsupportedError(
                        f"{text.path}:{at + 1}: parametric models are not supported; instantiate "
                        f"{after.strip()!r} first."
                    )
                at += not after.startswith("@")
            case "@placeholders":
                while lines[at].startswith("$"):
                    name, _, word = lines[at].partition(":")
                    head.placeholders[name.strip()] = word.strip()
                    at += 1
            case "@reward_models":
                if not after.startswith("@"):
                    head.rewards = after.split()
                    at += 1
            case "@nr_states" | "@nr_choices":
                if not COUNT.match(after.strip()):
                    text.fail(at + 1, f"A number must follow {key}.")
                setattr(head, key.removeprefix("@nr_"), int(after))
                at += 1
            case _:
                text.fail(at, f"A header line must be one of {', '.join(FIELDS)}.")
    if head.type is None or head.states <= 0:
        missing = "@type" if head.type is None else "@nr_states"
        text.fail(head.line, f"The header must have {missing} before @model.")
    return head


def _type(text: Text, line: int, word: str) -> ExplicitType:
    if word.upper() not in TYPES:
        raise UnsupportedError(
            f"{text.path}:{line}: models of the type {word!r} are not supported; dtmc and mdp are."
        )
    return TYPES[word.upper()]


def _require_numbers(text: Text, line: int, word: str) -> None:
    if word not in VALUE_TYPES:
        raise UnsupportedError(
            f"{text.path}:{line}: the value type {word!r} is not supported; "
            f"{', '.join(VALUE_TYPES)} are."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Body:
    """The lines after `@model`, by what they are."""

    head: _Header
    words: Words
    first: IntArray  # (L,) first word of every line
    width: IntArray  # (L,) words per line
    is_state: BoolArray  # (L,)
    is_action: BoolArray  # (L,)
    starts_row: BoolArray  # (L,) an action, or a transition right after its state

    @staticmethod
    def split(text: Text, head: _Header) -> _Body:
        """Tell the lines apart and check their form and their number."""
        words = text.words(head.end, head.line + 1, comment="/")
        first, width = words.lines()
        if not len(first):
            text.fail(head.line, "States must follow @model; the file may be truncated.")
        opening = words[first].as_bytes()
        is_state, is_action = opening == b"state", opening == b"action"
        move = ~(is_state | is_action)
        after_state = np.concatenate([[False], is_state[:-1]])
        body = _Body(
            head, words, first, width, is_state, is_action, is_action | (move & after_state)
        )
        body._check(words[first], move)
        return body

    def _check(self, lines: Words, move: BoolArray) -> None:
        if not self.is_state[0]:
            lines.fail(0, "The first line after @model must be `state 0`.")
        form = ~move | (self.width == 3)
        middle = self.first[move & form] + 1
        form[move & form] = self.words[middle].as_bytes() == b":"
        lines.require(
            form, lambda i: "A line must be `state N`, `action NAME` or `target : probability`."
        )
        lines.require(move | (self.width > 1), lambda i: "A number or name must follow.")
        of = lines[self.is_state]
        numbers = self.words[self.first[self.is_state] + 1].integers("state")
        of.require(
            numbers == np.arange(len(numbers)),
            lambda i: f"States must be numbered 0, 1, 2, ...; expected {i}, found {numbers[i]}.",
        )
        head = self.head
        text = self.words.text
        rows = int(self.starts_row.sum())
        if len(numbers) != head.states:
            text.fail(
                head.line,
                f"The header promises {head.states} states, found {len(numbers)}; the file may be "
                "truncated.",
            )
        if head.choices not in (None, 0, rows) and head.type is ExplicitType.MDP:
            text.fail(head.line, f"The header promises {head.choices} choices, found {rows}.")

    def rows(self) -> FileRows:
        """Return the rows and their transitions."""
        words, first = self.words, self.first
        state = np.cumsum(self.is_state) - 1
        move = ~(self.is_state | self.is_action)
        row_of = (np.cumsum(self.starts_row) - 1)[move]
        count = int(self.starts_row.sum())
        sizes = np.bincount(row_of, minlength=count)
        opening = words[first[self.starts_row]]
        opening.require(sizes > 0, lambda i: "An action must have transitions.")
        states = state[self.starts_row]
        if self.head.type is ExplicitType.DTMC:
            opening.require(
                np.diff(states, prepend=-1) > 0, lambda i: "A state of a dtmc has one action."
            )
        entries = words[first[move] + 2]
        lower, upper = entries.values("probability", self._placeholder)
        entries.require(
            are_bounds(lower, upper),
            lambda i: f"Probabilities must satisfy 0 <= l <= u <= 1, found {entries.word(i)}.",
        )
        names, row_actions = self._actions()
        return FileRows(
            words.text,
            states,
            opening.line,
            row_actions,
            names,
            starts(sizes),
            words[first[move]].integers("target state", self.head.states),
            lower,
            upper,
        )

    def _placeholder(self, word: str) -> str:
        return self.head.placeholders.get(word, word)

    def _actions(self) -> tuple[tuple[str, ...], IntArray]:
        """Return the names of actions and the action of every row."""
        ids, names = self.words[self.first[self.is_action] + 1].distinct()
        named = self.is_action[self.starts_row]
        shown = ["" if name == NO_LABEL else name for name in names]
        if "" not in shown and not named.all():
            shown.append("")
        rows = np.full(len(named), shown.index("") if "" in shown else 0, dtype=np.int64)
        rows[named] = ids
        return tuple(shown), rows

    def _after_name(self, lines: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the words after `state N` or `action NAME`: their owners, indices and places."""
        ptr = starts(self.width[lines] - 2)
        owner = owners(ptr)
        place = np.arange(ptr[-1]) - ptr[owner]
        return owner, self.first[lines][owner] + 2 + place, place

    def labels(self) -> dict[str, BoolArray]:
        """Return where labels hold."""
        owner, index, place = self._after_name(self.is_state)
        rewards = (place == 0) & (self.words[index].first_bytes == ord("["))
        ids, names = self.words[index[~rewards]].distinct()
        where: dict[str, BoolArray] = {}
        for i, name in enumerate(names):
            holds = where.setdefault(name.strip('"'), np.zeros(self.head.states, dtype=np.bool_))
            holds[owner[~rewards][ids == i]] = True
        return where

    def rewards(self) -> dict[str, Rewards]:
        """Return the reward structures."""
        states = self._reward_columns(self.is_state, self.head.states)
        given = self._reward_columns(self.is_action, int(self.is_action.sum()))
        count = max(len(self.head.rewards), len(states), len(given))
        names = [*self.head.rewards, *(f"rew{i}" for i in range(len(self.head.rewards), count))]
        of_states = np.zeros((count, self.head.states))
        of_states[: len(states)] = states
        named = self.is_action[self.starts_row]
        of_rows = np.zeros((count, len(named)))
        of_rows[: len(given), named] = given
        return {name: Rewards(of_states[i], of_rows[i]) for i, name in enumerate(names)}

    def _reward_columns(self, lines: BoolArray, count: int) -> FloatArray:
        """Return the rewards `[a, b]` of states or actions, one row per structure."""
        owner, index, place = self._after_name(lines)
        having = (place == 0) & (self.words[index].first_bytes == ord("["))
        boxes = self.words[index[having]]
        if not len(boxes):
            return np.empty((0, count))
        closed = self.words.text.data[boxes.end - 1] == ord("]")
        boxes.require(closed, lambda i: "Rewards must end with `]`.")
        inner = boxes.inside_brackets().words(separators=BLANKS + ",")
        lower, upper = inner.values("reward", self._placeholder)
        if np.any(lower != upper):
            raise UnsupportedError(
                f"{self.words.text.path}: rewards must be numbers, found an interval."
            )
        first, width = inner.lines()
        of = inner.line[first] - 1  # a line per box, but empty brackets leave none
        table = np.zeros((int(width.max(initial=0)), count))
        for i in range(len(table)):
            wide = width > i
            table[i, owner[having][of[wide]]] = lower[first[wide] + i]
        return table


def _read_valuations(text: Text, head: _Header) -> tuple[tuple[Variable, ...], Int32Array | None]:
    """Return the variables in comments, if there is one comment per state, else none."""
    body = bytes(text.data[head.end :])
    # most files have none, and looking for the pattern in every line takes long
    comments = re.findall(rb"^\s*//\[(.*)\]\s*$", body, re.MULTILINE) if b"//[" in body else []
    if len(comments) != head.states:
        return (), None
    states = [
        {
            name.decode(): b"false" if negated else value or b"true"
            for negated, name, value in ASSIGNMENT.findall(comment)
        }
        for comment in comments
    ]
    names = list(dict.fromkeys(name for values in states for name in values))
    if not names:
        return (), None
    table: AnyArray = np.array([[values.get(n, b"true") for n in names] for values in states])
    # Storm leaves out booleans that are true
    words = (table == b"true") | (table == b"false")
    boolean = words.any(axis=0)
    if np.any(words != boolean):
        return (), None
    numbers = np.where(table == b"true", b"1", np.where(table == b"false", b"0", table))
    try:
        valuations = numbers.astype(np.int64)
    except OverflowError:
        return (), None
    return state_variables(zip(names, valuations.T, boolean.tolist(), strict=True))
