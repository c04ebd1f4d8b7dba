"""Storm's DRN format: dtmc and mdp, with probabilities or intervals.

A header of `@` lines, then per state `state N [rewards] labels`, its choices `action NAME
[rewards]` and their `target : probability` lines. Comments `//[x=1 & y=2]`, as Storm and
`write_drn` write them, give the state's variables if every state has one.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.table import (
    ModelTable,
    Text,
    Variables,
    Written,
    make_model,
    number,
    state_labels,
    state_variables,
    to_table,
    write_lines,
)
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, FloatArray

TYPES = ("DTMC", "MDP")
VALUE_TYPES = ("double", "double-interval", "rational", "rational-interval")
FIELDS = (
    "@type", "@value_type", "@parameters", "@placeholders", "@reward_models", "@nr_states",
    "@nr_choices",
)  # fmt: skip
ASSIGNMENT = re.compile(r"(!?)([A-Za-z_][A-Za-z0-9_]*)(?:=(-?\d+|true|false))?")
VALUATION = re.compile(r"\s*//\[(.*)\]\s*")  # a comment line
ITEM = re.compile(r"\[[^\]]*\]|[^,]+")  # of a list; an interval is one
COUNT = re.compile(r"[0-9]{1,18}\Z")
NO_LABEL = "__NOLABEL__"
PLAIN = re.compile(r'[^\s"\[]+\Z')


def read_drn(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the model in a DRN file; rows with equal distributions share a marginal.

    Raises
    ------
    FileError
        With file and line, for whatever is not as it must be.
    UnsupportedError
        For types other than dtmc and mdp, parameters, and rewards that are intervals.
    """
    text = Text(path)
    head = _read_header(text)
    body = _Body(text, head)
    table = body.table(_read_valuations(text, head))
    return make_model(table, str(path), lambda i, message: text.fail(message, body.lines[i]))


@dataclass(slots=True)
class _Header:
    """What stands before `@model`."""

    type: str = ""
    states: int = 0
    choices: int = 0  # 0: not said
    rewards: list[str] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    line: int = 0  # of `@model`


def _read_header(text: Text) -> _Header:
    """Read up to and including `@model`."""
    lines = [line.rstrip() for line in text.lines]
    if "@model" not in lines:
        text.fail("A DRN file must have a line `@model`; this one may be truncated.")
    head = _Header(line=lines.index("@model") + 1)
    at = 0
    while at < head.line - 1:
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
                    head.placeholders[name] = value
                    at += 1
            case "@reward_models":
                if not after.startswith("@"):
                    head.rewards = after.split()
                    at += 1
            case "@nr_states" | "@nr_choices":
                if not COUNT.match(after.strip()):
                    text.fail(f"A number must follow {key}.", at + 1)
                setattr(head, key.removeprefix("@nr_"), int(after))
                at += 1
            case _:
                text.fail(f"A header line must be one of {', '.join(FIELDS)}.", at)
    if not head.type or head.states <= 0:
        missing = "@nr_states" if head.type else "@type"
        text.fail(f"The header must have {missing} before @model.", head.line)
    return head


def _require_supported(
    text: Text, line: int, what: str, word: str, supported: tuple[str, ...]
) -> None:
    if word not in supported:
        raise UnsupportedError(
            f"{text.path}:{line}: the {what} {word!r} is not supported; {', '.join(supported)} are."
        )


