"""What outer solvers get and give: limits, a task with its operator, bounds, the solution."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from rfmdp.errors import ModelError, SolverError
from rfmdp.inner.protocol import Inner, PreparedInner, Side
from rfmdp.kernels.decorator import expect
from rfmdp.kernels.sweep import choose
from rfmdp.objective import Spec
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.rounding import RESOLUTION, UNIT, one_minus, reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray


class Measure(Enum):
    """What a precision is relative to."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


PASSES = 10  # through all transitions, before the first sweep
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


@dataclass(eq=False)
class Operator:
    """T(value)(s) = opt over rows of reward + discount * opt over nature, bounded on both sides.

    `below` and `above` (R,) hold what the last backup of every row proved, until the next one.
    Which rows the agent may take is no part of it: `middle` and `forbid` are told, every time.
    Counts what it does in `stats`.
    """

    problem: Problem
    inner: PreparedInner
    stats: Stats

    def __post_init__(self) -> None:
        self.model, self.sign = self.problem.model, self.problem.agent.sign
        self.proves = self.inner.proves
        self.below: FloatArray = np.full(self.model.rows, -np.inf)
        self.above: FloatArray = np.full(self.model.rows, np.inf)
        self._plain = self.problem.discount == 1.0 and not self.problem.reward.any()

    def backup(self, value: FloatArray, rows: IntArray) -> None:
        """Fill `below[rows]` and `above[rows]` with bounds of reward + discount * q."""
        self.inner.backup(value, rows, self.below, self.above)
        self.stats.rows += len(rows)
        if self._plain:
            return
        reward, discount = self.problem.reward[rows], self.problem.discount
        for side, sense in ((self.below, -1.0), (self.above, 1.0)):
            q = discount * side[rows]
            slack = reward_margin(reward, q)
            side[rows] = reward + q + np.where(np.isfinite(q), sense * slack, 0.0)

    def side(self, side: float) -> FloatArray:
        """Return the bounds (R,) of a side: +1 above, -1 below."""
        return self.above if side > 0.0 else self.below

    def middle(self, rows: IntArray, allowed: BoolArray) -> FloatArray:
        """Return the numbers (R,) to compute with: middles, or the proven side.

        Rows that are not `allowed` (R,) are the worst.
        """
        if self.proves == Side.BOTH:
            q = np.empty_like(self.below)
            with np.errstate(invalid="ignore"):  # a row of which nothing is proven has no middle
                low, high = self.below[rows], self.above[rows]
                # the least float, halved, is 0
                q[rows] = np.where(low == high, low, 0.5 * low + 0.5 * high)
        else:
            q = self.side(-1.0 if self.proves == Side.BELOW else 1.0).copy()
        return self.forbid(q, rows, allowed)

    def forbid(self, q: FloatArray, rows: IntArray, allowed: BoolArray) -> FloatArray:
        """Return q (R,), in which listed rows that are not allowed become the worst, in place."""
        barred = rows[~allowed[rows]]
        q[barred] = -self.sign * np.inf
        return q

    def choose(
        self,
        q: FloatArray,
        states: IntArray,
        choice: IntArray,
        value: FloatArray,
        slack: float = 0.0,
    ) -> None:
        """Fill choice and value (S,) of the listed states with the best rows, see `kernels`."""
        choose(q, self.model.row_ptr, states, self.sign, slack, choice, value)

    def best(self, q: FloatArray, states: IntArray) -> FloatArray:
        """Return the best of some numbers (R,) for the agent, in every listed state."""
        value = np.empty(self.model.states)
        ignored = self.model.row_ptr[:-1].copy()
        self.choose(q, states, ignored, value)
        return value[states]


@dataclass(eq=False)
class Task(Operator):
    """A problem with all that it takes to solve it: how rows are solved, how well, how long.

    Bounds have to be close in the states of `interest` (S,). A part of a task has its own limits
    and the clock of the whole.
    """

    limits: Limits
    interest: BoolArray
    clock: Clock

    def can_prove(self, side: float) -> bool:
        """Return whether a side (+1 upper) can be proven."""
        return bool(self.proves & (Side.ABOVE if side > 0.0 else Side.BELOW))

    def excess(self, lower: FloatArray, upper: FloatArray) -> float:
        """Return how many times too wide the bounds of the answer are."""
        if self.problem.flipped:
            lower, upper = 1.0 - upper, 1.0 - lower
        scale = float(self.problem.probability)
        if self.problem.form is Form.AVERAGE:
            scale = largest(self.problem.reward)
        return self.limits.excess(lower, upper, self.interest, scale)

    def closed(self, lower: FloatArray, upper: FloatArray, value: FloatArray) -> bool:
        """Return whether the bounds are close to each other; an only bound, close to the value.

        A side that cannot be proven is where it began: equal to the other one if the graph knows
        the value, infinity included, and else nothing.
        """
        settled = lower == upper
        low = lower if self.proves & Side.BELOW else np.where(settled, upper, value)
        high = upper if self.proves & Side.ABOVE else np.where(settled, lower, value)
        return self.excess(low, high) <= 1.0


