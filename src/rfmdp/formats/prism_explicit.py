"""PRISM's explicit files: `.tra`, `.sta`, `.lab`, `.srew` and `.trew`.

Transitions are `source target p` (two numbers in the header: dtmc) or `source choice target p`
(three: mdp), with an action name at the end or not; `p` may be an interval `[l,u]`.

>>> read_prism_explicit("robot")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import count, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.formats.table import TRUTH, Columns, Kind, Text, Written, make_model, to_columns
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.ragged import entries, find, owners, segment_any, segment_lengths, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.writing import replacing

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
LABEL = re.compile(r'\s*(\d{1,9})="([^"]+)"')
REWARD_NAME = re.compile(r'#\s*Reward structure\s+"([^"]*)"')
MOST = 1 << 31  # states, choices of a state, values of a variable
LINES = 1 << 16  # lines that are put together before they are written
BETWEEN = "():,"  # the words of a state


def read_prism_explicit(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the model in PRISM's explicit files; all but the transitions may be missing.

    The path is that of the `.tra` file, or the stem that all files share: `robot` for `robot.tra`,
    `robot.lab`, ... Several reward structures are `robot1.srew`, ..., as PRISM writes them.

    Raises
    ------
    FileError
        With file and line, for whatever is not as it must be. Transition rewards must not differ
        within a row: the expected reward would depend on nature.
    """
    stem = os.fspath(path).removesuffix(".tra")
    text = Text(f"{stem}.tra")
    columns, rows = _read_transitions(text)
    labels = _read_labels(Path(f"{stem}.lab"), columns.states)
    initial = np.flatnonzero(labels.pop("init")) if "init" in labels else np.array([0])
    if "deadlock" in labels and not labels["deadlock"].any():
        del labels["deadlock"]  # PRISM always lists it; every model has it
    return make_model(
        columns,
        str(text.path),
        lambda i, message: text.fail(message, int(rows[i])),
        initial=initial,
        labels=labels,
        rewards=_read_rewards(stem, columns),
        **_read_states(Path(f"{stem}.sta"), columns.states),
    )


def _header(text: Text) -> list[int]:
    """Return the numbers in the head: states, choices of an mdp, lines."""
    words = text.words(text.head)
    counts = text.column(words, "number in the header", "integer", [-1] * len(words)).tolist()
    if len(counts) not in (2, 3) or min(counts) < 0 or not 0 < counts[0] < MOST:
        text.fail(
            "The header must be `states lines` or `states choices lines`, with 1 to 2^31 - 1 "
            "states; models with observations (4 numbers) are not supported."
        )
    return list(counts)


def _read_transitions(text: Text) -> tuple[Columns, IntArray]:
    """Return the columns of transitions, which may come in any order, and the row of each."""
    states, *choices_of_mdp, promised = _header(text)
    require_memory(64.0 * states, f"{text.path}: a model of {states} states")
    kinds: list[tuple[str, Kind]] = [
        ("source", states), *(("choice", MOST) for _ in choices_of_mdp), ("target", "integer"),
        ("probability", "bounds"), ("action", "name"),
    ]  # fmt: skip
    columns = text.columns(kinds, promised)
    if not choices_of_mdp:
        columns.insert(1, np.zeros_like(columns[0]))
    order = np.lexsort((columns[1], columns[0]))
    source, choice, target, bounds, action = (column[order] for column in columns)
    names = list(text.names)
    begin = np.flatnonzero((np.diff(source, prepend=-1) != 0) | (np.diff(choice, prepend=-1) != 0))
    state, ptr = source[begin], np.append(begin, len(source))
    expected = np.arange(len(begin)) - np.searchsorted(state, state)
    text.require(
        choice[begin] == expected,
        lambda i: (
            f"The choices of a state must be numbered 0, 1, 2, ...; state {state[i]} has a choice "
            f"{choice[begin[i]]} but no choice {expected[i]}."
        ),
        order[begin],
    )
    of_row = np.repeat(action[begin], segment_lengths(ptr))
    if choices_of_mdp:
        text.require(
            action == of_row,
            lambda i: (
                "All transitions of a choice must have one action, this choice also has "
                f"{names[of_row[i]] or 'none'!r}."
            ),
            order,
        )
    # a dtmc may name every transition; its row then has no name
    row_actions = np.where(segment_any(action != of_row, ptr), 0, action[begin])
    named = len(begin) > 0 and bool(row_actions.all())  # then there is no need for the empty name
    lower, upper = bounds.T.copy()
    row_ptr = starts(np.bincount(state, minlength=states))
    actions = tuple(names)[named:]
    return Columns(row_ptr, ptr, target, lower, upper, row_actions - named, actions), order


