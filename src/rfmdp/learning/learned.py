"""The learned model: with everything unknown against the agent, or for it.

Rewards may be unknown, too. The source says what visits paid (`rfmdp.sources.source`). The mixture
sequence, with the sum of scaled rewards in place of a count, bounds the mean at all times together:
a^X b^(1-X) is convex in X, so the likelihood ratio of a coin, at fractional X with mean p, is a
supermartingale. So a reward may depend on the successor. A row that was never visited pays the end
of the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.confidence import mixture
from rfmdp.learning.setup import divided
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX
from rfmdp.outer.problem import pose
from rfmdp.ragged import segment_lengths
from rfmdp.record import Assumption
from rfmdp.rounding import EPS
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.identifiers import Identifiers
    from rfmdp.learning.setup import Setup


@dataclass(frozen=True, slots=True)
class RewardRange:
    """Rewards that are learned: they lie in [low, high], and their mean does not change."""

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


class LearnedModel:
    """The learned model of a run; its sets are those of the identifiers of `model`.

    `arrays` are what was seen of unknown rewards: visits and payments (R,); if there are none, it
    is empty and `range` is None.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.model, self.spec, self.range = ids.model, setup.spec, setup.rewards
        self.arrays: dict[str, AnyArray] = {}
        if self.range is None:
            return
        model, objective = self.model, self.spec.objective
        if not (objective.rewarded and objective.summed):
            raise UnsupportedError(
                "learn: with `rewards` the objective must be a reward to a target, of some steps, "
                f"discounted or total; found {type(objective).__name__}."
            )
        model.reward(objective.reward_name)  # raises ModelError if there is none
        self._reward = name = objective.reward_name or next(iter(model.rewards))
        open_states = ~pose(model, self.spec).terminal
        self._open = np.flatnonzero(np.repeat(open_states, segment_lengths(model.row_ptr)))
        self._delta = divided(setup.shares().reward, len(self._open))
        self._source, self._payer = setup.source, setup.source.payer(name)
        visits = np.zeros(model.rows, dtype=np.int64)
        self.arrays |= {"visits": visits, "paid": np.zeros(model.rows)}  # sums

    def trivial(self) -> tuple[float, float]:
        """Return what holds without data: the worst and the best value for the agent."""
        low, high = 0.0, 1.0
        if self.spec.objective.rewarded:
            problem = pose(self.model, self.spec)
            least = float(np.min([*problem.reward, *problem.start], initial=0.0))
            if self.range is not None:
                least = self.range.low
            low, high = 0.0 if least >= 0.0 else -np.inf, np.inf
        return (low, high) if self.spec.agent is MAX else (high, low)

    def with_sets(self, sets: Marginals, hopeful: bool = False) -> FactoredMDP:
        """Return the model with learned sets, and with the rewards of `paid`."""
        model, paid = self.model, self.paid(hopeful)
        model = model.with_marginals(sets).with_provenance(sets={"kind": "learned"})
        if paid is None:
            return model
        learned = Rewards(np.zeros(model.states), paid)
        return replace(model, rewards={**model.rewards, self._reward: learned})

    def paid(self, hopeful: bool = False) -> FloatArray | None:
        """Return bounds of what rows pay on average, (R,): the worst or best for the agent.

        Both sides are bounds of one event. None: rows pay what the model says.
        """
        if self.range is None:
            return None
        low = (self.spec.agent is MAX) is not hopeful
        sign = 1.0 if low else -1.0
        span = self.range if low else RewardRange(-self.range.high, -self.range.low)
        bounds, at = np.zeros(self.model.rows), self._open
        sums, visits = self.arrays["paid"][at], self.arrays["visits"][at]
        bounds[at] = sign * span.least_means(sign * sums, visits, self._delta)
        return bounds

    def take(self, visits: IntArray) -> None:
        """Take note of what new visits paid; `visits` (R,) are all so far.

        In states in which episodes were over nothing is paid, so nothing is learned: they pay the
        end of the range for ever. ModelError: a reward leaves its range, or rows must pay there.
        """
        if self.range is None:
            return
        span, model, last = self.range, self.model, self._source.last
        fresh = visits - self.arrays["visits"]
        self.arrays["visits"] += fresh
        at = np.intersect1d(np.flatnonzero(fresh), self._open, assume_unique=True)
        paid = self._payer(at, fresh[at])
        span.require(paid.least)
        span.require(paid.most)
        self.arrays["paid"][at] += paid.sums
        over = last[np.isin(model.row_ptr[last], self._open)]
        if len(over) and not span.low <= 0.0 <= span.high:
            raise ModelError(
                f"Reward: an episode was over in {model.state_name(int(over[0]))}, where nothing "
                f"is paid, so the range must contain 0, found [{span.low:g}, {span.high:g}]; "
                "widen it."
            )