def prepare(
    problem: Problem, inner: Inner, limits: Limits, interest: BoolArray, stats: Stats | None = None
) -> Task:
    """Return the task to solve a problem; an inner solver that does not fit it refuses here."""
    stats = stats or Stats()
    clock = Clock(limits)
    expect(PASSES * problem.model.transitions)
    with stats.phase("prepare"):
        rows = inner.prepare(problem.model, problem.nature)
        return Task(problem, rows, stats, limits, interest, clock)


@dataclass(slots=True, eq=False)
class StateBounds:
    """Bounds, the value between them, and the policy that keeps them.

    Bounds are proven on the sides that the task's operator proves, and mean nothing on others.
    Whether they are close is for those to say who asked.
    """

    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    value: FloatArray  # (S,)
    choice: IntArray  # (S,), or (steps, S) with a rule per step
    stopped: Status | None = None  # the limit that ended the search, if one did
    witness: tuple[FloatArray | None, FloatArray | None] | None = None  # see `Solution`

    def side(self, side: float) -> FloatArray:
        """Return the bounds (S,) of a side: +1 upper, -1 lower."""
        return self.upper if side > 0.0 else self.lower

    def put(self, side: float, bound: FloatArray) -> None:
        """Replace the bounds (S,) of a side."""
        if side > 0.0:
            self.upper = bound
        else:
            self.lower = bound


def nothing_proven(problem: Problem, stopped: Status | None = None) -> StateBounds:
    """Return what holds before any work: the range of all values."""
    size = problem.model.states
    least = 0.0 if problem.form in (Form.REACH, Form.TO_TARGET, Form.TOTAL) else -np.inf
    lower = np.full(size, 0.0 if problem.probability else least)
    upper = np.full(size, 1.0 if problem.probability else np.inf)
    return StateBounds(lower, upper, np.zeros(size), problem.model.row_ptr[:-1].copy(), stopped)


def to_solution(task: Task, spec: Spec, inner: str, result: StateBounds) -> Solution:
    """Return what was found as a `Solution`, turned back if the problem was the opposite one.

    Drops sides that nobody proved, clips probabilities, and says how it ended.
    """
    problem, value, witness = task.problem, result.value, result.witness
    lower, upper = result.lower, result.upper
    if problem.probability:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    both = task.proves == Side.BOTH
    close = both and task.excess(lower, upper) <= 1.0
    status = Status.CERTIFIED if close else result.stopped or Status.GAP_OPEN
    low = lower if task.proves & Side.BELOW else None
    high = upper if task.proves & Side.ABOVE else None
    if low is not None or high is not None:
        value = np.clip(value, low, high)
    if problem.flipped:
        if problem.form is Form.REACH and witness is None:
            witness = low, high
        low, high, value = (
            None if high is None else one_minus(high, -1.0),
            None if low is None else one_minus(low, 1.0),
            1.0 - value,
        )
    _refuse_overflow(problem, low, high, value)
    precision = task.limits.precision
    if close and low is not None and high is not None:
        precision = task.limits.reached(low, high, task.interest)
    done = task.inner.stats
    task.stats.rows_branched, task.stats.nodes = done.branched, done.nodes
    return Solution(
        problem.model, spec, inner, status, low, high, value,
        Policy(np.atleast_2d(result.choice)), precision, task.stats, witness,
        task.limits.measure.name, task.interest,
    )  # fmt: skip


def _refuse_overflow(
    problem: Problem, lower: FloatArray | None, upper: FloatArray | None, value: FloatArray
) -> None:
    """Raise SolverError if bounds left the floats: they would prove what is not so."""
    bounds = [b for b in (lower, upper, value) if b is not None]
    broken = any(np.isnan(b).any() for b in bounds)
    if problem.form in (Form.STEPS, Form.DISCOUNTED):  # no value of these is infinite
        broken = broken or (lower is not None and bool(np.any(lower == np.inf)))
        broken = broken or (upper is not None and bool(np.any(upper == -np.inf)))
    if broken:
        raise SolverError("The values are too large for floats; scale the rewards down.")
