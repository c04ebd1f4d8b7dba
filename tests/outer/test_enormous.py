"""One enormous value costs other states nothing: neither their bounds nor their status."""

import numpy as np
import pytest

import rfmdp
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Cumulative, Discounted, ReachReward, Spec, Total
from rfmdp.outer.solution import Status
from rfmdp.sets import Interval
from rfmdp.solving import solve


def neighbours(factors, size, cost, rare=0.5):
    """Return a ring of states that pay 3 a step, and one that pays a lot, or for ages.

    States leave their ring for the goal; a factor more makes rows that need an inner solver.
    """
    goal, sets, states = 2 * size, [], []
    for first, leave in ((0, 0.5), (size, rare)):
        width = [leave, 2.0 * leave] if leave < 0.3 else [0.5, 0.7]
        box = Interval([1.0 - width[1], width[0]], [1.0 - width[0], width[1]])
        for i in range(size):
            ids = list(range(len(sets), len(sets) + factors))
            sets += [box] * factors
            after = first + (i + 1) % size
            states.append([(ids, [after, goal] if factors == 1 else [after, goal, goal, after])])
    paid = [3.0] * size + [cost] * size + [0.0]
    return FactoredMDP.from_rows(
        [*states, [([], [goal])]],
        sets,
        labels={"goal": np.arange(goal + 1) == goal},
        rewards={"cost": Rewards(np.zeros(goal + 1), np.array(paid))},
    )


OBJECTIVES = [
    ReachReward("goal", "cost"),
    Total("cost"),
    Cumulative(50, "cost"),
    Discounted(0.9, "cost"),
]


def assert_untouched(model, objective, agent, nature):
    """Assert that the first state has the bounds that it would have alone."""
    solution = solve(model, Spec(objective, agent, nature))
    solution.require_certified()
    bounds = solution.at_initial()
    assert 0.0 < bounds.lower <= bounds.upper <= bounds.lower * (1.0 + 2e-6)
    assert rfmdp.verify(solution).valid


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("factors", [1, 2])
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("agent", "nature"), [(MAX, MIN), (MIN, MAX)])
def test_precision_is_that_of_the_state(objective, factors, size, agent, nature):
    """A neighbour of value 4e90 made [0, 7e64] a certified enclosure of 6."""
    assert_untouched(neighbours(factors, size, 2e90), objective, agent, nature)


@pytest.mark.parametrize("factors", [1, 2])
@pytest.mark.parametrize(("size", "rare"), [(1, 1e-215), (2, 1e-230)])
def test_a_neighbour_at_the_end_of_the_floats(factors, size, rare):
    """A component without finite bounds spoils itself and what leads to it, nothing else."""
    model = neighbours(factors, size, 1e90 if rare > 1e-220 else 1e100, rare)
    assert_untouched(model, ReachReward("goal", "cost"), MIN, MAX)


def test_what_leads_to_an_enormous_value_is_open():
    """A state that may come to a value beyond the floats has a finite lower bound, and is open."""
    box = Interval([0.0, 0.5], [0.5, 1.0])
    for_ages = Interval([1.0 - 2e-230, 1e-230], [1.0 - 1e-230, 2e-230])
    model = FactoredMDP.from_rows(
        [[([0], [1, 2])], [([1], [1, 3])], [([0], [2, 3])], [([], [3])]],
        [box, for_ages],
        labels={"goal": [False, False, False, True]},
        rewards={"cost": Rewards(np.zeros(4), np.array([1.0, 1e100, 1.0, 0.0]))},
    )
    solution = solve(model, Spec(ReachReward("goal", "cost"), MIN, MAX))
    assert solution.status is Status.GAP_OPEN
    assert np.isfinite(solution.lower).all()
    assert solution.upper[0] == np.inf
    assert solution.lower[2] <= 2.0 <= solution.upper[2]
    assert solution.upper[2] - solution.lower[2] <= 1e-5
    assert rfmdp.verify(solution).valid
