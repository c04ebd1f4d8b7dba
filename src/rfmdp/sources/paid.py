"""Rewards as they are observed: what visits of rows paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.ragged import starts
from rfmdp.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """What some visits of rows paid, (N,) each."""

    sums: FloatArray
    least: FloatArray
    most: FloatArray


SINGLE = 1e-6  # tables may hold numbers of single precision


def unlike(paid: FloatArray, declared: FloatArray) -> BoolArray:
    """Return which recorded payments (N,) are not those that were declared (N,)."""
    return np.asarray(~(np.abs(paid - declared) <= SINGLE * np.maximum(1.0, np.abs(declared))))


Payments: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
# what transitions pay, (N,), by rows (N,) and successors (N,)


class Payer(Protocol):
    """Says what rows paid since it was last asked."""

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
    """What all transitions paid, by pairs (P,) of a row and its successor."""

    rows: IntArray  # ascending
    sums: FloatArray
    least: FloatArray  # infinite where a pair was never seen
    most: FloatArray

    @staticmethod
    def nothing(rows: IntArray) -> RecordedRewards:
        """Return what is known before the first transition."""
        nobody = np.full(len(rows), np.inf)
        return RecordedRewards(rows, np.zeros(len(rows)), nobody, -nobody)

    def add(self, pairs: IntArray, paid: FloatArray) -> None:
        """Take note of further transitions (N,)."""
        self.sums[:] += np.bincount(pairs, paid, minlength=len(self.sums))
        np.minimum.at(self.least, pairs, paid)
        np.maximum.at(self.most, pairs, paid)

    def differ(self, declared: FloatArray) -> bool:
        """Return whether some pair paid other than declared (P,)."""
        seen, must = self.least <= self.most, declared
        return bool(np.any(seen & (unlike(self.least, must) | unlike(self.most, must))))

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Return what the visits of some rows paid."""
        begin = starts(np.bincount(self.rows))[:-1]  # every row has a successor
        sums, least = np.add.reduceat(self.sums, begin), np.minimum.reduceat(self.least, begin)
        return Paid(sums[rows], least[rows], np.maximum.reduceat(self.most, begin)[rows])
