"""Rows that cannot be the best ones keep earlier bounds: proven, and nobody chooses them."""

import numpy as np
import pytest

from rfmdp.inner.exact import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Cumulative, Discounted, Reach, ReachReward, Spec
from rfmdp.outer.horizon import solve_steps
from rfmdp.outer.operator import Operator
from rfmdp.outer.problem import pose
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Stats
from rfmdp.outer.task import prepare
from rfmdp.sets.families import Interval
from rfmdp.solving import solve

from .test_laws import walk
from .test_plain import random_model


def fresh(problem) -> Operator:
    return Operator(problem, Exact().prepare(problem.model, problem.nature), Stats())


@pytest.mark.parametrize("agent", [MAX, MIN])
@pytest.mark.parametrize("discount", [1.0, 0.7])
@pytest.mark.parametrize("seed", range(15))
def test_contenders_tell_the_best_rows(seed, discount, agent):
    """Whatever way the value goes, bounds agree with a backup of all rows, and so do the best."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, uncertain=True, products=True)
    objective = ReachReward("goal") if discount == 1.0 else Discounted(discount)
    problem = pose(model, Spec(objective, agent, MIN))
    states, rows = np.arange(model.states), np.arange(model.rows)
    every = np.ones(model.rows, dtype=bool)
    tracked, plain = fresh(problem), fresh(problem)
    value = rng.random(model.states)
    for step in 0.3 ** np.arange(12):
        value = value + step * (rng.random(model.states) - rng.choice([0.0, 0.5, 1.0]))
        tracked.backup_contenders(value, states, every)
        plain.backup(value, rows)
        assert np.all(tracked.below <= plain.above)
        assert np.all(tracked.above >= plain.below)
        for side in ("below", "above"):
            found = tracked.best(getattr(tracked, side), states)
            assert np.array_equal(found, plain.best(getattr(plain, side), states))
        if step < 1e-3:
            tracked.backup(value, rows[:1])  # says nothing of how far this value is


def test_a_row_that_is_outdone_is_not_solved_again():
    """A row that leads to less stays where it is while values hardly move."""
    move = Interval([0.2, 0.4], [0.6, 0.8])
    model = FactoredMDP.from_rows(
        [[([0], [1, 2]), ([0], [2, 2])], [([], [1])], [([], [2])]],
        [move],
        labels={"goal": [False, True, False]},
    )
    operator = fresh(pose(model, Spec(Reach("goal"), MAX, MIN)))
    value, states, every = np.array([0.0, 1.0, 0.0]), np.array([0]), np.ones(4, dtype=bool)
    operator.backup_contenders(value, states, every)
    assert operator.stats.rows == 2
    operator.backup_contenders(value + np.array([0.0, 0.0, 0.1]), states, every)
    assert operator.stats.rows == 3
    assert operator.above[1] >= 0.1


def test_a_policy_leaves_nothing_behind_in_the_operator():
    """A task gives the same answer whoever was evaluated with it before."""
    worst = solve(walk(), Spec(Cumulative(4, "cost"), MAX, MIN)).policy.rows
    problem = pose(walk(), Spec(Cumulative(4, "cost"), MIN, MIN))
    task = prepare(problem, Exact(), Limits(), np.ones(problem.model.states, dtype=bool))
    before = solve_steps(task)
    assert np.any(solve_steps(task, worst).value > before.value)
    assert np.array_equal(solve_steps(task).value, before.value)
