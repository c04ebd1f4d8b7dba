"""Unknown rewards: laws, comparisons, coverage."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import binom

from examples import half
from rfmdp.errors import ModelError
from rfmdp.learning.rewards import DeterministicReward, MixtureReward, RewardRange

UNIT = RewardRange(0.0, 1.0)
DELTA = np.full(3, 0.01)


def mirrored_upper(family, span, sums, counts, delta):
    """Return upper bounds: lower ones of the negated rewards."""
    return -family(span.mirrored()).lower(-sums, counts, delta)


def test_range_is_enforced():
    """A reward outside its range voids the guarantee."""
    with pytest.raises(ModelError, match="widen the range"):
        DeterministicReward(UNIT).lower(np.array([1.5]), np.array([1]), np.array([0.1]))
    with pytest.raises(ModelError, match="low < high"):
        RewardRange(1.0, 1.0)


@pytest.mark.parametrize("span", [RewardRange(-5.0, 5.0), RewardRange(-5, 5)], ids=repr)
def test_deterministic_rewards_are_settled_by_one_sample(span):
    """Seen: exact, also with a range of integers; unseen: the pessimistic end."""
    reward, observed, counts = DeterministicReward(span), np.array([2.5, 0.0, -1.5]), [3, 0, 1]
    assert_array_equal(reward.lower(observed, np.array(counts), DELTA), [2.5, -5.0, -1.5])
    upper = mirrored_upper(DeterministicReward, span, observed, np.array(counts), DELTA)
    assert_array_equal(upper, [2.5, 5.0, -1.5])


@half
@given(st.integers(1, 200), st.integers(0, 10_000), st.floats(-8, -3))
def test_bounds_are_ordered_and_scale(size, seed, exponent):
    """Both lie within the range, in order, and scale with it."""
    samples = np.random.default_rng(seed).beta(2, 3, size=size)
    sums, counts, delta = np.array([samples.sum()]), np.array([size]), np.array([10.0**exponent])
    low = MixtureReward(UNIT).lower(sums, counts, delta)[0]
    high = mirrored_upper(MixtureReward, UNIT, sums, counts, delta)[0]
    assert 0 <= low <= high <= 1
    wide = MixtureReward(RewardRange(-3.0, 7.0)).lower(10 * sums - 3 * size, counts, delta)[0]
    assert wide == pytest.approx(10 * low - 3, abs=1e-9)


def test_unvisited_rewards_get_the_end_of_the_range():
    """Also for the last identifier."""
    span, sums, counts = RewardRange(-1.0, 4.0), np.array([3.0, 0.0]), np.array([2, 0])
    assert MixtureReward(span).lower(sums, counts, np.full(2, 0.1))[1] == -1.0
    assert mirrored_upper(MixtureReward, span, sums, counts, np.full(2, 0.1))[1] == 4.0
    assert "[-1, 4]" in " ".join(MixtureReward(span).assumptions)


def test_reward_bounds_hold_at_the_end_of_every_run():
    """Coverage over seeds: failures at most delta, with three standard deviations of grace."""
    rng, runs, delta = np.random.default_rng(3), 400, 0.1
    samples = rng.binomial(1, 0.3, size=(runs, 80)).astype(float)
    counts = np.full(runs, 80)
    mixture = MixtureReward(UNIT).lower(samples.sum(axis=1), counts, np.full(runs, delta))
    assert np.sum(mixture > 0.3) <= binom.ppf(0.999, runs, delta)
