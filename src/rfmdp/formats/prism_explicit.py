"""Read PRISM's explicit files: `.tra`, `.sta`, `.lab`, `.srew` and `.trew`.

Transitions are `source target p` (two numbers in the header: dtmc) or `source choice target p`
(three: mdp), with an action name at the end or not; `p` may be an interval `[l,u]`.

>>> read_prism_explicit("robot")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.formats.table import (
    ModelTable,
    Variables,
    make_model,
    state_labels,
    state_variables,
)
from rfmdp.formats.text import Text, Words
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import find, owners, segment_any, segment_lengths
from rfmdp.types import BoolArray, FloatArray, IntArray

LABEL = re.compile(r'\s*(\d+)="([^"]+)"')
REWARD_NAME = re.compile(r'#\s*Reward structure\s+"([^"]*)"')
TRUTH = {"true": 1, "false": 0}


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
    stem = stem_of(path)
    words, table = _read_transitions(beside(stem, ".tra"))
    labels = _read_labels(beside(stem, ".lab"), table.states)
    initial = np.flatnonzero(labels.pop("init")) if "init" in labels else np.array([0])
    if "deadlock" in labels and not labels["deadlock"].any():
        del labels["deadlock"]  # PRISM always lists it; every model has it

    def fail(entry: int, message: str) -> NoReturn:
        words.fail(entry, message)

    table = replace(
        table,
        initial=initial,
        labels=labels,
        rewards=_read_rewards(stem, table),
        variables=_read_states(beside(stem, ".sta"), table.states),
    )
    return make_model(table, str(words.text.path), fail)


def stem_of(path: str | os.PathLike[str]) -> Path:
    """Return what the names of all files of a model begin with."""
    place = Path(path)
    return place.with_suffix("") if place.suffix == ".tra" else place


def beside(stem: Path, ending: str) -> Path:
    """Return one of the files with a common stem."""
    return stem.with_name(stem.name + ending)


def _read_transitions(path: Path) -> tuple[Words, ModelTable]:
    """Return the lines of the transitions, by their first words, and the table that they make."""
    text = Text.read(path)
    words = text.words(comment=b"#")
    first, width = words.lines()
    if not len(first):
        text.fail(1, "A transitions file must start with the numbers of states and transitions.")
    if width[0] > 3:
        raise UnsupportedError(
            f"{path}:{words.line[0]}: {width[0]} numbers in the header mean a partially observable "
            "model, which is not supported; dtmc (2 numbers) and mdp (3) are."
        )
    if width[0] < 2:
        words.fail(0, "The header must be `states transitions` or `states choices transitions`.")
    header = words[: width[0]].integers("number in the header")
    states = int(header[0])
    if header.min() < 0 or states == 0:
        words.fail(0, "The header must have at least one state and no negative number.")
    if states >= 1 << 31:
        words.fail(0, f"A model must have fewer than 2^31 states, found {states}.")
    require_memory(64.0 * states, f"{path}: a model of {states} states")
    lines, table = _rows(words, first[1:], width[1:], states, mdp=len(header) == 3)
    if len(lines) != header[-1]:
        words.fail(
            0,
            f"The header promises {header[-1]} transitions, but {len(lines)} lines follow; the "
            "file may be truncated, else correct the header.",
        )
    return lines, table


def _rows(
    words: Words, first: IntArray, width: IntArray, states: int, *, mdp: bool
) -> tuple[Words, ModelTable]:
    """Return the lines after the header grouped to rows; they may come in any order."""
    base = 4 if mdp else 3
    form = "`source choice target probability [action]`" if mdp else (
        "`source target probability [action]`"
    )  # fmt: skip
    words[first].require(
        (width == base) | (width == base + 1),
        lambda i: f"A transition must be {form}, found {width[i]} entries.",
    )
    source = words[first].integers("source state", states)
    choice = words[first + 1].integers("choice", 1 << 31) if mdp else np.zeros_like(source)
    step = np.diff(source)
    if np.any((step < 0) | ((step == 0) & (np.diff(choice) < 0))):
        order = np.lexsort((choice, source))
        first, width, source, choice = first[order], width[order], source[order], choice[order]
    lines = words[first]
    fresh = (np.diff(source, prepend=-1) != 0) | (np.diff(choice, prepend=-1) != 0)
    begin = np.flatnonzero(fresh)
    state = source[begin]
    expected = np.arange(len(begin)) - np.searchsorted(state, state)
    lines[begin].require(
        choice[begin] == expected,
        lambda i: (
            f"The choices of a state must be numbered 0, 1, 2, ...; state {state[i]} has a choice "
            f"{choice[begin[i]]} but no choice {expected[i]}."
        ),
    )
    ptr = np.append(begin, len(first))
    row_actions, names = _row_actions(lines, words, first + base, width == base + 1, ptr, mdp=mdp)
    table = ModelTable(
        states, state, ptr, words[first + base - 2].integers("target state"),
        *words[first + base - 1].values("probability"), row_actions, names, np.empty(0, np.int64),
    )  # fmt: skip
    return lines, table


def _row_actions(
    lines: Words, words: Words, at: IntArray, named: BoolArray, ptr: IntArray, *, mdp: bool
) -> tuple[IntArray, tuple[str, ...]]:
    """Return the action of every row, and all names; those of lines stand at some words."""
    ids, listed = words[at[named]].distinct()
    names = ["", *listed]
    action = np.zeros(len(lines), dtype=np.int64)
    action[named] = ids + 1
    of_row = np.repeat(action[ptr[:-1]], segment_lengths(ptr))
    if mdp:
        lines.require(
            action == of_row,
            lambda i: (
                "All transitions of a choice must have one action, this choice also has "
                f"{names[of_row[i]] or 'none'!r}."
            ),
        )
    # a dtmc may name every transition; its row then has no name
    several = segment_any(action != of_row, ptr)
    row_actions = np.where(several, 0, action[ptr[:-1]])
    if np.any(row_actions == 0) or not listed:
        return row_actions, tuple(names)
    return row_actions - 1, tuple(listed)


def _read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """Return where labels hold; none if there is no file."""
    if not path.exists():
        return {}
    text = Text.read(path)
    words = text.words(comment=b"#", separators=b":")
    line = int(words.line[0]) if len(words) else 1
    head = text.line(line)
    listed = LABEL.findall(head)
    if not listed or LABEL.sub("", head).strip():
        text.fail(line, 'A labels file must start like `0="init" 1="goal"`.')
    names = [name for _, name in listed]
    if [int(i) for i, _ in listed] != list(range(len(listed))) or len(set(names)) < len(names):
        text.fail(line, "Labels must be numbered 0, 1, 2, ... and have different names.")
    body = words[words.line > line]
    first, width = body.lines()
    state = body[first].integers("state", states)
    rest = np.ones(len(body), dtype=np.bool_)
    rest[first] = False
    label = body[rest].integers("label", len(names))
    where = state_labels(str(path), states, names, np.repeat(state, width - 1), label)
    if "init" in where and not where["init"].any():
        text.fail(line, 'Some state must have the label "init".')
    return where


def _read_states(path: Path, states: int) -> Variables:
    """Return the variables, with the ranges that occur; none if there is no file."""
    if not path.exists():
        return (), None
    text = Text.read(path)
    words = text.words(comment=b"#", separators=b"():,")
    if not len(words) or not text.line(int(words.line[0])).strip().startswith("("):
        text.fail(1, "A states file must start with the variables, like `(x,y)`.")
    first, width = words.lines()
    names = [words.word(i) for i in range(width[0])]
    body = words[first[1:]]
    body.require(
        width[1:] == len(names) + 1,
        lambda i: f"A state must be `number:(values)` with {len(names)} values, one per variable.",
    )
    state = body.integers("state", states)
    times = np.bincount(state, minlength=states)
    if len(state) != states or times.max(initial=1) > 1:
        wrong = int(np.argmax(times != 1))
        words.fail(0, f"Each of the {states} states must be listed once; see state {wrong}.")
    lines = first[1:][np.argsort(state)]
    return state_variables(_column(words[lines + 1 + v], name) for v, name in enumerate(names))


def _column(words: Words, name: str) -> tuple[str, IntArray, bool]:
    """Return a variable's name and values; the first one says whether it is boolean."""
    if words.word(0) not in TRUTH:
        value = words.integers(f"value of {name}")
        words.require(
            np.abs(value) < 1 << 31, lambda i: f"The value of {name} must have 32 bits at most."
        )
        return name, value, False
    ids, names = words.distinct()
    value = np.array([TRUTH.get(name, -1) for name in names])[ids]
    words.require(
        value >= 0,
        lambda i: f"The value of {name} must be true or false, found {words.word(i)!r}.",
    )
    return name, value, True


