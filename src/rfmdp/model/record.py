"""A model as a record of plain values and arrays, for `rfmdp.files`, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray

KIND = "model"
ARRAYS = (
    "row_ptr",
    "marginal_ptr",
    "row_marginals",
    "successor_ptr",
    "successors",
    "initial",
    "row_actions",
    "valuations",
    "row_factors",
)
NAMES = ("actions", "factors", "marginal_names", "outcome_names")


def model_to_record(model: FactoredMDP) -> tuple[str, dict[str, Any], dict[str, AnyArray]]:
    """Return (kind, header, arrays) of a model."""
    header = {
        **{name: list(getattr(model, name)) for name in NAMES},
        "labels": list(model.labels),
        "rewards": list(model.rewards),
        "variables": [asdict(v) for v in model.variables],
        "formulas": {name: _plain(name, value) for name, value in model.formulas.items()},
    }
    arrays = {name: getattr(model, name) for name in ARRAYS}
    for field in fields(Marginals):
        stored = getattr(model.marginals, field.name)
        if stored is not None:
            arrays[f"marginals.{field.name}"] = stored
    for i, where in enumerate(model.labels.values()):
        arrays[f"label.{i}"] = where
    for i, rewards in enumerate(model.rewards.values()):
        arrays[f"state_reward.{i}"] = rewards.state
        arrays[f"row_reward.{i}"] = rewards.row
    return KIND, header, arrays


def model_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> FactoredMDP:
    """Return the model of a record."""
    stored: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    stored |= {name: tuple(header[name]) for name in NAMES}
    return FactoredMDP(
        **stored,
        marginals=_marginals(arrays),
        labels={name: arrays[f"label.{i}"] for i, name in enumerate(header["labels"])},
        rewards={
            name: Rewards(arrays[f"state_reward.{i}"], arrays[f"row_reward.{i}"])
            for i, name in enumerate(header["rewards"])
        },
        variables=tuple(Variable(**v) for v in header["variables"]),
        formulas={name: _value(value) for name, value in header["formulas"].items()},
    )


def _marginals(arrays: Mapping[str, AnyArray]) -> Marginals:
    needed = [f.name for f in fields(Marginals) if f.name != "stated"]
    stored = {name: arrays[f"marginals.{name}"] for name in needed}
    return Marginals(**stored, stated=arrays.get("marginals.stated"))


def _plain(name: str, value: object) -> Any:
    """Return a constant as it is, and an expression as its text in the PRISM language."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float):
        return value
    from rfmdp.language.ast import Expr
    from rfmdp.language.write import write_expression

    if isinstance(value, Expr):
        return {"expression": write_expression(value)}
    raise UnsupportedError(
        f"save: formula {name!r} must be a number, a boolean or an expression of the PRISM "
        f"language, got {type(value).__name__}."
    )


def _value(stored: Any) -> Any:
    if isinstance(stored, dict):
        from rfmdp.language.parse import parse_expression

        return parse_expression(stored["expression"])
    return stored
