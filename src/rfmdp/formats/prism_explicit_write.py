"""Write PRISM's explicit files; a factored model is flattened for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.formats.explicit import IDENTIFIER, ExplicitType, FlatModel, Written, number, write_lines
from rfmdp.model.arrays import FactoredMDP
from rfmdp.types import FloatArray


def write_prism_explicit(
    model: FactoredMDP, stem: str | os.PathLike[str], *, type: ExplicitType | None = None
) -> Written:
    """Write `STEM.tra`, `.lab`, and as far as the model has them `.sta`, `.srew` and `.trew`.

    Numbers are written so that they read back exactly. Several reward structures become
    `STEM1.srew`, `STEM2.srew`, ...

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    stem
        Path without ending; `.tra` at its end is ignored.
    type
        By default a dtmc if every state has one choice, else an mdp.

    Returns
    -------
    Written
        The files, and a note that says what flattening changed.
    """
    flat = FlatModel.of(model, type)
    _check_names(flat.model)
    base = Path(stem)
    base = base.with_suffix("") if base.suffix == ".tra" else base
    files: dict[str, Iterator[str]] = {".tra": _transitions(flat), ".lab": _labels(flat.model)}
    if flat.model.variables:
        files[".sta"] = _states(flat.model)
    structures = list(flat.model.rewards.items())
    paid = any(np.any(rewards.row != 0.0) for _, rewards in structures)
    for i, (name, rewards) in enumerate(structures):
        place = str(i + 1) if len(structures) > 1 else ""
        files[f"{place}.srew"] = _state_rewards(name, rewards.state)
        if paid:
            files[f"{place}.trew"] = _transition_rewards(flat, name, rewards.row)
    paths = []
    for ending, lines in files.items():
        paths.append(base.with_name(base.name + ending))
        write_lines(paths[-1], lines)
    return Written(tuple(paths), flat.note)


def _check_names(model: FactoredMDP) -> None:
    """Refuse names that PRISM would refuse when it reads them."""
    names = {
        "Action": [name for name in model.actions if name],
        "Label": list(model.labels),
        "Reward structure": [name for name in model.rewards if name],
        "Variable": [v.name for v in model.variables],
    }
    for what, given in names.items():
        for name in given:
            if not IDENTIFIER.match(name):
                raise ModelError(
                    f"{what} {name!r} cannot be written to PRISM's files: a name must consist of "
                    "letters, digits and _, and not start with a digit; rename it."
                )


def _head(flat: FlatModel, count: int) -> str:
    model = flat.model
    if flat.type is ExplicitType.DTMC:
        return f"{model.states} {count}"
    return f"{model.states} {model.rows} {count}"


def _row_starts(flat: FlatModel) -> list[str]:
    """Return `source choice ` of every row, or `source ` of a dtmc."""
    model = flat.model
    states = model.row_states.tolist()
    if flat.type is ExplicitType.DTMC:
        return [f"{s} " for s in states]
    choices = (np.arange(model.rows) - model.row_ptr[:-1][model.row_states]).tolist()
    return [f"{s} {c} " for s, c in zip(states, choices, strict=True)]


def _transitions(flat: FlatModel) -> Iterator[str]:
    model = flat.model
    texts = flat.probabilities(",")
    yield _head(flat, model.transitions)
    names = flat.actions("", before=" ")
    actions = [names[a] for a in model.row_actions.tolist()]
    starts = _row_starts(flat)
    for rows, targets, outcomes in flat.transitions():
        for r, target, k in zip(rows, targets, outcomes, strict=True):
            yield f"{starts[r]}{target} {texts[k]}{actions[r]}"


def _labels(model: FactoredMDP) -> Iterator[str]:
    where = {"init": model.label("init"), "deadlock": model.label("deadlock"), **model.labels}
    yield " ".join(f'{i}="{name}"' for i, name in enumerate(where))
    states, labels = np.nonzero(np.stack(list(where.values()), axis=1))
    starts = np.flatnonzero(np.diff(states, prepend=-1)).tolist()
    for begin, end in zip(starts, [*starts[1:], len(states)], strict=True):
        yield f"{states[begin]}: " + " ".join(map(str, labels[begin:end].tolist()))


def _states(model: FactoredMDP) -> Iterator[str]:
    yield "(" + ",".join(v.name for v in model.variables) + ")"
    for s, values in enumerate(zip(*model.state_columns().values(), strict=True)):
        yield f"{s}:(" + ",".join(str(x).lower() for x in values) + ")"


def _reward_head(name: str, what: str) -> Iterator[str]:
    yield "# Reward structure" + (f' "{name}"' if name else "")
    yield f"# {what} rewards"


def _state_rewards(name: str, rewards: FloatArray) -> Iterator[str]:
    paid = np.flatnonzero(rewards)
    yield from _reward_head(name, "State")
    yield f"{len(rewards)} {len(paid)}"
    for s, x in zip(paid.tolist(), rewards[paid].tolist(), strict=True):
        yield f"{s} {number(x)}"


def _transition_rewards(flat: FlatModel, name: str, rewards: FloatArray) -> Iterator[str]:
    model = flat.model
    paid = np.flatnonzero(rewards)
    ends = model.successor_ptr
    yield from _reward_head(name, "Transition")
    yield _head(flat, int(np.sum(ends[paid + 1] - ends[paid])))
    starts = _row_starts(flat)
    for r, x in zip(paid.tolist(), rewards[paid].tolist(), strict=True):
        for target in model.successors[ends[r] : ends[r + 1]].tolist():
            yield f"{starts[r]}{target} {number(x)}"
