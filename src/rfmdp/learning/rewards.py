"""Unknown rewards: bounds of their means from samples in a known range.

Samples are CSR over reward identifiers: identifier `w` owns `samples[ptr[w] : ptr[w + 1]]`, in the
order in which they were seen. `lower` and `upper` are one-sided, each with error probability
`delta[w]`, at all times together; a guarantee needs only the pessimistic one. An identifier
without samples gets the end of the range.

- `DeterministicReward`: one observation settles it.
- `MixtureReward`: the mixture sequence with fractional counts; needs only sums.
- `BettingReward`: adapts to small variances, needs the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import betting_rejects
from rfmdp.learning import intervals
from rfmdp.learning.bounds import AssumptionAlarm
from rfmdp.types import FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
_DRAWS = "every reward sample of an identifier has the same mean given all earlier samples"


@dataclass(frozen=True, slots=True)
class RewardRange:
    """Rewards lie in [low, high], always."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ModelError(
                f"RewardRange: finite low < high must hold, found [{self.low}, {self.high}]."
            )

    @property
    def assumption(self) -> str:
        """The range, in words."""
        return f"every reward lies in [{self.low:g}, {self.high:g}]"

    def scale(self, samples: FloatArray) -> FloatArray:
        """Return samples mapped to [0, 1]; ModelError if one lies outside the range."""
        outside = ~((samples >= self.low) & (samples <= self.high))
        if np.any(outside):
            raise ModelError(
                f"Reward: must lie in [{self.low:g}, {self.high:g}], found "
                f"{samples[outside][0]:g}; guarantees given so far are void, widen the range."
            )
        return np.minimum((samples - self.low) / (self.high - self.low), 1.0)

    def unscale(self, lower: FloatArray) -> FloatArray:
        """Return lower bounds mapped back from [0, 1], rounded downwards."""
        slack = 4.0 * _EPS * (abs(self.low) + abs(self.high))
        exact = lower * (self.high - self.low)
        return np.where(lower > 0, np.maximum(self.low + exact - slack, self.low), self.low)

    def mirrored(self) -> RewardRange:
        """Return the range of the negated rewards."""
        return RewardRange(-self.high, -self.low)


class RewardSet(Protocol):
    """Bounds of unknown mean rewards."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true of the samples."""

    def lower(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return lower bounds (W,) of the means."""

    def upper(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return upper bounds (W,) of the means."""


@dataclass(frozen=True, slots=True)
class DeterministicReward:
    """A reward that never varies; `delta` is not needed."""

    range: RewardRange

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Constancy is the user's claim; a contradiction raises."""
        return (self.range.assumption, "the reward of an identifier is always the same")

    def lower(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return the observed rewards; the lower end of the range where there is none."""
        return self._observed(ptr, samples, self.range.low)

    def upper(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return the observed rewards; the upper end of the range where there is none."""
        return self._observed(ptr, samples, self.range.high)

    def _observed(self, ptr: IntArray, samples: FloatArray, default: float) -> FloatArray:
        self.range.scale(samples)
        rewards = np.full(len(ptr) - 1, default)
        seen = np.diff(ptr) > 0
        rewards[seen] = samples[ptr[:-1][seen]]
        varied = samples != np.repeat(rewards, np.diff(ptr))
        if np.any(varied):
            i = int(np.argmax(varied))
            w = int(np.searchsorted(ptr, i, side="right")) - 1
            raise AssumptionAlarm(
                f"Reward identifier {w}: must always be {rewards[w]:g}, found {samples[i]:g}; "
                "use MixtureReward or BettingReward."
            )
        return rewards


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

    def lower(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return lower bounds of the means."""
        self.range.scale(samples)
        filled = np.append(samples, 0.0)  # reduceat needs an entry behind the last identifier
        counts = np.diff(ptr)
        totals = np.where(counts > 0, np.add.reduceat(filled, ptr[:-1]), 0.0)
        return self.from_sums(totals, counts, delta)

    def upper(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return upper bounds of the means."""
        return -MixtureReward(self.range.mirrored()).lower(ptr, -samples, delta)

    def from_sums(self, totals: FloatArray, counts: IntArray, delta: ArrayLike) -> FloatArray:
        """Return lower bounds from sums (W,) and numbers of samples (W,)."""
        n = np.asarray(counts, dtype=np.float64)
        span = self.range.high - self.range.low
        x = (totals - n * self.range.low) / span
        # the rounding of a sum of n terms of the range's size
        x -= 4.0 * _EPS * n * (1.0 + (abs(self.range.low) + abs(self.range.high)) / span)
        lower, _ = intervals.mixture(np.clip(x, 0.0, n), n, delta)
        return self.range.unscale(lower)


@dataclass(frozen=True, slots=True)
class BettingReward:
    """Betting bounds: narrow where rewards vary little; anytime valid. See `betting_lower`."""

    range: RewardRange

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Range and constant mean."""
        return (self.range.assumption, _DRAWS)

    def lower(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return lower bounds of the means."""
        scaled = self.range.scale(samples)
        means = [
            betting_lower(scaled[ptr[w] : ptr[w + 1]], float(delta[w])) for w in range(len(ptr) - 1)
        ]
        return self.range.unscale(np.array(means))

    def upper(self, ptr: IntArray, samples: FloatArray, delta: FloatArray) -> FloatArray:
        """Return upper bounds of the means."""
        return -BettingReward(self.range.mirrored()).lower(ptr, -samples, delta)


def betting_lower(samples: FloatArray, delta: float, horizon: int | None = None) -> float:
    """Return a lower bound of the mean of samples in [0, 1], error probability `delta`.

    A mean is rejected once betting on larger samples would have multiplied a stake by 1/delta:
        sup_t prod_{s<=t} (1 + lambda_s (X_s - mean)) >= 1/delta,
        lambda_t = min(sqrt(2 ln(1/delta) / (variance_{t-1} T)), 3/(4 mean)),
    with T = t ln(1+t), or T = `horizon` to do best after a number of samples fixed in advance
    [WaudbySmithRamdas2024]. Rejected means form an interval from 0; the result is a rejected one,
    so the bound is proven whatever the precision of the bisection. Valid at all times together.

    Examples
    --------
    >>> print(f"{betting_lower(np.full(1000, 0.5), 1e-8):.3f}")
    0.488
    """
    if not 0.0 < delta < 1.0:
        raise ModelError(f"Error probability: 0 < delta < 1 must hold, found {delta:g}.")
    samples = np.ascontiguousarray(samples, dtype=np.float64)
    threshold = -np.log(delta) * (1.0 + 2.0 * _EPS)
    rejected, kept = 0.0, 1.0
    while kept - rejected > 1e-12:
        mean = 0.5 * (rejected + kept)
        if betting_rejects(samples, mean, threshold, float(horizon or 0)):
            rejected = mean
        else:
            kept = mean
    return rejected