def _read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """Return where labels hold; none if there is no file."""
    if not path.exists():
        return {}
    text = Text(path, ":")
    listed = LABEL.findall(text.head)
    names = [name for _, name in listed]
    numbered = [int(i) for i, _ in listed] == list(range(len(set(names)))) != []
    if not numbered or LABEL.sub("", text.head).strip():
        text.fail(
            'A labels file must start like `0="init" 1="goal"`: labels are numbered 0, 1, 2, ... '
            "and have different names."
        )
    require_memory(float(states) * len(names), f"{path}: {len(names)} labels of {states} states")
    where, lines = np.zeros((len(names), states), dtype=np.bool_), list(text.rows())
    holding = text.column([line[0] for line in lines], "state", states, range(len(lines)))
    row = np.repeat(np.arange(len(lines)), [len(line) - 1 for line in lines])
    numbers = [number for line in lines for number in line[1:]]
    where[text.column(numbers, "label", len(names), row), holding[row]] = True
    labels = dict(zip(names, where, strict=True))
    if "init" in labels and not labels["init"].any():
        text.fail('Some state must have the label "init".')
    return labels


def _read_states(path: Path, states: int) -> dict[str, Any]:
    """Return the fields of variables, with the ranges that occur; none if there is no file."""
    if not path.exists():
        return {}
    text = Text(path, BETWEEN)
    names, first = text.words(text.head), next(text.rows(), [])
    if not names or not text.head.strip().startswith("("):
        text.fail("A states file must start with the variables, like `(x,y)`.")
    require_memory(16.0 * states * len(names), f"{path}: the values of {len(names)} variables")
    # the first state says which variables are booleans
    boolean = [word in TRUTH for word in (first[1:] + [""] * len(names))[: len(names)]]
    kinds = [
        (name, "truth" if true else "integer") for name, true in zip(names, boolean, strict=True)
    ]
    numbers, *columns = text.columns([("state", states), *kinds])
    times = np.bincount(numbers, minlength=states)
    if (times != 1).any():
        wrong = int(np.argmax(times != 1))
        text.fail(f"Each of the {states} states must be listed once; see state {wrong}.")
    valuations = np.empty((states, len(names)), dtype=np.int64)
    valuations[numbers] = np.stack(columns, axis=1)
    fits = np.all((valuations > -MOST) & (valuations < MOST), axis=1)
    text.require(fits[numbers], lambda i: "Variables must have 32 bits at most.")
    lows, highs = valuations.min(axis=0).tolist(), valuations.max(axis=0).tolist()
    variables = tuple(
        Variable(name, 0, 1, True) if true else Variable(name, low, high)
        for name, low, high, true in zip(names, lows, highs, boolean, strict=True)
    )
    return {"variables": variables, "valuations": valuations.astype(np.int32)}


