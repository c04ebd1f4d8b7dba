"""How long and how precisely an outer solver works."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.outer.solution import Status
from rfmdp.rounding import RESOLUTION, UNIT
from rfmdp.types import BoolArray, FloatArray


class Measure(Enum):
    """What a precision is relative to."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


BUDGET = 20_000_000  # entries that compiled code goes through between two looks at the clock
LAST_SECONDS = 0.3  # for a last proof after the time is over
LAST_SWEEPS = 100  # for the same after the last sweep

Progress = Callable[[str, int, float], None]
"""Called as progress(phase, sweeps so far, current residual or width)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of `solve`: the certified width to reach, and when to stop trying.

    Parameters
    ----------
    precision
        Wanted width upper - lower at the states of interest. A width of 2^-40 of the largest value
        of all states (1 for probabilities) is what inner solvers can tell: it counts as closed, and
        the solution says the precision that it has so.
    measure
        Whether the width counts relative to the value (default) or absolutely.
    seconds, sweeps
        Stop with the bounds proven so far after this time, or after this many robust sweeps.
    progress
        Called after every robust sweep.
    """

    precision: float = 1e-6
    measure: Measure = Measure.RELATIVE
    seconds: float = np.inf
    sweeps: int = 1_000_000
    progress: Progress | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.precision > 0.0:
            raise ModelError(f"precision must be > 0, got {self.precision!r}.")
        if not self.seconds > 0.0 or self.sweeps < 1:
            raise ModelError("Limits must be positive: seconds > 0 and sweeps >= 1.")

    def tolerance(self, value: FloatArray, scale: float) -> FloatArray:
        """Return the widths (N,) that count as closed at values (N,); `scale` is the largest one.

        An inner problem is solved to about 1e-12 of the values it meets; a width of 2^-40 of the
        largest counts as closed whatever the precision.
        """
        if self.measure is Measure.ABSOLUTE:
            return np.full(np.shape(value), max(self.precision, RESOLUTION * scale))
        return np.maximum(self.precision * np.abs(value), RESOLUTION * scale)

    def closed(
        self, lower: FloatArray, upper: FloatArray, interest: BoolArray, least_scale: float = 0.0
    ) -> bool:
        """Return whether bounds are as close as wanted in the states of interest."""
        return self.excess(lower, upper, interest, least_scale) <= 1.0

    def excess(
        self, lower: FloatArray, upper: FloatArray, interest: BoolArray, least_scale: float = 0.0
    ) -> float:
        """Return the largest width in the states of interest (S,), in units of the wanted one."""
        low, high = lower[interest], upper[interest]
        both = np.isfinite(low) & np.isfinite(high)
        if not np.all(both | (low == high)):
            return np.inf
        low, high = low[both], high[both]
        scale = max(largest(lower), largest(upper), least_scale)
        size = np.maximum(np.abs(low), np.abs(high))
        width = np.maximum(high - low, 0.0)
        closed = np.maximum(self.tolerance(size, scale), np.finfo(np.float64).tiny)
        return float(np.max(width / closed, initial=0.0))

    def reached(self, lower: FloatArray, upper: FloatArray, interest: BoolArray) -> float:
        """Return the precision that closed bounds have: this one, or what the floor of it left."""
        low, high = lower[interest], upper[interest]
        wide = np.isfinite(low) & np.isfinite(high) & (high > low)
        low, high = low[wide], high[wide]
        size = np.maximum(np.abs(low), np.abs(high)) if self.measure is Measure.RELATIVE else 1.0
        widths = (high - low) / size
        if np.all(widths <= self.precision):
            return self.precision
        return float(np.max(widths)) * (1.0 + 4.0 * UNIT)


def largest(bound: FloatArray) -> float:
    """Return the largest finite number of an array, without its sign."""
    most = float(max(np.max(bound, initial=0.0), -np.min(bound, initial=0.0)))
    if np.isfinite(most):
        return most
    return float(np.max(np.abs(bound[np.isfinite(bound)]), initial=0.0))


class LimitReached(Exception):
    """Raised between sweeps when time or sweeps are used up."""

    def __init__(self, timed_out: bool) -> None:
        super().__init__()
        self.status = Status.TIME_LIMIT if timed_out else Status.SWEEP_LIMIT


STOPS = LimitReached, KeyboardInterrupt
"""What ends a solver early: it keeps what is proven so far."""


def status_of(stop: BaseException) -> Status:
    """Return how a solver ended that one of `STOPS` has stopped."""
    return stop.status if isinstance(stop, LimitReached) else Status.INTERRUPTED


class Clock:
    """Counts robust sweeps and time against the limits.

    `reserve` is a share of the time that is kept for proofs; `last_chance` gives it to them.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.sweeps = 0
        self.reserve = 0.0
        self._most = limits.sweeps
        self._start = time.monotonic()
        self._end = limits.seconds

    def tick(self, phase: str, residual: float) -> None:
        """Count a robust sweep; raise `LimitReached` if that was the last one."""
        self.sweeps += 1
        if self.limits.progress is not None:
            self.limits.progress(phase, self.sweeps, residual)
        if self.sweeps >= self._most:
            raise LimitReached(timed_out=False)
        self.check()

    def check(self) -> None:
        """Raise `LimitReached` if the time is over."""
        if time.monotonic() - self._start > self._end * (1.0 - self.reserve):
            raise LimitReached(timed_out=True)

    def check_overdue(self) -> None:
        """Raise `LimitReached` if even the moment for a last proof is over.

        For what comes before all proofs: short of that it is better to go on and prove something.
        """
        if time.monotonic() - self._start > self.limits.seconds + LAST_SECONDS:
            raise LimitReached(timed_out=True)

    def last_chance(self) -> None:
        """Give a last proof the time that is left, at most as much as was used until now.

        It gets `LAST_SECONDS` at least, and `LAST_SWEEPS` more sweeps; these alone, if sweeps were
        used up, so that no result depends on the clock.
        """
        gone = time.monotonic() - self._start
        if self.sweeps < self._most:
            self._end = max(min(self.limits.seconds, 2.0 * gone), gone + LAST_SECONDS)
        self.reserve, self._most = 0.0, self._most + LAST_SWEEPS
