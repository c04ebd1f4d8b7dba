"""Rewards as they are observed: what visits of rows paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import BoolArray, FloatArray, IntArray

SINGLE = 1e-6  # tables may hold numbers of single precision


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """What visits of N rows, or transitions of N kinds, paid; (N,) each."""

    sums: FloatArray
    least: FloatArray  # inf where nothing was paid
    most: FloatArray  # -inf where nothing was paid

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

    def take(self, at: IntArray) -> Paid:
        """Return and forget what some of them paid."""
        found = Paid(self.sums[at], self.least[at], self.most[at])
        self.sums[at], self.least[at], self.most[at] = 0.0, np.inf, -np.inf
        return found

    def joined(self, begin: IntArray) -> Paid:
        """Return what parts paid, each from one entry of `begin` to the next; none is empty."""
        return Paid(
            np.add.reduceat(self.sums, begin),
            np.minimum.reduceat(self.least, begin),
            np.maximum.reduceat(self.most, begin),
        )

    def differs(self, declared: FloatArray) -> bool:
        """Return whether some payment was another one than declared (N,)."""
        wrong = unlike(self.least, declared) | unlike(self.most, declared)
        return bool(np.any((self.least <= self.most) & wrong))


def unlike(paid: FloatArray, declared: FloatArray) -> BoolArray:
    """Return which recorded payments (N,) are not those that were declared (N,)."""
    return np.asarray(~(np.abs(paid - declared) <= SINGLE * np.maximum(1.0, np.abs(declared))))


Payer: TypeAlias = Callable[[IntArray, IntArray, int, int], Paid]
# what the new visits of some rows paid, by rows (N,), visits (N,), the seed and the number of the
# last trajectory


def simulated_rewards(truth: FloatArray, ends: tuple[float, float] | None) -> Payer:
    """Return rewards of a hidden model (R,): always the same, or one of two ends with that mean.

    The sum of a batch of visits is drawn at once from a binomial distribution that depends on the
    seed and the number of the batch's last trajectory only.
    """

    def pay(rows: IntArray, visits: IntArray, seed: int, trajectory: int) -> Paid:
        mean = truth[rows]
        if ends is None:
            return Paid(mean * visits, mean, mean)
        low, high = ends
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

    return pay
