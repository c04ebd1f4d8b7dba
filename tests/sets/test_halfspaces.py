import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.sets import halfspaces
from rfmdp.sets.families import Interval, L1Ball, Polytope
from rfmdp.sets.halfspaces import halfspace_vertices
from rfmdp.sets.vertices import vertices
from set_twins import contains

from .strategies import boxes, exact_polytope_vertices


def same_points(left, right, tolerance=1e-9):
    """Say whether two sets of points agree, in any order."""
    apart = np.abs(left[:, None, :] - right[None, :, :]).max(axis=2)
    return bool((apart.min(axis=0) <= tolerance).all() and (apart.min(axis=1) <= tolerance).all())


@st.composite
def systems(draw):
    """Draw a few integer half-spaces over 2 to 4 outcomes; bounds on a grid of quarters."""
    size, rows = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    row = st.lists(st.integers(-2, 2), min_size=size, max_size=size)
    matrix = draw(st.lists(row, min_size=rows, max_size=rows))
    bound = draw(st.lists(st.integers(-4, 8), min_size=rows, max_size=rows))
    return np.array(matrix, dtype=float), np.array(bound) / 4.0


@given(systems())
def test_vertices_equal_all_feasible_bases(system):
    """Double description finds what trying every basis in fractions finds, or both nothing."""
    exact = exact_polytope_vertices(*system)
    if not exact:
        with pytest.raises(ModelError, match=r"empty, no distribution satisfies"):
            halfspace_vertices(*system)
        return
    expected = np.array([[float(x) for x in p] for p in exact])
    assert same_points(halfspace_vertices(*system), expected)


@given(boxes())
def test_boxes_as_halfspaces(uset):
    """A box given by its half-spaces has the vertices of the box."""
    matrix = np.vstack([np.eye(uset.size), -np.eye(uset.size)])
    points = halfspace_vertices(matrix, np.concatenate([uset.upper, -uset.lower]))
    assert same_points(points, vertices(uset))


@half
@given(st.integers(2, 5), st.floats(0.01, 1.9), st.integers(0, 2**32))
def test_l1_balls_as_halfspaces(size, radius, seed):
    """An L1 ball in general position has the vertices of its 2^X half-spaces."""
    p = np.random.default_rng(seed).dirichlet(np.ones(size))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * size)).reshape(size, -1).T
    points = halfspace_vertices(signs, signs @ p + radius)
    assert same_points(points, vertices(L1Ball(p, radius)))


def test_redundant_rows_change_nothing():
    """Repeated, scaled, zero and implied rows leave the same vertices."""
    rows = np.array([[1.0, 0, 0], [2.0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 0]])
    points = halfspace_vertices(rows, np.array([0.5, 1.0, 0.0, 1.0, 0.9]))
    assert same_points(points, halfspace_vertices(rows[:1], np.array([0.5])))


def test_equalities_give_lower_dimensions():
    """Two rows fix an entry; four leave a single point."""
    rows = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    bound = np.array([0.3, -0.3, 0.1, -0.1])
    line = halfspace_vertices(rows[:2], bound[:2])
    assert same_points(line, np.array([[0.3, 0.7, 0.0], [0.3, 0.0, 0.7]]))
    assert same_points(halfspace_vertices(rows, bound), np.array([[0.3, 0.1, 0.6]]))


def test_polytope_from_halfspaces_contains_its_members():
    """An order constraint p0 <= p1 <= p2 as a set."""
    uset = Polytope.from_halfspaces([[1, -1, 0], [0, 1, -1]], [0, 0])
    assert same_points(uset.vertices, np.array([[0, 0, 1], [0, 0.5, 0.5], [1 / 3] * 3]))
    assert contains(uset, [0.1, 0.3, 0.6])
    assert not contains(uset, [0.3, 0.1, 0.6])


@pytest.mark.parametrize("seed", range(6))
def test_vertices_are_those_of_fractions_rounded_once(seed):
    """Numbers at all scales, neighbours in the last bit: no vertex is lost, moved or merged."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        size, rows = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        tiny = rng.choice([0.0, 0.0, 5e-324, 1e-200, 1e-17, 2.0**-53, 1e-13], (rows, size))
        matrix = rng.choice([-1.0, 0.0, 0.5, 1.0, 1.0 + 2.0**-52], (rows, size)) + tiny
        bound = rng.choice([0.0, 0.3, 0.5, 1.0], rows) + rng.choice([0.0, 1e-16, 3e-15], rows)
        exact = exact_polytope_vertices(matrix, bound)
        if exact:
            rounded = {tuple(max(float(x), 5e-324) if x else 0.0 for x in p) for p in exact}
            assert {tuple(p) for p in halfspace_vertices(matrix, bound).tolist()} == rounded


def test_decimals_that_were_meant_to_touch():
    """0.1 + 0.2 + 0.7 is less than one as floats; such rows are loosened, others are empty."""
    points = halfspace_vertices(np.eye(3), np.array([0.1, 0.2, 0.7]))
    assert same_points(points, np.array([[0.1, 0.2, 0.7]]), 1e-11)
    with pytest.raises(ModelError, match="empty"):
        halfspace_vertices(np.eye(3), np.array([0.1, 0.2, 0.7 - 1e-9]))


def test_one_outcome():
    """The only distribution over one outcome is kept or lost."""
    assert halfspace_vertices(np.array([[1.0]]), np.array([1.0])).tolist() == [[1.0]]
    with pytest.raises(ModelError, match=r"it is empty"):
        halfspace_vertices(np.array([[1.0]]), np.array([0.5]))


def test_limits_are_stated(monkeypatch):
    """Too many outcomes, rows or vertices are refused with the limit and what to use instead."""
    assert halfspaces.VERTEX_LIMIT == 4000
    monkeypatch.setattr(halfspaces, "VERTEX_LIMIT", 40)
    with pytest.raises(UnsupportedError, match=r"at most 64 outcomes .* got 65 and 1"):
        halfspace_vertices(np.ones((1, 65)), np.ones(1))
    size = 8
    with pytest.raises(UnsupportedError, match=r"more than 40 vertices"):
        halfspace_vertices(np.eye(size), np.full(size, 2 / size))
    assert len(vertices(Interval(np.zeros(size), np.full(size, 2 / size)))) == 70
