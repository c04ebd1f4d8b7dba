"""Gambler's ruin: lines of states that mix slowly, on which nature may linger in the middle."""

from functools import lru_cache

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec, Total
from rfmdp.outer.solution import Status
from rfmdp.sets.families import Interval
from rfmdp.solving import solve
from rfmdp.verification.solution import verify

MOVES = Interval([0.0, 0.5], [0.5, 1.0])  # nature may stay for ever


@lru_cache(maxsize=8)  # the same lines are asked for one thing after another
def line(size: int, least: float, most: float) -> FactoredMDP:
    """Return a walk on 0..size that goes up with a probability between two, till it is at an end.

    Every step pays 1, but for those from the middle, where nature says how long to stay.
    """
    middle = size // 2
    walk = [[([0], [s + 1, s - 1])] for s in range(1, size)]
    walk[middle - 1] = [([0, 1], [middle + 1, middle, middle - 1, middle])]
    rows = [[([], [0])], *walk, [([], [size])]]
    up = Interval([least, 1.0 - most], [most, 1.0 - least])
    states = np.arange(size + 1)
    top, ends = states == size, (states == 0) | (states == size)
    paid = np.where(ends | (states == middle), 0.0, 1.0)
    return FactoredMDP.from_rows(
        rows,
        [up, MOVES],
        labels={"top": top, "ends": ends},
        rewards={"steps": Rewards(paid, np.zeros(size + 1))},
    )


def bounds(model, spec):
    """Return certified bounds of all states."""
    found = solve(model, spec, states=np.ones(model.states, dtype=bool))
    assert found.status is Status.CERTIFIED
    require_narrow(found)
    assert model.states > 200 or verify(found).valid
    return found.lower, found.upper


@pytest.mark.parametrize("agent", [MIN, MAX])
@pytest.mark.parametrize(("size", "most"), [(100, 0.55), (1_000, 0.501), (4_000, 0.5001)])
def test_ruin_is_that_of_the_best_odds(size, most, agent):
    """A maximising nature always takes the best odds, and never stays."""
    model = line(size, 0.4, most)
    lower, upper = bounds(model, Spec(Reach("top"), agent, MAX))
    odds = np.log1p(-most) - np.log(most)
    exact = np.expm1(odds * np.arange(size + 1)) / np.expm1(odds * size)
    np.testing.assert_array_less(lower, exact * (1.0 + 1e-11) + 1e-300)
    np.testing.assert_array_less(exact, upper * (1.0 + 1e-11) + 1e-300)


@pytest.mark.parametrize("size", [100, 1_000, 4_000])
@pytest.mark.parametrize(
    "spec",
    [
        Spec(ReachReward("ends", "steps"), MIN, MIN),
        Spec(ReachReward("ends", "steps"), MAX, MIN),
        Spec(Total("steps"), MIN, MAX),
        Spec(Total("steps"), MAX, MAX),
    ],
    ids=str,
)
def test_staying_for_nothing_changes_no_duration(size, spec):
    """A fair walk takes s (n - s) steps, of which those from the middle are free."""
    lower, upper = bounds(line(size, 0.5, 0.5), spec)
    s, middle = np.arange(size + 1), size // 2
    visits = 2.0 * np.minimum(s, middle) * (size - np.maximum(s, middle)) / size
    exact = s * (size - s) - visits
    assert np.all(lower <= exact)
    assert np.all(exact <= upper)


@pytest.mark.parametrize("agent", [MIN, MAX])
def test_ten_billion_steps_still_have_bounds(agent):
    """Against the drift the ends are far: floats tell few digits, but both bounds are finite."""
    spec = Spec(ReachReward("ends", "steps"), agent, MAX)
    model = line(100, 0.4, 0.6)
    moving = FactoredMDP.from_rows(
        [[([], [0])], *([([0], [s + 1, s - 1])] for s in range(1, 100)), [([], [100])]],
        [model.marginals[0]],
        labels=model.labels,
        rewards={"steps": model.rewards["steps"]},
    )
    found = solve(moving, spec)
    assert found.at_initial().lower == 0.0
    assert 5e9 < found.lower[50] < found.upper[50] < 1.0001 * found.lower[50]
