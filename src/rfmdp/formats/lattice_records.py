"""A model that is kept by its factors as a record, and back.

Labels and rewards are formulas in the model. A record lists them state by state, so that whoever
reads it needs no language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from rfmdp.errors import FileError
from rfmdp.formats.fields import (
    field,
    formula_of,
    marginals_of,
    plain_formula,
    texts_of,
    variable_of,
)
from rfmdp.model.arrays import Variable
from rfmdp.model.lattice import Factor, Formula, FormulaRewards, LatticeMDP, Moves
from rfmdp.record import Provenance
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A formula by its values in all states."""

    values: AnyArray  # (S,)
    strides: IntArray
    least: IntArray  # values of variables

    def __call__(self, valuations: Int32Array) -> AnyArray:
        """Return the values in states with some variables, (N,)."""
        listed: AnyArray = self.values[(valuations - self.least) @ self.strides]
        return listed


def lattice_to_record(model: LatticeMDP) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays of a model."""
    header: dict[str, Any] = {
        "kind": "lattice",
        "variables": [asdict(v) for v in model.variables],
        "factors": [
            {"name": f.name, "columns": list(f.columns), "reads": list(f.reads)}
            for f in model.factors
        ],
        "actions": list(model.actions),
        "labels": list(model.labels),
        "rewards": list(model.rewards),
        "marginal_names": list(model.marginal_names),
        "outcome_names": list(model.outcome_names),
        "formulas": {name: plain_formula(name, value) for name, value in model.formulas.items()},
    }
    if model.provenance is not None:
        header["provenance"] = model.provenance.to_json()
    arrays: dict[str, AnyArray] = {
        f"moves.{f.name}": getattr(model.moves, f.name) for f in fields(Moves)
    }
    arrays |= {f"factor.{k}": factor.moves for k, factor in enumerate(model.factors)}
    for part in fields(Marginals):
        stored = getattr(model.marginals, part.name)
        if stored is not None:
            arrays[f"marginals.{part.name}"] = stored
    arrays["initial"] = model.initial
    for i, name in enumerate(model.labels):
        arrays[f"label.{i}"] = model.label(name)
    for i, rewards in enumerate(model.rewards.values()):
        arrays |= {f"reward.{i}.{name}": array for name, array in _listed(model, rewards).items()}
    return header, arrays


def _listed(model: LatticeMDP, rewards: FormulaRewards) -> dict[str, AnyArray]:
    """Return what states pay, and what actions pay, by classes of those that pay alike."""
    classes: list[Formula | None] = []
    for formula in rewards.actions:
        if formula not in classes:
            classes.append(formula)
    arrays: dict[str, AnyArray] = {
        "class_of_action": np.array([classes.index(formula) for formula in rewards.actions]),
        "state": _values(model, rewards.state),
    }
    return arrays | {f"class.{c}": _values(model, formula) for c, formula in enumerate(classes)}


def _values(model: LatticeMDP, formula: Formula | None) -> FloatArray:
    return np.zeros(model.states) if formula is None else model.evaluate(formula)


def lattice_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> LatticeMDP:
    """Return the model of a record; whether it makes sense in full is the question of `verify`.

    Raises
    ------
    FileError
        If fields are missing, or labels and rewards do not have a value per state.
    """
    variables = tuple(variable_of(v) for v in field(header, "variables", list))
    factors = tuple(
        Factor(
            field(f, "name", str), tuple(field(f, "columns", list)), tuple(field(f, "reads", list)),
            arrays[f"factor.{k}"],
        )
        for k, f in enumerate(field(header, "factors", list))
    )  # fmt: skip
    moves = Moves(**{f.name: arrays[f"moves.{f.name}"] for f in fields(Moves)})
    actions = tuple(texts_of(header, "actions"))
    bare = LatticeMDP(
        variables, factors, moves, marginals_of(arrays), actions,
        np.empty((0, len(variables)), dtype=np.int32),
    )  # fmt: skip
    initial = arrays["initial"]
    if not len(initial) or initial.min() < 0 or initial.max() >= bare.states:
        raise FileError("initial must be numbers of states")
    listed = _Lists(bare, variables, arrays)
    return LatticeMDP(
        variables, factors, moves, bare.marginals, actions, bare.state_values(initial),
        {name: listed.formula(f"label.{i}") for i, name in enumerate(texts_of(header, "labels"))},
        {name: listed.rewards(i) for i, name in enumerate(texts_of(header, "rewards"))},
        {k: formula_of(k, v) for k, v in field(header, "formulas", dict).items()},
        tuple(texts_of(header, "marginal_names")), tuple(texts_of(header, "outcome_names")),
        Provenance.from_json(header["provenance"]) if "provenance" in header else None,
    )  # fmt: skip


class _Lists:
    """Makes formulas of lists of a record."""

    def __init__(
        self, model: LatticeMDP, variables: tuple[Variable, ...], arrays: Mapping[str, AnyArray]
    ) -> None:
        self.model, self.arrays = model, arrays
        self.least = np.array([v.low for v in variables])

    def formula(self, name: str) -> Listed:
        values = self.arrays[name]
        if values.shape != (self.model.states,):
            raise FileError(f"{name} must have one value per state ({self.model.states})")
        return Listed(values, self.model.strides, self.least)

    def rewards(self, i: int) -> FormulaRewards:
        classes = self.arrays[f"reward.{i}.class_of_action"]
        if classes.shape != (len(self.model.actions),):
            raise FileError(f"reward.{i}.class_of_action must have a class per action")
        made = {c: self.formula(f"reward.{i}.class.{c}") for c in set(classes.tolist())}
        return FormulaRewards(
            self.formula(f"reward.{i}.state"), tuple(made[c] for c in classes.tolist())
        )
