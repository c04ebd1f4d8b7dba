"""Solutions and policies as records for `rfmdp.files`, and back.

A solution is stored with its model, so that it can be verified from the one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from rfmdp import objective as objectives
from rfmdp.errors import FileError
from rfmdp.model.record import model_from_record, model_to_record
from rfmdp.objective import Direction, Objective, Spec
from rfmdp.outer.problem import where
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.record import Record
from rfmdp.types import AnyArray, FloatArray

SETS = ("stay", "target")  # fields of objectives that are sets of states
OBJECTIVES = (
    "Reach", "Until", "Globally", "Next", "ReachReward", "Cumulative", "Instantaneous",
    "Discounted", "Total",
)  # fmt: skip


def policy_to_record(policy: Policy) -> Record:
    """Return (kind, header, arrays) of a policy."""
    return "policy", {}, {"rows": policy.rows}


def policy_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Policy:
    """Return the policy of a record."""
    return Policy(arrays["rows"])


def solution_to_record(solution: Solution) -> Record:
    """Return (kind, header, arrays) of a solution and its model."""
    _, model_header, model_arrays = model_to_record(solution.model)
    spec = solution.spec
    described, sets = _describe(solution)
    header = {
        "model": model_header,
        "objective": described,
        "agent": spec.agent.name,
        "nature": spec.nature.name,
        "method": solution.method,
        "status": solution.status.name,
        "precision": solution.precision,
        "stats": asdict(solution.stats),
        "witness": solution.witness is not None,
    }
    arrays = {f"model.{name}": array for name, array in model_arrays.items()} | sets
    arrays |= {"value": solution.value, "policy": solution.policy.rows}
    arrays |= _sides("", solution.lower, solution.upper)
    if solution.witness is not None:
        arrays |= _sides("witness.", *solution.witness)
    return "solution", header, arrays


def _sides(
    prefix: str, lower: FloatArray | None, upper: FloatArray | None
) -> dict[str, FloatArray]:
    """Return the arrays of the sides that are proven."""
    sides = {f"{prefix}lower": lower, f"{prefix}upper": upper}
    return {name: side for name, side in sides.items() if side is not None}


def _describe(solution: Solution) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return an objective as plain values; sets other than labels become arrays."""
    objective = solution.spec.objective
    plain: dict[str, Any] = {"type": type(objective).__name__}
    arrays = {}
    for field in fields(objective):
        content = getattr(objective, field.name)
        if field.name in SETS and not isinstance(content, str):
            arrays[f"states.{field.name}"] = where(solution.model, content)
        else:
            plain[field.name] = content
    return plain, arrays


def solution_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Solution:
    """Return the solution of a record."""
    prefix = "model."
    own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
    spec = Spec(
        _objective(dict(header["objective"]), arrays),
        Direction[header["agent"]],
        Direction[header["nature"]],
    )
    witness = None
    if header["witness"]:
        witness = arrays.get("witness.lower"), arrays.get("witness.upper")
    return Solution(
        model_from_record(header["model"], own), spec, header["method"], Status[header["status"]],
        arrays.get("lower"), arrays.get("upper"), arrays["value"], Policy(arrays["policy"]),
        header["precision"], Stats(**header["stats"]), witness,
    )  # fmt: skip


def _objective(plain: dict[str, Any], arrays: Mapping[str, AnyArray]) -> Objective:
    """Return the objective of its description."""
    name = plain.pop("type")
    if name not in OBJECTIVES:
        raise FileError(f"A solution of the objective {name!r}, which this version does not know.")
    for field in SETS:
        if f"states.{field}" in arrays:
            plain[field] = np.asarray(arrays[f"states.{field}"], dtype=np.bool_)
    made: Objective = getattr(objectives, name)(**plain)
    return made
