"""When to plan again, and when to evaluate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import IntArray

NEVER = np.iinfo(np.int64).max


class Schedule(Protocol):
    """When the exploration policy is planned anew."""

    def limits(self, totals: IntArray) -> IntArray:
        """Return the visits (M,) of every identifier at which a new plan is due."""
        ...

    def next(self, trajectories: int) -> int:
        """Return the number of trajectories at which a new plan is due at the latest."""
        ...


@dataclass(frozen=True, slots=True)
class Doubling:
    """Plan after the trajectory in which the visits of any identifier doubled (the paper's)."""

    def limits(self, totals: IntArray) -> IntArray:
        """Return twice the visits, at least one."""
        return np.maximum(2 * totals, 1)

    def next(self, trajectories: int) -> int:
        """Return no limit."""
        return int(NEVER)


@dataclass(frozen=True, slots=True)
class Geometric:
    """Plan whenever the number of trajectories has grown by a factor."""

    factor: float = 1.1
    first: int = 10

    def __post_init__(self) -> None:
        if not self.factor > 1.0 or self.first < 1:
            raise ModelError("Geometric: the factor must be > 1 and the first batch at least 1.")

    def limits(self, totals: IntArray) -> IntArray:
        """Return no limits."""
        return np.full(len(totals), NEVER)

    def next(self, trajectories: int) -> int:
        """Return the end of the next batch."""
        return max(self.first, trajectories + 1, math.ceil(trajectories * self.factor))


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
class AtTrajectories:
    """Evaluation points given one by one, ascending."""

    points: tuple[int, ...]

    def next(self, trajectories: int) -> int:
        """Return the first point after some trajectories, or no limit."""
        return min((p for p in self.points if p > trajectories), default=int(NEVER))


Points = LogSpaced | AtTrajectories
