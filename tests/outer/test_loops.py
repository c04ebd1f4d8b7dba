"""Components of one state in integers, against the plainest words for the same."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from outer.test_scales import Problems
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, ReachReward, Spec, Total
from rfmdp.outer.graph.region import analyse
from rfmdp.outer.problem import pose
from rfmdp.outer.proofs.loops import Loops, Worth, _rounded
from rfmdp.outer.settings import Clock, Limits
from rfmdp.sets.families import LpBall

WRONG = 4.0  # units in the last place that bounds may be apart


@pytest.mark.parametrize("objective", ["reach", "steps"])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_neighbours_of_the_value(seed, objective):
    """Bounds of a state that leads to itself and to known ones enclose its value closely."""
    problems = Problems([seed, 3], 30, objective, plain=False)
    seen = 0
    for agent, nature in itertools.product((MAX, MIN), repeat=2):
        problem = pose(problems.model, problems.spec(agent, nature))
        region = analyse(problem)
        loops = Loops(region, Clock(Limits()))
        lower, upper = region.trivial_bounds()
        choice = region.choice.copy()
        for s in np.flatnonzero(region.open[:30]).tolist():
            loops.improve(s, lower, upper, choice)
            exact = problems.value(s, agent, nature)
            assert Fraction(float(lower[s])) <= exact
            assert upper[s] == np.inf or Fraction(float(upper[s])) >= exact
            if upper[s] < np.inf:
                assert upper[s] - lower[s] <= WRONG * np.spacing(max(upper[s], 1e-300))
                seen += 1
    assert seen > 10


def test_a_value_below_the_least_float_is_not_zero():
    """Half of the least float is rounded up to it: an upper bound of 0 would be false."""
    assert _rounded(Worth(Fraction(5e-324) / 2, False), 1.0) == 5e-324
    assert _rounded(Worth(Fraction(5e-324) / 2, False), -1.0) == 0.0


def test_a_set_without_vertices_is_left_to_others():
    """What has no list of vertices has none the second time either: no bound, and no error."""
    ball = LpBall([1.0 - 1e-15, 1e-15], 1e-16, 2.0)
    model = FactoredMDP.from_rows(
        [[([0], [0, 2])], [([0], [1, 2])], [([], [2])]],
        [ball],
        labels={"goal": [False, False, True]},
        rewards={"cost": Rewards(np.array([1.0, 1.0, 0.0]), np.zeros(3))},
    )
    for spec in (Spec(ReachReward("goal", "cost"), MIN, MAX), Spec(Total("cost"), MIN, MIN)):
        problem = pose(model, spec)
        region = analyse(problem)
        loops = Loops(region, Clock(Limits()))
        lower, upper = np.zeros(3), np.full(3, np.inf)
        for state in (0, 1, 0):
            loops.improve(state, lower, upper, region.choice)
        assert np.all(lower == 0.0)
        assert np.all(upper == np.inf)
