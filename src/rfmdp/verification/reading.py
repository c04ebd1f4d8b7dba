"""What a file claims: its arrays and fields, each looked at before anything is done with it.

Nothing is believed: pointers are followed only after they are known to stay inside, sizes are
multiplied only while they fit, and every number has to be one. `Fault` names the first field that
is not as it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp.ragged import segment_product
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

SINGLETON, BOX, L1, LP, POLYTOPE, KL, SUBSETS = range(7)  # kinds of sets, as files number them
SUM_OFF = 1e-9  # distributions may miss the sum one by this much; they stand for d / sum d
STATUSES = ("CERTIFIED", "GAP_OPEN", "SWEEP_LIMIT", "TIME_LIMIT", "INTERRUPTED")


class Fault(Exception):
    """A field that is not as it must be; the text says which and what was found."""


@dataclass(slots=True, eq=False)
class Sets:
    """The uncertainty sets as they are in the file; set j owns outcomes ptr[j]:ptr[j + 1]."""

    ptr: IntArray  # (M + 1,)
    kind: IntArray  # (M,)
    nominal: FloatArray  # (O,)
    lower: FloatArray  # (O,)
    upper: FloatArray  # (O,)
    radius: FloatArray  # (M,)
    exponent: FloatArray  # (M,)
    corner_ptr: IntArray  # (M + 1,)
    corners: FloatArray

    @property
    def sizes(self) -> IntArray:
        """Number of outcomes of every set, (M,)."""
        return np.diff(self.ptr)


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

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.successor_ptr) - 1

    def label(self, name: str) -> BoolArray:
        """Return where a label holds."""
        if name in self.labels:
            return self.labels[name]
        where = np.zeros(self.states, dtype=np.bool_)
        if name == "init":
            where[self.initial] = True
        elif name != "deadlock":
            raise Fault(f"objective: there is no label {name!r}")
        return where

    def reward(self, name: str | None) -> tuple[FloatArray, FloatArray]:
        """Return a reward structure by name; without a name there must be only one."""
        if name is None and len(self.rewards) == 1:
            return next(iter(self.rewards.values()))
        if name not in self.rewards:
            raise Fault(f"objective: there is no reward {name!r}")
        return self.rewards[name]


@dataclass(slots=True, eq=False)
class Claim:
    """What a solution says; sides are -1 for lower and +1 for upper."""

    model: Model
    objective: dict[str, Any]
    kind: str  # the name of the objective
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


def need(holds: object, text: str) -> None:
    """Raise `Fault` unless something holds."""
    if not holds:
        raise Fault(text)


class Fields:
    """Arrays by name, converted and checked as they are asked for."""

    def __init__(self, arrays: Mapping[str, AnyArray], prefix: str = "") -> None:
        self.arrays, self.prefix = arrays, prefix

    def _get(self, name: str, kinds: str, ndim: int) -> AnyArray:
        full = self.prefix + name
        need(full in self.arrays, f"{full}: is missing")
        found = np.asarray(self.arrays[full])
        need(found.dtype.kind in kinds, f"{full}: must not hold {found.dtype}")
        need(found.ndim == ndim, f"{full}: must have {ndim} axes, has {found.ndim}")
        return found

    def has(self, name: str) -> bool:
        """Return whether there is such an array."""
        return self.prefix + name in self.arrays

    def floats(self, name: str, size: int | None = None, plain: bool = True) -> FloatArray:
        """Return numbers; plain ones are finite."""
        found = self._get(name, "f", 1).astype(np.float64, copy=False)
        need(size is None or len(found) == size, f"{name}: must have {size} entries")
        need(not plain or np.isfinite(found).all(), f"{name}: must hold finite numbers")
        return found

    def integers(
        self, name: str, size: int | None = None, end: int | None = None, ndim: int = 1
    ) -> IntArray:
        """Return integers, within 0..end - 1 if an end is given."""
        raw = self._get(name, "iu", ndim)
        found = raw.astype(np.int64, copy=False)
        need(raw.dtype != np.uint64 or (found >= 0).all(), f"{name}: is out of range")
        need(size is None or found.shape[-1] == size, f"{name}: must have {size} entries")
        inside = end is None or not found.size or (found.min() >= 0 and found.max() < end)
        need(inside, f"{name}: must be within 0..{(end or 0) - 1}")
        return found

    def pointers(self, name: str, end: int, size: int | None = None) -> IntArray:
        """Return pointers that start at 0, never fall and stop at the end."""
        found = self.integers(name, size)
        fine = len(found) and found[0] == 0 and found[-1] == end
        fine = fine and (found[1:] >= found[:-1]).all()
        need(fine, f"{name}: must rise from 0 to {end}")
        return found

    def booleans(self, name: str, size: int) -> BoolArray:
        """Return a set of states."""
        found = self._get(name, "b", 1)
        need(len(found) == size, f"{name}: must have {size} entries")
        return found


def read_model(header: Mapping[str, Any], fields: Fields) -> Model:
    """Return a model whose arrays fit together."""
    sets = read_sets(fields)
    successors = fields.integers("successors")
    row_marginals = fields.integers("row_marginals", end=len(sets.kind))
    successor_ptr = fields.pointers("successor_ptr", len(successors))
    rows = len(successor_ptr) - 1
    row_ptr = fields.pointers("row_ptr", rows)
    states = len(row_ptr) - 1
    need(states > 0 and (row_ptr[1:] > row_ptr[:-1]).all(), "row_ptr: every state must have a row")
    need(
        not len(successors) or (successors.min() >= 0 and successors.max() < states),
        f"successors: must be within 0..{states - 1}",
    )
    marginal_ptr = fields.pointers("marginal_ptr", len(row_marginals), rows + 1)
    sizes = segment_product(sets.sizes[row_marginals], marginal_ptr)
    need(
        np.array_equal(sizes, np.diff(successor_ptr)),
        "successors: rows must have the product of the sizes of their marginals",
    )
    labels, rewards = {}, {}
    for i, name in enumerate(_names(header, "labels")):
        labels[name] = fields.booleans(f"label.{i}", states)
    for i, name in enumerate(_names(header, "rewards")):
        state, row = fields.floats(f"state_reward.{i}", states), fields.floats(f"row_reward.{i}")
        need(len(row) == rows, f"row_reward.{i}: must have {rows} entries")
        rewards[name] = state, row
    fields.integers("row_actions", rows, len(_names(header, "actions")))
    initial = fields.integers("initial", end=states)
    need(len(initial), "initial: there must be an initial state")
    _check_names(header, fields, states, len(row_marginals))
    return Model(
        row_ptr, marginal_ptr, row_marginals, successor_ptr, successors, sets, initial, labels,
        rewards,
    )  # fmt: skip


def _check_names(header: Mapping[str, Any], fields: Fields, states: int, factors: int) -> None:
    """Look at what only names things: variables and their values, factors, formulas."""
    ranges = [(v["low"], v["high"]) for v in header["variables"]]
    values = fields.integers("valuations", ndim=2)
    fits = values.shape == (states, len(ranges)) or (not ranges and values.size == 0)
    need(fits, "valuations: must have a value per state and variable")
    ends = zip(values.min(axis=0), values.max(axis=0), strict=True) if ranges else ()
    for (low, high), (least, most) in zip(ranges, ends, strict=True):
        need(low <= least and most <= high, "valuations: out of range")
    named = _names(header, "factors")
    moved = fields.integers("row_factors", end=len(named))
    need(
        len(moved) == (factors if named else 0), "row_factors: must have one per marginal of a row"
    )
    need(isinstance(header["formulas"], dict), "formulas: must be named")
    need(isinstance(_names(header, "marginal_names"), list), "marginal_names: must be names")
    outcomes = header["outcome_names"]
    need(isinstance(outcomes, list), "outcome_names: must be names")


def _names(header: Mapping[str, Any], field: str) -> list[str]:
    found = header.get(field)
    fine = isinstance(found, list) and all(isinstance(name, str) for name in found)
    need(fine and len(set(found or ())) == len(found or ()), f"{field}: must be different names")
    return list(found or ())


def read_sets(fields: Fields) -> Sets:
    """Return sets that are what their kinds say."""
    own = Fields(fields.arrays, fields.prefix + "marginals.")
    nominal = own.floats("nominal")
    ptr = own.pointers("outcome_ptr", len(nominal))
    count, sizes = len(ptr) - 1, np.diff(ptr)
    need((sizes > 0).all(), "marginals: every set must have an outcome")
    corners = own.floats("corners")
    sets = Sets(
        ptr, own.integers("kind", count, SUBSETS + 1), nominal, own.floats("lower", len(nominal)),
        own.floats("upper", len(nominal)), own.floats("radius", count, False),
        own.floats("exponent", count, False), own.pointers("corner_ptr", len(corners), count + 1),
        corners,
    )  # fmt: skip
    if count:
        _check_numbers(sets)
        _check_kinds(sets)
    return sets


def _check_numbers(sets: Sets) -> None:
    """Bounds are bounds, nominal distributions sum to one and lie within."""
    nominal, lower, upper, first = sets.nominal, sets.lower, sets.upper, sets.ptr[:-1]
    need(((nominal >= 0) & (nominal <= 1)).all(), "nominal: must lie in [0, 1]")
    need(((lower >= 0) & (lower <= upper) & (upper <= 1)).all(), "lower <= upper: in [0, 1]")
    within = (lower - SUM_OFF <= nominal) & (nominal <= upper + SUM_OFF)
    need(within.all(), "nominal: must lie within lower and upper")
    total = np.add.reduceat(nominal, first)
    need((np.abs(total - 1.0) <= SUM_OFF).all(), "nominal: must sum to one")
    need((np.add.reduceat(lower, first) <= 1.0 + SUM_OFF).all(), "lower: sums to more than one")
    need((np.add.reduceat(upper, first) >= 1.0 - SUM_OFF).all(), "upper: sums to less than one")
    single = np.repeat(sets.kind == SINGLETON, sets.sizes)
    same = (lower == nominal) & (upper == nominal)
    need(same[single].all(), "lower, upper: a known distribution must be its own bounds")


def _check_kinds(sets: Sets) -> None:
    """Radius, exponent and corners are there exactly where the kind has them."""
    kind, radius, exponent = sets.kind, sets.radius, sets.exponent
    ball = ~np.isnan(exponent)
    need((exponent[ball] >= 1.0).all(), "exponent: must be at least 1")
    need(ball[(kind == L1) | (kind == LP)].all(), "exponent: balls must have one")
    need(not ball[(kind >= POLYTOPE)].any(), "exponent: only balls have one")
    need((exponent[kind == L1] == 1.0).all(), "exponent: must be 1 for an L1 ball")
    curved = (exponent[kind == LP] > 1.0) & np.isfinite(exponent[kind == LP])
    need(curved.all(), "exponent: must be above 1 and finite for an Lp ball")
    need((np.isinf(exponent) | ~ball)[kind == BOX].all(), "exponent: must be infinite for a box")
    need((radius[ball | (kind == KL)] >= 0.0).all(), "radius: must be at least 0")
    need(np.isfinite(radius[ball]).all(), "radius: must be finite")
    need(np.isnan(radius[~ball & (kind != KL)]).all(), "radius: only balls have one")
    lengths, sizes = np.diff(sets.corner_ptr), sets.sizes
    table = kind == SUBSETS
    hull = (kind == POLYTOPE) | ((kind == SINGLETON) & (lengths > 0))
    need((lengths[~hull & ~table] == 0).all(), "corners: only polytopes and subset sets have any")
    fits = (lengths[hull] > 0) & (lengths[hull] % sizes[hull] == 0)
    need(fits.all(), "corners: a polytope must have whole vertices")
    fits = (sizes[table] <= 20) & (lengths[table] == 1 << np.minimum(sizes[table], 20))
    need(fits.all(), "corners: a subset set must have 2^size lower probabilities")
    need(((sets.corners >= 0) & (sets.corners <= 1)).all(), "corners: must lie in [0, 1]")
    for j in np.flatnonzero(hull):
        vertices = sets.corners[sets.corner_ptr[j] : sets.corner_ptr[j + 1]].reshape(-1, sizes[j])
        need((np.abs(vertices.sum(1) - 1.0) <= SUM_OFF).all(), f"corners: set {j}, sums not one")
        part = slice(sets.ptr[j], sets.ptr[j + 1])
        own = np.array_equal(vertices.min(0), sets.lower[part]), np.array_equal(
            vertices.max(0), sets.upper[part])  # fmt: skip
        need(kind[j] == SINGLETON or all(own), f"lower, upper: set {j}, not those of its vertices")
    for j in np.flatnonzero(table):
        low = sets.corners[sets.corner_ptr[j] : sets.corner_ptr[j + 1]]
        need(low[0] == 0.0 and low[-1] == 1.0, f"corners: set {j}, from 0 to 1")
        need((low + low[::-1] <= 1.0).all(), f"corners: set {j}, a set and its complement")


OBJECTIVES: dict[str, tuple[str, ...]] = {  # the plain fields of each
    "Reach": (), "Until": ("latest", "earliest"), "Globally": ("latest", "earliest"), "Next": (),
    "ReachReward": ("reward",), "Cumulative": ("steps", "reward", "discount"),
    "Instantaneous": ("step", "reward"), "Discounted": ("discount", "reward"), "Total": ("reward",),
}  # fmt: skip
SETS = {
    "Reach": ("target",), "Until": ("stay", "target"), "Globally": ("stay",), "Next": ("target",),
    "ReachReward": ("target",),
}  # fmt: skip


def read_claim(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Claim:
    """Return a claim all of whose fields make sense."""
    model = read_model(header["model"], Fields(arrays, "model."))
    fields = Fields(arrays)
    objective = header["objective"]
    need(isinstance(objective, dict) and objective.get("type") in OBJECTIVES, "objective: unknown")
    kind = objective["type"]
    known = {"type", *OBJECTIVES[kind], *SETS.get(kind, ())}
    need(set(objective) <= known, f"objective: only {sorted(known)} belong to {kind}")
    _check_objective(objective)
    for side in (header["agent"], header["nature"]):
        need(side in ("MIN", "MAX"), "agent, nature: must be MIN or MAX")
    need(header["status"] in STATUSES, "status: unknown")
    precision = header["precision"]
    need(_number(precision) and 0.0 < precision < np.inf, "precision: must be a positive number")
    measure = header.get("measure", "RELATIVE")
    need(measure in ("RELATIVE", "ABSOLUTE"), "measure: must be RELATIVE or ABSOLUTE")
    subject = header.get("subject", "optimum")
    need(subject in ("optimum", "policy"), "subject: must be optimum or policy")
    need(isinstance(header["witness"], bool), "witness: must say yes or no")
    bounds = _sides(fields, "", model.states)
    witness = _sides(fields, "witness.", model.states)
    need(bool(witness) <= header["witness"], "witness: there is one that is not announced")
    policy = fields.integers("policy", model.states, model.rows, ndim=2)
    own = (policy >= model.row_ptr[:-1]) & (policy < model.row_ptr[1:])
    need(len(policy) and own.all(), "policy: must take rows of the state itself")
    interest = model.label("init")
    if fields.has("interest"):
        interest = fields.booleans("interest", model.states)
    value = fields.floats("value", model.states, plain=False)
    need(not np.isnan(value).any(), "value: must hold numbers")
    return Claim(
        model, objective, kind, _sign(header["agent"]), _sign(header["nature"]), header["status"],
        float(precision), measure == "ABSOLUTE", interest, bounds, witness, value, policy,
        subject == "policy",
    )  # fmt: skip


def _sides(fields: Fields, prefix: str, states: int) -> dict[int, FloatArray]:
    """Return the bounds that are there, numbers or infinite."""
    found = {}
    for side, name in ((-1, f"{prefix}lower"), (1, f"{prefix}upper")):
        if fields.has(name):
            found[side] = fields.floats(name, states, plain=False)
            need(not np.isnan(found[side]).any(), f"{name}: must hold numbers")
    return found


def _check_objective(objective: Mapping[str, Any]) -> None:
    """Check that steps count from zero, and discounts lie in (0, 1], below 1 if for ever."""
    for name in ("earliest", "latest", "steps", "step"):
        steps = objective.get(name, 0)
        fine = (isinstance(steps, int) and not isinstance(steps, bool) and steps >= 0) or (
            steps is None and name == "latest"
        )
        need(fine, f"{name}: must be a number of steps")
    if objective.get("latest") is not None:
        need(objective.get("earliest", 0) <= objective["latest"], "earliest: must be <= latest")
    needed = {"Cumulative": "steps", "Instantaneous": "step", "Discounted": "discount"}
    wanted = needed.get(objective["type"])
    need(wanted is None or wanted in objective, f"objective: {wanted} is missing")
    discount = objective.get("discount", 1.0)
    need(_number(discount) and 0.0 < discount <= 1.0, "discount: must lie in (0, 1]")
    if objective["type"] == "Discounted":
        need(discount < 1.0, "discount: must be below 1")
    for name in ("reward", "target", "stay"):
        content = objective.get(name)
        need(content is None or isinstance(content, str), f"{name}: must be a name")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sign(name: str) -> int:
    return 1 if name == "MAX" else -1


def states_of(claim: Claim, arrays: Mapping[str, AnyArray], name: str) -> BoolArray:
    """Return a set of states of the objective: a label, or an array of its own."""
    given = claim.objective.get(name)
    listed = f"states.{name}" in arrays
    need((given is None) == listed, f"{name}: must be a label or an array of states")
    if given is not None:
        return claim.model.label(given)
    return Fields(arrays).booleans(f"states.{name}", claim.model.states)
