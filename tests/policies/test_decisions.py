"""Values of all actions: the policy's own are the values of the states."""

from dataclasses import replace

import numpy as np
import pytest

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    Until,
)
from rfmdp.policies.explain import decisions, remaining, values_after
from rfmdp.sets.families import Interval
from rfmdp.solving import solve

COIN = Interval([0.3, 0.4], [0.6, 0.7])
DIE = Interval([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])
OBJECTIVES = [
    Reach("goal"),
    Until("live", "goal", latest=4),
    Until("live", "goal", latest=5, earliest=2),
    Globally("live", latest=3),
    Globally("live"),
    Next("goal"),
    ReachReward("end"),
    Cumulative(4),
    Instantaneous(3),
    Discounted(0.9),
]


def walk() -> FactoredMDP:
    """Return a walk with two actions, two factors in one of them, a goal (3) and a sink (4)."""
    rows = [
        [([0, 1], [1, 2, 0, 1, 4, 3], "both"), ([0], [0, 1], "one")],
        [([1], [0, 2, 3], "go"), ([], [2], "sure")],
        [([0], [4, 3], "risk"), ([1], [0, 1, 3], "back")],
        [([], [3], "rest")],
        [([], [4], "rest")],
    ]
    goal = np.array([0, 0, 0, 1, 0], dtype=bool)
    sink = np.array([0, 0, 0, 0, 1], dtype=bool)
    paid = np.array([1.0, 2.0, 0.5, 1.5, 0.25, 3.0, 0.0, 0.0])
    return FactoredMDP.from_rows(
        rows,
        [COIN, DIE],
        labels={"goal": goal, "live": ~sink, "end": goal | sink},
        rewards={"cost": Rewards(np.array([0.5, 0.0, 1.0, 0.0, 0.0]), paid)},
    )


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
@pytest.mark.parametrize("agent", [MAX, MIN])
@pytest.mark.parametrize("nature", [MAX, MIN])
def test_the_policys_actions_have_the_values_of_their_states(objective, agent, nature):
    """One step of the chosen action, then the values after it: the bounds overlap the state's."""
    solution = solve(walk(), Spec(objective, agent, nature))
    found = decisions(solution, np.arange(5))
    assert np.all(found.lower <= found.upper)
    place = {int(row): k for k, row in enumerate(found.rows)}
    fixed = {3, 4} if not isinstance(objective, Cumulative | Discounted | Instantaneous) else set()
    for state in set(range(5)) - fixed:
        k = place[int(found.chosen[state])]
        at = solution.at(state)
        assert found.lower[k] <= at.upper
        assert at.lower <= found.upper[k]


def test_no_action_beats_the_best_one():
    """The largest value of all actions is that of the state."""
    solution = solve(walk(), Spec(Reach("goal"), MAX, MIN))
    found = decisions(solution, np.arange(3))
    best = np.maximum.reduceat(found.lower, found.row_ptr[:-1])
    assert np.all(best <= solution.upper[:3])
    assert np.all(np.maximum.reduceat(found.upper, found.row_ptr[:-1]) >= solution.lower[:3])


def test_natures_answers_are_members_of_their_sets():
    """Every marginal of every row gets a distribution within its bounds."""
    solution = solve(walk(), Spec(Reach("goal"), MAX, MIN))
    found = decisions(solution, np.arange(5))
    for k in range(len(found.rows)):
        for j, answer in found.marginals(k):
            kept = [COIN, DIE][j]
            assert np.all(answer >= kept.lower - 1e-15)
            assert np.all(answer <= kept.upper + 1e-15)
            assert abs(answer.sum() - 1.0) < 1e-14


def test_nothing_is_left_after_the_last_step():
    """A horizon shrinks step by step and then is over; unbounded objectives stay as they are."""
    spec = Spec(Until("live", "goal", latest=3, earliest=1))
    later = remaining(spec, 2)
    assert (later.objective.latest, later.objective.earliest) == (1, 0)
    assert remaining(spec, 3) is None
    unbounded = Spec(Reach("goal"))
    assert remaining(unbounded, 7) is unbounded


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_before_the_first_step_values_were_those_after_the_step_of_next(objective):
    """When no step is gone, bounds are those of the solution: of `X goal` not yet the goal's."""
    solution = solve(walk(), Spec(objective, MAX, MIN))
    lower, upper = values_after(solution, 0)
    assert np.all(lower <= solution.upper)
    assert np.all(solution.lower <= upper)


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_the_last_rule_repeats_after_the_first_steps(steps):
    """What counts from some step on has no end: values are there after any number of steps."""
    solution = solve(walk(), Spec(Until("live", "goal", earliest=2), MAX, MIN))
    lower, upper = values_after(solution, steps)
    assert np.all(lower <= upper)
    assert lower[3] == 1.0


def test_values_at_the_end_of_a_horizon():
    """After all steps the goal counts one, and nothing else."""
    solution = solve(walk(), Spec(Until("live", "goal", latest=2)))
    lower, upper = values_after(solution, 2)
    assert lower.tolist() == upper.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_a_loose_bound_of_a_state_is_not_worse_than_that_of_its_action(agent):
    """The policy's own action is worth what the state is worth, so the better bound counts."""
    solution = solve(walk(), Spec(Reach("goal"), agent, agent.opposite))
    loose = replace(solution, lower=solution.lower * 0.99, upper=solution.upper * 0.99 + 0.01)
    found = decisions(loose, np.arange(5))
    rows = [int(np.flatnonzero(found.rows == row)[0]) for row in found.chosen]
    lower, upper = found.value
    if agent is MAX:
        assert np.all(lower >= found.lower[rows])
    else:
        assert np.all(upper <= found.upper[rows])
    assert np.all(lower <= solution.upper)
    assert np.all(upper >= solution.lower)


def test_actions_that_may_cost_for_ever_have_no_upper_bound():
    """Nature keeps both from the goal with some chance: no number is a bound of that."""
    rows = [[([0], [1, 2], "go"), ([], [2], "lost")], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(
        rows, [COIN], labels={"goal": [False, True, False]},
        rewards={"cost": Rewards(np.zeros(3), np.array([1.0, 1.0, 0.0, 1.0]))},
    )  # fmt: skip
    found = decisions(solve(model, Spec(ReachReward("goal"), MIN, MAX)), np.array([0]))
    assert found.upper.tolist() == [np.inf, np.inf]
    assert found.lower[1] == np.inf
