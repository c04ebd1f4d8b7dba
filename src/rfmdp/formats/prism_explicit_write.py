"""Write PRISM's explicit files; a factored model is flattened for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.formats.prism_explicit import beside, stem_of
from rfmdp.formats.table import IDENTIFIER, ModelTable, Written, number, to_table, write_lines
from rfmdp.model.arrays import FactoredMDP
from rfmdp.types import BoolArray, FloatArray


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
    stem = stem_of(path)
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
        write_lines(beside(stem, ending), lines)
    return Written(tuple(beside(stem, ending) for ending in files), note)


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
