"""Policies and solutions as records of plain values and arrays, and back.

A solution is stored with its model, so that it can be verified from the one file. What comes back
is checked in full: a record may have been altered since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from rfmdp import objective as objectives
from rfmdp.errors import FileError
from rfmdp.formats.model_records import (
    field,
    lattice_from_record,
    lattice_to_record,
    model_from_record,
    model_to_record,
    texts_of,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Restriction
from rfmdp.model.lattice import AnyModel, LatticeMDP, written
from rfmdp.objective import SETS, Direction, Objective, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import where
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.record import Record, to_record
from rfmdp.state_sets import NamedStates, PathFormula
from rfmdp.temporal.formula import Kind
from rfmdp.temporal.product import Product, Table, product_of_pairs
from rfmdp.types import AnyArray, FloatArray

AUTOMATON = ("letters", "delta", "priority", "decided")
OBJECTIVES = (
    "Reach", "Until", "BudgetUntil", "Globally", "Next", "ReachReward", "Cumulative",
    "Instantaneous", "Discounted", "Total", "LongRunAverage", "LongRunShare",
)  # fmt: skip


@to_record.register
def policy_to_record(policy: Policy) -> Record:
    """Return (kind, header, arrays) of a policy."""
    return "policy", {}, {"rows": policy.rows}


def policy_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Policy:
    """Return the policy of a record; whether it fits a model is told where it is used."""
    rows = arrays["rows"]
    if rows.ndim != 2 or rows.dtype.kind != "i" or np.any(rows < 0):
        raise FileError(
            f"its rows must be integers >= 0 of the shape (steps, states), got {rows.dtype} of "
            f"shape {rows.shape}"
        )
    return Policy(rows.astype(np.int64))


@to_record.register
def solution_to_record(solution: Solution) -> Record:
    """Return (kind, header, arrays) of a solution and its model."""
    product, model = solution.product, solution.model
    if product is not None:
        model = replace(product.base, provenance=model.provenance)
    if isinstance(model, LatticeMDP):
        model_header, model_arrays = lattice_to_record(model)
    else:
        _, model_header, model_arrays = model_to_record(written(model))
    spec = solution.spec
    described, sets, texts = _describe(solution)
    header = {
        "model": model_header,
        "objective": described,
        "texts": texts,
        "agent": spec.agent.name,
        "nature": spec.nature.name,
        "method": solution.method,
        "status": solution.status.name,
        "precision": solution.precision,
        "measure": solution.measure,
        "subject": solution.subject,
        "stats": asdict(solution.stats),
        "witness": solution.witness is not None,
    }
    arrays = {f"model.{name}": array for name, array in model_arrays.items()} | sets
    witness, restriction = solution.witness or (None, None), solution.restriction
    optional = {
        "lower": solution.lower, "upper": solution.upper, "witness.lower": witness[0],
        "witness.upper": witness[1], "interest": solution.interest, "block": solution.block,
        **{f"restriction.{n}": getattr(restriction, n, None) for n in Restriction.__slots__},
    }  # fmt: skip
    arrays |= {"value": solution.value, "policy": solution.policy.rows}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if product is not None:
        header["product"], product_arrays = _describe_product(product)
        arrays |= {f"product.{name}": array for name, array in product_arrays.items()}
    return "solution", header, arrays


def solution_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Solution:
    """Return the solution of a record, whose parts must fit each other.

    Whether its claims hold is the question of `verify`.
    """
    model_arrays, model_header = _inside("model.", arrays), field(header, "model", dict)
    by_factors = model_header.get("kind") == "lattice"
    model: FactoredMDP | LatticeMDP = (lattice_from_record if by_factors else model_from_record)(
        model_header, model_arrays
    )
    described = dict(field(header, "objective", dict))
    product = None
    if "product" in header:
        product = _product(field(header, "product", dict), written(model), arrays)
        model = product.model
        objective = _on_product(described, product)
    else:
        objective = _objective(described, field(header, "texts", dict), arrays)
    spec = Spec(
        objective,
        Direction[field(header, "agent", str)],
        Direction[field(header, "nature", str)],
    )
    layers = spec.objective.layers
    for states in spec.objective.sets.values():
        where(model, states)
    if hasattr(spec.objective, "reward"):
        model.reward(spec.objective.reward_name)
    bounds = {
        name: _numbers(name, arrays[name], model.states * (layers if "witness" in name else 1))
        for name in ("value", "lower", "upper", "witness.lower", "witness.upper")
        if name in arrays or name == "value"
    }
    witness = None
    if field(header, "witness", bool):
        witness = bounds.get("witness.lower"), bounds.get("witness.upper")
    return Solution(
        model, spec, field(header, "method", str), Status[field(header, "status", str)],
        bounds.get("lower"), bounds.get("upper"), bounds["value"], _rules(arrays["policy"], model),
        field(header, "precision", float), _stats(field(header, "stats", dict)), witness,
        field(header, "measure", str),
        where(model, arrays["interest"]) if "interest" in arrays else None,
        field(header, "subject", str), product, arrays.get("block"), _restriction(arrays, model),
    )  # fmt: skip


def _inside(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays of a part of a record, by their names there."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _restriction(arrays: Mapping[str, AnyArray], model: AnyModel) -> Restriction | None:
    """Return the sets that nature keeps to, if there are any."""
    if "restriction.places" not in arrays:
        return None
    restriction = Restriction(*(arrays[f"restriction.{name}"] for name in Restriction.__slots__))
    restriction.on(written(model))  # whether they fit
    return restriction


def _numbers(name: str, values: AnyArray, states: int) -> FloatArray:
    """Return an array that must have a number per state."""
    if values.shape != (states,) or values.dtype != np.float64 or np.isnan(values).any():
        raise FileError(
            f"{name} must have one number per state ({states}), got {values.dtype} of shape "
            f"{values.shape}"
        )
    return values


def _rules(rows: AnyArray, model: FactoredMDP | LatticeMDP) -> Policy:
    """Return the policy of a solution, whose rows must be those of their states."""
    if rows.ndim != 2 or rows.shape[1] != model.states or rows.dtype.kind not in "iu":
        raise FileError(
            f"policy must have the shape (steps, {model.states}), got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    if isinstance(model, LatticeMDP):  # its rows are actions
        if rows.max(initial=0) >= len(model.actions):
            raise FileError("policy must choose actions of the model")
        return Policy(rows)
    if np.any((rows < model.row_ptr[:-1]) | (rows >= model.row_ptr[1:])):
        raise FileError("policy must choose rows of the states themselves")
    return Policy(rows.astype(np.int64))


def _stats(record: Mapping[str, Any]) -> Stats:
    seconds = field(record, "seconds", dict)
    counts = {f.name: field(record, f.name, int) for f in fields(Stats) if f.name != "seconds"}
    return Stats(**counts, seconds={str(k): float(v) for k, v in seconds.items()})


def _describe(solution: Solution) -> tuple[dict[str, Any], dict[str, AnyArray], dict[str, str]]:
    """Return an objective as plain values; sets other than labels become arrays, with their text.

    The texts are for people only.
    """
    objective = solution.spec.objective
    plain: dict[str, Any] = {"type": type(objective).__name__}
    arrays, texts = {}, {}
    for member in fields(objective) if not isinstance(objective, objectives.Parity) else ():
        content = getattr(objective, member.name)
        if member.name in SETS and solution.product is not None:
            continue  # the automaton tells
        if member.name in SETS and not isinstance(content, str):
            arrays[f"states.{member.name}"] = where(solution.model, content)
            if hasattr(content, "text"):
                texts[member.name] = str(content.text)
        elif member.name != "formula":
            plain[member.name] = content
    return plain, arrays, texts


def _objective(
    plain: dict[str, Any], texts: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> Objective:
    """Return the objective of its description."""
    name = plain.pop("type")
    if name not in OBJECTIVES:
        raise FileError(f"this version does not know the objective {name!r}")
    for member in SETS:
        if f"states.{member}" in arrays:
            states = arrays[f"states.{member}"]
            named = isinstance(texts.get(member), str)
            plain[member] = NamedStates(texts[member], states) if named else states
    made: Objective = getattr(objectives, name)(**plain)
    return made


def _describe_product(product: Product) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return what makes a product of its base: the formula, the automaton, the pairs of states."""
    formula, table = product.formula, product.table
    words = {"text": formula.text, "tree": _listed(formula.tree), "atoms": list(formula.names)}
    header = {
        "formula": words, "supplied": product.kind is Kind.GENERAL, "kind": product.kind.name,
        "names": list(table.names),
    }  # fmt: skip
    arrays: dict[str, AnyArray] = {
        f"atom.{k}": where(product.base, atom) for k, atom in enumerate(formula.atoms)
    }
    arrays |= {name: getattr(product, name) for name in ("states", "memory", "start")}
    arrays |= {f"automaton.{name}": getattr(table, name) for name in AUTOMATON}
    return header, arrays


