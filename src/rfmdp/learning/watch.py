"""The time of a run, and who is told what it does."""

from __future__ import annotations

import time
from collections.abc import Callable

from rfmdp.learning.run import Point, Progress

OFTEN = 0.5  # seconds between two reports of progress


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
            self._told = now
            self._progress(Progress(phase, trajectories, now - self._started, point))
