"""Discounted rewards: T contracts, so one sweep bounds the error.

Here, and only here, a residual d proves something, d / (1 - discount); it is taken from proven
sides.
"""

from __future__ import annotations

import numpy as np

from rfmdp.outer.graph.components import components, no_groups
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.graph.region import Region
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.settings import STOPS, status_of
from rfmdp.outer.task import Operator, StateBounds, Task
from rfmdp.rounding import LAST_DIGITS, UNIT
from rfmdp.types import FloatArray

ATTEMPTS = 8


def solve_discounted(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values."""
    model, graph = task.problem.model, Graph(task.problem.model)
    everywhere, rows = np.ones(model.states, dtype=np.bool_), np.ones(model.rows, dtype=np.bool_)
    region = Region(  # in which nothing is settled by the graph
        task.problem, graph, np.zeros(model.states), everywhere, rows,
        components(graph, everywhere), no_groups(model), model.row_ptr[:-1].copy(),
    )  # fmt: skip
    iteration = PolicyIteration(task, region)
    guess = iteration.start(warm)
    stopped = None
    residual = 1e-1 * task.limits.precision * (1.0 - task.problem.discount)
    try:
        for _ in range(ATTEMPTS):
            iteration.improve(guess, residual)
            lower, upper = contraction_bounds(task.operator, guess)
            if task.closed(lower, upper, guess.value):
                break
            residual = max(residual * 1e-2, 2.0**-52)
    except STOPS as stop:
        stopped = status_of(stop)
        lower, upper = contraction_bounds(task.operator, guess)
    return StateBounds(lower, upper, guess.value, guess.choice, stopped)


def around_fixed_point(
    value: FloatArray, fall: float, rise: float, discount: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds (S,) of the fixed point of T.

    T lowers the value by at most `fall` and raises it by at most `rise`, as was proven.
    """
    slack = 8.0 * UNIT * float(np.max(np.abs(value), initial=0.0))
    below, above = (max(off, 0.0) + slack for off in (fall, rise))
    below, above = (
        (off + (LAST_DIGITS if off > 0.0 else 0.0)) / (1.0 - discount) * (1.0 + 1e-12)
        for off in (below, above)
    )
    return value - below, value + above


def contraction_bounds(operator: Operator, guess: Guess) -> tuple[FloatArray, FloatArray]:
    """Return bounds from one sweep: value plus or minus its one-sided residual / (1 - discount).

    The policy becomes the best rows of the guarantee's side, so that the bound there is proven for
    it: with T_p the operator of its rows, V - c <= T_p(V - c) if c (1 - discount) >= V - T_p(V).
    """
    states, rows = np.arange(operator.model.states), np.arange(operator.model.rows)
    operator.backup(guess.value, rows)
    value = guess.value
    guarantee = operator.side(-operator.sign)
    if np.isfinite(guarantee).all():
        guess.choice = guess.choice.copy()
        ignored = value.copy()
        operator.choose(guarantee, states, guess.choice, ignored)
    fall, rise = (
        float(np.max(side * (operator.best(operator.side(side), states) - value), initial=0.0))
        for side in (-1.0, 1.0)
    )
    lower, upper = around_fixed_point(value, fall, rise, operator.problem.discount)
    paid = operator.problem.reward
    if np.all(paid >= 0.0):  # no sum of such rewards is negative
        lower = np.maximum(lower, 0.0)
    if np.all(paid <= 0.0):
        upper = np.minimum(upper, 0.0)
    return lower, upper
