import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half
from rfmdp.sets.families import LpBall, p_norm
from set_twins import (
    contains,
    expectation,
    fractions,
    minimise,
    packed_vertices as vertices,
    vertices as exact_vertices,
)

from .strategies import GRAIN, finite_sets, grains

EXPONENTS = [1.0001, 1.1, 1.5, 2.0, 3.0, 10.0, 500.0]


@st.composite
def round_balls(draw):
    """Lp balls with 1 < p < inf, with zeros in the nominal and radii of all sizes."""
    radius = draw(st.one_of(st.floats(1e-6, 1.5), st.sampled_from([0.0, 1e-9, 0.05, 2.0])))
    return LpBall(draw(grains(least=1, most=6)) / GRAIN, radius, draw(st.sampled_from(EXPONENTS)))


@given(finite_sets(), st.integers(0, 2**32), st.booleans())
def test_minimum_is_taken_at_a_vertex(uset, seed, ties):
    """The minimum is the exact one rounded once, and its witness a member that attains it."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, uset.size).astype(float) if ties else rng.normal(size=uset.size)
    value, p = minimise(uset, values)
    corners = exact_vertices(uset)
    exact = min(expectation(corner, fractions(values)) for corner in corners)
    assert value == float(exact)
    assert contains(uset, p, 1e-14)
    assert p.sum() == pytest.approx(1.0, abs=1e-14)
    assert p @ values == pytest.approx(value, abs=1e-14)
    assert value == pytest.approx((vertices(uset) @ values).min(), abs=1e-13)


@half
@given(round_balls(), st.integers(0, 2**32), st.booleans())
def test_lp_bound_and_witness_meet(uset, seed, ties):
    """The dual bound is below the feasible witness, and they meet: both are optimal."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, uset.size).astype(float) if ties else rng.normal(size=uset.size)
    value, p = minimise(uset, values)
    assert contains(uset, p, 1e-13)
    assert p.sum() == pytest.approx(1.0, abs=1e-13)
    assert value <= p @ values + 1e-14
    assert value == pytest.approx(p @ values, abs=1e-10 * np.ptp(values))


@half
@given(round_balls(), st.integers(0, 2**32))
def test_lp_bound_is_below_random_members(uset, seed):
    """No random member of the ball has a smaller expectation."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=uset.size)
    value, _ = minimise(uset, values)
    for target in rng.dirichlet(np.full(uset.size, 0.3), size=50):
        step = target - uset.nominal
        length = p_norm(step, uset.exponent)
        share = min(1.0, uset.radius / length) if length > 0 else 0.0
        assert (uset.nominal + share * step) @ values >= value - 1e-13


def test_euclidean_ball_in_the_interior():
    """Far from the border the minimum is nominal . v - radius * ||v - mean||_2."""
    p, values = np.array([0.3, 0.3, 0.4]), np.array([1.0, 2.0, 4.0])
    value, witness = minimise(LpBall(p, 0.1, 2.0), values)
    centred = values - values.mean()
    assert value == pytest.approx(p @ values - 0.1 * np.linalg.norm(centred), abs=1e-14)
    assert witness == pytest.approx(p - 0.1 * centred / np.linalg.norm(centred), abs=1e-12)


def test_large_ball_reaches_the_least_value():
    """A radius beyond the simplex gives the least value, ties shared."""
    value, p = minimise(LpBall([0.2, 0.3, 0.5], 3.0, 2.0), [1.0, 1.0, 5.0])
    assert value == pytest.approx(1.0)
    assert p[2] == 0.0


@pytest.mark.parametrize(("near", "limit"), [(1.000001, 1.0), (1e5, np.inf)])
def test_lp_approaches_its_limits(near, limit):
    """Exponents near 1 and very large ones come close to the greedy solutions."""
    p, values = [0.2, 0.35, 0.45], [3.0, 1.0, 2.0]
    value, _ = minimise(LpBall(p, 0.2, near), values)
    assert value == pytest.approx(minimise(LpBall(p, 0.2, limit), values)[0], abs=1e-4)


def test_nature_maximising_is_the_same_with_signs_flipped():
    """The largest expectation is minus the least one of minus the values."""
    uset = LpBall([0.5, 0.5], 0.2, 2.0)
    high = -minimise(uset, [0.0, -1.0])[0]
    assert high == pytest.approx(0.5 + 0.2 / np.sqrt(2), abs=1e-14)
