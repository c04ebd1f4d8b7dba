import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import quarter
from rfmdp.sets.boxes import tighten
from rfmdp.sets.families import Interval, L1Ball, LpBall, bounds
from set_twins import contains, minimise, packed_vertices as vertices

from .strategies import GRAIN, boxes, finite_sets, grains


@given(finite_sets())
def test_bounds_are_attained_and_lose_nothing(uset):
    """Bounds are exactly the least and largest entries over the vertices."""
    lower, upper = bounds(uset)
    points = vertices(uset)
    assert lower == pytest.approx(points.min(axis=0), abs=1e-14)
    assert upper == pytest.approx(points.max(axis=0), abs=1e-14)


@quarter
@given(grains(least=2, most=4), st.sampled_from([1.0, 1.1, 2.0, 7.0]), st.floats(0.001, 1.5))
def test_lp_bounds_are_attained(p, exponent, radius):
    """Every bound of an Lp ball is the least or largest expectation of its outcome."""
    uset = LpBall(p / GRAIN, radius, exponent)
    lower, upper = bounds(uset)
    for i, unit in enumerate(np.eye(len(p))):
        assert lower[i] == pytest.approx(minimise(uset, unit)[0], abs=1e-10)
        assert upper[i] == pytest.approx(-minimise(uset, -unit)[0], abs=1e-10)


def test_l1_bounds_where_others_run_empty():
    """One entry can take all of the others, at a cost of twice what it takes."""
    lower, upper = bounds(L1Ball([0.9, 0.05, 0.05], 0.4))
    assert lower == pytest.approx([0.7, 0.0, 0.0])
    assert upper == pytest.approx([1.0, 0.25, 0.25])


def test_euclidean_bounds_where_one_other_runs_empty():
    """Raising entry 0 by t empties entry 1 (0.01): t^2 + 0.01^2 + (t - 0.01)^2 = r^2."""
    _, upper = bounds(LpBall([0.5, 0.01, 0.49], 0.1, 2.0))
    rise = upper[0] - 0.5
    assert rise**2 + 0.01**2 + (rise - 0.01) ** 2 == pytest.approx(0.01, abs=1e-15)


@given(boxes())
def test_tightening_twice_changes_nothing(uset):
    """One pass is enough, and the tight box is within the loose one."""
    pointer = np.array([0, uset.size])
    lower, upper = tighten(pointer, uset.lower, uset.upper)
    again = tighten(pointer, lower, upper)
    assert np.stack(again) == pytest.approx(np.stack([lower, upper]), abs=1e-14)
    assert np.all((uset.lower <= lower) & (lower <= upper) & (upper <= uset.upper))


@given(boxes(), st.integers(0, 2**32))
def test_tightening_loses_no_member(uset, seed):
    """A random member of the loose box lies in the tight one."""
    points = vertices(uset)
    p = np.random.default_rng(seed).dirichlet(np.ones(len(points))) @ points
    assert contains(Interval(*bounds(uset)), p, 1e-14)


@given(finite_sets())
def test_nominal_is_a_member(uset):
    """The distinguished member belongs to the set."""
    assert contains(uset, uset.nominal, 1e-9)


def test_tighten_in_bulk():
    """Every marginal is tightened by its own sums."""
    lower, upper = tighten(
        np.array([0, 2, 5]), [0.2, 0.0, 0.0, 0.0, 0.5], [1.0, 0.3, 1.0, 0.1, 1.0]
    )
    assert lower == pytest.approx([0.7, 0.0, 0.0, 0.0, 0.5])
    assert upper == pytest.approx([1.0, 0.3, 0.5, 0.1, 1.0])