def _read_rewards(stem: Path, table: ModelTable) -> dict[str, Rewards]:
    """Return the structures; files belong together by name, or by place if one has none."""
    structures: list[tuple[str, FloatArray, FloatArray]] = []
    for path in _reward_files(stem, ".srew"):
        name, words, first, width = _open_rewards(path)
        state = _state_rewards(words, first[1:], width[1:], table.states)
        structures.append((name, state, np.zeros(table.rows)))
    count = len(structures)
    for place, path in enumerate(_reward_files(stem, ".trew")):
        name, words, first, width = _open_rewards(path)
        row = _transition_rewards(words, first, width, table)
        named = [i for i in range(count) if name and structures[i][0] == name]
        by_place = place < count and not (name and structures[place][0])
        if named or by_place:
            i = named[0] if named else place
            structures[i] = (structures[i][0] or name, structures[i][1], row)
        else:
            structures.append((name, np.zeros(table.states), row))
    rewards: dict[str, Rewards] = {}
    for i, (name, state, row) in enumerate(structures):
        rewards[name if name not in rewards else f"reward{i + 1}"] = Rewards(state, row)
    return rewards


def _reward_files(stem: Path, ending: str) -> Iterator[Path]:
    """Yield the one file of rewards, or all that have numbers."""
    path, i = beside(stem, ending), 1
    if path.exists():
        yield path
        return
    while (path := beside(stem, f"{i}{ending}")).exists():
        yield path
        i += 1


