"""Unknown rewards: bounds of the mean reward of every row, learned beside its marginals.

The source says what visits paid (`rfmdp.sources.source`). Under `DeterministicReward` the first
visit of a row settles its reward. Under `MixtureReward` the mixture sequence bounds the mean from
the sum of what was paid, at all times together; so a reward may depend on the successor, too. A
row that was never visited pays the end of the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

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

SHARE = 0.5  # of the error probability of the model and its rewards, for random rewards

_DRAWS = Assumption("mean-rewards")


@dataclass(frozen=True, slots=True)
class RewardRange:
    """Rewards lie in [low, high], always."""

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
    def assumption(self) -> str:
        """The range, in words."""
        return Assumption("reward-range", low=self.low, high=self.high)

    def require(self, samples: FloatArray) -> None:
        """Raise ModelError if a sample lies outside the range."""
        outside = ~((samples >= self.low) & (samples <= self.high))
        if np.any(outside):
            raise ModelError(
                f"Reward: must lie in [{self.low:g}, {self.high:g}], found "
                f"{samples[outside][0]:g}; guarantees given so far are void, widen the range."
            )

    def unscale(self, lower: FloatArray) -> FloatArray:
        """Return lower bounds in [0, 1] mapped back to the range, rounded downwards."""
        slack = 4.0 * EPS * (abs(self.low) + abs(self.high))
        exact = lower * (self.high - self.low)
        return np.where(lower > 0, np.maximum(self.low + exact - slack, self.low), self.low)

    def mirrored(self) -> RewardRange:
        """Return the range of the negated rewards."""
        return RewardRange(-self.high, -self.low)


@dataclass(frozen=True, slots=True)
class DeterministicReward:
    """A reward that never varies: one observation settles it, without any error probability."""

    range: RewardRange

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Constancy is the user's claim."""
        return (self.range.assumption, Assumption("constant-rewards"))

    def lower(self, observed: FloatArray, counts: IntArray, delta: ArrayLike) -> FloatArray:
        """Return the rewards observed (W,), the lower end of the range where there is none."""
        seen = np.asarray(counts) > 0
        self.range.require(observed[seen])
        return np.where(seen, observed, self.range.low)


@dataclass(frozen=True, slots=True)
class MixtureReward:
    """The mixture sequence with x = sum of scaled rewards in place of a count; anytime valid.

    a^X b^(1-X) is convex in X, so the likelihood ratio of a coin, at fractional X with mean p,
    is a supermartingale.
    """

    range: RewardRange

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Range and constant mean."""
        return (self.range.assumption, _DRAWS)

    def lower(self, observed: FloatArray, counts: IntArray, delta: ArrayLike) -> FloatArray:
        """Return lower bounds (W,) of the means; `observed` (W,) are sums of the samples."""
        n = np.asarray(counts, dtype=np.float64)
        span = self.range.high - self.range.low
        x = (observed - n * self.range.low) / span
        # the rounding of a sum of n terms of the range's size
        x -= 4.0 * EPS * n * (1.0 + (abs(self.range.low) + abs(self.range.high)) / span)
        lower, _ = intervals.mixture(np.clip(x, 0.0, n), n, delta)
        return self.range.unscale(lower)


RewardFamily: TypeAlias = DeterministicReward | MixtureReward


class UnknownRewards:
    """Rewards that are learned: what was seen of them, and bounds of their means.

    The objective of `spec` says which rewards count.
    """

    def __init__(
        self, family: RewardFamily, model: FactoredMDP, spec: Spec, shares: Shares
    ) -> None:
        objective = spec.objective
        if not (objective.rewarded and objective.summed):
            raise UnsupportedError(
                "learn: with `rewards` the objective must be a reward to a target, of some steps, "
                f"discounted or total; found {type(objective).__name__}."
            )
        model.reward(objective.reward_name)  # raises ModelError if there is none
        self.family = family
        self.name = objective.reward_name or next(iter(model.rewards))
        open_states = ~pose(model, spec).terminal
        self._open = np.flatnonzero(np.repeat(open_states, segment_lengths(model.row_ptr)))
        self._delta = shares.reward_delta(len(self._open))
        self.visits = np.zeros(model.rows, dtype=np.int64)
        self.paid = np.zeros(model.rows)  # sums of random rewards, or what is always paid

    @property
    def settings(self) -> dict[str, Any]:
        """What tells runs apart: the kind of rewards and their range."""
        kind = "mixture" if isinstance(self.family, MixtureReward) else "constant"
        return {"kind": kind, "low": self.family.range.low, "high": self.family.range.high}

    def take(self, visits: IntArray, payer: Payer) -> None:
        """Take note of what new visits paid; `visits` (R,) are all so far.

        Raises
        ------
        ModelError
            If a reward leaves its range, or varies where it must not.
        """
        fresh = visits - self.visits
        self.visits += fresh
        at = np.intersect1d(np.flatnonzero(fresh), self._open, assume_unique=True)
        paid = payer(at, fresh[at])
        self.family.range.require(paid.least)
        self.family.range.require(paid.most)
        if isinstance(self.family, MixtureReward):
            self.paid[at] += paid.sums
            return
        again = self.visits[at] > fresh[at]
        varies = (paid.least != paid.most) | (again & (paid.most != self.paid[at]))
        if np.any(varies):
            first = int(np.argmax(varies))
            raise ModelError(
                f"Reward of row {at[first]}: must always be the same, found {paid.least[first]:g} "
                f"and {paid.most[first]:g} (before: {self.paid[at[first]]:g}); guarantees "
                "given so far are void, learn with MixtureReward."
            )
        self.paid[at] = paid.least

    def check_ends(self, model: FactoredMDP, last: IntArray) -> None:
        """Raise ModelError if states in which episodes were over (N,) must pay all the same.

        Nothing is paid there, so nothing is learned: they pay the end of the range for ever.
        """
        span = self.family.range
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
        paid = np.zeros(len(self.visits))
        at = self._open
        sign = 1.0 if low else -1.0
        span = self.family.range if low else self.family.range.mirrored()
        paid[at] = sign * replace(self.family, range=span).lower(
            sign * self.paid[at], self.visits[at], np.full(len(at), self._delta)
        )
        return paid

    def apply(self, model: FactoredMDP, low: bool) -> FactoredMDP:
        """Return a model whose rows pay the bounds."""
        paid = Rewards(np.zeros(model.states), self.bounds(low))
        return replace(model, rewards={**model.rewards, self.name: paid})

    def state(self) -> dict[str, AnyArray]:
        """Return copies of what the bounds are derived from: visits and payments (R,)."""
        return {"visits": self.visits.copy(), "paid": self.paid.copy()}

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from a saved state."""
        self.visits, self.paid = np.array(state["visits"]), np.array(state["paid"])
