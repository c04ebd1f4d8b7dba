"""When learning ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rfmdp.errors import ModelError
from rfmdp.objective import MAX, Direction


@dataclass(frozen=True, slots=True)
class StopWhen:
    """Stop at the first of these; all are looked at after every evaluation.

    Stopping at a guarantee that was reached is optional stopping: sound with sets that are valid
    at any time, and not with those of a single look.

    Parameters
    ----------
    trajectories
        Number of trajectories, at most.
    steps
        Number of transitions, at most (seen at evaluation points).
    guarantee
        A guarantee that is good enough.
    gap
        Distance of guarantee and optimistic bound that is small enough.
    seconds
        Time, at most (seen at evaluation points).
    """

    trajectories: int = 100_000
    steps: int | None = None
    guarantee: float | None = None
    gap: float | None = None
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.trajectories < 1 or not self.seconds > 0.0:
            raise ModelError("StopWhen: trajectories and seconds must be positive.")

    def reason(
        self,
        agent: Direction,
        trajectories: int,
        steps: int,
        guarantee: float,
        optimistic: float,
        seconds: float,
    ) -> str | None:
        """Return why to stop now, or None."""
        better = guarantee if agent is MAX else -guarantee
        wanted = self.guarantee if agent is MAX or self.guarantee is None else -self.guarantee
        if wanted is not None and better >= wanted:
            return "guarantee reached"
        if self.gap is not None and abs(optimistic - guarantee) <= self.gap:
            return "gap closed"
        if trajectories >= self.trajectories:
            return "all trajectories run"
        if self.steps is not None and steps >= self.steps:
            return "all steps run"
        return "time is up" if seconds >= self.seconds else None
