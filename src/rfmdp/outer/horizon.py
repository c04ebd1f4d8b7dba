"""Finite horizons by backward steps.

T does not expand: |T(V) - T(W)| <= discount * max |V - W|. So a computed step whose rows are known
to half a width h carries its error on by E' = discount * E + h, and V +- E are proven bounds. A
solver that proves one side only iterates that side, which stays a bound because T is monotone.
"""

from __future__ import annotations

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels import sweep as kernels
from rfmdp.outer.operator import Operator
from rfmdp.outer.problem import Problem, Step
from rfmdp.outer.settings import Clock
from rfmdp.rounding import UNIT
from rfmdp.types import FloatArray, IntArray


class Backward:
    """Runs backward steps on a value and its error."""

    def __init__(self, problem: Problem, operator: Operator, clock: Clock) -> None:
        self.problem, self.operator, self.clock = problem, operator, clock
        self.states = np.arange(problem.model.states)
        self.rows = np.arange(problem.model.rows)

    def run(
        self, value: FloatArray, error: float, steps: tuple[Step, ...]
    ) -> tuple[FloatArray, float, IntArray]:
        """Return value, error and the policy (steps, S), first step first, after all steps."""
        model = self.problem.model
        rules = np.tile(model.row_ptr[:-1], (max(len(steps), 1), 1))
        for number, step in enumerate(steps):
            self.operator.backup(value, self.rows)
            q = self.operator.middle(self.rows)
            error = self.problem.discount * error + half_width(self.operator, self.rows, q)
            rule = rules[len(steps) - 1 - number]
            value = np.empty(model.states)
            kernels.choose(q, model.row_ptr, self.states, self.operator.sign, 0.0, rule, value)
            value = np.where(step.fixed, step.given, value)
            self.operator.stats.robust_sweeps += 1
            if number + 1 < len(steps):
                self.clock.tick("steps", error)
        return value, error, rules


def half_width(operator: Operator, rows: IntArray, q: FloatArray) -> float:
    """Return the largest distance of q from the true row value; 0 for a one-sided solver."""
    if operator.inner.proves != Side.BOTH or not len(rows):
        return 0.0
    widths = 0.5 * (operator.above[rows] - operator.below[rows])
    magnitude = float(np.max(np.abs(q[rows]), initial=0.0, where=np.isfinite(q[rows])))
    return float(widths.max()) + 2.0 * UNIT * magnitude
