"""Estimates by simulation: they agree with the solver, and say what they are."""

from dataclasses import replace

import numpy as np
import pytest

from learning.tiny import COST, REACH, distinct_factored, loop_to_goal
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import Rewards
from rfmdp.objective import MAX, MIN, Globally, Instantaneous, Next, Spec as Wanted, Until
from rfmdp.outer.solution import Policy
from rfmdp.policies.simulation import APPROXIMATE, EXACT, simulate
from rfmdp.solving import solve
from rfmdp.sources.trajectories import Behaviour


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


LOOP = loop_to_goal(0.25)  # a quarter of the steps reach the goal, for ever
EVERYWHERE = np.ones(LOOP.states, dtype=bool)


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        (Until(EVERYWHERE, "goal", latest=3), 1 - 0.75**3),
        (Until(~LOOP.label("goal"), "goal", latest=4, earliest=3), 0.75**2 * 0.25 + 0.75**3 * 0.25),
        (Until(EVERYWHERE, "goal", earliest=2), 1.0),
        (Globally(~LOOP.label("goal"), latest=3), 0.75**3),
        (Globally(~LOOP.label("goal"), latest=3, earliest=3), 0.75**3),
        (Globally(~LOOP.label("goal")), 0.0),
        (Globally("goal", earliest=2), 1 - 0.75**2),
        (Next("goal"), 0.25),
    ],
)
def test_probabilities_of_all_kinds_are_seen(objective, value):
    """Exact intervals of error 1e-6 hold the values known in closed form; nothing is cut off."""
    spec = Wanted(objective, MAX, MIN)
    found = simulate(LOOP, None, spec, length=500, trajectories=20_000, seed=1, confidence=1 - 1e-6)
    assert found.lower <= value <= found.upper
    assert found.ended == 1.0
    assert set(found.final) <= set(range(LOOP.states))


def test_rewards_at_a_step_are_those_of_the_last_state():
    """I=k pays the state after k steps, nothing on the way."""
    paid = Rewards(np.array([0.0, 2.0]), np.ones(LOOP.rows))
    model = replace(LOOP, rewards={"at": paid})
    found = simulate(model, None, Wanted(Instantaneous(2, "at")), trajectories=20_000)
    off = 2 * np.sqrt(np.log(2e6) / 40_000)  # Hoeffding, error 1e-6
    assert found.estimate == pytest.approx(2 * (1 - 0.75**2), abs=off)
    assert simulate(model, None, Wanted(Instantaneous(0, "at"))).estimate == 0.0


def test_a_behaviour_that_strays_has_no_unrolled_model():
    """Time windows need rules that are kept to."""
    behaviour = Behaviour(LOOP.row_ptr[:-1], other=0.5)
    with pytest.raises(UnsupportedError, match="other actions by chance"):
        simulate(LOOP, behaviour, Wanted(Until(EVERYWHERE, "goal", latest=3, earliest=1)))