def _read_rewards(stem: str, table: Columns) -> dict[str, Rewards]:
    """Return the structures: of `STEM.srew` and `.trew`, or of `STEM1.srew`, `STEM1.trew`, ..."""
    alone = any(Path(f"{stem}{ending}").exists() for ending in (".srew", ".trew"))
    rewards: dict[str, Rewards] = {}
    for place in [""] if alone else map(str, count(1)):
        of_states, of_rows = (Path(f"{stem}{place}{ending}") for ending in (".srew", ".trew"))
        if not of_states.exists() and not of_rows.exists():
            break
        name, state, row = "", np.zeros(table.states), np.zeros(table.rows)
        if of_rows.exists():
            name, row = _transition_rewards(Text(of_rows), table)
        if of_states.exists():
            text = Text(of_states)
            (states, paid), state_name = _paid(text, [("state", table.states)])
            state[states], name = paid, state_name or name
        rewards[name if name not in rewards else f"reward{place}"] = Rewards(state, row)
    return rewards


def _transition_rewards(text: Text, table: Columns) -> tuple[str, FloatArray]:
    """Return the name of a structure and what rows pay; a row's transitions must pay the same."""
    columns, name = _paid(text, [("source", table.states), ("target", table.states)])
    source, *choice, target, paid = columns
    if not choice and table.rows > table.states:
        text.fail("The header must have as many numbers as that of the transitions.")
    number = choice[0] if choice else np.zeros(len(source), dtype=np.int64)
    row = table.row_ptr[source] + number
    keys = row * table.states + target
    ours = owners(table.successor_ptr) * table.states + table.successors
    # with places it sorts, which is quick here: files are sorted
    known, listed = (np.unique(k, return_index=True)[0] for k in (ours, keys))
    exists = (row < table.row_ptr[source + 1]) & (find(known, keys) >= 0)
    text.require(exists, lambda i: "The model has no such transition.")
    has, pays = (np.bincount(k // table.states, minlength=table.rows) for k in (known, listed))
    rewards = np.zeros(table.rows)
    rewards[row] = paid
    text.require(
        (paid == rewards[row]) & ((paid == 0.0) | (has == pays)[row]),
        lambda i: (
            "The rewards of all transitions of a row must be equal, those of state "
            f"{source[i]} differ (transitions that are not listed have 0): the expected reward "
            "would depend on nature's probabilities; move the reward to the target state."
        ),
    )
    return name, rewards


def _paid(text: Text, places: list[tuple[str, Kind]]) -> tuple[list[AnyArray], str]:
    """Return places and rewards (N,) of a file, and the name of the structure.

    The header of transitions says, as that of `.tra`, whether lines have the number of a choice.
    """
    header = _header(text)
    if len(header) == 3 and len(places) > 1:
        places.insert(1, ("choice", MOST))
    names = map(REWARD_NAME.match, text.lines[: text.lines.index(text.head)])
    name = next((match.group(1) for match in names if match), "")
    *at, pairs = text.columns([*places, ("reward", "bounds")], header[-1])
    text.require(pairs[:, 0] == pairs[:, 1], lambda i: "The reward must be one number.")
    return [*at, pairs[:, 0]], name


def write_prism_explicit(model: FactoredMDP, path: str | os.PathLike[str]) -> Written:
    """Write `STEM.tra`, `.lab`, and as far as the model has them `.sta`, `.srew` and `.trew`.

    Numbers are written so that they read back exactly. A dtmc is written if every state has one
    choice, else an mdp. Several reward structures become `STEM1.srew`, `STEM2.srew`, ... Several
    marginals of a row are multiplied out by `flatten`; the note says what that changed.
    """
    flat, table, note = to_columns(model)
    optional = filter(None, (*flat.actions, *flat.rewards))
    for name in (*optional, *flat.labels, *(v.name for v in flat.variables)):
        if not IDENTIFIER.match(name):
            raise ModelError(
                f"{name!r} cannot be written to PRISM's files: a name of an action, label, reward "
                "or variable must consist of letters, digits and _, and not start with a digit; "
                "rename it."
            )
    stem = os.fspath(path).removesuffix(".tra")
    files = {".tra": _transition_lines(table), ".lab": _label_lines(model)}
    if model.variables:
        files[".sta"] = _state_lines(model)
    paid = any(np.any(rewards.row != 0.0) for rewards in flat.rewards.values())
    for i, (name, rewards) in enumerate(flat.rewards.items()):
        place = str(i + 1) if len(flat.rewards) > 1 else ""
        files[f"{place}.srew"] = _reward_lines(name, rewards.state)
        if paid:
            files[f"{place}.trew"] = _transition_lines(table, rewards.row, name)
    for ending, lines in files.items():
        with (
            replacing(f"{stem}{ending}") as temporary,
            temporary.open("x", encoding="utf-8", newline="\n") as file,
        ):
            while block := list(islice(lines, LINES)):
                file.write("\n".join(block) + "\n")
    return Written(tuple(Path(f"{stem}{ending}") for ending in files), note)


def _transition_lines(
    table: Columns, rewards: FloatArray | None = None, name: str = ""
) -> Iterator[str]:
    """Yield the lines of all transitions, or of those of rows that pay, with what they pay."""
    chain = table.rows == table.states  # every state has a row
    chosen = np.arange(table.rows) if rewards is None else np.flatnonzero(rewards)
    places = entries(table.successor_ptr, chosen)
    if rewards is not None:
        yield _reward_head(name, "Transition")
    yield " ".join(map(str, [table.states, *[table.rows][chain:], len(places)]))
    row, state = owners(table.successor_ptr), owners(table.row_ptr)
    choice = np.arange(table.rows) - table.row_ptr[state]
    pairs = zip(state.tolist(), choice.tolist(), strict=True)
    heads = [f"{s}" if chain else f"{s} {c}" for s, c in pairs]
    if rewards is None:
        names = [" " + action if action else "" for action in table.actions]
        tails = [names[a] for a in table.row_actions.tolist()]
    else:
        tails = [" " + _number(x) for x in rewards.tolist()]
    for begin in range(0, len(places), LINES):
        at = places[begin : begin + LINES]
        texts: Iterable[str] = repeat("", len(at))
        if rewards is None:
            lower, upper = (map(_number, x[at].tolist()) for x in (table.lower, table.upper))
            intervals = (f" [{low},{high}]" for low, high in zip(lower, upper, strict=True))
            texts = map(" ".__add__, lower) if table.known else intervals
        targets = table.successors[at].tolist()
        for r, target, text in zip(row[at].tolist(), targets, texts, strict=True):
            yield f"{heads[r]} {target}{text}{tails[r]}"


def _label_lines(model: FactoredMDP) -> Iterator[str]:
    where = {name: model.label(name) for name in ("init", "deadlock", *model.labels)}
    yield " ".join(f'{i}="{name}"' for i, name in enumerate(where))
    states, labels = np.nonzero(np.stack(list(where.values()), axis=1))
    begin = np.flatnonzero(np.diff(states, prepend=-1)).tolist()
    for start, end in zip(begin, [*begin[1:], len(states)], strict=True):
        yield f"{states[start]}: " + " ".join(map(str, labels[start:end].tolist()))


def _state_lines(model: FactoredMDP) -> Iterator[str]:
    yield "(" + ",".join(v.name for v in model.variables) + ")"
    for s, values in enumerate(zip(*model.state_columns().values(), strict=True)):
        yield f"{s}:(" + ",".join(str(x).lower() for x in values) + ")"


def _reward_head(name: str, what: str) -> str:
    return "# Reward structure" + (f' "{name}"' if name else "") + f"\n# {what} rewards"


def _reward_lines(name: str, rewards: FloatArray) -> Iterator[str]:
    paid = np.flatnonzero(rewards)
    yield _reward_head(name, "State")
    yield f"{len(rewards)} {len(paid)}"
    for s, x in zip(paid.tolist(), rewards[paid].tolist(), strict=True):
        yield f"{s} {_number(x)}"


def _number(x: float) -> str:
    """Return the shortest text that reads back as x; integers without a point."""
    return repr(x).removesuffix(".0")
