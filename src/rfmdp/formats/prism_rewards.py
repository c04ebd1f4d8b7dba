"""Read PRISM's `.srew` and `.trew` files into reward structures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rfmdp.formats.explicit import FileRows
from rfmdp.formats.text import Text, Words
from rfmdp.model.arrays import Rewards
from rfmdp.ragged import find, owners
from rfmdp.types import FloatArray, IntArray

NAME = re.compile(r'#\s*Reward structure\s+"([^"]*)"')


def read_rewards(
    state_files: Sequence[Path],
    transition_files: Sequence[Path],
    rows: FileRows,
    states: int,
    choices: bool,
) -> dict[str, Rewards]:
    """Return the structures; files belong together by name, or by place if one has none.

    `choices`: whether transitions are named by source, choice and target, as in an mdp.
    """
    found: list[tuple[str | None, FloatArray, FloatArray]] = []
    for path in state_files:
        name, words, first, width = _open(path)
        found.append((name, _state_rewards(words, first, width, states), np.zeros(len(rows.sizes))))
    alone = len(found)
    for place, path in enumerate(transition_files):
        name, words, first, width = _open(path)
        row = _transition_rewards(words, first, width, rows, states, choices)
        named = [i for i in range(alone) if found[i][0] == name and name is not None]
        by_place = place < alone and (name is None or found[place][0] is None)
        if named or by_place:
            i = named[0] if named else place
            found[i] = (found[i][0] or name, found[i][1], row)
        else:
            found.append((name, np.zeros(states), row))
    result: dict[str, Rewards] = {}
    for i, (name, state, row) in enumerate(found):
        key = name or ""
        result[key if key not in result else f"reward{i + 1}"] = Rewards(state, row)
    return result


def _open(path: Path) -> tuple[str | None, Words, IntArray, IntArray]:
    """Return the name in a rewards file and its words, without the header."""
    text = Text.read(path)
    words = text.words(comment="#")
    first, width = words.lines()
    if not len(first):
        text.fail(1, "A rewards file must start with the numbers of states and rewards.")
    match = None
    for line in range(1, int(words.line[0])):
        match = match or NAME.match(text.line(line))
    return (match.group(1) or None if match else None), words, first[1:], width[1:]


def _state_rewards(words: Words, first: IntArray, width: IntArray, states: int) -> FloatArray:
    head = words[first]
    head.require(width == 2, lambda i: f"A line must be `state reward`, found {width[i]} entries.")
    rewards = np.zeros(states)
    rewards[head.integers("state", states)] = words[first + 1].numbers("reward")
    return rewards


def _transition_rewards(
    words: Words, first: IntArray, width: IntArray, rows: FileRows, states: int, choices: bool
) -> FloatArray:
    """Return the rewards of rows; those of a row's transitions must be equal."""
    columns = 4 if choices else 3
    form = "`source choice target reward`" if choices else "`source target reward`"
    head = words[first]
    head.require(width == columns, lambda i: f"A line must be {form}, found {width[i]} entries.")
    source = head.integers("source state", states)
    choice = words[first + 1].integers("choice", 1 << 31) if choices else np.zeros_like(source)
    first_row = np.searchsorted(rows.row_states, np.arange(states + 1))
    row = first_row[source] + choice
    missing = "The state has no choice {}." if choices else "There is no such transition."
    head.require(row < first_row[source + 1], lambda i: missing.format(choice[i]))
    wanted = row * states + words[first + columns - 2].integers("target state", states)
    key = owners(rows.successor_ptr) * states + rows.successors
    head.require(np.isin(wanted, key), lambda i: "The model has no such transition.")
    value = words[first + columns - 1].numbers("reward")
    listed, last = np.unique(wanted[::-1], return_index=True)
    # -1, not listed: the 0 at the end
    per_transition = np.append(value[::-1][last], 0.0)[find(listed, key)]
    first_entry = rows.successor_ptr[:-1]
    least = np.minimum.reduceat(per_transition, first_entry)
    mixed = least != np.maximum.reduceat(per_transition, first_entry)
    head.require(
        ~mixed[row],
        lambda i: (
            f"The rewards of all transitions of a row must be equal, those of state "
            f"{rows.row_states[row[i]]} differ (transitions that are not listed have 0): the "
            "expected reward would depend on nature's probabilities; move the reward to the target "
            "state."
        ),
    )
    return least
