"""The Bellman operator with proven sides: rows by the inner solver, states by the agent."""

from __future__ import annotations

import numpy as np

from rfmdp.inner.protocol import PreparedInner, Side
from rfmdp.kernels.sweep import choose, contenders
from rfmdp.outer.problem import Problem
from rfmdp.outer.solution import Stats
from rfmdp.ragged import entries
from rfmdp.rounding import TINY, UNIT, reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray


class Operator:
    """T(value)(s) = opt over rows of reward + discount * opt over nature, bounded on both sides.

    `below` and `above` (R,) hold what the last backup of every row proved, until the next one.
    Which rows the agent may take is no part of it: `middle` and `forbid` are told, every time.
    Counts what it does in `stats`.

    T moves no row by more than the value moves anywhere: so bounds at an earlier value, wider by
    that much, are bounds at this one, and often enough to tell that a row is not the best one.
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
        self._at: FloatArray | None = None  # the value of the last `backup_contenders`
        self._moved = TINY  # how far values have moved in all until then, rounded up
        self._stamp = np.empty(0)  # (R,) what `_moved` was when the bounds of a row were found

    def backup_contenders(self, value: FloatArray, states: IntArray, among: BoolArray) -> None:
        """Back up those rows `among` (R,) that may be the best ones of the listed states.

        All others keep wide bounds, by which they cannot be the best: so the best row of every
        state is found as well as by a backup of all.
        """
        if self.inner.proves != Side.BOTH or self.model.rows == self.model.states:
            every = entries(self.model.row_ptr, states)  # nothing to compare by, or with
            self.backup(value, every[among[every]])
            return
        before = self._moved
        change = self._move(value)
        wanted = np.empty(self.model.rows, dtype=np.int64)
        rows = self.model.row_ptr, self.model.successor_ptr, self.model.successors
        sides = self.below, self.above, self._stamp
        moves = self._moved, before, self.problem.discount * change
        count = contenders(rows, states, among, sides, moves, self.sign, wanted)
        self._backup(value, wanted[:count])

    def _move(self, value: FloatArray) -> FloatArray:
        """Return the change of the value since the last time, and count how far it has moved."""
        with np.errstate(over="ignore", invalid="ignore"):
            change: FloatArray = value - (value if self._at is None else self._at)
            far = float(np.max(np.abs(change), initial=0.0))
        self._moved = (self._moved + far) * (1.0 + 4.0 * UNIT)
        if self._at is None or not np.isfinite(self._moved):
            self._moved = TINY
            self._stamp = np.full(self.model.rows, -np.inf)
        self._at = value.copy()
        return change

    def backup(self, value: FloatArray, rows: IntArray) -> None:
        """Fill `below[rows]` and `above[rows]` with bounds of reward + discount * q."""
        if len(self._stamp):
            self._stamp[rows] = -np.inf  # nobody looked how far this value is
        self._backup(value, rows)

    def _backup(self, value: FloatArray, rows: IntArray) -> None:
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
