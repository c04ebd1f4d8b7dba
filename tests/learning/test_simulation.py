"""Estimates by simulation: they agree with the solver, and say what they are."""

import numpy as np
import pytest

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.simulation import APPROXIMATE, EXACT, simulate
from rfmdp.objective import MAX, MIN, Until
from rfmdp.objective import Spec as Wanted
from rfmdp.outer.solution import Policy
from rfmdp.solving import solve

from .tiny import COST, REACH, distinct_factored, loop_to_goal


def test_estimates_agree_with_the_solver():
    """Costs and probabilities are estimated with an interval around the computed value."""
    found = simulate(loop_to_goal(0.25), None, COST, length=400, trajectories=20_000, seed=3)
    assert found.interval == APPROXIMATE
    assert found.lower < found.estimate < found.upper
    assert found.estimate == pytest.approx(4.0, abs=3 * (found.upper - found.lower))
    assert found.ended == 1.0
    grid = distinct_factored(4)
    best = solve(grid, REACH)
    reached = simulate(grid, best.policy, REACH, length=5, trajectories=20_000, confidence=0.9999)
    assert reached.interval == EXACT
    assert reached.lower <= best.at_initial().lower <= reached.upper


def test_a_property_is_as_good_as_its_specification():
    """The text of a property may be given; its own number of steps counts."""
    grid = distinct_factored(4)
    texts = simulate(grid, None, 'Pmaxmin=? [ F<=2 "goal" ]', length=50, trajectories=500)
    spec = Wanted(Until(np.ones(grid.states, dtype=bool), "goal", 2), MAX, MIN)
    assert texts.length == 2
    assert texts.estimate == simulate(grid, None, spec, trajectories=500).estimate


def test_trajectories_that_are_cut_off_are_told():
    """`ended` is the share of trajectories that the objective ended."""
    found = simulate(loop_to_goal(0.5), None, COST, length=1, trajectories=1000)
    assert found.ended == pytest.approx(0.5, abs=0.1)
    assert found.estimate == 1.0


def test_bad_requests_are_refused():
    """Policies of other models and empty runs are named."""
    model = loop_to_goal(0.5)
    with pytest.raises(UnsupportedError, match="policy"):
        simulate(model, Policy(np.array([[7, 7]])), COST)
    with pytest.raises(ModelError, match="at least 1"):
        simulate(model, None, COST, length=0)
    with pytest.raises(ModelError, match="confidence"):
        simulate(model, None, COST, confidence=1.0)
