"""Models as records of plain values and arrays, and back: written out, or kept by their factors.

Labels and rewards of a model that is kept by its factors are formulas. Its record lists them state
by state, so that whoever reads it needs no language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import numpy as np

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.language.ast import Expr
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_expression
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.lattice import Factor, Formula, FormulaRewards, LatticeMDP, Moves
from rfmdp.model.validate import ARRAYS, require_valid
from rfmdp.record import Provenance, Record, field, texts, to_record
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, Int32Array, IntArray

NAMES = ("actions", "marginal_names", "outcome_names")
MOVES = [f.name for f in fields(Moves)]


@to_record.register
def model_to_record(model: FactoredMDP) -> Record:
    """Return (kind, header, arrays) of a model."""
    header = _header(model) | {"factors": list(model.factors)}
    arrays = {name: getattr(model, name) for name in ARRAYS} | _set_arrays(model.marginals)
    for i, where_true in enumerate(model.labels.values()):
        arrays[f"label.{i}"] = where_true
    for i, rewards in enumerate(model.rewards.values()):
        arrays[f"state_reward.{i}"] = rewards.state
        arrays[f"row_reward.{i}"] = rewards.row
    return "model", header, arrays


def model_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> FactoredMDP:
    """Return the model of a record, which must be valid."""
    stored: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    model = FactoredMDP(
        **stored,
        **_common(header),
        factors=tuple(texts(header, "factors")),
        marginals=_marginals(arrays),
        labels={name: arrays[f"label.{i}"] for i, name in enumerate(texts(header, "labels"))},
        rewards={
            name: Rewards(arrays[f"state_reward.{i}"], arrays[f"row_reward.{i}"])
            for i, name in enumerate(texts(header, "rewards"))
        },
        variables=_variables(header),
    )
    require_valid(model)
    return model


def _header(model: FactoredMDP | LatticeMDP) -> dict[str, Any]:
    """Return what headers of both kinds of models share."""
    header: dict[str, Any] = {
        **{name: list(getattr(model, name)) for name in NAMES},
        "labels": list(model.labels),
        "rewards": list(model.rewards),
        "variables": [asdict(v) for v in model.variables],
        "formulas": {name: _plain_formula(name, x) for name, x in model.formulas.items()},
    }
    if model.provenance is not None:
        header["provenance"] = asdict(model.provenance)
    return header


def _set_arrays(marginals: Marginals) -> dict[str, AnyArray]:
    """Return the arrays of sets; those that are None are left out."""
    arrays = {f"marginals.{f.name}": getattr(marginals, f.name) for f in fields(Marginals)}
    return {name: array for name, array in arrays.items() if array is not None}


def _listed(
    values: AnyArray, strides: IntArray, least: IntArray, valuations: Int32Array
) -> AnyArray:
    """Return what a formula is in states with some variables (N, vars); `values` lists it (S,)."""
    return np.asarray(values[(valuations - least) @ strides])


def lattice_to_record(model: LatticeMDP) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays of a model."""
    header = _header(model) | {
        "kind": "lattice",
        "factors": [
            {"name": f.name, "columns": list(f.columns), "reads": list(f.reads)}
            for f in model.factors
        ],
    }
    arrays: dict[str, AnyArray] = {f"moves.{name}": getattr(model.moves, name) for name in MOVES}
    arrays |= {f"factor.{k}": factor.moves for k, factor in enumerate(model.factors)}
    arrays |= _set_arrays(model.marginals)
    arrays["initial"] = model.initial
    for i, name in enumerate(model.labels):
        arrays[f"label.{i}"] = model.label(name)
    for i, rewards in enumerate(model.rewards.values()):
        classes = list(dict.fromkeys(rewards.actions))  # actions that pay alike
        arrays[f"reward.{i}.class_of_action"] = np.array(
            [classes.index(f) for f in rewards.actions]
        )
        paid = {"state": rewards.state, **{f"class.{c}": f for c, f in enumerate(classes)}}
        for name, formula in paid.items():
            values = np.zeros(model.states) if formula is None else model.evaluate(formula)
            arrays[f"reward.{i}.{name}"] = values
    return header, arrays


