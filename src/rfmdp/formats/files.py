"""Save and load models, results and policies: one file each, checked, written atomically.

`archive` says what is inside a file. A file is written beside its final place and moved there when
it is complete, so a reader sees the old file or the new one, also if writing is interrupted. A
solution is stored with its model, so that it can be verified from the one file. What comes back is
checked in full: a record may have been altered since.

A further type needs two things: a registration of `to_record` in its own module, and an entry in
`READERS`, which names the function that makes the object again.

>>> @to_record.register  # doctest: +SKIP
... def _(policy: Policy) -> Record:
...     return "policy", {"horizon": 3}, {"choices": policy.choices}
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp import objective as objectives
from rfmdp.errors import FileError, ResourceError, RfmdpError
from rfmdp.formats.archive import load_record, sign, write_archive
from rfmdp.formats.model_records import (
    lattice_from_record,
    lattice_to_record,
    model_from_record,
    model_to_record,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Restriction
from rfmdp.model.lattice import LatticeMDP, written
from rfmdp.objective import SETS, Direction, Objective, Parity, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import where
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.record import Record, field, inside, texts, to_record
from rfmdp.state_sets import NamedStates, PathFormula
from rfmdp.temporal.formula import Kind
from rfmdp.temporal.product import Product, Table, product_of_pairs
from rfmdp.types import AnyArray, FloatArray
from rfmdp.writing import replacing

SAVED = ".rfmdp"
READERS: dict[str, str] = {  # kind -> "module:function" of (header, arrays)
    "model": "rfmdp.formats.model_records:model_from_record",
    "solution": "rfmdp.formats.files:solution_from_record",
    "policy": "rfmdp.formats.files:policy_from_record",
    "learning run": "rfmdp.learning.run:run_from_record",
}
AUTOMATON = ("letters", "delta", "priority", "decided")
PAIRS = ("states", "memory", "start")
OBJECTIVES = (
    "Reach", "Until", "BudgetUntil", "Globally", "Next", "ReachReward", "Cumulative",
    "Instantaneous", "Discounted", "Total", "LongRunAverage", "LongRunShare",
)  # fmt: skip


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, which is replaced only when all is written.

    Raises UnsupportedError if the type has no record, FileError if the file cannot be written.
    """
    record = to_record(obj)
    with replacing(path) as temporary, temporary.open("x+b") as file:
        write_archive(file, record)
        sign(file)
        file.flush()
        os.fsync(file.fileno())


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return the object in a file that `save` wrote; `open_model` also reads other formats.

    `kind` is what must be in it, "model" for instance; by default anything.

    Raises
    ------
    FileError
        If the file is missing, damaged, truncated, of another kind, or from a newer version.
    """
    place = Path(path)
    content, header, arrays = load_record(place)
    if kind not in (None, content):
        raise FileError(f"{place}: must hold a {kind}, holds a {content}; give another file.")
    if content not in READERS:
        raise FileError(
            f"{place}: holds a {content}, which this version of rfmdp cannot read; it reads: "
            f"{', '.join(sorted(READERS))}."
        )
    module, function = READERS[content].split(":")
    try:
        return getattr(importlib.import_module(module), function)(header, arrays)
    except KeyError as error:
        raise FileError(f"{place}: holds a {content} without {error}; make it again.") from error
    except ResourceError:
        raise
    except (
        RfmdpError, ArithmeticError, TypeError, ValueError, AttributeError, IndexError,
        RecursionError,
    ) as error:  # fmt: skip
        # whoever altered and signed a file may have put anything anywhere
        lines = [line.strip() for line in (str(error) or type(error).__name__).splitlines()]
        reason = " ".join(lines[:2]).rstrip(".")
        raise FileError(
            f"{place}: holds a {content} that is not well formed ({reason})."
        ) from error


@to_record.register
def policy_to_record(policy: Policy) -> Record:
    """Return (kind, header, arrays) of a policy."""
    return "policy", {}, {"rows": policy.rows}


def policy_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Policy:
    """Return the policy of a record; whether it fits a model is told where it is used."""
    return Policy(_rows(arrays["rows"]).astype(np.int64))


def _rows(rows: AnyArray, states: int | None = None) -> AnyArray:
    """Return what a policy chooses, which must be a number for every step and state."""
    fits = rows.ndim == 2 and rows.dtype.kind in "iu" and not np.any(rows < 0)
    if not fits or states not in (None, rows.shape[1]):
        raise FileError(
            f"policy must be integers >= 0 of the shape (steps, {states or 'states'}), got "
            f"{rows.dtype} of shape {rows.shape}"
        )
    return rows


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
    described, sets, words = _describe(solution)
    header = {
        "model": model_header,
        "objective": described,
        "texts": words,
        "agent": solution.spec.agent.name,
        "nature": solution.spec.nature.name,
        "method": solution.method,
        "status": solution.status.name,
        "precision": solution.precision,
        "measure": solution.measure,
        "subject": solution.subject,
        "stats": asdict(solution.stats),
        "witness": solution.witness is not None,
    }
    arrays = {f"model.{name}": array for name, array in model_arrays.items()} | sets
    arrays |= {"value": solution.value, "policy": solution.policy.rows}
    witness = solution.witness or (None, None)
    optional = {
        "lower": solution.lower, "upper": solution.upper, "witness.lower": witness[0],
        "witness.upper": witness[1], "interest": solution.interest, "block": solution.block,
        **{f"restriction.{n}": getattr(solution.restriction, n, None)
           for n in Restriction.__slots__},
    }  # fmt: skip
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if product is not None:
        header["product"], product_arrays = _describe_product(product)
        arrays |= {f"product.{name}": array for name, array in product_arrays.items()}
    return "solution", header, arrays


def solution_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Solution:
    """Return the solution of a record, whose parts must fit each other.

    Whether its claims hold is the question of `verify`.
    """
    model_arrays, model_header = inside("model.", arrays), field(header, "model", dict)
    by_factors = model_header.get("kind") == "lattice"
    model: FactoredMDP | LatticeMDP = (lattice_from_record if by_factors else model_from_record)(
        model_header, model_arrays
    )
    product = None
    if "product" in header:
        product = _product(
            field(header, "product", dict), written(model), inside("product.", arrays)
        )
        model = product.model
    objective = _objective(header, arrays, product)
    for states in objective.sets.values():
        where(model, states)
    if hasattr(objective, "reward"):
        model.reward(objective.reward_name)
    bounds = {
        name: _numbers(name, arrays[name], model.states * (objective.layers if "." in name else 1))
        for name in ("value", "lower", "upper", "witness.lower", "witness.upper")
        if name in arrays or name == "value"
    }
    rows = _rows(arrays["policy"], model.states)
    if isinstance(model, LatticeMDP):  # its rows are actions
        if rows.max(initial=0) >= len(model.actions):
            raise FileError("policy must choose actions of the model")
    elif np.any((rows < model.row_ptr[:-1]) | (rows >= model.row_ptr[1:])):
        raise FileError("policy must choose rows of the states themselves")
    else:
        rows = rows.astype(np.int64)
    restriction = None
    if "restriction.places" in arrays:
        restriction = Restriction(**inside("restriction.", arrays))
        restriction.on(written(model))  # whether they fit
    agent, nature = (Direction[field(header, name, str)] for name in ("agent", "nature"))
    counts = dict(field(header, "stats", dict))
    seconds = {str(k): float(v) for k, v in field(counts, "seconds", dict).items()}
    counts = {f.name: field(counts, f.name, int) for f in fields(Stats) if f.name != "seconds"}
    sides = bounds.get("witness.lower"), bounds.get("witness.upper")
    return Solution(
        model, Spec(objective, agent, nature), field(header, "method", str),
        Status[field(header, "status", str)], bounds.get("lower"), bounds.get("upper"),
        bounds["value"], Policy(rows), field(header, "precision", float),
        Stats(**counts, seconds=seconds), sides if field(header, "witness", bool) else None,
        field(header, "measure", str),
        where(model, arrays["interest"]) if "interest" in arrays else None,
        field(header, "subject", str), product, arrays.get("block"), restriction,
    )  # fmt: skip


def _numbers(name: str, values: AnyArray, states: int) -> FloatArray:
    """Return an array that must have a number per state."""
    if values.shape != (states,) or values.dtype != np.float64 or np.isnan(values).any():
        raise FileError(
            f"{name} must have one number per state ({states}), got {values.dtype} of shape "
            f"{values.shape}"
        )
    return values


def _describe(solution: Solution) -> tuple[dict[str, Any], dict[str, AnyArray], dict[str, str]]:
    """Return an objective as plain values; sets other than labels become arrays, with their text.

    The texts are for people only.
    """
    objective = solution.spec.objective
    plain: dict[str, Any] = {"type": type(objective).__name__}
    arrays, words = {}, {}
    for member in fields(objective) if not isinstance(objective, Parity) else ():
        content = getattr(objective, member.name)
        if member.name in SETS and solution.product is not None:
            continue  # the automaton tells
        if member.name in SETS and not isinstance(content, str):
            arrays[f"states.{member.name}"] = where(solution.model, content)
            if hasattr(content, "text"):
                words[member.name] = str(content.text)
        elif member.name != "formula":
            plain[member.name] = content
    return plain, arrays, words


def _objective(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], product: Product | None
) -> Objective:
    """Return the objective of its description; that on a product is one of its formula."""
    plain, words = dict(field(header, "objective", dict)), field(header, "texts", dict)
    name = plain.pop("type")
    if product is not None:
        if name == "ReachReward":
            return product.objective(TemporalReward(product.formula, plain.get("reward")))
        return product.objective(Temporal(product.formula))
    if name not in OBJECTIVES:
        raise FileError(f"this version does not know the objective {name!r}")
    for member in SETS:
        if (states := arrays.get(f"states.{member}")) is not None:
            named = member in words
            plain[member] = NamedStates(field(words, member, str), states) if named else states
    made: Objective = getattr(objectives, name)(**plain)
    return made


def _describe_product(product: Product) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return what makes a product of its base: the formula, the automaton, the pairs of states."""
    formula, table = product.formula, product.table
    words = {
        "text": formula.text,
        "tree": json.loads(json.dumps(formula.tree)),
        "atoms": list(formula.names),
    }
    header = {
        "formula": words, "supplied": product.kind is Kind.GENERAL, "kind": product.kind.name,
        "names": list(table.names),
    }  # fmt: skip
    arrays: dict[str, AnyArray] = {
        f"atom.{k}": where(product.base, atom) for k, atom in enumerate(formula.atoms)
    }
    arrays |= {name: getattr(product, name) for name in PAIRS}
    return header, arrays | {f"automaton.{name}": getattr(table, name) for name in AUTOMATON}


def _product(
    header: Mapping[str, Any], base: FactoredMDP, arrays: Mapping[str, AnyArray]
) -> Product:
    """Return the product that a record describes."""
    words = field(header, "formula", dict)
    named = enumerate(texts(words, "atoms"))
    atoms = tuple(NamedStates(name, arrays[f"atom.{k}"]) for k, name in named)
    tree = None if words["tree"] is None else _nested(words["tree"])
    formula = PathFormula(field(words, "text", str), tree, atoms)
    automaton = {name: arrays[f"automaton.{name}"] for name in AUTOMATON}
    table = Table(**automaton, names=tuple(texts(header, "names")))
    kind = Kind[field(header, "kind", str)]
    try:
        pairs = arrays["states"], arrays["memory"], arrays["start"]
        return product_of_pairs(base, pairs, formula, table, kind)
    except IndexError as error:
        raise FileError(f"product: its parts must fit each other ({error})") from None


def _nested(tree: Any) -> Any:
    return tuple(_nested(child) for child in tree) if isinstance(tree, list) else tree
