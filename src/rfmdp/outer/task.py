"""What outer solvers get and give: a task with its operator, bounds of states, the solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import SolverError
from rfmdp.inner.protocol import Inner, PreparedInner, Side
from rfmdp.kernels.decorator import expect
from rfmdp.kernels.sweep import choose
from rfmdp.objective import Spec
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import Clock, Limits, largest
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.rounding import one_minus, reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray

PASSES = 10  # through all transitions, before the first sweep


class Operator:
    """T(value)(s) = opt over rows of reward + discount * opt over nature, bounded on both sides.

    `below` and `above` (R,) hold what the last backup of every row proved, until the next one.
    Which rows the agent may take is no part of it: `middle` and `forbid` are told, every time.
    Counts what it does in `stats`.
    """

    def __init__(self, problem: Problem, inner: PreparedInner, stats: Stats) -> None:
        model = problem.model
        self.problem = problem
        self.inner = inner
        self.stats = stats
        self.model = model
        self.sign = problem.agent.sign
        self.below: FloatArray = np.full(model.rows, -np.inf)
        self.above: FloatArray = np.full(model.rows, np.inf)
        self._plain = problem.discount == 1.0 and not problem.reward.any()

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
        if self.inner.proves == Side.BOTH:
            q = np.empty_like(self.below)
            with np.errstate(invalid="ignore"):  # a row of which nothing is proven has no middle
                low, high = self.below[rows], self.above[rows]
                q[rows] = np.where(
                    low == high, low, 0.5 * low + 0.5 * high
                )  # least float, halved: 0
        else:
            q = self.side(-1.0 if self.inner.proves == Side.BELOW else 1.0).copy()
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


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A problem with all that it takes to solve it: how rows are solved, how well, how long.

    Parameters
    ----------
    operator
        The Bellman operator of the problem.
    limits, interest
        How close bounds have to be, and in which states (S,).
    clock
        Counts time and sweeps. A part of a task has its own limits and the clock of the whole.
    """

    operator: Operator
    limits: Limits
    interest: BoolArray
    clock: Clock

    @property
    def problem(self) -> Problem:
        """What is to be solved."""
        return self.operator.problem

    @property
    def stats(self) -> Stats:
        """What the work costs."""
        return self.operator.stats

    @property
    def proves(self) -> Side:
        """The sides that can be proven."""
        return self.operator.inner.proves

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
        return Task(Operator(problem, rows, stats), limits, interest, clock)


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
    done = task.operator.inner.stats
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
