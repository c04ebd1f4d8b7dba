"""Unknown rewards: bounds of the mean reward of every row, learned beside its marginals.

The source says what visits paid (`rfmdp.sources.source`). The mixture sequence, with the sum of
scaled rewards in place of a count, bounds the mean at all times together: a^X b^(1-X) is convex in
X, so the likelihood ratio of a coin, at fractional X with mean p, is a supermartingale. So a reward
may depend on the successor, too. A row that was never visited pays the end of the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning import intervals
from rfmdp.learning.budget import Shares
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import Spec
from rfmdp.outer.problem import pose
from rfmdp.ragged import segment_lengths
from rfmdp.record import Assumption
from rfmdp.rounding import EPS
from rfmdp.sources.source import Payer
from rfmdp.types import AnyArray, FloatArray, IntArray

SHARE = 0.5  # of the error probability of the model and its rewards, for rewards


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
        lower, _ = intervals.mixture(np.clip(x, 0.0, n), n, delta)
        exact = self.low + lower * span - 4.0 * EPS * size
        return np.where(lower > 0.0, np.maximum(exact, self.low), self.low)


class UnknownRewards:
    """Rewards that are learned: what was seen of them, and bounds of their means.

    The objective of `spec` says which rewards count.
    """

    def __init__(self, span: RewardRange, model: FactoredMDP, spec: Spec, shares: Shares) -> None:
        objective = spec.objective
        if not (objective.rewarded and objective.summed):
            raise UnsupportedError(
                "learn: with `rewards` the objective must be a reward to a target, of some steps, "
                f"discounted or total; found {type(objective).__name__}."
            )
        model.reward(objective.reward_name)  # raises ModelError if there is none
        self.range = span
        self.name = objective.reward_name or next(iter(model.rewards))
        open_states = ~pose(model, spec).terminal
        self._open = np.flatnonzero(np.repeat(open_states, segment_lengths(model.row_ptr)))
        self._delta = shares.reward_delta(len(self._open))
        self.visits = np.zeros(model.rows, dtype=np.int64)
        self.paid = np.zeros(model.rows)  # sums

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """What a saved run keeps, and what bounds are derived from: visits and payments (R,)."""
        return {"visits": self.visits, "paid": self.paid}

    @property
    def settings(self) -> dict[str, Any]:
        """What tells runs apart."""
        return {"kind": "mixture", "low": self.range.low, "high": self.range.high}

    def take(self, visits: IntArray, payer: Payer) -> None:
        """Take note of what new visits paid; `visits` (R,) are all so far.

        Raises
        ------
        ModelError
            If a reward leaves its range.
        """
        fresh = visits - self.visits
        self.visits += fresh
        at = np.intersect1d(np.flatnonzero(fresh), self._open, assume_unique=True)
        paid = payer(at, fresh[at])
        self.range.require(paid.least)
        self.range.require(paid.most)
        self.paid[at] += paid.sums

    def check_ends(self, model: FactoredMDP, last: IntArray) -> None:
        """Raise ModelError if states in which episodes were over (N,) must pay all the same.

        Nothing is paid there, so nothing is learned: they pay the end of the range for ever.
        """
        span = self.range
        over = last[np.isin(model.row_ptr[last], self._open)]
        if len(over) and not span.low <= 0.0 <= span.high:
            raise ModelError(
                f"Reward: an episode was over in {model.state_name(int(over[0]))}, where nothing "
                f"is paid, so the range must contain 0, found [{span.low:g}, {span.high:g}]; "
                "widen it."
            )

    def bounds(self, low: bool) -> FloatArray:
        """Return what rows pay on average at least, or at most, (R,).

        Both sides are bounds of one event.
        """
        sign = 1.0 if low else -1.0
        span = self.range if low else RewardRange(-self.range.high, -self.range.low)
        paid, at = np.zeros(len(self.visits)), self._open
        paid[at] = sign * span.least_means(sign * self.paid[at], self.visits[at], self._delta)
        return paid

    def apply(self, model: FactoredMDP, low: bool) -> FactoredMDP:
        """Return a model whose rows pay the bounds."""
        paid = Rewards(np.zeros(model.states), self.bounds(low))
        return replace(model, rewards={**model.rewards, self.name: paid})
