"""Unknown rewards: laws, comparisons, coverage."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from examples import half
from rfmdp.errors import ModelError
from rfmdp.learning.methods import RewardRange

UNIT = RewardRange(0.0, 1.0)


def most_means(span, sums, counts, delta):
    """Return upper bounds: lower ones of the negated rewards."""
    return -RewardRange(-span.high, -span.low).least_means(-sums, counts, delta)


def test_range_is_enforced():
    """A reward outside its range voids the guarantee."""
    with pytest.raises(ModelError, match="widen the range"):
        UNIT.require(np.array([0.5, 1.5]))
    with pytest.raises(ModelError, match="low < high"):
        RewardRange(1.0, 1.0)


@half
@given(st.integers(1, 200), st.integers(0, 10_000), st.floats(-8, -3))
def test_bounds_are_ordered_and_scale(size, seed, exponent):
    """Both lie within the range, in order, and scale with it."""
    samples = np.random.default_rng(seed).beta(2, 3, size=size)
    sums, counts, delta = np.array([samples.sum()]), np.array([size]), 10.0**exponent
    low = UNIT.least_means(sums, counts, delta)[0]
    high = most_means(UNIT, sums, counts, delta)[0]
    assert 0 <= low <= high <= 1
    wide = RewardRange(-3.0, 7.0).least_means(10 * sums - 3 * size, counts, delta)[0]
    assert wide == pytest.approx(10 * low - 3, abs=1e-9)


def test_unvisited_rewards_get_the_end_of_the_range():
    """Also for the last identifier."""
    span, sums, counts = RewardRange(-1.0, 4.0), np.array([3.0, 0.0]), np.array([2, 0])
    assert span.least_means(sums, counts, 0.1)[1] == -1.0
    assert most_means(span, sums, counts, 0.1)[1] == 4.0
    assert "[-1, 4]" in " ".join(span.assumptions)


def test_reward_bounds_hold_at_the_end_of_every_run():
    """Coverage over seeds: failures at most delta, with three standard deviations of grace."""
    rng, runs, delta = np.random.default_rng(3), 400, 0.1
    samples = rng.binomial(1, 0.3, size=(runs, 80)).astype(float)
    counts = np.full(runs, 80)
    mixture = UNIT.least_means(samples.sum(axis=1), counts, delta)
    assert np.sum(mixture > 0.3) <= binom.ppf(0.999, runs, delta)
