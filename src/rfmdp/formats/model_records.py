"""Models as records of plain values and arrays, and back: written out, or kept by their factors.

Labels and rewards of a model that is kept by its factors are formulas. Its record lists them state
by state, so that whoever reads it needs no language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.language.ast import Expr
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_expression
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.lattice import Factor, Formula, FormulaRewards, LatticeMDP, Moves
from rfmdp.model.validate import ARRAYS, require_valid
from rfmdp.record import Provenance, Record, to_record
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray, Int32Array, IntArray

NAMES = ("actions", "marginal_names", "outcome_names")
T = TypeVar("T")


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
        factors=tuple(texts_of(header, "factors")),
        marginals=_marginals(arrays),
        labels={name: arrays[f"label.{i}"] for i, name in enumerate(texts_of(header, "labels"))},
        rewards={
            name: Rewards(arrays[f"state_reward.{i}"], arrays[f"row_reward.{i}"])
            for i, name in enumerate(texts_of(header, "rewards"))
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
        header["provenance"] = model.provenance.to_json()
    return header


def _set_arrays(marginals: Marginals) -> dict[str, AnyArray]:
    """Return the arrays of sets; those that are None are left out."""
    arrays = {f"marginals.{f.name}": getattr(marginals, f.name) for f in fields(Marginals)}
    return {name: array for name, array in arrays.items() if array is not None}


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
    header = _header(model) | {
        "kind": "lattice",
        "factors": [
            {"name": f.name, "columns": list(f.columns), "reads": list(f.reads)}
            for f in model.factors
        ],
    }
    arrays: dict[str, AnyArray] = {
        f"moves.{f.name}": getattr(model.moves, f.name) for f in fields(Moves)
    }
    arrays |= {f"factor.{k}": factor.moves for k, factor in enumerate(model.factors)}
    arrays |= _set_arrays(model.marginals)
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
    """Return the model of a record; whether it makes sense in full is the question of `verify`."""
    variables = _variables(header)
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
        variables, factors, moves, _marginals(arrays), actions,
        np.empty((0, len(variables)), dtype=np.int32),
    )  # fmt: skip
    initial = arrays["initial"]
    if not len(initial) or initial.min() < 0 or initial.max() >= bare.states:
        raise FileError("initial must be numbers of states")
    least = np.array([v.low for v in variables])

    def formula(name: str) -> Listed:
        if arrays[name].shape != (bare.states,):
            raise FileError(f"{name} must have one value per state ({bare.states})")
        return Listed(arrays[name], bare.strides, least)

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
        labels={name: formula(f"label.{i}") for i, name in enumerate(texts_of(header, "labels"))},
        rewards={name: rewards(i) for i, name in enumerate(texts_of(header, "rewards"))},
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
    names = {name: tuple(texts_of(header, name)) for name in NAMES}
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


def field(header: Any, name: str, kind: type[T]) -> T:
    """Return an entry of a header, which must be of a type; a bool is no int."""
    if not isinstance(header, dict):
        raise FileError(f"{name} must stand in an object, found {header!r:.40}")
    content = header[name]
    if kind is float and type(content) is int:
        content = float(content)
    if type(content) is not kind:
        raise FileError(f"{name} must be a {kind.__name__}, found {content!r:.40}")
    return content


def texts_of(header: Any, name: str) -> list[str]:
    """Return an entry of a header that must be texts."""
    words = field(header, name, list)
    if not all(isinstance(word, str) for word in words):
        raise FileError(f"{name} must be texts")
    return words