class _Body:
    """The lines after `@model`, as columns."""

    def __init__(self, text: Text, head: _Header) -> None:
        self.text, self.head = text, head
        self.states = 0
        self.row_states, self.row_actions, self.row_lines = array("q"), array("q"), array("q")
        self.rows, self.targets, self.lines = array("q"), array("q"), array("q")
        self.lower, self.upper = array("d"), array("d")
        self.actions: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self.label_states, self.label_numbers = array("q"), array("q")
        self.state_rewards: dict[int, list[float]] = {}
        self.row_rewards: dict[int, list[float]] = {}
        in_row = False  # whether a transition belongs to the row before it
        for words in text.rows("//", begin=head.line):
            if not self.states and words[0] != "state":
                text.fail("The first line after @model must be `state 0`.")
            if words[0] in ("state", "action") and len(words) < 2:
                text.fail("A number or name must follow.")
            if words[0] == "state":
                self._add_state(words)
            elif words[0] == "action":
                self._begin_row("" if words[1] == NO_LABEL else words[1])
                if words[2:] and words[2].startswith("["):
                    self.row_rewards[len(self.row_states) - 1] = self._rewards_in(words[2])
            else:
                if not in_row:
                    self._begin_row("")
                self._add_transition(words)
            in_row = words[0] != "state"
        self._check()

    def _add_state(self, words: list[str]) -> None:
        state = self.text.integer(words[1], "state")
        if state != self.states:
            self.text.fail(
                f"States must be numbered 0, 1, 2, ...; expected {self.states}, found {state}."
            )
        self.states += 1
        labels = words[2:]
        if labels and labels[0].startswith("["):
            self.state_rewards[state] = self._rewards_in(labels.pop(0))
        for label in labels:
            self.label_states.append(state)
            self.label_numbers.append(self.labels.setdefault(label.strip('"'), len(self.labels)))

    def _begin_row(self, action: str) -> None:
        if self.head.type == "DTMC" and self.states - 1 in self.row_states[-1:]:
            self.text.fail("A state of a dtmc has one action.")
        self.row_states.append(self.states - 1)
        self.row_actions.append(self.actions.setdefault(action, len(self.actions)))
        self.row_lines.append(self.text.number)

    def _add_transition(self, words: list[str]) -> None:
        if len(words) != 3 or words[1] != ":":
            self.text.fail("A line must be `state N`, `action NAME` or `target : probability`.")
        self.rows.append(len(self.row_states) - 1)
        self.targets.append(self.text.integer(words[0], "target state"))
        low, high = self._bounds(words[2], "probability")
        self.lower.append(low)
        self.upper.append(high)
        self.lines.append(self.text.number)

    def _bounds(self, word: str, what: str) -> tuple[float, float]:
        return self.text.bounds(self.head.placeholders.get(word, word), what)

    def _rewards_in(self, word: str) -> list[float]:
        """Return the rewards of `[a,b]`; an interval must be a number."""
        if not word.endswith("]"):
            self.text.fail("Rewards must end with `]`.")
        ends = [self._bounds(item, "reward") for item in ITEM.findall(word[1:-1])]
        if any(low != high for low, high in ends):
            raise UnsupportedError(f"{self.text.path}: rewards must be numbers, found an interval.")
        return [low for low, _ in ends]

    def _check(self) -> None:
        head, rows = self.head, len(self.row_states)
        if not self.states:
            self.text.fail("States must follow @model; the file may be truncated.", head.line)
        if self.states != head.states:
            self.text.fail(
                f"The header promises {head.states} states, found {self.states}; the file may be "
                "truncated.",
                head.line,
            )
        if head.choices not in (0, rows) and head.type == "MDP":
            message = f"The header promises {head.choices} choices, found {rows}."
            self.text.fail(message, head.line)
        if "init" not in self.labels:
            self.text.fail('Some state must have the label "init".', head.line)

    def table(self, variables: Variables) -> ModelTable:
        """Return the columns of the model."""
        rows = len(self.row_states)
        sizes = np.bincount(np.array(self.rows, dtype=np.int64), minlength=rows)
        self.text.require(
            sizes > 0, np.array(self.row_lines), lambda i: "An action must have transitions."
        )
        labels = state_labels(
            str(self.text.path), self.states, list(self.labels), np.array(self.label_states),
            np.array(self.label_numbers),
        )  # fmt: skip
        return ModelTable(
            self.states,
            np.array(self.row_states, dtype=np.int64),
            starts(sizes),
            np.array(self.targets),
            np.array(self.lower),
            np.array(self.upper),
            np.array(self.row_actions),
            tuple(self.actions),
            np.flatnonzero(labels.pop("init")),
            labels,
            self._rewards(),
            variables,
        )

    def _rewards(self) -> dict[str, Rewards]:
        """Return the reward structures."""
        listed = (*self.state_rewards.values(), *self.row_rewards.values())
        count = max(len(self.head.rewards), *map(len, listed), 0)
        rows = len(self.row_states)
        size = 16.0 * count * (self.states + rows)
        require_memory(size, f"{self.text.path}: {count} rewards of {self.states} states")
        columns = np.zeros((count, self.states)), np.zeros((count, rows))
        for column, paid in zip(columns, (self.state_rewards, self.row_rewards), strict=True):
            for owner, values in paid.items():
                column[: len(values), owner] = values
        names = [*self.head.rewards, *(f"rew{i}" for i in range(len(self.head.rewards), count))]
        return {name: Rewards(columns[0][i], columns[1][i]) for i, name in enumerate(names)}


def _read_valuations(text: Text, head: _Header) -> Variables:
    """Return the variables in comments, if there is one comment per state, else none."""
    comments = [match[1] for match in map(VALUATION.fullmatch, text.lines[head.line :]) if match]
    if len(comments) != head.states:
        return (), None
    states = [
        {name: "false" if negated else value or "true" for negated, name, value in assignments}
        for assignments in map(ASSIGNMENT.findall, comments)
    ]
    names = list(dict.fromkeys(name for values in states for name in values))
    if not names:
        return (), None
    require_memory(160.0 * len(names) * head.states, f"{text.path}: its variables")
    # Storm leaves out booleans that are true
    table: AnyArray = np.array([[values.get(n, "true") for n in names] for values in states])
    words = (table == "true") | (table == "false")
    boolean = words.any(axis=0)
    if np.any(words != boolean):
        return (), None
    numbers = np.where(table == "true", "1", np.where(table == "false", "0", table))
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
