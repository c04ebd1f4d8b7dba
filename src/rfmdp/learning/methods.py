"""Named methods, their parts, and what else `learn` may be given: points, stopping, rewards.

Guarantees do not rest on which policy is sampled. The paper's methods read sets repeatedly that are
valid for a single look only, and say so; ours use sets that are valid at any time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.protocol import Inner
from rfmdp.inner.solvers import Exact, IntervalArithmetic, RadiusSum
from rfmdp.learning.confidence import ClopperPearson, ConfidenceSet, Mixture, Weissman, mixture
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.setup import Budget
from rfmdp.objective import MAX, Direction
from rfmdp.ragged import segment_lengths
from rfmdp.record import Assumption
from rfmdp.rounding import EPS
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.trajectories import Behaviour
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.run import Point
    from rfmdp.learning.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Optimistic:
    """The best policy if nature cooperates within the confidence sets (the paper's).

    `other` is the probability of taking another row than the planned one.
    """

    other: float = 0.0
    error = None  # plans with the sets of the guarantee, not intersected with earlier ones

    def __post_init__(self) -> None:
        Behaviour(np.zeros((1, 1), dtype=np.int64), self.other)  # refuses what is no probability

    def plan(self, sampling: Sampling) -> Behaviour:
        """Plan with nature on the agent's side."""
        return Behaviour(sampling.optimistic_rows(), self.other)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Every row of a state with the same probability."""

    error = None

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
    stays untried. It plans with Clopper-Pearson boxes that share `error` evenly, a large error
    probability: narrower sets find promising actions sooner.
    """

    every: int = 4
    error: float = 0.5

    def plan(self, sampling: Sampling) -> Behaviour:
        """Plan for the largest bonus, or optimistically."""
        from rfmdp.kernels.statistical import gap_losses, occupancy

        if sampling.plans % self.every == 0:
            return Behaviour(sampling.optimistic_rows())
        sampling.refresh()
        planner, seen, sets = sampling.planner, sampling.seen, sampling.sets
        model, problem, length = planner.model, planner.problem, sampling.setup.length
        sizes = segment_lengths(sets.ptr)  # (x + 1/2) / (n + k/2): no outcome has probability 0
        smoothed = (seen.counts + 0.5) / np.repeat(seen.totals + 0.5 * sizes, sizes)
        estimate = Marginals.from_points(sets.ptr, smoothed)
        value, rows = planner.plan(estimate, problem.nature)
        joint = np.empty(int(np.max(segment_lengths(model.successor_ptr), initial=1)))
        visits, loss = np.zeros(model.states), np.zeros(len(model.marginals))
        arrays, initial = model.structure, np.array(model.initial)
        boxes = (np.array(estimate.nominal), sets.lower, sets.upper)
        spread = joint, np.zeros(model.states), np.zeros(model.states)
        occupancy(rows, length, arrays, boxes, initial, problem.terminal, spread, visits)
        most = int(np.max(sizes, initial=1))
        work = (joint, np.empty(most), np.empty(2 * most), np.empty(most, dtype=np.int64))
        sign = -1.0 if problem.nature is MAX else 1.0
        gap_losses(rows[0], visits, arrays, boxes, value, sign, work, loss)
        bonus = loss / np.maximum(seen.totals, 1)
        slots = np.concatenate([[0.0], np.cumsum(bonus[model.row_marginals])])
        per_row = slots[model.marginal_ptr[1:]] - slots[model.marginal_ptr[:-1]]
        return Behaviour(planner.collect(estimate, per_row, length))


Exploration: TypeAlias = Optimistic | UniformRandom | GapDirected


@dataclass(frozen=True, slots=True)
class Doubling:
    """When to plan anew: after the trajectory in which the visits of any identifier doubled.

    patience : share by which the number of trajectories must have grown, even if visits doubled:
        with many identifiers one of them doubles all the time. 0 is the paper's rule.
    factor : how many times as many visits count as doubled
    """

    patience: float = 0.1
    factor: float = 2.0

    def limits(self, totals: IntArray) -> IntArray:
        """Return the visits (M,) of every identifier at which a new plan is due."""
        limits: IntArray = np.maximum(np.ceil(self.factor * totals), 1).astype(np.int64)
        return limits

    def earliest(self, trajectories: int) -> int:
        """Return after how many trajectories the next plan may be made."""
        return math.ceil(trajectories * (1.0 + self.patience))


@dataclass(frozen=True, slots=True)
class LogSpaced:
    """Evaluation points: the same number of them in every decade of trajectories."""

    per_decade: int = 8
    first: int = 100

    def next(self, trajectories: int) -> int:
        """Return the first evaluation point after some trajectories."""
        if trajectories < self.first:
            return self.first
        step = math.floor(self.per_decade * math.log10(trajectories / self.first) + 1e-9) + 1
        while round(self.first * 10 ** (step / self.per_decade)) <= trajectories:
            step += 1
        return round(self.first * 10 ** (step / self.per_decade))


@dataclass(frozen=True, slots=True)
class StopWhen:
    """Stop at the first of these; all are looked at after every evaluation.

    Stopping at a guarantee that was reached is optional stopping: sound with sets that are valid
    at any time, and not with those of a single look.

    trajectories, steps : numbers of them, at most
    guarantee : one that is good enough
    gap : distance of guarantee and optimistic bound that is small enough
    seconds : time, at most; sampling, planning and solving stop when it is over
    """

    trajectories: int = 100_000
    steps: int | None = None
    guarantee: float | None = None
    gap: float | None = None
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.trajectories < 1 or not self.seconds > 0.0:
            raise ModelError("StopWhen: trajectories and seconds must be positive.")

    def reason(self, agent: Direction, point: Point, left: float) -> str | None:
        """Return why to stop after an evaluation, with some seconds left, or None."""
        sign, goal = agent.sign, self.guarantee
        if goal is not None and sign * point.guarantee >= sign * goal:
            return "guarantee reached"
        if self.gap is not None and abs(point.optimistic - point.guarantee) <= self.gap:
            return "gap closed"
        if point.trajectories >= self.trajectories:
            return "all trajectories run"
        if self.steps is not None and point.steps >= self.steps:
            return "all steps run"
        return "time is up" if left <= 0.0 else None


@dataclass(frozen=True, slots=True)
class RewardRange:
    """Rewards that are learned: they lie in [low, high], and their mean does not change.

    The mixture sequence, with the sum of scaled rewards in place of a count, bounds the mean at all
    times together: a^X b^(1-X) is convex in X, so the likelihood ratio of a coin, at fractional X
    with mean p, is a supermartingale. So a reward may be random or depend on the successor.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))  # arrays filled with it hold floats
        object.__setattr__(self, "high", float(self.high))
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ModelError(
                f"RewardRange: finite low < high must hold, found [{self.low}, {self.high}]."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Range and constant mean."""
        within = Assumption("reward-range", low=self.low, high=self.high)
        return (within, Assumption("mean-rewards"))

    def require(self, samples: FloatArray) -> None:
        """Raise ModelError if a sample lies outside the range."""
        outside = ~((samples >= self.low) & (samples <= self.high))
        if np.any(outside):
            raise ModelError(
                f"Reward: must lie in [{self.low:g}, {self.high:g}], found "
                f"{samples[outside][0]:g}; guarantees given so far are void, widen the range."
            )

    def least_means(self, sums: FloatArray, counts: IntArray, delta: float) -> FloatArray:
        """Return lower bounds (W,) of the means of samples with these sums (W,), rounded down."""
        n = np.asarray(counts, dtype=np.float64)
        span, size = self.high - self.low, abs(self.low) + abs(self.high)
        x = (sums - n * self.low) / span
        x -= 4.0 * EPS * n * (1.0 + size / span)  # the rounding of a sum of n terms of the range
        lower, _ = mixture(np.clip(x, 0.0, n), n, delta)
        exact = self.low + lower * span - 4.0 * EPS * size
        return np.where(lower > 0.0, np.maximum(exact, self.low), self.low)


@dataclass(frozen=True, slots=True)
class Method:
    """The parts of a learning method; `learn` takes one and replacements for single parts."""

    name: str
    confidence: ConfidenceSet = field(default_factory=Mixture)
    budget: Budget = Budget.EVENTS
    exploration: Exploration = field(default_factory=Optimistic)
    schedule: Doubling = field(default_factory=Doubling)
    granularity: Granularity = Granularity.EFFECT
    inner: Inner = field(default_factory=Exact)


_PAPER = Method(  # composes exactly, as the published hybrid practically did
    "paper-mccormick", ClopperPearson(), Budget.PROBABILITIES, granularity=Granularity.LOCAL
)
_BALLS = Method("paper-l1", Weissman(), Budget.COMPONENTS, granularity=Granularity.LOCAL)
ANYTIME = Method("anytime")
GAP_DIRECTED = Method(  # plans after 10 % more trajectories, whatever the visits
    "gap-directed", exploration=GapDirected(), schedule=Doubling(factor=1.0)
)
TIED = replace(GAP_DIRECTED, name="tied", granularity=Granularity.TIED)
_ALL = (
    replace(_PAPER, name="paper-flat", granularity=Granularity.FLAT),
    replace(_BALLS, inner=RadiusSum()),
    replace(_PAPER, name="paper-interval", inner=IntervalArithmetic()),
    *(_PAPER, ANYTIME, GAP_DIRECTED, TIED),
)
METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}


def find_method(name: str) -> Method:
    """Return a method by its name."""
    if name not in METHODS:
        raise ModelError(f"There is no learning method {name!r}; there are: {', '.join(METHODS)}.")
    return METHODS[name]