def lattice_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> LatticeMDP:
    """Return the model of a record; whether it makes sense in full is the question of `verify`."""
    variables = _variables(header)
    factors = tuple(
        Factor(
            field(f, "name", str), tuple(field(f, "columns", list)), tuple(field(f, "reads", list)),
            arrays[f"factor.{k}"],
        )
        for k, f in enumerate(field(header, "factors", list))
    )  # fmt: skip
    moves = Moves(**{name: arrays[f"moves.{name}"] for name in MOVES})
    actions = tuple(texts(header, "actions"))
    bare = LatticeMDP(
        variables, factors, moves, _marginals(arrays), actions,
        np.empty((0, len(variables)), dtype=np.int32),
    )  # fmt: skip
    initial = arrays["initial"]
    if not len(initial) or initial.min() < 0 or initial.max() >= bare.states:
        raise FileError("initial must be numbers of states")
    least = np.array([v.low for v in variables])

    def formula(name: str) -> Formula:
        if arrays[name].shape != (bare.states,):
            raise FileError(f"{name} must have one value per state ({bare.states})")
        return partial(_listed, arrays[name], bare.strides, least)

    def rewards(i: int) -> FormulaRewards:
        classes = arrays[f"reward.{i}.class_of_action"]
        if classes.shape != (len(actions),):
            raise FileError(f"reward.{i}.class_of_action must have a class per action")
        made = {c: formula(f"reward.{i}.class.{c}") for c in set(classes.tolist())}
        return FormulaRewards(
            formula(f"reward.{i}.state"), tuple(made[c] for c in classes.tolist())
        )

    return replace(
        bare,
        initial_values=bare.state_values(initial),
        labels={name: formula(f"label.{i}") for i, name in enumerate(texts(header, "labels"))},
        rewards={name: rewards(i) for i, name in enumerate(texts(header, "rewards"))},
        **_common(header),
    )


def _marginals(arrays: Mapping[str, AnyArray]) -> Marginals:
    """Return the sets of a record, made again by their constructors, which check them."""
    needed = [f.name for f in fields(Marginals) if f.name != "stated"]
    sets = Marginals.from_columns(**{name: arrays[f"marginals.{name}"] for name in needed})
    stated = arrays.get("marginals.stated")
    if stated is None:
        return sets
    inside = stated.shape == (2, len(sets.nominal)) and stated.dtype == np.float64
    if not inside or not np.all((stated >= 0.0) & (stated <= 1.0)):
        raise FileError("stated bounds must be two probabilities per outcome")
    return replace(sets, stated=stated)


def _variables(header: Mapping[str, Any]) -> tuple[Variable, ...]:
    """Return the variables of a header."""
    kinds = {"name": str, "low": int, "high": int, "boolean": bool}
    return tuple(
        Variable(**{name: field(described, name, kind) for name, kind in kinds.items()})
        for described in field(header, "variables", list)
    )


def _common(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return what records of both kinds of models say alike; the twin of `_header`."""
    formulas = {k: _formula(k, x) for k, x in field(header, "formulas", dict).items()}
    origin = Provenance.from_json(header["provenance"]) if "provenance" in header else None
    names = {name: tuple(texts(header, name)) for name in NAMES}
    return {**names, "formulas": formulas, "provenance": origin}


def _plain_formula(name: str, value: object) -> Any:
    """Return a constant as it is, and an expression as its text in the PRISM language."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Expr):
        return {"expression": write_expression(value)}
    raise UnsupportedError(
        f"save: formula {name!r} must be a number, a boolean or an expression of the PRISM "
        f"language, got {type(value).__name__}."
    )


def _formula(name: str, stored: Any) -> Any:
    """Return a constant or an expression of a header."""
    if isinstance(stored, dict):
        return parse_expression(field(stored, "expression", str))
    if not isinstance(stored, bool | int | float):
        raise FileError(f"formula {name!r} must be a number or an expression, got {stored!r}")
    return stored
