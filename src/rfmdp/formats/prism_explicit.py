"""PRISM's explicit files: `.tra`, `.sta`, `.lab`, `.srew` and `.trew`.

Transitions are `source target p` (two numbers in the header: dtmc) or `source choice target p`
(three: mdp), with an action name at the end or not; `p` may be an interval `[l,u]`.

>>> read_prism_explicit("robot")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.table import (
    IDENTIFIER,
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
from rfmdp.ragged import segment_any, segment_lengths
from rfmdp.types import BoolArray, FloatArray, IntArray

LABEL = re.compile(r'\s*(\d+)="([^"]+)"')
REWARD_NAME = re.compile(r'#\s*Reward structure\s+"([^"]*)"')
TRUTH = {"true": 1, "false": 0}
MOST = 1 << 31  # states, choices of a state, values of a variable


def read_prism_explicit(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the model in PRISM's explicit files; all but the transitions may be missing.

    Parameters
    ----------
    path
        The `.tra` file, or the stem that all files share: `robot` for `robot.tra`, `robot.lab`, ...
        Several reward structures are `robot1.srew`, `robot2.srew`, ..., as PRISM writes them.

    Raises
    ------
    FileError
        With file and line, for whatever is not as it must be. Transition rewards must not differ
        within a row: the expected reward would depend on nature.
    """
    stem = _stem(path)
    text = Text(_beside(stem, ".tra"))
    table, lines = _read_transitions(text)
    labels = _read_labels(_beside(stem, ".lab"), table.states)
    initial = np.flatnonzero(labels.pop("init")) if "init" in labels else np.array([0])
    if "deadlock" in labels and not labels["deadlock"].any():
        del labels["deadlock"]  # PRISM always lists it; every model has it
    table = replace(
        table,
        initial=initial,
        labels=labels,
        rewards=_read_rewards(stem, table),
        variables=_read_states(_beside(stem, ".sta"), table.states),
    )
    return make_model(table, str(text.path), lambda i, message: text.fail(message, int(lines[i])))


def _stem(path: str | os.PathLike[str]) -> Path:
    """Return what the names of all files of a model begin with."""
    place = Path(path)
    return place.with_suffix("") if place.suffix == ".tra" else place


def _beside(stem: Path, ending: str) -> Path:
    """Return one of the files with a common stem."""
    return stem.with_name(stem.name + ending)


def _read_transitions(text: Text) -> tuple[ModelTable, IntArray]:
    """Return the table of transitions, which may come in any order, and the line of each."""
    rows = text.rows("#")
    header = next(rows, [])
    if not header:
        text.fail("A transitions file must start with the numbers of states and transitions.")
    head_line, mdp = text.number, len(header) == 3
    if len(header) > 3:
        raise UnsupportedError(
            f"{text.path}:{head_line}: {len(header)} numbers in the header mean a partially "
            "observable model, which is not supported; dtmc (2 numbers) and mdp (3) are."
        )
    if len(header) < 2:
        text.fail("The header must be `states transitions` or `states choices transitions`.")
    counts = [text.integer(word, "number in the header") for word in header]
    states = counts[0]
    if min(counts) < 0 or states == 0:
        text.fail("The header must have at least one state and no negative number.")
    if states >= MOST:
        text.fail(f"A model must have fewer than 2^31 states, found {states}.")
    require_memory(64.0 * states, f"{text.path}: a model of {states} states")
    form = ("source choice" if mdp else "source") + " target probability [action]"
    sources, choices, targets, actions, lines = (array("q") for _ in range(5))
    lower, upper = array("d"), array("d")
    names = {"": 0}
    base = 4 if mdp else 3
    for words in rows:
        if not base <= len(words) <= base + 1:
            text.fail(f"A transition must be `{form}`, found {len(words)} entries.")
        sources.append(text.integer(words[0], "source state", states))
        choices.append(text.integer(words[1], "choice", MOST) if mdp else 0)
        targets.append(text.integer(words[base - 2], "target state"))
        low, high = text.bounds(words[base - 1], "probability")
        lower.append(low)
        upper.append(high)
        actions.append(names.setdefault(words[base], len(names)) if words[base:] else 0)
        lines.append(text.number)
    if len(lines) != counts[-1]:
        text.fail(
            f"The header promises {counts[-1]} transitions, but {len(lines)} lines follow; the "
            "file may be truncated, else correct the header.",
            head_line,
        )
    order = np.lexsort((choices, sources))
    source, choice, target, action, line = (
        np.array(column, dtype=np.int64)[order]
        for column in (sources, choices, targets, actions, lines)
    )
    begin = np.flatnonzero((np.diff(source, prepend=-1) != 0) | (np.diff(choice, prepend=-1) != 0))
    state, ptr = source[begin], np.append(begin, len(source))
    expected = np.arange(len(begin)) - np.searchsorted(state, state)
    text.require(
        choice[begin] == expected,
        line[begin],
        lambda i: (
            f"The choices of a state must be numbered 0, 1, 2, ...; state {state[i]} has a choice "
            f"{choice[begin[i]]} but no choice {expected[i]}."
        ),
    )
    of_row = np.repeat(action[begin], segment_lengths(ptr))
    if mdp:
        text.require(
            action == of_row,
            line,
            lambda i: (
                "All transitions of a choice must have one action, this choice also has "
                f"{list(names)[of_row[i]] or 'none'!r}."
            ),
        )
    # a dtmc may name every transition; its row then has no name
    row_actions = np.where(segment_any(action != of_row, ptr), 0, action[begin])
    named = len(begin) > 0 and bool(row_actions.all())  # then there is no need for the empty name
    table = ModelTable(
        states, state, ptr, target, np.array(lower)[order], np.array(upper)[order],
        row_actions - named, tuple(names)[named:], np.empty(0, np.int64),
    )  # fmt: skip
    return table, line