def _product(
    header: Mapping[str, Any], base: FactoredMDP, arrays: Mapping[str, AnyArray]
) -> Product:
    """Return the product that a record describes."""
    words = field(header, "formula", dict)
    base_arrays = _inside("product.", arrays)
    named = enumerate(texts_of(words, "atoms"))
    atoms = tuple(NamedStates(name, base_arrays[f"atom.{k}"]) for k, name in named)
    tree = None if words["tree"] is None else _nested(words["tree"])
    names = tuple(texts_of(header, "names"))
    tables = {name: base_arrays[f"automaton.{name}"] for name in AUTOMATON}
    table = Table(**tables, names=names)
    formula = PathFormula(field(words, "text", str), tree, atoms)
    kind = Kind[field(header, "kind", str)]
    try:
        pairs = base_arrays["states"], base_arrays["memory"], base_arrays["start"]
        return product_of_pairs(base, pairs, formula, table, kind)
    except IndexError as error:
        raise FileError(f"product: its parts must fit each other ({error})") from None


def _listed(tree: Any) -> Any:
    return [_listed(child) for child in tree] if isinstance(tree, tuple) else tree


def _nested(tree: Any) -> Any:
    return tuple(_nested(child) for child in tree) if isinstance(tree, list) else tree


def _on_product(described: Mapping[str, Any], product: Product) -> Objective:
    """Return the objective on a product."""
    formula = product.formula
    rewarded = described.get("type") == "ReachReward"
    return product.objective(
        TemporalReward(formula, described.get("reward")) if rewarded else Temporal(formula)
    )
