"""Models, solutions and policies as records of plain values and arrays, and back.

A solution is stored with its model, so that it can be verified from the one file. What comes back
is checked in full: a record may have been altered since. Labels and rewards of a model that is kept
by its factors are formulas; its record lists them state by state, so that whoever reads it needs no
language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import numpy as np

from rfmdp import objective as objectives
from rfmdp.errors import FileError, UnsupportedError
from rfmdp.language.ast import Expr
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_expression
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.derived import Restriction
from rfmdp.model.lattice import Factor, Formula, FormulaRewards, LatticeMDP, Moves, written
from rfmdp.model.validate import ARRAYS, require_valid
from rfmdp.objective import SETS, Direction, Objective, Parity, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import where
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.record import Provenance, Record, field, inside, texts, to_record
from rfmdp.sets.marginals import Marginals
from rfmdp.state_sets import NamedStates, PathFormula
from rfmdp.temporal.formula import Kind
from rfmdp.temporal.product import Product, Table, product_of_pairs
from rfmdp.types import AnyArray, Int32Array, IntArray

NAMES = ("actions", "marginal_names", "outcome_names")
MOVES = [f.name for f in fields(Moves)]
AUTOMATON = ("letters", "delta", "priority", "decided")
PAIRS = ("states", "memory", "start")
OBJECTIVES = (
    "Reach", "Until", "BudgetUntil", "Globally", "Next", "ReachReward", "Cumulative",
    "Instantaneous", "Discounted", "Total", "LongRunAverage", "LongRunShare",
)  # fmt: skip


@to_record.register
def model_to_record(model: FactoredMDP) -> Record:
    """Return (kind, header, arrays) of a model."""
    header, sets = _common_record(model)
    arrays = {name: getattr(model, name) for name in ARRAYS} | sets
    for i, where_true in enumerate(model.labels.values()):
        arrays[f"label.{i}"] = where_true
    for i, rewards in enumerate(model.rewards.values()):
        arrays[f"state_reward.{i}"] = rewards.state
        arrays[f"row_reward.{i}"] = rewards.row
    return "model", header | {"factors": list(model.factors)}, arrays


def model_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> FactoredMDP:
    """Return the model of a record, which must be valid."""
    stored: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    model = FactoredMDP(
        **stored,
        **_common(header, arrays),
        factors=tuple(texts(header, "factors")),
        labels={name: arrays[f"label.{i}"] for i, name in enumerate(texts(header, "labels"))},
        rewards={
            name: Rewards(arrays[f"state_reward.{i}"], arrays[f"row_reward.{i}"])
            for i, name in enumerate(texts(header, "rewards"))
        },
    )
    require_valid(model)
    return model


def lattice_to_record(model: LatticeMDP) -> Record:
    """Return (kind, header, arrays) of a model, which stands in records of solutions only."""
    header, sets = _common_record(model)
    header |= {
        "kind": "lattice",
        "factors": [
            {"name": f.name, "columns": list(f.columns), "reads": list(f.reads)}
            for f in model.factors
        ],
    }
    arrays: dict[str, AnyArray] = {f"moves.{name}": getattr(model.moves, name) for name in MOVES}
    arrays |= {f"factor.{k}": factor.moves for k, factor in enumerate(model.factors)} | sets
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
    return "model", header, arrays


def lattice_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> LatticeMDP:
    """Return the model of a record; whether it makes sense in full is the question of `verify`."""
    factors = tuple(
        Factor(
            field(f, "name", str), tuple(field(f, "columns", list)), tuple(field(f, "reads", list)),
            arrays[f"factor.{k}"],
        )
        for k, f in enumerate(field(header, "factors", list))
    )  # fmt: skip
    moves = Moves(**{name: arrays[f"moves.{name}"] for name in MOVES})
    common = _common(header, arrays)
    nowhere = np.empty((0, len(common["variables"])), dtype=np.int32)
    bare = LatticeMDP(factors=factors, moves=moves, initial_values=nowhere, **common)
    initial = arrays["initial"]
    if not len(initial) or initial.min() < 0 or initial.max() >= bare.states:
        raise FileError("initial must be numbers of states")
    least = np.array([v.low for v in bare.variables])

    def formula(name: str) -> Formula:
        if arrays[name].shape != (bare.states,):
            raise FileError(f"{name} must have one value per state ({bare.states})")
        return partial(_listed, arrays[name], bare.strides, least)

    def rewards(i: int) -> FormulaRewards:
        classes = arrays[f"reward.{i}.class_of_action"]
        if classes.shape != (len(bare.actions),):
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
    )


def _listed(
    values: AnyArray, strides: IntArray, least: IntArray, valuations: Int32Array
) -> AnyArray:
    """Return what a formula is in states with some variables (N, vars); `values` lists it (S,)."""
    return np.asarray(values[(valuations - least) @ strides])


def _common_record(model: FactoredMDP | LatticeMDP) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return what headers of both kinds of models share, and the arrays of the sets."""
    header: dict[str, Any] = {
        **{name: list(getattr(model, name)) for name in NAMES},
        "labels": list(model.labels),
        "rewards": list(model.rewards),
        "variables": [asdict(v) for v in model.variables],
        "formulas": {name: _plain_formula(name, x) for name, x in model.formulas.items()},
    }
    if model.provenance is not None:
        header["provenance"] = asdict(model.provenance)
    columns = {f.name: getattr(model.marginals, f.name) for f in fields(Marginals)}
    return header, {f"marginals.{n}": array for n, array in columns.items() if array is not None}