def _read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """Return where labels hold; none if there is no file."""
    if not path.exists():
        return {}
    text = Text(path)
    rows = text.rows("#", separators=":")
    next(rows, None)
    line = text.number
    head = text.lines[line - 1]
    listed = LABEL.findall(head)
    if not listed or LABEL.sub("", head).strip():
        text.fail('A labels file must start like `0="init" 1="goal"`.')
    names = [name for _, name in listed]
    if [int(i) for i, _ in listed] != list(range(len(listed))) or len(set(names)) < len(names):
        text.fail("Labels must be numbered 0, 1, 2, ... and have different names.")
    holding, label = array("q"), array("q")
    for words in rows:
        state = text.integer(words[0], "state", states)
        for word in words[1:]:
            holding.append(state)
            label.append(text.integer(word, "label", len(names)))
    where = state_labels(str(path), states, names, np.array(holding), np.array(label))
    if "init" in where and not where["init"].any():
        text.fail('Some state must have the label "init".', line)
    return where


def _read_states(path: Path, states: int) -> Variables:
    """Return the variables, with the ranges that occur; none if there is no file."""
    if not path.exists():
        return (), None
    text = Text(path)
    rows = text.rows("#", separators="():,")
    names = next(rows, [])
    line = text.number
    if not names or not text.lines[line - 1].strip().startswith("("):
        text.fail("A states file must start with the variables, like `(x,y)`.", 1)
    require_memory(8.0 * states * len(names), f"{path}: the values of {len(names)} variables")
    values = np.zeros((states, len(names)), dtype=np.int64)
    times = np.zeros(states, dtype=np.int64)
    boolean: list[bool] = []  # the first state says which variables are
    for words in rows:
        if len(words) != len(names) + 1:
            text.fail(
                f"A state must be `number:(values)` with {len(names)} values, one per variable."
            )
        boolean = boolean or [word in TRUTH for word in words[1:]]
        state = text.integer(words[0], "state", states)
        times[state] += 1
        values[state] = [
            _value(text, *each) for each in zip(names, words[1:], boolean, strict=True)
        ]
    if (times != 1).any():
        wrong = int(np.argmax(times != 1))
        text.fail(f"Each of the {states} states must be listed once; see state {wrong}.", line)
    return state_variables(zip(names, values.T, boolean, strict=True))


def _value(text: Text, name: str, word: str, boolean: bool) -> int:
    """Return the value of a variable."""
    if boolean:
        if word not in TRUTH:
            text.fail(f"The value of {name} must be true or false, found {word!r}.")
        return TRUTH[word]
    value = text.integer(word, f"value of {name}")
    if abs(value) >= MOST:
        text.fail(f"The value of {name} must have 32 bits at most.")
    return value


