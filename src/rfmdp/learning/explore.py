"""Exploration: which policy to sample next. It may be wrong: guarantees do not rest on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX
from rfmdp.ragged import segment_lengths
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.simulator import Behaviour
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.sampling import Sampling


def guard_sets(guard: SetStore) -> SetStore:
    """Return sets like those of the guarantee, but not intersected with earlier ones."""
    return SetStore(guard.confidence, guard.ptr, guard.delta, nested=False)


@dataclass(frozen=True, slots=True)
class Optimistic:
    """The best policy if nature cooperates within the confidence sets (the paper's).

    `other` is the probability of taking another row than the planned one.
    """

    other: float = 0.0
    sets = staticmethod(guard_sets)

    def __post_init__(self) -> None:
        if not 0.0 <= self.other <= 1.0:
            raise ModelError(
                f"The chance of any other action must be in [0, 1], found {self.other!r}."
            )

    def plan(self, sampling: Sampling) -> Behaviour:
        """Plan with nature on the agent's side."""
        return Behaviour(sampling.optimistic_rows(), self.other)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Every row of a state with the same probability."""

    sets = staticmethod(guard_sets)

    def plan(self, sampling: Sampling) -> Behaviour:
        """Return the uniform behaviour."""
        return Behaviour.uniform(sampling.planner.model)


@dataclass(frozen=True, slots=True)
class GapDirected:
    """Sample where ignorance costs the guarantee most.

    With pi optimal for the estimated model, an identifier j costs
        loss_j = sum_s visits(s) [E V - least E V over the set of j, the others estimated],
    and one more sample of it saves about loss_j / (2 n_j). The plan collects as much of
    loss_j / n_j as a trajectory can. Every `every`-th plan is optimistic, so that no good action
    stays untried. Its sets are loose: narrower ones find promising actions sooner. They are
    Clopper-Pearson boxes that share an error probability evenly.
    """

    every: int = 4
    error: float = 0.5

    def sets(self, guard: SetStore) -> SetStore:
        """Return boxes that fail with probability `error`."""
        count = len(guard.delta)
        return SetStore(
            ClopperPearson(), guard.ptr, np.full(count, self.error / max(1, int(guard.ptr[-1])))
        )

    def plan(self, sampling: Sampling) -> Behaviour:
        """Plan for the largest bonus, or optimistically."""
        if sampling.plans % self.every == 0:
            return Behaviour(sampling.optimistic_rows())
        sampling.refresh()
        estimate, planner = _smoothed(sampling), sampling.planner
        value, rows = planner.plan(estimate, planner.problem.nature)
        loss = _losses(sampling, estimate, value, rows)
        bonus = loss / np.maximum(sampling.seen.totals, 1)
        model = planner.model
        slots = np.concatenate([[0.0], np.cumsum(bonus[model.row_marginals])])
        per_row = slots[model.marginal_ptr[1:]] - slots[model.marginal_ptr[:-1]]
        return Behaviour(planner.collect(estimate, per_row, sampling.setup.length))


Exploration: TypeAlias = Optimistic | UniformRandom | GapDirected


def _smoothed(sampling: Sampling) -> Marginals:
    """Return the estimates (x + 1/2) / (n + k/2); no outcome has probability 0."""
    pointers, seen = sampling.sets.ptr, sampling.seen
    sizes = segment_lengths(pointers)
    total = np.repeat(seen.totals + 0.5 * sizes, sizes)
    return Marginals.from_points(pointers, (seen.counts + 0.5) / total)


def _losses(
    sampling: Sampling, estimate: Marginals, value: FloatArray, rows: IntArray
) -> FloatArray:
    """Return what every identifier's set costs, (M,)."""
    from rfmdp.kernels.statistical import gap_losses, occupancy

    planner, sets = sampling.planner, sampling.sets
    model, problem, length = planner.model, planner.problem, sampling.setup.length
    joint = np.empty(int(np.max(segment_lengths(model.successor_ptr), initial=1)))
    visits = np.zeros(model.states)
    loss = np.zeros(len(model.marginals))
    arrays = model.structure
    boxes = (np.array(estimate.nominal), sets.lower, sets.upper)
    initial = np.array(model.initial)
    spread = joint, np.zeros(model.states), np.zeros(model.states)
    occupancy(rows, length, arrays, boxes, initial, problem.terminal, spread, visits)
    largest = int(np.max(model.marginals.sizes, initial=1))
    work = (joint, np.empty(largest), np.empty(2 * largest), np.empty(largest, dtype=np.int64))
    sign = -1.0 if problem.nature is MAX else 1.0
    gap_losses(rows[0], visits, arrays, boxes, value, sign, work, loss)
    return loss