def _open_rewards(path: Path) -> tuple[str, Words, IntArray, IntArray]:
    """Return the name in a rewards file, perhaps none, and its words; the header is line 0."""
    text = Text.read(path)
    words = text.words(comment=b"#")
    first, width = words.lines()
    if not len(first):
        text.fail(1, "A rewards file must start with the numbers of states and rewards.")
    names = (REWARD_NAME.match(text.line(line)) for line in range(1, int(words.line[0])))
    return next((n.group(1) for n in names if n), ""), words, first, width


def _state_rewards(words: Words, first: IntArray, width: IntArray, states: int) -> FloatArray:
    head = words[first]
    head.require(width == 2, lambda i: f"A line must be `state reward`, found {width[i]} entries.")
    rewards = np.zeros(states)
    rewards[head.integers("state", states)] = words[first + 1].numbers("reward")
    return rewards


def _transition_rewards(
    words: Words, first: IntArray, width: IntArray, table: ModelTable
) -> FloatArray:
    """Return the rewards of rows; those of a row's transitions must be equal.

    The header says, as that of the transitions, whether lines have a number of a choice.
    """
    columns = int(width[0]) + 1
    if columns not in (3, 4) or (columns == 3 and table.choices.max(initial=0) > 0):
        words.fail(0, "The header must have as many numbers as that of the transitions.")
    form = "`source choice target reward`" if columns == 4 else "`source target reward`"
    first, width = first[1:], width[1:]
    states, head = table.states, words[first]
    head.require(width == columns, lambda i: f"A line must be {form}, found {width[i]} entries.")
    source = head.integers("source state", states)
    choice = words[first + 1].integers("choice", 1 << 31) if columns == 4 else 0 * source
    row_ptr = table.row_ptr
    row = row_ptr[source] + choice
    head.require(row < row_ptr[source + 1], lambda i: f"The state has no choice {choice[i]}.")
    listed = row * states + words[first + columns - 2].integers("target state", states)
    key = owners(table.successor_ptr) * states + table.successors
    missing = find(np.sort(key), listed) < 0
    head.require(~missing, lambda i: "The model has no such transition.")
    value = words[first + columns - 1].numbers("reward")
    different, last = np.unique(listed[::-1], return_index=True)
    # -1, not listed: the 0 at the end
    paid = np.append(value[::-1][last], 0.0)[find(different, key)]
    least = np.minimum.reduceat(paid, table.successor_ptr[:-1])
    mixed = least != np.maximum.reduceat(paid, table.successor_ptr[:-1])
    head.require(
        ~mixed[row],
        lambda i: (
            f"The rewards of all transitions of a row must be equal, those of state {source[i]} "
            "differ (transitions that are not listed have 0): the expected reward would depend on "
            "nature's probabilities; move the reward to the target state."
        ),
    )
    return least
