"""Confidence sets: reference values, events, unknown marginals, intersections."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from examples import half
from rfmdp.errors import AssumptionAlarm, RfmdpError
from rfmdp.learning.confidence import (
    ClopperPearson,
    Mixture,
    SetStore,
    Validity,
    Weissman,
    empirical,
)
from rfmdp.sets.boxes import box_centres

BOXES = [ClopperPearson(), Mixture()]
SETS = [*BOXES, Weissman()]
SIZES = np.array([1, 2, 3, 4])
PTR = np.array([0, 1, 3, 6, 10])
COUNTS = np.array([50, 30, 20, 5, 0, 45, 0, 0, 0, 0])
DELTA = np.array([1e-3, 1e-3, 1e-4, 1e-4])


@pytest.mark.parametrize("sets", SETS, ids=lambda s: s.label)
def test_every_set_says_what_it_assumes(sets):
    """Label, validity and assumptions are there to be printed."""
    assert sets.label
    assert sets.assumptions
    assert all(isinstance(line, str) for line in sets.assumptions)
    single_look = "fixed before sampling" in " ".join(sets.assumptions)
    assert single_look == (sets.validity is Validity.SINGLE_LOOK)


def test_validity_of_the_paper_s_sets_is_named():
    """The paper's intervals are labelled for what they are."""
    assert ClopperPearson().validity.value == "fixed sample size, single look"
    assert Mixture().validity.value == "anytime"


def test_events_per_marginal():
    """No event for one outcome, one for two."""
    assert_array_equal(Mixture().events(SIZES), [0, 1, 3, 4])
    assert_array_equal(Weissman().events(SIZES), [0, 1, 1, 1])


@pytest.mark.parametrize("sets", BOXES, ids=lambda s: s.label)
def test_boxes(sets):
    """Known outcomes are certain, two mirror each other, unvisited ones are free."""
    box = sets.sets(PTR, COUNTS, DELTA)
    assert box.lower[0] == box.upper[0] == 1.0
    assert box.lower[1] == pytest.approx(1 - box.upper[2], abs=1e-15)
    low, high = sets.interval(30, 50, 1e-3)
    assert_allclose([box.lower[1], box.upper[1]], [low, high], atol=1e-15)
    assert_array_equal(box.lower[6:], 0.0)
    assert_array_equal(box.upper[6:], 1.0)
    _, _, nominal = empirical(PTR, COUNTS)
    assert np.all((box.lower <= nominal) & (nominal <= box.upper))


def test_bounds_are_attainable():
    """Every entry's bound is reached by some member of the box."""
    box = Mixture().sets(np.array([0, 3]), np.array([90, 5, 5]), np.array([0.1]))
    for i in range(3):
        others = [j for j in range(3) if j != i]
        assert box.lower[i] >= 1 - box.upper[others].sum() - 1e-14
        assert box.upper[i] <= 1 - box.lower[others].sum() + 1e-14


def test_no_budget_means_unknown():
    """A marginal with delta 0 stays the whole simplex, whatever was seen."""
    box = Mixture().sets(np.array([0, 2]), np.array([90, 10]), np.array([0.0]))
    assert_array_equal(box.lower, 0.0)
    ball = Weissman().sets(np.array([0, 2]), np.array([90, 10]), np.array([0.0]))
    assert ball.radius[0] == 2.0


def test_weissman_radius():
    """Radius formula of the paper; 2 where nothing is known, 0 for one outcome."""
    ball = Weissman().sets(PTR, COUNTS, DELTA)
    expected = np.sqrt(2 * (np.log(2**3 - 2) - np.log(1e-4)) / 50)
    assert ball.radius[2] == pytest.approx(expected, rel=1e-14)
    assert ball.radius[0] == 0.0
    assert ball.radius[3] == 2.0
    assert_array_equal(ball.nominal[6:], 0.25)


def test_running_intersection_is_nested():
    """Intersecting over time only shrinks boxes."""
    early, late = np.array([6, 3, 1, 2]), np.array([60, 30, 12, 18])
    ptr, delta = np.array([0, 4]), np.array([1e-3])
    store = SetStore(Mixture(), ptr, delta)
    store.refresh(early)
    before = store.lower.copy(), store.upper.copy()
    store.refresh(late)
    fresh = Mixture().sets(ptr, late, delta)
    assert np.all(store.lower >= np.maximum(before[0], fresh.lower) - 1e-15)
    assert np.all(store.upper <= np.minimum(before[1], fresh.upper) + 1e-15)


def test_contradicting_data_raise_an_alarm():
    """A marginal that changed leaves no distribution."""
    store = SetStore(Mixture(), np.array([0, 2, 4]), np.array([1e-3, 1e-3]))
    store.refresh(np.array([5, 5, 900, 100]))
    with pytest.raises(AssumptionAlarm, match=r"Marginal 1.*stationary") as caught:
        store.refresh(np.array([5, 5, 100, 900]))
    assert isinstance(caught.value, RfmdpError)


@half
@given(st.lists(st.integers(0, 50), min_size=3, max_size=6), st.floats(-6, -0.1))
def test_member_lies_in_its_box(counts, exponent):
    """The member is a distribution within the bounds."""
    ptr = np.array([0, len(counts)])
    box = Mixture().sets(ptr, np.array(counts), np.array([10.0**exponent]))
    member = box_centres(box.outcome_ptr, box.lower, box.upper)
    assert member.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all((member >= box.lower - 1e-15) & (member <= box.upper + 1e-15))


def test_no_marginals_at_all():
    """Empty arrays are a model without unknown parts."""
    ptr, counts, delta = np.array([0]), np.empty(0, dtype=np.int64), np.empty(0)
    for sets in SETS:
        assert len(sets.sets(ptr, counts, delta)) == 0
