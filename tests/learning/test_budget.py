"""The ledger adds up to at most beta, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson, Mixture, Weissman
from rfmdp.learning.setup import (
    Budget,
    Ledger,
    Shares,
    divided,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.families import Singleton

from .tiny import identified

SIZES = [2, 3, 3, 5]


def identifiers(sizes):
    """Return identifiers with these numbers of outcomes, one state each."""
    most = max(sizes) + 1
    rows = [([j], list(range(d)), f"a{j}") for j, d in enumerate(sizes)]
    model = FactoredMDP.from_rows(
        [rows, *([([], [s])] for s in range(1, most))],
        [Singleton(np.full(d, 1 / d)) for d in sizes],
    )
    return identified(model)


def exact_cost(ledger):
    parts = zip(ledger.events.tolist(), ledger.delta.tolist(), strict=True)
    return sum((events * Fraction(delta) for events, delta in parts), Fraction(0))


def exact_total(ledger):
    shares = ledger.shares
    return exact_cost(ledger) + sum(map(Fraction, (shares.reward, shares.start)))


@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=20),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.floats(1e-12, 0.9),
)
def test_ledger_adds_up(sizes, split, beta):
    """What events cost, in fractions, is at most beta, for any sizes, shares, sets and rules."""
    parts = np.maximum(split, [1e-3, 0, 0])
    shares = Shares(*(float(part) for part in parts / parts.sum() * beta))
    ids = identifiers(sizes)
    for rule in (Budget.EVENTS, Budget.PROBABILITIES, Budget.COMPONENTS):
        for confidence in (Mixture(), Weissman()):
            ledger = rule.ledger(shares, confidence, ids)
            assert exact_cost(ledger) <= Fraction(shares.model)
            assert exact_cost(ledger) <= Fraction(ledger.spent_on_model())
            assert exact_total(ledger) <= Fraction(ledger.shares.beta)


def test_paper_divides_by_all_probabilities():
    """beta/U with U the sum of the support sizes, and beta/|Q|."""
    ids, shares = identifiers(SIZES), Shares(model=1e-4)
    box = Budget.PROBABILITIES.ledger(shares, ClopperPearson(), ids)
    ball = Budget.COMPONENTS.ledger(shares, Weissman(), ids)
    assert_allclose(box.delta, 1e-4 / 13, rtol=1e-11)
    assert_allclose(ball.delta, 1e-4 / 4, rtol=1e-11)
    for ledger in (box, ball):
        assert exact_total(ledger) <= Fraction(1e-4)
    assert ball.spent_on_model() == pytest.approx(1e-4, rel=1e-11)


def test_ours_counts_fewer_events():
    """One event for two outcomes: every event gets more than beta/U."""
    ledger = Budget.EVENTS.ledger(Shares(model=1e-4), Mixture(), identifiers(SIZES))
    assert_array_equal(ledger.events, [1, 3, 3, 5])
    assert_allclose(ledger.delta, 1e-4 / 12, rtol=1e-11)


def test_ledger_refuses_to_overspend():
    """A ledger read from a file is checked like a new one."""
    with pytest.raises(ModelError, match="model share"):
        Ledger("mine", Shares(model=0.1), np.array([2]), np.array([0.06]))
    with pytest.raises(ModelError, match="sum in"):
        Shares(model=0.6, reward=0.6)


def test_ledger_survives_arrays():
    """Saving and loading plain arrays changes nothing."""
    shares = Shares(1e-4, 1e-5, 3e-6)
    ledger = Budget.EVENTS.ledger(shares, Mixture(), identifiers(SIZES))
    copy = Ledger.from_arrays(ledger.to_arrays())
    assert copy.scheme == ledger.scheme
    assert copy.shares == ledger.shares
    assert_array_equal(copy.delta, ledger.delta)
    assert_array_equal(copy.events, ledger.events)


def test_rewards_stay_within_their_share():
    """The rewards of some rows cost the reward share."""
    assert 7 * Fraction(divided(0.01, 7)) <= Fraction(0.01)
