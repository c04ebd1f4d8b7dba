"""An operator remembers nothing of earlier questions."""

import numpy as np

from rfmdp.inner.solvers import Exact
from rfmdp.objective import MAX, MIN, Cumulative, Spec
from rfmdp.outer.horizon import solve_steps
from rfmdp.outer.problem import pose
from rfmdp.outer.task import Limits, prepare
from rfmdp.solving import solve

from .test_laws import walk


def test_a_policy_leaves_nothing_behind_in_the_operator():
    """A task gives the same answer whoever was evaluated with it before."""
    worst = solve(walk(), Spec(Cumulative(4, "cost"), MAX, MIN)).policy.rows
    problem = pose(walk(), Spec(Cumulative(4, "cost"), MIN, MIN))
    task = prepare(problem, Exact(), Limits(), np.ones(problem.model.states, dtype=bool))
    before = solve_steps(task)
    assert np.any(solve_steps(task, worst).value > before.value)
    assert np.array_equal(solve_steps(task).value, before.value)
