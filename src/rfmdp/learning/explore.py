"""Exploration: which policy to sample next. It may be wrong: guarantees do not rest on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson, ConfidenceSet
from rfmdp.learning.planner import Planner
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX, MIN
from rfmdp.outer.problem import Form
from rfmdp.ragged import segment_lengths
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.simulator import Behaviour
from rfmdp.sources.tally import Tally
from rfmdp.types import FloatArray, IntArray

GROWTH = 1.1  # sets used for exploration only are made anew when the visits grew by this factor


@dataclass(slots=True, eq=False)
class ExplorationState:
    """What exploration knows and may look at; nothing of it is the hidden truth."""

    planner: Planner
    sets: SetStore  # to plan with, those of `planning_sets`
    seen: Tally
    plans: int  # made before this one
    length: int  # of a trajectory
    robust: IntArray | None  # rows (steps, S) of the last robust policy
    value: FloatArray | None = None  # (S,) of the last plan


class Exploration(Protocol):
    """How the next trajectories are sampled."""

    @property
    def error(self) -> float | None:
        """Error probability of the sets it plans with; None: those of the guarantee."""

    def plan(self, state: ExplorationState) -> Behaviour:
        """Return the behaviour until the next plan."""


@dataclass(frozen=True, slots=True)
class Optimistic:
    """The best policy if nature cooperates within the confidence sets (the paper's).

    Parameters
    ----------
    other
        Probability of taking another row than the planned one.
    error
        Error probability of the sets it plans with, shared evenly; None: those of the guarantee.
    """

    other: float = 0.0
    error: float | None = None

    def __post_init__(self) -> None:
        _require_probability(self.other)

    def plan(self, state: ExplorationState) -> Behaviour:
        """Plan with nature on the agent's side."""
        _refresh(state)
        return Behaviour(_optimistic(state), self.other)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Every row of a state with the same probability."""

    error = 0.5  # of sets that are never looked at

    def plan(self, state: ExplorationState) -> Behaviour:
        """Return the uniform behaviour."""
        return Behaviour.uniform(state.planner.model)


@dataclass(frozen=True, slots=True)
class GapDirected:
    """Sample where ignorance costs the guarantee most.

    With pi optimal for the estimated model, an identifier j costs
        loss_j = sum_s visits(s) [E V - least E V over the set of j, the others estimated],
    and one more sample of it saves about loss_j / (2 n_j). The plan collects as much of
    loss_j / n_j as a trajectory can. Every `every`-th plan is optimistic, so that no good action
    stays untried. Its sets are loose: narrower ones find promising actions sooner.
    """

    every: int = 4
    error: float = 0.5

    def plan(self, state: ExplorationState) -> Behaviour:
        """Plan for the largest bonus, or optimistically."""
        _refresh(state)
        if state.plans % self.every == 0:
            return Behaviour(_optimistic(state))
        estimate = smoothed(state)
        planner = state.planner
        value, rows = planner.plan(estimate, planner.problem.nature)
        loss = _losses(state, estimate, value, rows)
        bonus = loss / np.maximum(state.seen.totals, 1)
        model = planner.model
        slots = np.concatenate([[0.0], np.cumsum(bonus[model.row_marginals])])
        per_row = slots[model.marginal_ptr[1:]] - slots[model.marginal_ptr[:-1]]
        return Behaviour(planner.collect(estimate, per_row, state.length))


def smoothed(state: ExplorationState) -> Marginals:
    """Return the estimates (x + 1/2) / (n + k/2); no outcome has probability 0."""
    pointers = state.sets.ptr
    sizes = segment_lengths(pointers)
    total = np.repeat(state.seen.totals + 0.5 * sizes, sizes)
    return Marginals.from_points(pointers, (state.seen.counts + 0.5) / total)


def _require_probability(other: float) -> None:
    if not 0.0 <= other <= 1.0:
        raise ModelError(f"The chance of any other action must be in [0, 1], found {other!r}.")


def planning_sets(
    error: float | None, outcome_ptr: IntArray, guard: ConfidenceSet, delta: FloatArray
) -> SetStore:
    """Return the sets to plan with: Clopper-Pearson boxes that share an error probability evenly.

    Without one they are those of the guarantee, made by `guard` with `delta` (M,).
    """
    if error is None:
        return SetStore(guard, outcome_ptr, delta, nested=False)
    sizes = segment_lengths(outcome_ptr)
    delta = np.full(len(sizes), error / max(1, int(sizes.sum())))
    return SetStore(ClopperPearson(), outcome_ptr, delta)


def _refresh(state: ExplorationState) -> None:
    """Bring the sets of identifiers with enough new samples up to date."""
    sets, totals = state.sets, state.seen.totals
    grown = np.flatnonzero(totals >= GROWTH * np.maximum(sets.totals, 0.5))
    sets.refresh(state.seen.counts, grown)


def _optimistic(state: ExplorationState) -> IntArray:
    """Return the rows of the best policy with nature on the agent's side.

    With more data optimistic costs grow, so sweeps may start from the last ones. Optimistic
    probabilities fall: the last ones lie above the value, and would be a wrong start.
    """
    planner, problem = state.planner, state.planner.problem
    grows = problem.agent is MIN and problem.form is not Form.REACH
    start = state.value if grows or problem.form is Form.DISCOUNTED else None
    state.value, rows = planner.plan(state.sets.marginals(), problem.agent, start)
    return rows


def _losses(
    state: ExplorationState, estimate: Marginals, value: FloatArray, rows: IntArray
) -> FloatArray:
    """Return what every identifier's set costs, (M,)."""
    from rfmdp.kernels.statistical import gap_losses, occupancy

    planner, sets = state.planner, state.sets
    model, problem = planner.model, planner.problem
    joint = np.empty(int(np.max(segment_lengths(model.successor_ptr), initial=1)))
    visits = np.zeros(model.states)
    loss = np.zeros(len(model.marginals))
    arrays = model.structure
    boxes = (np.array(estimate.nominal), sets.lower, sets.upper)
    initial = np.array(model.initial)
    spread = joint, np.zeros(model.states), np.zeros(model.states)
    occupancy(rows, state.length, arrays, boxes, initial, problem.terminal, spread, visits)
    largest = int(np.max(model.marginals.sizes, initial=1))
    work = (joint, np.empty(largest), np.empty(2 * largest), np.empty(largest, dtype=np.int64))
    sign = -1.0 if problem.nature is MAX else 1.0
    gap_losses(rows[0], visits, arrays, boxes, value, sign, work, loss)
    return loss
