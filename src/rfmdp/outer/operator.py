"""The Bellman operator with proven sides: rows by the inner solver, states by the agent."""

from __future__ import annotations

import numpy as np

from rfmdp.inner.protocol import PreparedInner, Side
from rfmdp.kernels.sweep import choose
from rfmdp.outer.problem import Problem
from rfmdp.outer.solution import Stats
from rfmdp.rounding import reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray


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
