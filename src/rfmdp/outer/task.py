"""What outer solvers hand to each other: a task with its operator, and bounds of states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Inner, PreparedInner, Side
from rfmdp.kernels.decorator import expect
from rfmdp.kernels.sweep import choose
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import Clock, Limits, largest
from rfmdp.outer.solution import Stats, Status
from rfmdp.rounding import reward_margin
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
                q[rows] = 0.5 * self.below[rows] + 0.5 * self.above[rows]
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


def nothing_proven(problem: Problem, stopped: Status) -> StateBounds:
    """Return what holds if the time is over before any work: the range of all values."""
    size = problem.model.states
    lower = np.full(
        size, 0.0 if problem.form in (Form.REACH, Form.TO_TARGET, Form.TOTAL) else -np.inf
    )
    upper = np.full(size, 1.0 if problem.probability else np.inf)
    return StateBounds(lower, upper, np.zeros(size), problem.model.row_ptr[:-1].copy(), stopped)
