"""What a file claims: a model whose arrays fit together, and what a solution says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.errors import FileError
from rfmdp.ragged import entries, segment_lengths, segment_product, starts
from rfmdp.record import Provenance, texts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.automata import PathClaim, read_path
from rfmdp.verification.fields import Fields, field, is_number, names, need, variables
from rfmdp.verification.lattice_model import Lattice, origin, read_lattice
from rfmdp.verification.margins import two_sum
from rfmdp.verification.sets import Sets, read_sets

OBJECTIVES: dict[str, tuple[str, ...]] = {  # the fields of each
    "Reach": ("target",), "Until": ("stay", "target", "latest", "earliest"), "Next": ("target",),
    "Globally": ("stay", "latest", "earliest"), "ReachReward": ("target", "reward"),
    "Cumulative": ("steps", "reward", "discount"), "Instantaneous": ("step", "reward"),
    "Discounted": ("discount", "reward"), "Total": ("reward",), "Parity": (),
    "BudgetUntil": ("stay", "target", "budget", "reward"),
    "LongRunAverage": ("reward",), "LongRunShare": ("target",),
}  # fmt: skip
WORDS = {
    "agent": ("MIN", "MAX"), "nature": ("MIN", "MAX"),
    "status": ("CERTIFIED", "GAP_OPEN", "SWEEP_LIMIT", "TIME_LIMIT", "INTERRUPTED"),
    "measure": ("RELATIVE", "ABSOLUTE"), "subject": ("optimum", "policy"),
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Model:
    """The arrays of a model; see `rfmdp.model.arrays` for what they mean."""

    row_ptr: IntArray  # (S + 1,)
    marginal_ptr: IntArray  # (R + 1,)
    row_marginals: IntArray
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray
    sets: Sets
    initial: IntArray
    labels: dict[str, BoolArray]
    rewards: dict[str, tuple[FloatArray, FloatArray]]  # per state and per row
    variables: dict[str, AnyArray]  # (S,) values, and below what else texts may name
    formulas: Mapping[str, Any]
    provenance: Provenance | None  # words of the file

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.successor_ptr) - 1

    @property
    def sizes(self) -> dict[str, int]:
        """What there is how many times, for people."""
        counts = self.states, self.rows, len(self.successors), len(self.sets.kind)
        return dict(zip(("state", "row", "transition", "marginal"), counts, strict=True))

    def taking(self, rows: IntArray, counts: IntArray, successors: IntArray) -> Model:
        """Return the model of some rows, so many per state, with other successors."""
        return replace(
            self,
            row_ptr=starts(counts),
            marginal_ptr=starts(segment_lengths(self.marginal_ptr)[rows]),
            row_marginals=self.row_marginals[entries(self.marginal_ptr, rows)],
            successor_ptr=starts(segment_lengths(self.successor_ptr)[rows]),
            successors=successors,
        )


@dataclass(slots=True, eq=False)
class Claim:
    """What a solution says; sides are -1 for lower and +1 for upper."""

    model: Model | Lattice
    objective: dict[str, Any]
    states: dict[str, BoolArray]  # (S,) the sets of states of the objective
    agent: int  # +1 maximises
    nature: int
    status: str
    precision: float
    absolute: bool  # what the precision is relative to
    interest: BoolArray  # (S,) where it counts
    bounds: dict[int, FloatArray]  # (S,) of the sides that are claimed
    witness: dict[int, FloatArray]  # the same of the bounds behind them
    value: FloatArray  # (S,)
    policy: IntArray  # (steps, S) or (1, S)
    fixed: bool  # both sides are claimed of the policy, not of the optimum
    method: str  # how it was solved, and what sets of states are called: words of the file
    texts: dict[str, str]
    path: PathClaim | None  # of a path formula: `model` is that of its product
    block: IntArray | None  # (2, S) of a parity objective: parts that the proofs go through
    fields: Fields  # of the file, for what only some proofs read

    @property
    def written(self) -> Model:
        """The model, whose transitions must be written out."""
        model = self.model
        if isinstance(model, Lattice):
            raise FileError("model: its transitions must be written out here")
        return model

    @property
    def kind(self) -> str:
        """The name of the objective."""
        return str(self.objective["type"])

    @property
    def reward(self) -> tuple[Any, ...]:
        """What the model has of a reward, of states first; without a name, of its first one."""
        name = self.objective.get("reward")
        rewards: Mapping[str, tuple[Any, ...]] = self.model.rewards
        name = next(iter(rewards), None) if name is None else name
        need(name in rewards, f"objective: there is no reward {name!r}")
        return rewards[str(name)]

    def paid(self) -> tuple[FloatArray, FloatArray]:
        """Return what rows and their states pay together, (R,), and what rounding took from it."""
        state, row = self.reward
        return two_sum(row, np.repeat(state, segment_lengths(self.written.row_ptr)))


def begins(model: Model | Lattice) -> BoolArray:
    """Return the initial states, (S,), whatever a label says."""
    where = np.zeros(model.states, dtype=np.bool_)
    where[model.initial] = True
    return where


def labelled(model: Model | Lattice, name: str) -> BoolArray:
    """Return where (S,) a label holds; those that every model has need not be declared."""
    if name in model.labels:
        return model.labels[name]
    need(name in ("init", "deadlock"), f"objective: there is no label {name!r}")
    if name == "init":
        return begins(model)
    return model.stuck if isinstance(model, Lattice) else np.zeros(model.states, dtype=np.bool_)


def read_model(header: Mapping[str, Any], fields: Fields) -> Model:
    """Return a model whose arrays fit together."""
    sets = read_sets(fields.within("marginals."))
    row_marginals = fields.integers("row_marginals", end=len(sets.kind))
    count = len(fields.integers("successors"))
    successor_ptr = fields.pointers("successor_ptr", count)
    rows = len(successor_ptr) - 1
    row_ptr = fields.pointers("row_ptr", rows)
    states = len(row_ptr) - 1
    need(states > 0 and (row_ptr[1:] > row_ptr[:-1]).all(), "row_ptr: every state must have a row")
    marginal_ptr = fields.pointers("marginal_ptr", len(row_marginals), rows + 1)
    sizes = segment_product(sets.sizes[row_marginals], marginal_ptr)
    fits = np.array_equal(sizes, segment_lengths(successor_ptr))
    need(fits, "successors: rows must have the product of the sizes of their marginals")
    initial = fields.integers("initial", end=states)
    need(len(initial), "initial: there must be an initial state")
    labels, rewards, factors = (names(header, name) for name in ("labels", "rewards", "factors"))
    # what only names things
    moved = fields.integers("row_factors", end=len(factors))
    need(len(moved) == (len(row_marginals) if factors else 0), "row_factors: one per marginal")
    fields.integers("row_actions", rows, len(names(header, "actions")))
    names(header, "marginal_names")
    texts(header, "outcome_names")
    return Model(
        row_ptr, marginal_ptr, row_marginals, successor_ptr,
        fields.integers("successors", end=states), sets, initial,
        {name: fields.booleans(f"label.{i}", states) for i, name in enumerate(labels)},
        {name: (fields.payments(f"state_reward.{i}", states),
                fields.payments(f"row_reward.{i}", rows)) for i, name in enumerate(rewards)},
        _variables(header, fields, states), field(header, "formulas", dict), origin(header),
    )  # fmt: skip


def _variables(header: Mapping[str, Any], fields: Fields, states: int) -> dict[str, AnyArray]:
    """Return the values (S,) of variables by name, all within their ranges."""
    listed, values = variables(header), fields.integers("valuations", ndim=2)
    fits = values.shape == (states, len(listed)) or (not listed and values.size == 0)
    need(fits, "valuations: must have a value per state and variable")
    columns: dict[str, AnyArray] = {}
    for (name, low, high, boolean), column in zip(listed, values.T, strict=False):
        need(low <= column.min() and column.max() <= high, "valuations: out of range")
        columns[name] = column.astype(np.bool_ if boolean else np.int64)
    return columns


def read_claim(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Claim:
    """Return a claim all of whose fields make sense."""
    fields = Fields(arrays)
    described, within = field(header, "model", dict), fields.within("model.")
    model: Model | Lattice
    if described.get("kind") == "lattice":
        model = read_lattice(described, within)
    else:
        model = read_model(described, within)
    objective = field(header, "objective", dict)
    _check_objective(objective)
    kind = objective["type"]
    path, sets = None, {}
    if "product" in header:
        need(isinstance(model, Model), "product: transitions must be written out")
        assert isinstance(model, Model)
        path = read_path(field(header, "product", dict), model, fields.within("product."), kind)
        model = path.model
        named = {"Reach": path.accepted, "ReachReward": path.accepted, "Globally": ~path.rejected}
        need(kind in (*named, "Parity"), "objective: is none of a path formula")
        states = {"stay" if kind == "Globally" else "target": named[kind]} if kind in named else {}
        for name in ("earliest", "latest", "stay", "target"):
            need(not objective.get(name), f"{name}: must not be there beside a formula")
    else:
        need(kind != "Parity", "product: is missing")
        sets = states = {name: _states(model, objective.get(name), name, fields)
                         for name in OBJECTIVES[kind] if name in ("stay", "target")}  # fmt: skip
    called = field(header, "texts", dict)
    need(set(called) <= set(sets), "texts: must be those of sets of states")
    word = {name: field(header, name, str) for name in WORDS}
    for name, known in WORDS.items():
        need(word[name] in known, f"{name}: must be one of {', '.join(known)}")
    precision = field(header, "precision", int, float)
    need(0.0 < precision < np.inf, "precision: must be a positive number")
    layers = objective.get("budget", 0) + 1  # of states: one per amount paid
    witness = _sides(fields, "witness.", layers * model.states)
    announced = field(header, "witness", bool)
    need(bool(witness) <= announced, "witness: there is one that is not announced")
    some = fields.has("interest")
    agent, nature = (1 if word[who] == "MAX" else -1 for who in ("agent", "nature"))
    return Claim(
        model, objective, states, agent, nature, word["status"], float(precision),
        word["measure"] == "ABSOLUTE",
        fields.booleans("interest", model.states) if some else begins(model),
        _sides(fields, "", model.states), witness, fields.values("value", model.states),
        _policy(fields, model), word["subject"] == "policy", field(header, "method", str),
        {name: field(called, name, str) for name in called}, path,
        fields.integers("block", model.states, ndim=2) if kind == "Parity" else None, fields,
    )  # fmt: skip


def _policy(fields: Fields, model: Model | Lattice) -> IntArray:
    """Return the rows that a policy takes; in a lattice, its actions."""
    actions = model.actions if isinstance(model, Lattice) else None
    policy = fields.integers("policy", model.states, actions, ndim=2)
    need(len(policy), "policy: there must be a rule")
    if not isinstance(model, Lattice):
        inside = (policy >= model.row_ptr[:-1]) & (policy < model.row_ptr[1:])
        need(inside.all(), "policy: must take rows of the state itself")
    return policy


def _sides(fields: Fields, prefix: str, states: int) -> dict[int, FloatArray]:
    """Return the bounds that are there, numbers or infinite."""
    sides = {-1: f"{prefix}lower", 1: f"{prefix}upper"}
    return {s: fields.values(name, states) for s, name in sides.items() if fields.has(name)}


def _check_objective(objective: Mapping[str, Any]) -> None:
    """Check that steps count from zero, and discounts lie in (0, 1], below 1 if for ever."""
    kind = field(objective, "type", str)
    need(kind in OBJECTIVES, "objective: unknown")
    known = {"type", *OBJECTIVES[kind]}
    need(set(objective) <= known, f"objective: only {sorted(known)} belong to {kind}")
    earliest, latest = objective.get("earliest", 0), objective.get("latest")
    for name in known & {"earliest", "steps", "step", "budget", "latest"}:
        count = objective.get(name, 0 if name == "earliest" else None)
        open_end = name == "latest" and count is None
        need(open_end or (type(count) is int and count >= 0), f"{name}: must be a number of steps")
    need(latest is None or earliest <= latest, "earliest: must be <= latest")
    discount = objective.get("discount", 1.0)
    need(is_number(discount) and 0.0 < discount <= 1.0, "discount: must lie in (0, 1]")
    need(kind != "Discounted" or discount < 1.0, "discount: must be below 1")
    for name in ("reward", "target", "stay"):
        content = objective.get(name)
        need(content is None or isinstance(content, str), f"{name}: must be a name")


def _states(model: Model | Lattice, label: str | None, name: str, fields: Fields) -> BoolArray:
    """Return a set of states of the objective: a label, or an array of its own."""
    listed = fields.has(f"states.{name}")
    need((label is None) == listed, f"{name}: must be a label or an array of states")
    return (
        fields.booleans(f"states.{name}", model.states) if label is None else labelled(model, label)
    )
