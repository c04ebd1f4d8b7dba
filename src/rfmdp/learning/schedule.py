"""When to plan again, when to evaluate, when to end; the clock, and who is told what a run does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.objective import Direction
from rfmdp.types import IntArray

if TYPE_CHECKING:
    from rfmdp.learning.run import Point, Progress

NEVER = np.iinfo(np.int64).max
OFTEN = 0.5  # seconds between two reports of progress


@dataclass(frozen=True, slots=True)
class Doubling:
    """When to plan anew: after the trajectory in which the visits of any identifier doubled.

    patience : share by which the number of trajectories must have grown, even if visits doubled.
        With many identifiers one of them doubles all the time, and a plan that is a few percent
        late costs a few percent of the trajectories at most. 0 is the paper's rule.
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

    def reason(self, agent: Direction, point: Point, seconds: float) -> str | None:
        """Return why to stop after an evaluation and some seconds, or None."""
        sign, goal = agent.sign, self.guarantee
        if goal is not None and sign * point.guarantee >= sign * goal:
            return "guarantee reached"
        if self.gap is not None and abs(point.optimistic - point.guarantee) <= self.gap:
            return "gap closed"
        if point.trajectories >= self.trajectories:
            return "all trajectories run"
        if self.steps is not None and point.steps >= self.steps:
            return "all steps run"
        return "time is up" if seconds >= self.seconds else None


class Watch:
    """Time since `started`, by `time.monotonic()`, against a number of seconds.

    `before` are the seconds of earlier sessions of the run, by the clock and of the processor.
    """

    def __init__(
        self, seconds: float, progress: Callable[[Progress], None] | None, started: float
    ) -> None:
        self._started = self._told = started
        self._processor = time.process_time()
        self._progress = progress
        self.deadline = started + seconds
        self.before = (0.0, 0.0)

    @property
    def seconds(self) -> float:
        """Seconds of this session."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.deadline - time.monotonic()

    def over(self) -> bool:
        """Return whether the time is over."""
        return self.left < 0.0

    def spent(self) -> tuple[float, float]:
        """Return the seconds of all sessions, by the clock and of the processor."""
        processor = time.process_time() - self._processor
        return self.before[0] + self.seconds, self.before[1] + processor

    def tell(self, phase: str, trajectories: int, point: Point | None = None) -> None:
        """Report progress, now and then and after every evaluation."""
        now = time.monotonic()
        if self._progress is not None and (point is not None or now - self._told >= OFTEN):
            from rfmdp.learning.run import Progress

            self._told = now
            self._progress(Progress(phase, trajectories, now - self._started, point))
