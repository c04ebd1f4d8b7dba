"""Sums of floats decided exactly, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from rfmdp.ragged import starts
from rfmdp.rounding import SUM_OFF
from rfmdp.sets.boxes import FEW, excess, normalised, tighten, without_excess
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton
from rfmdp.sets.marginals import Marginals

PROBABILITIES = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 5e-324, 1e-300, 2.0**-60, 0.1, 0.2, 0.3, 0.5, 0.7, 1 - 2.0**-53, 1.0]),
)
SEGMENTS = st.lists(st.lists(PROBABILITIES, min_size=1, max_size=6), max_size=4)


def flat(segments):
    """Return the entries and pointers of a list of lists."""
    values = np.array([x for part in segments for x in part], dtype=np.float64)
    return values, starts([len(part) for part in segments])


def completed(part):
    """Return numbers whose sum is near one: the last one makes up for the others."""
    rest = 1.0 - float(np.sum(part))
    return [*part, rest] if rest >= 0.0 else [x / float(np.sum(part)) for x in part]


@given(SEGMENTS)
@example([[1 - 2.0**-53, 2.0**-53, 5e-324], [1 - 2.0**-53, 2.0**-53 - 2.0**-106, 2.0**-200]])
def test_the_sign_of_a_sum_minus_one_is_exact(segments):
    """Below, at and above one are told apart at all scales."""
    segments = [*segments, *map(completed, segments)]
    signs = [np.sign(sum(map(Fraction, part), Fraction(-1))) for part in segments]
    assert np.array_equal(np.sign(excess(*flat(segments))), signs)
    many = excess(*flat(segments * FEW))  # by arrays
    assert np.array_equal(np.sign(many), signs * FEW)


@pytest.mark.parametrize("copies", [1, FEW])
@given(segments=SEGMENTS)
def test_bounds_without_the_excess_are_on_their_side(copies, segments):
    """They bound the exact number, and miss it by a few ulps only."""
    segments = [*segments, *map(completed, segments)]
    values, ptr = flat(segments * copies)
    up, down = (without_excess(values, values, ptr, side) for side in (1.0, -1.0))
    place = 0
    for part in segments:
        total = sum(map(Fraction, part), Fraction(-1))
        for x in part:
            exact = Fraction(x) - total
            assert Fraction(float(down[place])) <= exact <= Fraction(float(up[place]))
            # at most three floats to each side, of at most two units each
            slack = 12 * Fraction(2) ** -53 * abs(exact) + Fraction(2) ** -100
            assert Fraction(float(up[place])) - Fraction(float(down[place])) <= slack
            place += 1


@given(st.lists(PROBABILITIES, min_size=1, max_size=6), st.floats(-9e-10, 9e-10))
def test_stored_distributions_sum_to_one_and_are_stored_again_as_they_are(part, off):
    """Normalising is idempotent, keeps zeros and positive numbers, and treats outcomes alike."""
    total = float(np.sum(part))
    if total == 0.0:
        return
    p = np.clip(np.array(part) / total * (1.0 + off), 0.0, 1.0)
    if abs(float(p.sum()) - 1.0) > 9.9e-10:
        return
    stored = Singleton(p).nominal
    assert abs(sum(map(Fraction, stored.tolist()), Fraction(-1))) <= Fraction(SUM_OFF) * 5 / 4
    assert np.array_equal(Singleton(stored).nominal, stored)
    assert np.array_equal(stored > 0.0, p > 0.0)
    assert np.array_equal(Singleton(p[::-1]).nominal, stored[::-1])
    ends = np.array([0, len(p)])
    assert np.array_equal(Marginals.from_points(ends, p).nominal, stored)
    assert np.array_equal(normalised(p, ends), stored)


def test_every_family_stores_the_same_distribution():
    """Nearly one is the same distribution everywhere, also as a box or a vertex."""
    p = np.array([0.3, 0.7 - 5e-10])
    stored = Singleton(p).nominal
    assert abs(float(stored.sum()) - 1.0) <= SUM_OFF
    assert np.array_equal(L1Ball(p, 0.1).nominal, stored)
    assert np.array_equal(Polytope([p]).vertices[0], stored)
    box = Interval(p, p)
    assert np.array_equal(box.lower, stored)
    assert np.array_equal(box.upper, stored)
    # too little room above, too much below: one member each
    assert np.array_equal(Interval([0.0, 0.0], p).lower, stored)
    low = np.array([0.3, 0.7 + 5e-10])
    assert np.array_equal(Interval(low, [1.0, 1.0]).upper, Singleton(low).nominal)


@given(st.lists(st.tuples(PROBABILITIES, PROBABILITIES), min_size=1, max_size=5))
def test_tight_bounds_leave_the_set_as_it_is(ends):
    """Every bound that moved is implied by the others, exactly, and is no looser than before."""
    lower = np.array([min(pair) for pair in ends])
    upper = np.array([max(pair) for pair in ends])
    if lower.sum() > 1.0 or upper.sum() < 1.0:
        return
    low, high = tighten(np.array([0, len(ends)]), lower, upper)
    rest_low = sum(map(Fraction, lower.tolist()), Fraction(-1))
    rest_high = sum(map(Fraction, upper.tolist()), Fraction(-1))
    assert np.all((low >= lower) & (high <= upper))
    for i in range(len(ends)):
        implied = max(Fraction(float(lower[i])), Fraction(float(upper[i])) - rest_high)
        assert Fraction(float(low[i])) <= implied
        implied = min(Fraction(float(upper[i])), Fraction(float(lower[i])) - rest_low)
        assert Fraction(float(high[i])) >= implied
