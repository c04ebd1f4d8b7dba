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
    """What visits of N rows, or transitions of N kinds, paid; (N,) each."""

    sums: FloatArray
    least: FloatArray  # infinite where nothing was paid
    most: FloatArray

    @staticmethod
    def nothing(count: int) -> Paid:
        """Return what was paid before the first visit."""
        nobody = np.full(count, np.inf)
        return Paid(np.zeros(count), nobody, -nobody)

    def add(self, at: IntArray, paid: FloatArray) -> None:
        """Take note of further payments (K,), at places (K,)."""
        np.add.at(self.sums, at, paid)
        np.minimum.at(self.least, at, paid)
        np.maximum.at(self.most, at, paid)


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
        outside = mean[(mean < low) | (mean > high)]
        if len(outside):
            raise ModelError(
                f"Reward: must lie in [{low:g}, {high:g}], found {outside[0]:g}; guarantees given "
                "so far are void, widen the range."
            )
        chance = np.minimum((mean - low) / (high - low), 1.0)
        times = np.random.default_rng([seed, trajectory]).binomial(visits, chance)
        sums = low * visits + (high - low) * times
        least = np.where(times < visits, low, high)
        return Paid(sums, least, np.where(times > 0, high, low))


@dataclass(frozen=True, slots=True, eq=False)
class ObservedRewards:
    """What rows paid since they were last asked for."""

    seen: Paid  # (R,)

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Return and forget what some rows paid."""
        seen = self.seen
        found = Paid(seen.sums[rows], seen.least[rows], seen.most[rows])
        seen.sums[rows], seen.least[rows], seen.most[rows] = 0.0, np.inf, -np.inf
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRewards:
    """What all transitions paid, by pairs (P,) of a row and its successor."""

    rows: IntArray  # ascending
    seen: Paid  # (P,)

    def differ(self, declared: FloatArray) -> bool:
        """Return whether some pair paid other than declared (P,)."""
        least, most = self.seen.least, self.seen.most
        return bool(np.any((least <= most) & (unlike(least, declared) | unlike(most, declared))))

    def paid(self, rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        """Return what the visits of some rows paid."""
        begin = starts(np.bincount(self.rows))[:-1]  # every row has a successor
        sums = np.add.reduceat(self.seen.sums, begin)
        least = np.minimum.reduceat(self.seen.least, begin)
        return Paid(sums[rows], least[rows], np.maximum.reduceat(self.seen.most, begin)[rows])
