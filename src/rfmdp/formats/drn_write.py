"""Write Storm's DRN format; a factored model is flattened for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.formats.explicit import ExplicitType, FlatModel, Written, number, write_lines
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.flatten import is_known
from rfmdp.types import FloatArray

PLAIN = re.compile(r'[^\s"\[]+\Z')


def write_drn(
    model: FactoredMDP, path: str | os.PathLike[str], *, type: ExplicitType | None = None
) -> Written:
    """Write a model as a DRN file, with labels, rewards, actions and, as comments, valuations.

    Numbers are written so that they read back exactly.

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    path
        The file.
    type
        By default a dtmc if every state has one choice, else an mdp. Storm solves intervals in
        mdps only, so an interval model becomes an mdp unless asked otherwise.

    Returns
    -------
    Written
        The file, and a note that says what flattening changed.
    """
    if type is None and not is_known(model):
        type = ExplicitType.MDP
    flat = FlatModel.of(model, type)
    _check_names(flat.model)
    place = Path(path)
    write_lines(place, _lines(flat))
    return Written((place,), flat.note)


def _check_names(model: FactoredMDP) -> None:
    for name in model.rewards:
        if name and not PLAIN.match(name):
            raise ModelError(
                f"Reward structure {name!r} cannot be written: it has blanks; rename it."
            )
    for name in model.labels:
        if '"' in name or "\n" in name or not name:
            raise ModelError(
                f"Label {name!r} cannot be written: it has quotes or is empty; rename it."
            )


def _lines(flat: FlatModel) -> Iterator[str]:
    yield from _head(flat)
    model = flat.model
    texts = flat.probabilities(", ")
    labels = _labels(model)
    comments = _valuations(model)
    state_rewards = _rewards([r.state for r in model.rewards.values()], model.states)
    row_rewards = _rewards([r.row for r in model.rewards.values()], model.rows)
    names = flat.actions("__NOLABEL__")
    actions = [names[a] for a in model.row_actions.tolist()]
    states = model.row_states.tolist()
    row = state = -1
    for rows, targets, outcomes in flat.transitions():
        for r, target, k in zip(rows, targets, outcomes, strict=True):
            if r != row:
                row = r
                if states[r] != state:
                    state = states[r]
                    yield f"state {state}{state_rewards[state]}{labels[state]}{comments[state]}"
                yield f"\taction {actions[r]}{row_rewards[r]}"
            yield f"\t\t{target} : {texts[k]}"


def _head(flat: FlatModel) -> Iterator[str]:
    model = flat.model
    yield f"@type: {flat.type.name}"
    yield "@value_type: double" + ("" if flat.known else "-interval")
    yield from ("@parameters", "")
    if model.rewards:
        yield "@reward_models"
        yield " ".join(name or f"rew{i}" for i, name in enumerate(model.rewards))
    yield from ("@nr_states", str(model.states), "@nr_choices", str(model.rows), "@model")


def _rewards(columns: list[FloatArray], count: int) -> list[str]:
    """Return ` [a, b]` for every state or row; plain numbers also beside intervals."""
    if not columns:
        return [""] * count
    return [
        " [" + ", ".join(map(number, values)) + "]" for values in np.stack(columns, axis=1).tolist()
    ]


def _labels(model: FactoredMDP) -> list[str]:
    texts = [""] * model.states
    where = {"init": model.label("init"), **model.labels}
    for name, holds in where.items():
        # quotes where Storm needs them to read the name as one word
        shown = f" {name}" if PLAIN.match(name) else f' "{name}"'
        for s in np.flatnonzero(holds).tolist():
            texts[s] += shown
    return texts


def _valuations(model: FactoredMDP) -> list[str]:
    """Return the comment line after every state, in the form that Storm writes."""
    if not model.variables:
        return [""] * model.states
    columns = [
        [f"{name}={str(x).lower()}" for x in values]
        for name, values in model.state_columns().items()
    ]
    return ["\n//[" + "\t& ".join(values) + "]" for values in zip(*columns, strict=True)]
