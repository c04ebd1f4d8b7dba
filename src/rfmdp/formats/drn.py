"""Storm's DRN format: dtmc and mdp, with probabilities or intervals.

A header of `@` lines, then per state `state N [rewards] labels`, its choices `action NAME
[rewards]` and their `target : probability` lines. Comments `//[x=1 & y=2]`, as Storm and
`write_drn` write them, give the state's variables if every state has one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.table import (
    ModelTable,
    Variables,
    Written,
    make_model,
    number,
    state_labels,
    state_variables,
    to_table,
    write_lines,
)
from rfmdp.formats.text import Text, Words, as_words, objects
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import owners, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

TYPES = ("DTMC", "MDP")
VALUE_TYPES = ("double", "double-interval", "rational", "rational-interval")
FIELDS = (
    "@type", "@value_type", "@parameters", "@placeholders", "@reward_models", "@nr_states",
    "@nr_choices",
)  # fmt: skip
ASSIGNMENT = re.compile(rb"(!?)([A-Za-z_][A-Za-z0-9_]*)(?:=(-?\d+|true|false))?")
ITEM = re.compile(rb"\[[^\]]*\]|[^,]+")  # of a list; an interval is one
COUNT = re.compile(r"[0-9]{1,18}\Z")
NO_LABEL = "__NOLABEL__"
PLAIN = re.compile(r'[^\s"\[]+\Z')


def read_drn(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the model in a DRN file; rows with equal distributions share a marginal.

    Parameters
    ----------
    path
        The file.

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

    def fail(entry: int, message: str) -> NoReturn:
        body.words.fail(int(body.first[body.is_move][entry]), message)

    return make_model(body.table(_read_valuations(text, head)), str(path), fail)


@dataclass(slots=True)
class _Header:
    """What stands before `@model`."""

    type: str = ""
    states: int = 0
    choices: int = 0  # 0: not said
    rewards: list[str] = field(default_factory=list)
    placeholders: dict[bytes, bytes] = field(default_factory=dict)
    line: int = 0  # of `@model`
    end: int = 0  # the byte after it


def _read_header(text: Text) -> _Header:
    """Read up to and including `@model`."""
    start = re.search(rb"^@model[ \t\r]*(\n|\Z)", text.data, re.MULTILINE)
    if start is None:
        text.fail(1, "A DRN file must have a line `@model`; this one may be truncated.")
    lines = text.data[: start.end()].decode("utf-8", "replace").splitlines()
    head = _Header(line=len(lines), end=start.end())
    at = 0
    while at < len(lines) - 1:
        line, after = lines[at].strip(), lines[at + 1]
        at += 1
        if not line or line.startswith("//"):
            continue
        key, _, value = (word.strip() for word in line.partition(":"))
        match key:
            case "@type":
                head.type = value.upper()
                _require_supported(text, at, "type", head.type, TYPES)
            case "@value_type":
                _require_supported(text, at, "value type", value, VALUE_TYPES)
            case "@parameters":
                if after.strip() and not after.startswith("@"):
                    raise UnsupportedError(
                        f"{text.path}:{at + 1}: parametric models are not supported; instantiate "
                        f"{after.strip()!r} first."
                    )
                at += not after.startswith("@")
            case "@placeholders":
                while lines[at].startswith("$"):
                    name, _, value = "".join(lines[at].split()).partition(":")
                    head.placeholders[as_words(name)] = as_words(value)
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
    if not head.type or head.states <= 0:
        missing = "@nr_states" if head.type else "@type"
        text.fail(head.line, f"The header must have {missing} before @model.")
    return head


def _require_supported(
    text: Text, line: int, what: str, word: str, supported: tuple[str, ...]
) -> None:
    if word not in supported:
        raise UnsupportedError(
            f"{text.path}:{line}: the {what} {word!r} is not supported; {', '.join(supported)} are."
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

    @property
    def is_move(self) -> BoolArray:
        """Which lines are transitions, (L,)."""
        move: BoolArray = ~(self.is_state | self.is_action)
        return move

    @property
    def starts_row(self) -> BoolArray:
        """Which lines are an action, or a transition right after its state, (L,)."""
        after_state = np.concatenate([[False], self.is_state[:-1]])
        begins: BoolArray = self.is_action | (self.is_move & after_state)
        return begins

    @staticmethod
    def split(text: Text, head: _Header) -> _Body:
        """Tell the lines apart and check their form and their number."""
        words = text.words(head.end, comment=b"//")
        first, width = words.lines()
        if not len(first):
            text.fail(head.line, "States must follow @model; the file may be truncated.")
        opening = words.words[first]
        body = _Body(head, words, first, width, opening == b"state", opening == b"action")
        body._check(words[first])
        return body

    def _check(self, lines: Words) -> None:
        if not self.is_state[0]:
            lines.fail(0, "The first line after @model must be `state 0`.")
        move = self.is_move
        form = ~move | (self.width == 3)
        form[move & form] = self.words.words[self.first[move & form] + 1] == b":"
        lines.require(
            form, lambda i: "A line must be `state N`, `action NAME` or `target : probability`."
        )
        lines.require(move | (self.width > 1), lambda i: "A number or name must follow.")
        numbers = self.words[self.first[self.is_state] + 1].integers("state")
        lines[self.is_state].require(
            numbers == np.arange(len(numbers)),
            lambda i: f"States must be numbered 0, 1, 2, ...; expected {i}, found {numbers[i]}.",
        )
        head, rows = self.head, int(self.starts_row.sum())
        if len(numbers) != head.states:
            self.words.text.fail(
                head.line,
                f"The header promises {head.states} states, found {len(numbers)}; the file may be "
                "truncated.",
            )
        if head.choices not in (0, rows) and head.type == "MDP":
            message = f"The header promises {head.choices} choices, found {rows}."
            self.words.text.fail(head.line, message)

    def table(self, variables: Variables) -> ModelTable:
        """Return the columns of the model."""
        words, first, move, begins = self.words, self.first, self.is_move, self.starts_row
        row_of = (np.cumsum(begins) - 1)[move]
        sizes = np.bincount(row_of, minlength=int(begins.sum()))
        opening = words[first[begins]]
        opening.require(sizes > 0, lambda i: "An action must have transitions.")
        states = (np.cumsum(self.is_state) - 1)[begins]
        if self.head.type == "DTMC":
            opening.require(
                np.diff(states, prepend=-1) > 0, lambda i: "A state of a dtmc has one action."
            )
        labels = self._labels()
        if "init" not in labels:
            words.text.fail(self.head.line, 'Some state must have the label "init".')
        return ModelTable(
            self.head.states,
            states,
            starts(sizes),
            words[first[move]].integers("target state"),
            *words[first[move] + 2].values("probability", self.head.placeholders),
            *self._actions(),
            np.flatnonzero(labels.pop("init")),
            labels,
            self._rewards(),
            variables,
        )

    def _actions(self) -> tuple[IntArray, tuple[str, ...]]:
        """Return the action of every row, and the names of actions."""
        ids, listed = self.words[self.first[self.is_action] + 1].distinct()
        named = self.is_action[self.starts_row]
        names = ["" if name == NO_LABEL else name for name in listed]
        if "" not in names and not named.all():
            names.append("")
        rows = np.full(len(named), names.index("") if "" in names else 0, dtype=np.int64)
        rows[named] = ids
        return rows, tuple(names)

    def _after_name(self, lines: BoolArray) -> tuple[IntArray, Words, BoolArray]:
        """Return the words after `state N` or `action NAME`: owners, words, which are rewards."""
        ptr = starts(self.width[lines] - 2)
        owner = owners(ptr)
        place = np.arange(ptr[-1]) - ptr[owner]
        words = self.words[self.first[lines][owner] + 2 + place]
        return owner, words, (place == 0) & words.begin_with(b"[")

    def _labels(self) -> dict[str, BoolArray]:
        """Return where labels hold."""
        owner, words, rewards = self._after_name(self.is_state)
        ids, names = words[~rewards].distinct()
        bare = {name: i for i, name in enumerate(dict.fromkeys(n.strip('"') for n in names))}
        numbers = np.array([bare[name.strip('"')] for name in names], dtype=np.int64)
        path = str(self.words.text.path)
        return state_labels(path, self.head.states, list(bare), owner[~rewards], numbers[ids])

    def _rewards(self) -> dict[str, Rewards]:
        """Return the reward structures."""
        of_states = self._reward_columns(self.is_state)
        of_actions = self._reward_columns(self.is_action)
        count = max(len(self.head.rewards), len(of_states), len(of_actions))
        names = [*self.head.rewards, *(f"rew{i}" for i in range(len(self.head.rewards), count))]
        state = np.zeros((count, self.head.states))
        state[: len(of_states)] = of_states
        named = self.is_action[self.starts_row]
        row = np.zeros((count, len(named)))
        row[: len(of_actions), named] = of_actions
        return {name: Rewards(state[i], row[i]) for i, name in enumerate(names)}

    def _reward_columns(self, lines: BoolArray) -> FloatArray:
        """Return the rewards `[a, b]` of states or actions, one row per structure."""
        count = int(lines.sum())
        owner, words, having = self._after_name(lines)
        boxes = words[having]
        ends = np.fromiter((word.endswith(b"]") for word in boxes.words), np.bool_, len(boxes))
        boxes.require(ends, lambda i: "Rewards must end with `]`.")
        listed = [ITEM.findall(word[1:-1]) for word in boxes.words]
        ptr = starts([len(values) for values in listed])
        width = int(np.max(np.diff(ptr), initial=0))
        path = self.words.text.path
        require_memory(16.0 * width * count, f"{path}: {width} rewards of {count} states")
        of = owners(ptr)
        inner = Words(boxes.text, objects(list(chain.from_iterable(listed))), boxes.line[of])
        table = np.zeros((width, count))
        lower, upper = inner.values("reward", self.head.placeholders)
        if np.any(lower != upper):
            raise UnsupportedError(f"{path}: rewards must be numbers, found an interval.")
        table[np.arange(len(of)) - ptr[of], owner[having][of]] = lower
        return table


def _read_valuations(text: Text, head: _Header) -> Variables:
    """Return the variables in comments, if there is one comment per state, else none."""
    body = text.data[head.end :]
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
    require_memory(40.0 * len(names) * head.states, f"{text.path}: its variables")
    table: AnyArray = np.array([[values.get(n, b"true") for n in names] for values in states])
    # Storm leaves out booleans that are true
    words = (table == b"true") | (table == b"false")
    boolean = words.any(axis=0)
    if np.any(words != boolean):
        return (), None
    numbers = np.where(table == b"true", b"1", np.where(table == b"false", b"0", table))
    try:
        valuations = numbers.astype(np.int64)
    except (OverflowError, ValueError):
        return (), None
    return state_variables(zip(names, valuations.T, boolean.tolist(), strict=True))


def write_drn(model: FactoredMDP, path: str | os.PathLike[str]) -> Written:
    """Write a model as a DRN file, with labels, rewards, actions and, as comments, valuations.

    Numbers are written so that they read back exactly. A dtmc is written if every state has one
    choice and all probabilities are known, else an mdp: Storm solves intervals in mdps only.

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    path
        The file.

    Returns
    -------
    Written
        The file, and a note that says what flattening changed.
    """
    table, note = to_table(model)
    for name in table.rewards:
        if name and not PLAIN.match(name):
            raise ModelError(
                f"Reward structure {name!r} cannot be written: it has blanks; rename it."
            )
    for name in table.labels:
        if '"' in name or "\n" in name or not name:
            raise ModelError(
                f"Label {name!r} cannot be written: it has quotes or is empty; rename it."
            )
    write_lines(Path(path), _lines(table, _valuation_lines(model)))
    return Written((Path(path),), note)


def _lines(table: ModelTable, comments: list[str]) -> Iterator[str]:
    yield f"@type: {'DTMC' if table.chain and table.known else 'MDP'}"
    yield "@value_type: double" + ("" if table.known else "-interval")
    yield from ("@parameters", "")
    if table.rewards:
        yield "@reward_models"
        yield " ".join(name or f"rew{i}" for i, name in enumerate(table.rewards))
    yield from ("@nr_states", str(table.states), "@nr_choices", str(table.rows), "@model")
    labels = _label_texts(table)
    state_rewards = _reward_texts([r.state for r in table.rewards.values()], table.states)
    row_rewards = _reward_texts([r.row for r in table.rewards.values()], table.rows)
    names = table.action_names(NO_LABEL)
    actions, states = table.row_actions.tolist(), table.row_states.tolist()
    row = state = -1
    for r, target, text in table.entries(", "):
        if r != row:
            row = r
            if states[r] != state:
                state = states[r]
                yield f"state {state}{state_rewards[state]}{labels[state]}{comments[state]}"
            yield f"\taction {names[actions[r]]}{row_rewards[r]}"
        yield f"\t\t{target} : {text}"


def _reward_texts(columns: list[FloatArray], count: int) -> list[str]:
    """Return ` [a, b]` for every state or row; plain numbers also beside intervals."""
    if not columns:
        return [""] * count
    return [
        " [" + ", ".join(map(number, values)) + "]" for values in np.stack(columns, axis=1).tolist()
    ]


def _label_texts(table: ModelTable) -> list[str]:
    texts = [""] * table.states
    for name, holds in table.labels.items():
        # quotes where Storm needs them to read the name as one word
        shown = f" {name}" if PLAIN.match(name) else f' "{name}"'
        for s in np.flatnonzero(holds).tolist():
            texts[s] += shown
    return texts


def _valuation_lines(model: FactoredMDP) -> list[str]:
    """Return the comment line after every state, in the form that Storm writes."""
    if not model.variables:
        return [""] * model.states
    columns = [
        [f"{name}={str(x).lower()}" for x in values]
        for name, values in model.state_columns().items()
    ]
    return ["\n//[" + "\t& ".join(values) + "]" for values in zip(*columns, strict=True)]
