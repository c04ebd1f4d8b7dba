"""A few states that lead to one another, numbers at all scales: what is claimed is proven again.

No exact value is at hand here; the checker is the reference, which counts in fractions.
"""

import itertools

import numpy as np
import pytest

import rfmdp
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Discounted, Reach, ReachReward, Spec, Total
from rfmdp.solving import solve
from scales import random_set

OBJECTIVES = [Reach("goal"), ReachReward("goal", "cost"), Discounted(0.75, "cost"), Total("cost")]


def random_network(seed, states=4):
    """Return states with one or two rows of one or two sets each, which lead anywhere."""
    rng = np.random.default_rng(seed)
    sets, lines, cost = [], [], []
    for _ in range(states):
        rows = []
        for _ in range(rng.integers(1, 3)):
            ids, size = [], 1
            for _ in range(rng.integers(1, 3)):
                outcomes = int(rng.integers(1, 4))
                ids.append(len(sets))
                sets.append(random_set(rng, outcomes))
                size *= outcomes
            rows.append((ids, rng.integers(0, states + 2, size).tolist()))
            scale = 10.0 ** rng.choice([-300, -100, -20.0, 0, 0, 20, 99])
            cost.append(float(scale * rng.choice([0, 0.5, 1, 0.1])))
        lines.append(rows)
    lines += [[([], [states])], [([], [states + 1])]]
    goal = np.arange(states + 2) == states
    costs = Rewards(np.zeros(states + 2), np.array([*cost, 0.0, 0.0]))
    return FactoredMDP.from_rows(lines, sets, labels={"goal": goal}, rewards={"cost": costs})


def assert_proven_again(model, spec):
    """Assert that the bounds of a solution, the guarantee of its policy included, are proven."""
    with np.errstate(all="ignore"):
        verdict = rfmdp.verify(solve(model, spec))
    assert verdict.valid, (spec, str(verdict))


def test_the_guarantee_is_that_of_the_returned_policy():
    """A value that no longer grows keeps its row: with 1e99 elsewhere others seemed no worse."""
    assert_proven_again(random_network(0), Spec(Total("cost"), MAX, MIN))


@pytest.mark.parametrize(
    ("seed", "nature"), [(1029, MIN), pytest.param(27, MAX, marks=pytest.mark.slow)]
)
def test_what_is_paid_for_ever_counts_however_little(seed, nature):
    """1e-300 a step beside a value of 4e109 is a gain, though no float shows it."""
    assert_proven_again(random_network(seed), Spec(Total("cost"), MIN, nature))


@pytest.mark.parametrize("seed", range(100, 102))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_networks(seed, objective):
    """All directions of all objectives."""
    for agent, nature in itertools.product((MAX, MIN), repeat=2):
        assert_proven_again(random_network(seed), Spec(objective, agent, nature))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_networks(seed):
    """The same for many."""
    for objective, agent, nature in itertools.product(OBJECTIVES, (MAX, MIN), (MAX, MIN)):
        assert_proven_again(random_network(seed), Spec(objective, agent, nature))
