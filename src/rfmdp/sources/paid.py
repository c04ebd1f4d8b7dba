"""What rows paid: rewards as they are observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """What some visits of rows paid, (N,) each."""

    sums: FloatArray
    least: FloatArray
    most: FloatArray


Payments: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
# what transitions pay, (N,), by rows (N,) and successors (N,)


class Payer(Protocol):
    """Says what was paid since it was last asked."""

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Return what the new visits (N,) of some rows (N,) paid; `trajectory` is the last one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRewards:
    """Rewards of a hidden model: always the same, or one end of a range, with the right mean.

    The sum of a batch of visits is drawn at once from a binomial distribution that depends on the
    seed and the number of the batch's last trajectory only.
    """

    truth: FloatArray  # (R,)
    ends: tuple[float, float] | None = None  # of random rewards

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Draw what visits paid."""
        mean = self.truth[rows]
        if self.ends is None:
            return Paid(mean * visits, mean, mean)
        low, high = self.ends
        if np.any((mean < low) | (mean > high)):
            outside = mean[(mean < low) | (mean > high)][0]
            raise ModelError(
                f"Reward: must lie in [{low:g}, {high:g}], found {outside:g}; guarantees given so "
                "far are void, widen the range."
            )
        chance = np.minimum((mean - low) / (high - low), 1.0)
        times = np.random.default_rng([seed, trajectory]).binomial(visits, chance)
        sums = low * visits + (high - low) * times
        least = np.where(times < visits, low, high)
        return Paid(sums, least, np.where(times > 0, high, low))


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRewards:
    """What all visits of every row paid, (R,) each; it can be asked for once."""

    sums: FloatArray
    least: FloatArray  # infinite where a row was never taken
    most: FloatArray

    @staticmethod
    def nothing(rows: int) -> RecordedRewards:
        """Return what is known before the first visit."""
        return RecordedRewards(np.zeros(rows), np.full(rows, np.inf), np.full(rows, -np.inf))

    def add(self, rows: IntArray, paid: FloatArray) -> None:
        """Take note of further visits (N,)."""
        self.sums[:] += np.bincount(rows, paid, minlength=len(self.sums))
        np.minimum.at(self.least, rows, paid)
        np.maximum.at(self.most, rows, paid)

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Return what the visits of some rows paid."""
        return Paid(self.sums[rows], self.least[rows], self.most[rows])