def _read_rewards(stem: Path, table: ModelTable) -> dict[str, Rewards]:
    """Return the structures: of `STEM.srew` and `.trew`, or of `STEM1.srew`, `STEM1.trew`, ..."""
    alone = any(_beside(stem, ending).exists() for ending in (".srew", ".trew"))
    rewards: dict[str, Rewards] = {}
    for place in [""] if alone else map(str, count(1)):
        of_states, of_rows = (_beside(stem, place + ending) for ending in (".srew", ".trew"))
        if not of_states.exists() and not of_rows.exists():
            break
        name, state, row = "", np.zeros(table.states), np.zeros(table.rows)
        if of_rows.exists():
            name, row = _transition_rewards(Text(of_rows), table)
        if of_states.exists():
            state_name, state = _state_rewards(Text(of_states), table.states)
            name = state_name or name
        rewards[name if name not in rewards else f"reward{place}"] = Rewards(state, row)
    return rewards


def _reward_header(text: Text, rows: Iterator[list[str]]) -> tuple[str, list[int]]:
    """Return the name in a rewards file, perhaps none, and the numbers of its header."""
    header = next(rows, [])
    if not header:
        text.fail("A rewards file must start with the numbers of states and rewards.")
    names = map(REWARD_NAME.match, text.lines[: text.number])
    counts = [text.integer(word, "number in the header") for word in header]
    return next((match.group(1) for match in names if match), ""), counts


def _require_complete(text: Text, promised: int, found: int) -> None:
    """Raise FileError unless there are as many rewards as the header says."""
    if found != promised:
        text.fail(
            f"The header promises {promised} rewards, but {found} lines follow; the file may be "
            "truncated, else correct the header."
        )


def _state_rewards(text: Text, states: int) -> tuple[str, FloatArray]:
    """Return the name of a structure, perhaps none, and what states pay."""
    rows = text.rows("#")
    name, counts = _reward_header(text, rows)
    rewards, found = np.zeros(states), 0
    for words in rows:
        found += 1
        if len(words) != 2:
            text.fail(f"A line must be `state reward`, found {len(words)} entries.")
        state = text.integer(words[0], "state", states)
        rewards[state] = text.one_number(words[1], "reward")
    _require_complete(text, counts[-1], found)
    return name, rewards


def _transition_rewards(text: Text, table: ModelTable) -> tuple[str, FloatArray]:
    """Return the name of a structure and what rows pay; a row's transitions must pay the same.

    The header says, as that of the transitions, whether lines have a number of a choice.
    """
    rows = text.rows("#")
    name, counts = _reward_header(text, rows)
    width, found = len(counts), 0
    if width not in (2, 3) or (width == 2 and table.choices.max(initial=0) > 0):
        text.fail("The header must have as many numbers as that of the transitions.")
    form = "`source choice target reward`" if width == 3 else "`source target reward`"
    row_ptr, ptr = table.row_ptr, table.successor_ptr
    paid: dict[int, dict[int, float]] = {}  # by row and target
    lines: dict[int, int] = {}  # the first of a row
    for words in rows:
        found += 1
        if len(words) != width + 1:
            text.fail(f"A line must be {form}, found {len(words)} entries.")
        source = text.integer(words[0], "source state", table.states)
        choice = text.integer(words[1], "choice", MOST) if width == 3 else 0
        row = int(row_ptr[source]) + choice
        if row >= row_ptr[source + 1]:
            text.fail(f"The state has no choice {choice}.")
        target = text.integer(words[width - 1], "target state", table.states)
        if target not in table.successors[ptr[row] : ptr[row + 1]]:
            text.fail("The model has no such transition.")
        paid.setdefault(row, {})[target] = text.one_number(words[width], "reward")
        lines.setdefault(row, text.number)
    _require_complete(text, counts[-1], found)
    rewards = np.zeros(table.rows)
    for row, listed in paid.items():
        targets = table.successors[ptr[row] : ptr[row + 1]].tolist()
        different = {listed.get(target, 0.0) for target in targets}
        if len(different) > 1:
            text.fail(
                "The rewards of all transitions of a row must be equal, those of state "
                f"{table.row_states[row]} differ (transitions that are not listed have 0): the "
                "expected reward would depend on nature's probabilities; move the reward to the "
                "target state.",
                lines[row],
            )
        rewards[row] = different.pop()
    return name, rewards


