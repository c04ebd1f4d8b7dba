"""Unknown rewards and rollout certificates: laws, comparisons, coverage."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import beta as beta_distribution, binom

from examples import half
from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import betting_rejects
from rfmdp.learning.intervals import betting_lower
from rfmdp.learning.rewards import DeterministicReward, MixtureReward, RewardRange
from rfmdp.learning.rollout import certify_returns, certify_successes

UNIT = RewardRange(0.0, 1.0)
DELTA = np.full(3, 0.01)


def log_wealth(samples, mean, delta):
    """Plain twin of the betting kernel: the largest log wealth over time."""
    total, squares, wealth, best = 0.5, 0.25, 0.0, 0.0
    for t, sample in enumerate(samples, start=1):
        bet = np.sqrt(2 * np.log(1 / delta) / (squares / t * t * np.log(1 + t)))
        wealth += np.log(1 + min(bet, 0.75 / mean) * (sample - mean))
        best = max(best, wealth)
        total += sample
        squares += (sample - total / (t + 1)) ** 2
    return best


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


def test_betting_profits_from_small_variance():
    """With n = 1000, sd 0.05, delta 1e-8: far below Hoeffding's 0.096 and the mixture's 0.101."""
    samples = np.clip(np.random.default_rng(0).normal(0.5, 0.05, size=1000), 0, 1)
    mean = samples.mean()
    assert mean - betting_lower(samples, 1e-8) < 0.018
    mixture = MixtureReward(UNIT).lower(np.array([samples.sum()]), np.array([1000]), [1e-8])[0]
    assert mean - mixture == pytest.approx(0.101, abs=0.003)


@half
@given(st.integers(1, 60), st.integers(0, 10_000))
def test_betting_kernel_equals_its_formula(size, seed):
    """The bound separates rejected from kept means of the plain formula."""
    samples = np.random.default_rng(seed).beta(5, 1, size=size)
    low = betting_lower(samples, 0.05)
    assert log_wealth(samples, low + 1e-9, 0.05) < np.log(20)
    if low > 0:
        assert log_wealth(samples, low, 0.05) >= np.log(20) - 1e-9
        assert betting_rejects.py_func(samples, low, np.log(20), 0.0)


def test_reward_bounds_hold_at_the_end_of_every_run():
    """Coverage over seeds: failures at most delta, with three standard deviations of grace."""
    rng, runs, delta = np.random.default_rng(3), 400, 0.1
    samples = rng.binomial(1, 0.3, size=(runs, 80)).astype(float)
    counts = np.full(runs, 80)
    mixture = MixtureReward(UNIT).lower(samples.sum(axis=1), counts, np.full(runs, delta))
    betting = np.array([betting_lower(line, delta) for line in samples])
    for low in (mixture, betting):
        assert np.sum(low > 0.3) <= binom.ppf(0.999, runs, delta)


def test_success_certificate_is_exact():
    """B(delta; s, m-s+1), below the frequency, 0 without successes."""
    found = certify_successes(95, 100, 1e-4)
    assert found.bound == pytest.approx(beta_distribution.ppf(1e-4, 95, 6), rel=1e-9)
    assert certify_successes(0, 10, 0.1).bound == 0.0
    assert certify_successes(10, 10, 0.1).bound == pytest.approx(0.1**0.1, rel=1e-9)
    assert any("fixed before" in line for line in found.assumptions)


def test_success_certificate_keeps_its_promise():
    """P(bound > p) <= delta, summed over all counts."""
    m, p, delta = 60, 0.7, 0.05
    bounds = np.array([certify_successes(s, m, delta).bound for s in range(m + 1)])
    assert binom.pmf(np.arange(m + 1), m, p)[bounds > p].sum() <= delta


def test_return_certificates_lie_below_the_mean():
    """The range of returns is an assumption of the certificate."""
    returns = np.random.default_rng(2).uniform(3, 5, size=200)
    found = certify_returns(returns, RewardRange(0, 10), 1e-3)
    assert 3.0 < found.bound < returns.mean()
    assert "[0, 10]" in found.assumptions[-1]


def test_fixed_horizon_bets_are_better_at_their_horizon():
    """Knowing the number of trajectories in advance helps a little."""
    samples = np.clip(np.random.default_rng(5).normal(0.6, 0.1, size=500), 0, 1)
    assert betting_lower(samples, 1e-6, horizon=500) > betting_lower(samples, 1e-6) - 1e-3


def test_a_certificate_needs_trajectories():
    """No data, no certificate."""
    with pytest.raises(ModelError, match="at least one trajectory"):
        certify_successes(0, 0, 0.1)
    with pytest.raises(ModelError, match="0 < delta < 1"):
        betting_lower(np.ones(3), 0.0)
