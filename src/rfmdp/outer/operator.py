"""The Bellman operator with proven sides: rows by the inner solver, states by the agent."""

from __future__ import annotations

import numpy as np

from rfmdp.inner.protocol import PreparedInner, Side, successor_starts
from rfmdp.outer.problem import Problem
from rfmdp.outer.solution import Stats
from rfmdp.rounding import reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray


class Operator:
    """T(value)(s) = opt over rows of reward + discount * opt over nature, bounded on both sides.

    `below` and `above` hold the bounds of the last backup per row (R,). Rows that the agent must
    not take are never the best ones. Counts what it does in `stats`.
    """

    def __init__(self, problem: Problem, inner: PreparedInner, stats: Stats) -> None:
        model = problem.model
        self.problem = problem
        self.inner = inner
        self.stats = stats
        self.model = model
        self.sign = problem.agent.sign
        self.below = np.empty(model.rows)
        self.above = np.empty(model.rows)
        self.allowed = np.ones(model.rows, dtype=np.bool_)
        self._plain = problem.discount == 1.0 and not problem.reward.any()

    def pose(self, problem: Problem, allowed: BoolArray) -> None:
        """Turn to another reward on the same model."""
        self.problem, self.allowed = problem, allowed
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

    def middle(self, rows: IntArray) -> FloatArray:
        """Return the number to compute with: the middle, or the proven side; (R,) array."""
        if self.inner.proves == Side.BOTH:
            q = np.empty_like(self.below)
            with np.errstate(invalid="ignore"):  # a row of which nothing is proven has no middle
                q[rows] = 0.5 * self.below[rows] + 0.5 * self.above[rows]
        else:
            q = (self.below if self.inner.proves == Side.BELOW else self.above).copy()
        return self.forbid(q, rows)

    def forbid(self, q: FloatArray, rows: IntArray) -> FloatArray:
        """Make rows that the agent must not take the worst ones, in place."""
        barred = rows[~self.allowed[rows]]
        q[barred] = -self.sign * np.inf
        return q

    def best(self, side: FloatArray, states: IntArray) -> FloatArray:
        """Return the agent's best of a side per listed state."""
        value = np.empty(self.model.states)
        self._choose(side, states, self.model.row_ptr[:-1].copy(), value)
        return value[states]

    def choose(self, side: FloatArray, states: IntArray, choice: IntArray) -> IntArray:
        """Return `choice` (S,) with the best rows of a side in the listed states; ties keep."""
        rule = choice.copy()
        self._choose(side, states, rule, np.empty(self.model.states))
        return rule

    def _choose(
        self, side: FloatArray, states: IntArray, choice: IntArray, value: FloatArray
    ) -> None:
        from rfmdp.kernels.sweep import choose

        choose(side, self.model.row_ptr, states, self.sign, 0.0, choice, value)

    def rows_of(self, states: IntArray) -> IntArray:
        """Return all rows of the listed states."""
        return rows_of(self.model.row_ptr, states)


def rows_of(row_ptr: IntArray, states: IntArray) -> IntArray:
    """Return all rows of the listed states, in their order."""
    counts = row_ptr[states + 1] - row_ptr[states]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    rows: IntArray = np.repeat(row_ptr[states], counts) + within
    return rows


__all__ = ["Operator", "rows_of", "successor_starts"]
