import numpy as np
import pytest
from hypothesis import given, strategies as st

from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton
from set_twins import contains, packed_vertices as vertices

from .strategies import finite_sets

MEMBERS = [
    (Singleton([0.3, 0.7]), [0.3, 0.7], [0.3 + 1e-9, 0.7 - 1e-9]),
    (Interval([0.1, 0.2], [0.8, 0.9]), [0.8, 0.2], [0.81, 0.19]),
    (L1Ball([0.5, 0.5], 0.2), [0.6, 0.4], [0.61, 0.39]),
    (LinfBall([0.5, 0.5], 0.2), [0.7, 0.3], [0.71, 0.29]),
    (LpBall([0.5, 0.5], 0.2, 2.0), [0.64, 0.36], [0.65, 0.35]),
    (Polytope([[1, 0, 0], [0, 1, 0]]), [0.3, 0.7, 0.0], [0.3, 0.6, 0.1]),
]


@pytest.mark.parametrize(("uset", "inside", "outside"), MEMBERS, ids=[repr(m[0]) for m in MEMBERS])
def test_members_and_strangers(uset, inside, outside):
    """A point on the border is a member, one beyond is not; neither is a non-distribution."""
    assert contains(uset, inside)
    assert not contains(uset, outside)
    assert not contains(uset, np.array(inside) * 0.9)
    assert not contains(uset, np.full(uset.size, np.nan))


def test_tolerance_is_respected():
    """A point just outside belongs to the set only with a tolerance that reaches it."""
    uset, p = Interval([0.1, 0.2], [0.8, 0.9]), [0.8 + 1e-6, 0.2 - 1e-6]
    assert not contains(uset, p)
    assert contains(uset, p, tolerance=1e-5)
    assert not contains(L1Ball([1.0, 0.0], 1.0), [1.1, -0.1])


@given(finite_sets(), st.integers(0, 2**32))
def test_mixtures_of_vertices_are_members(uset, seed):
    """Sets are convex: random mixtures of vertices belong to them."""
    points = vertices(uset)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(points)), size=5)
    assert all(contains(uset, p) for p in weights @ points)


@given(finite_sets(), st.integers(0, 2**32))
def test_polytope_of_the_vertices_is_the_same_set(uset, seed):
    """The hull of the vertices contains a point just when the set does."""
    hull = Polytope(vertices(uset))
    for p in np.random.default_rng(seed).dirichlet(np.ones(uset.size), size=5):
        assert contains(hull, p, 1e-9) == contains(uset, p, 1e-9)