def _common(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return the parts that `_common_record` describes; constructors of sets check theirs."""
    kinds = {"name": str, "low": int, "high": int, "boolean": bool}
    needed = [f.name for f in fields(Marginals) if f.name != "stated"]
    sets = Marginals.from_columns(**{name: arrays[f"marginals.{name}"] for name in needed})
    if (stated := arrays.get("marginals.stated")) is not None:
        fits = stated.shape == (2, len(sets.nominal)) and stated.dtype == np.float64
        if not fits or not np.all((stated >= 0.0) & (stated <= 1.0)):
            raise FileError("stated bounds must be two probabilities per outcome")
        sets = replace(sets, stated=stated)
    return {
        **{name: tuple(texts(header, name)) for name in NAMES},
        "formulas": {k: _formula(k, x) for k, x in field(header, "formulas", dict).items()},
        "provenance": (
            Provenance.from_json(header["provenance"]) if "provenance" in header else None
        ),
        "variables": tuple(
            Variable(**{name: field(described, name, kind) for name, kind in kinds.items()})
            for described in field(header, "variables", list)
        ),
        "marginals": sets,
    }


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
        _, inner, parts = lattice_to_record(model)
    else:
        _, inner, parts = model_to_record(written(model))
    described, sets, words = _describe(solution)
    header = {
        "model": inner,
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
    arrays = {f"model.{name}": array for name, array in parts.items()} | sets
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
    model_header = field(header, "model", dict)
    make = lattice_from_record if model_header.get("kind") == "lattice" else model_from_record
    model: FactoredMDP | LatticeMDP = make(model_header, inside("model.", arrays))
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
    sides = ("lower", "upper", "witness.lower", "witness.upper")
    bounds = {name: arrays[name] for name in ("value", *sides) if name in arrays or name == "value"}
    for name, values in bounds.items():
        size = model.states * (objective.layers if "." in name else 1)
        if values.shape != (size,) or values.dtype != np.float64 or np.isnan(values).any():
            raise FileError(
                f"{name} must have one number per state ({size}), got {values.dtype} of shape "
                f"{values.shape}"
            )
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
    lower, upper, *witness = map(bounds.get, sides)
    return Solution(
        model, Spec(objective, agent, nature), field(header, "method", str),
        Status[field(header, "status", str)], lower, upper, bounds["value"], Policy(rows),
        field(header, "precision", float), Stats(**counts, seconds=seconds),
        (witness[0], witness[1]) if field(header, "witness", bool) else None,
        field(header, "measure", str),
        where(model, arrays["interest"]) if "interest" in arrays else None,
        field(header, "subject", str), product, arrays.get("block"), restriction,
    )  # fmt: skip


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
