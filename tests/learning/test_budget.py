"""The ledger adds up to at most beta, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rfmdp.errors import ModelError
from rfmdp.learning.budget import (
    Ledger,
    Shares,
    epoch_delta,
    paper_box,
    paper_l1,
    relevance_weights,
    weighted,
)
from rfmdp.learning.confidence import Mixture

SIZES = np.array([1, 2, 3, 3, 5])


def exact_cost(ledger):
    parts = zip(ledger.events.tolist(), ledger.delta.tolist(), strict=True)
    return sum((events * Fraction(delta) for events, delta in parts), Fraction(0))


def exact_total(ledger):
    shares = ledger.shares
    return exact_cost(ledger) + sum(map(Fraction, (shares.reward, shares.rollout, shares.tests)))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.floats(1e-12, 0.9),
    st.randoms(use_true_random=False),
)
def test_ledger_adds_up(sizes, split, beta, random):
    """Exact cost <= spent() <= beta, for any sizes, shares and weights."""
    parts = np.maximum(split, [1e-3, 0, 0, 0])
    shares = Shares(*(float(part) for part in parts / parts.sum() * beta))
    events = Mixture().events(np.array(sizes))
    weights = np.array([random.random() for _ in sizes])
    for chosen in (None, weights, relevance_weights(events, weights, weights > 0.3)):
        ledger = weighted(shares, events, chosen)
        assert exact_cost(ledger) <= Fraction(shares.model)
        assert exact_total(ledger) <= Fraction(ledger.spent()) <= Fraction(ledger.beta)


def test_paper_divides_by_all_probabilities():
    """beta/U with U the sum of the support sizes, and beta/|Q|."""
    box, ball = paper_box(1e-4, SIZES), paper_l1(1e-4, SIZES)
    assert_allclose(box.delta, 1e-4 / 14, rtol=1e-11)
    assert_allclose(ball.delta, 1e-4 / 5, rtol=1e-11)
    for ledger in (box, ball):
        assert exact_total(ledger) <= Fraction(1e-4)
        assert ledger.spent() == pytest.approx(1e-4, rel=1e-11)


def test_ours_counts_fewer_events():
    """No event for one outcome, one for two: every event gets more than beta/U."""
    ledger = weighted(Shares(model=1e-4), Mixture().events(SIZES))
    assert_array_equal(ledger.events, [0, 1, 3, 3, 5])
    assert ledger.delta[0] == 0.0
    assert_allclose(ledger.delta[1:], 1e-4 / 12, rtol=1e-11)


def test_relevance_and_reachability():
    """Half uniform over events, half relevance; nothing for what cannot be reached."""
    events = np.array([1, 1, 2, 4])
    reachable = np.array([True, True, True, False])
    weights = relevance_weights(events, np.array([3.0, 1.0, 0.0, 9.0]), reachable)
    assert_allclose(weights, [0.125 + 0.375, 0.125 + 0.125, 0.25, 0.0])
    assert weighted(Shares(model=0.1), events, weights).delta[3] == 0.0


def test_relevance_falls_back_to_uniform():
    """Without a relevance, or with none on what is reachable."""
    events = np.array([1, 3])
    assert_allclose(relevance_weights(events), [0.25, 0.75])
    assert_allclose(relevance_weights(events, np.zeros(2)), [0.25, 0.75])


def test_ledger_refuses_to_overspend():
    """A ledger read from a file is checked like a new one."""
    with pytest.raises(ModelError, match="model share"):
        Ledger("mine", Shares(model=0.1), np.array([2]), np.array([0.06]))
    with pytest.raises(ModelError, match="sum in"):
        Shares(model=0.6, rollout=0.6)
    with pytest.raises(ModelError, match="finite numbers"):
        weighted(Shares(model=0.1), np.array([1, 1]), np.array([-1.0, 2.0]))


def test_ledger_survives_arrays():
    """Saving and loading plain arrays changes nothing."""
    ledger = weighted(Shares(1e-4, 1e-5, 2e-5, 3e-6), Mixture().events(SIZES))
    copy = Ledger.from_arrays(ledger.to_arrays())
    assert copy.scheme == ledger.scheme
    assert copy.shares == ledger.shares
    assert_array_equal(copy.delta, ledger.delta)
    assert_array_equal(copy.events, ledger.events)
    assert copy.assumptions


def test_rewards_and_epochs_stay_within_their_share():
    """W reward identifiers cost the reward share; all epochs together cost beta."""
    ledger = weighted(Shares(model=0.1, reward=0.01), np.array([1]))
    assert 7 * Fraction(ledger.reward_delta(7)) <= Fraction(0.01)
    epochs = sum(Fraction(epoch_delta(0.05, i)) for i in range(1, 400))
    assert epochs <= Fraction(0.05) * Fraction(399, 400)
    with pytest.raises(ModelError, match="at least 1"):
        epoch_delta(0.05, 0)