def write_prism_explicit(model: FactoredMDP, path: str | os.PathLike[str]) -> Written:
    """Write `STEM.tra`, `.lab`, and as far as the model has them `.sta`, `.srew` and `.trew`.

    Numbers are written so that they read back exactly. A dtmc is written if every state has one
    choice, else an mdp. Several reward structures become `STEM1.srew`, `STEM2.srew`, ...

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    path
        The `.tra` file, or the stem.

    Returns
    -------
    Written
        The files, and a note that says what flattening changed.
    """
    table, note = to_table(model)
    _check_names(table)
    stem = _stem(path)
    files = {".tra": _transition_lines(table), ".lab": _label_lines(table, model.label("deadlock"))}
    if model.variables:
        files[".sta"] = _state_lines(model)
    paid = any(np.any(rewards.row != 0.0) for rewards in table.rewards.values())
    for i, (name, rewards) in enumerate(table.rewards.items()):
        place = str(i + 1) if len(table.rewards) > 1 else ""
        files[f"{place}.srew"] = _state_reward_lines(name, rewards.state)
        if paid:
            files[f"{place}.trew"] = _transition_reward_lines(table, name, rewards.row)
    for ending, lines in files.items():
        write_lines(_beside(stem, ending), lines)
    return Written(tuple(_beside(stem, ending) for ending in files), note)


def _check_names(table: ModelTable) -> None:
    """Refuse names that PRISM would refuse when it reads them."""
    names = {
        "Action": [name for name in table.actions if name],
        "Label": list(table.labels),
        "Reward structure": [name for name in table.rewards if name],
        "Variable": [v.name for v in table.variables[0]],
    }
    for what, listed in names.items():
        for name in listed:
            if not IDENTIFIER.match(name):
                raise ModelError(
                    f"{what} {name!r} cannot be written to PRISM's files: a name must consist of "
                    "letters, digits and _, and not start with a digit; rename it."
                )


def _head(table: ModelTable, count: int) -> str:
    rows = "" if table.chain else f" {table.rows}"
    return f"{table.states}{rows} {count}"


def _row_starts(table: ModelTable) -> list[str]:
    """Return `source choice ` of every row, or `source ` of a dtmc."""
    states = table.row_states.tolist()
    if table.chain:
        return [f"{s} " for s in states]
    return [f"{s} {c} " for s, c in zip(states, table.choices.tolist(), strict=True)]


def _transition_lines(table: ModelTable) -> Iterator[str]:
    yield _head(table, len(table.successors))
    names = table.action_names("", before=" ")
    actions = [names[a] for a in table.row_actions.tolist()]
    begin = _row_starts(table)
    for row, target, text in table.entries(","):
        yield f"{begin[row]}{target} {text}{actions[row]}"


def _label_lines(table: ModelTable, deadlock: BoolArray) -> Iterator[str]:
    where = {"init": table.labels["init"], "deadlock": deadlock, **table.labels}
    yield " ".join(f'{i}="{name}"' for i, name in enumerate(where))
    states, labels = np.nonzero(np.stack(list(where.values()), axis=1))
    begin = np.flatnonzero(np.diff(states, prepend=-1)).tolist()
    for start, end in zip(begin, [*begin[1:], len(states)], strict=True):
        yield f"{states[start]}: " + " ".join(map(str, labels[start:end].tolist()))


def _state_lines(model: FactoredMDP) -> Iterator[str]:
    yield "(" + ",".join(v.name for v in model.variables) + ")"
    for s, values in enumerate(zip(*model.state_columns().values(), strict=True)):
        yield f"{s}:(" + ",".join(str(x).lower() for x in values) + ")"


def _reward_head(name: str, what: str) -> Iterator[str]:
    yield "# Reward structure" + (f' "{name}"' if name else "")
    yield f"# {what} rewards"


def _state_reward_lines(name: str, rewards: FloatArray) -> Iterator[str]:
    paid = np.flatnonzero(rewards)
    yield from _reward_head(name, "State")
    yield f"{len(rewards)} {len(paid)}"
    for s, x in zip(paid.tolist(), rewards[paid].tolist(), strict=True):
        yield f"{s} {number(x)}"


def _transition_reward_lines(table: ModelTable, name: str, rewards: FloatArray) -> Iterator[str]:
    paid = np.flatnonzero(rewards)
    ends = table.successor_ptr
    yield from _reward_head(name, "Transition")
    yield _head(table, int(np.sum(ends[paid + 1] - ends[paid])))
    begin = _row_starts(table)
    for r, x in zip(paid.tolist(), rewards[paid].tolist(), strict=True):
        for target in table.successors[ends[r] : ends[r + 1]].tolist():
            yield f"{begin[r]}{target} {number(x)}"
