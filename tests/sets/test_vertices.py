import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog

from examples import quarter
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton, bounds
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.vertices import vertices_bulk
from set_twins import contains, minimise, packed_vertices as vertices

from .strategies import (
    GRAIN,
    as_grains,
    balls,
    boxes,
    exact_box_vertices,
    exact_polytope_vertices,
    finite_sets,
    grain_boxes,
    grains,
)

LP_TOLERANCE = 1e-6  # feasibility of HiGHS is 1e-7 per row


def in_hull(points, p):
    """Say by an LP whether p is a convex combination of points."""
    result = linprog(
        np.zeros(len(points)),
        A_eq=np.vstack([points.T, np.ones(len(points))]),
        b_eq=np.append(p, 1.0),
    )
    return result.status == 0


@given(finite_sets())
def test_vertices_are_members(uset):
    """Every vertex is a distribution in the set."""
    for p in vertices(uset):
        assert abs(p.sum() - 1.0) <= 1e-14
        assert contains(uset, p, 1e-14)


@given(st.one_of(boxes(), balls(), balls(LinfBall)))
def test_vertices_are_extreme(uset):
    """No vertex of a box or ball is a convex combination of the others."""
    points = vertices(uset)
    if not 1 < len(points) <= 12:
        return
    for v, p in enumerate(points):
        others = np.delete(points, v, axis=0)
        if np.abs(others - p).max(axis=1).min() > 1e-3:  # farther than the LP's own tolerance
            assert not in_hull(others, p)


@given(boxes(), st.integers(0, 2**32))
def test_box_vertices_are_complete(uset, seed):
    """The least expectation over the vertices is that of the LP."""
    values = np.random.default_rng(seed).normal(size=uset.size)
    ends = np.stack([uset.lower, uset.upper], axis=1)
    lp = linprog(values, A_eq=np.ones((1, uset.size)), b_eq=[1.0], bounds=ends)
    assert (vertices(uset) @ values).min() == pytest.approx(lp.fun, abs=LP_TOLERANCE)
    assert (vertices(uset) @ values).min() == pytest.approx(minimise(uset, values)[0], abs=1e-13)


@given(balls(), st.integers(0, 2**32))
def test_l1_vertices_are_complete(uset, seed):
    """The least expectation over the vertices of an L1 ball is that of the LP with up and down."""
    values, size = np.random.default_rng(seed).normal(size=uset.size), uset.size
    lp = linprog(
        np.concatenate([values, -values]),
        A_ub=np.vstack([np.hstack([-np.eye(size), np.eye(size)]), np.ones(2 * size)]),
        b_ub=np.append(uset.nominal, uset.radius),
        A_eq=np.concatenate([np.ones(size), -np.ones(size)])[None, :],
        b_eq=[0.0],
    )
    expected = lp.fun + values @ uset.nominal
    assert (vertices(uset) @ values).min() == pytest.approx(expected, abs=LP_TOLERANCE)
    assert (vertices(uset) @ values).min() == pytest.approx(minimise(uset, values)[0], abs=1e-13)


@given(grain_boxes())
def test_box_vertices_equal_the_exact_ones(box):
    """Ties and degenerate bounds: the same set as by exact arithmetic, each vertex once."""
    uset = Interval(box[0] / GRAIN, box[1] / GRAIN)
    assert as_grains(vertices(uset)) == exact_box_vertices(*box)


@quarter
@given(grains(least=2, most=4), st.integers(0, 45))
def test_l1_vertices_equal_the_exact_ones(p, radius):
    """An L1 ball as the 2^X half-spaces of its norm, in fractions, has the same vertices."""
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(p))).reshape(len(p), -1).T
    limits = [2 * (radius + int(s @ p)) for s in signs]  # grid of 1 / (2 GRAIN): radius / 2 fits
    exact = exact_polytope_vertices([[2 * GRAIN * int(x) for x in s] for s in signs], limits)
    expected = {tuple(int(2 * GRAIN * x) for x in v) for v in exact}
    assert as_grains(vertices(L1Ball(p / GRAIN, radius / GRAIN)), 2 * GRAIN) == expected


@pytest.mark.parametrize("k", [2, 4, 8])
def test_uniform_ball_has_central_binomial_vertices(k):
    """The paper's appendix on vertex cardinality: radius 1/k around uniform, k even."""
    uset = LinfBall(np.full(k, 1.0 / k), 1.0 / k)
    assert len(vertices(uset)) == math.comb(k, k // 2)


@pytest.mark.parametrize("k", [6, 10, 12])
def test_near_ties_are_merged(k):
    """Sixths and tenths sum to one up to rounding only; what it splits is one vertex again."""
    uset = LinfBall(np.full(k, 1.0 / k), 0.5 / k)
    assert len(vertices(uset)) == math.comb(k, k // 2)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_uniform_l1_ball_of_radius_one(k):
    """One receiver, k/2 of the others emptied: at least the paper's central binomial."""
    uset = L1Ball(np.full(k, 1.0 / k), 1.0)
    count = k * math.comb(k - 1, k // 2)
    assert len(vertices(uset)) == count >= math.comb(k, k // 2)


@pytest.mark.parametrize(
    ("uset", "expected"),
    [
        (Singleton([0.3, 0.7]), [[0.3, 0.7]]),
        (Interval([1.0], [1.0]), [[1.0]]),
        (Interval([0.0], [1.0]), [[1.0]]),
        (Interval([0.1, 0.2, 0.7], [0.1, 0.2, 0.7]), [[0.1, 0.2, 0.7]]),
        (Interval([0.125, 0.25, 0.625], [0.9, 0.9, 0.9]), [[0.125, 0.25, 0.625]]),
        (Interval([0.0, 0.0], [0.3, 0.7]), [[0.3, 0.7]]),
        (Interval([1 - 2.0**-45, 0.0], [1.0, 1e-13]), [[1 - 2.0**-45, 2.0**-45], [1.0, 0.0]]),
        (Interval([0.0, 1e-300], [1.0, 1.0]), [[0.0, 1.0], [1.0, 1e-300]]),
        (L1Ball([1.0, 0.0], 1e-300), [[1.0, 0.0], [1.0, 5e-301]]),
        (Interval([0, 0, 0], [1, 1, 1]), [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        (Interval([0, 0, 0], [0.5, 0.5, 0]), [[0.5, 0.5, 0]]),
        (L1Ball([1.0], 1.0), [[1.0]]),
        (L1Ball([0.25, 0.75], 0.0), [[0.25, 0.75]]),
        (L1Ball([1.0, 0.0], 0.5), [[1.0, 0.0], [0.75, 0.25]]),
        (L1Ball([0.5, 0.5, 0.0], 2.0), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (L1Ball([0.5, 0.5, 0.0], 1.0), [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]),
        (Polytope([[0.5, 0.5], [0, 1], [1, 0], [0, 1]]), [[0, 1], [0.5, 0.5], [1, 0]]),
        (
            Polytope([[0.5, 0.5], [0.5 + 1e-13, 0.5 - 1e-13]]),
            [[0.5, 0.5], [0.5 + 1e-13, 0.5 - 1e-13]],
        ),
    ],
    ids=repr,
)
def test_known_vertices(uset, expected):
    """Small sets whose vertices are known by hand."""
    points = vertices(uset)
    assert len(points) == len(expected)
    assert np.array_equal(points, np.array(expected, dtype=float))


def test_whole_simplex_of_many_outcomes():
    """No scan of 2^100 candidates: the simplex has one vertex per outcome."""
    uset = Interval(np.zeros(100), np.ones(100))
    assert np.array_equal(vertices(uset)[::-1], np.eye(100))


def test_whole_simplex_in_the_finest_short_units():
    """A radius of 2 beside numbers of 62 bits still fits into integers."""
    found = vertices(L1Ball([0.9943699, 0.0056301], 2.0))
    assert sorted(found.tolist()) == [[0.0, 1.0], [1.0, 0.0]]


def test_eleven_outcomes():
    """A box with 11 * binomial(10, 5) vertices, all of which have a fractional entry."""
    assert len(vertices(LinfBall(np.full(11, 1 / 11), 0.1))) == 2772


@given(st.lists(finite_sets(), max_size=6), st.randoms(use_true_random=False))
def test_bulk_equals_one_by_one(sets, random):
    """Bulk vertices are those of the single sets, in the order asked for."""
    marginals = Marginals.from_sets(sets)
    which = np.array(random.sample(range(len(sets)), len(sets)), dtype=np.int64)
    pointers, flat = vertices_bulk(marginals, which)
    assert pointers[0] == 0
    assert pointers[-1] == len(flat)
    for k, j in enumerate(which):
        part = flat[pointers[k] : pointers[k + 1]].reshape(-1, sets[j].size)
        assert part == pytest.approx(vertices(sets[j]), abs=1e-15)


def test_bulk_splits_large_batches():
    """More boxes than fit one piece come out in order."""
    rng = np.random.default_rng(1)
    nominal = rng.dirichlet(np.ones(8), size=2000)
    lower, upper = np.maximum(nominal - 0.1, 0.0), np.minimum(nominal + 0.1, 1.0)
    pointer = np.arange(0, 16001, 8)
    boxes_ = Marginals.from_boxes(pointer, lower.ravel(), upper.ravel(), nominal.ravel())
    ptr, flat = vertices_bulk(boxes_, np.arange(2000))
    for j in (0, 999, 1999):
        assert np.array_equal(flat[ptr[j] : ptr[j + 1]].reshape(-1, 8), vertices(boxes_[j]))


def test_tightening_keeps_the_vertices():
    """Bounds that nothing attains change no vertex."""
    loose = Interval([0.0, 0.1, 0.0], [0.2, 1.0, 0.3])
    tight = Interval(*bounds(loose))
    assert vertices(loose) == pytest.approx(vertices(tight), abs=1e-15)


def test_round_balls_have_no_vertices():
    """An Lp ball says why it has no vertices and what to use instead."""
    with pytest.raises(UnsupportedError, match=r"exponent 2 has no finite vertices; use"):
        vertices(LpBall([0.5, 0.5], 0.1, 2.0))


def test_bulk_names_what_does_not_fit():
    """The bulk function names the marginal that has no vertices."""
    marginals = Marginals.from_sets([Singleton([1.0]), LpBall([0.5, 0.5], 0.1, 2.0)])
    with pytest.raises(UnsupportedError, match=r"Marginal 1.*no finite vertices"):
        vertices_bulk(marginals, np.arange(2))


def test_too_many_vertices_are_refused():
    """A set beyond the limit is refused, before they are all built."""
    with pytest.raises(UnsupportedError, match=r"32 outcomes .* than the limit of 262144"):
        vertices(LinfBall(np.full(32, 1 / 32), 1 / 32))
    packed = Marginals.from_sets([LinfBall(np.full(4, 0.25), 0.25), L1Ball(np.full(4, 0.25), 1.0)])
    for j, count in enumerate((6, 12)):
        assert len(vertices_bulk(packed, np.array([j]), count)[1]) == 4 * count
        with pytest.raises(UnsupportedError, match=f"4 outcomes .* than the limit of {count - 1};"):
            vertices_bulk(packed, np.array([j]), count - 1)


def test_foreign_objects_are_refused():
    """What is no set is shown."""
    with pytest.raises(ModelError, match="must be an uncertainty set, got 'box'"):
        vertices("box")


def test_sums_beyond_64_bits_were_taken_for_a_single_member():
    """Units that numbers need exactly, and whose sums need more bits: all vertices are there."""
    lower = [0.12754847, 0.14126629, 0.00371553, 0.0, 0.10323886, 0.15576064, 0.12635747, 0.0916]
    upper = [0.12754847, 0.24126629, 0.20371553, 0.2504257, 0.50323886, 0.30576064, 0.1763, 0.3416]
    box = Interval(lower, upper)
    found = vertices(box)
    assert len(found) > 1
    assert np.all(np.abs(found.sum(axis=1) - 1.0) <= 8 * 2.0**-53)
    for values in np.random.default_rng(1).standard_normal((20, 8)):
        assert np.min(found @ values) == pytest.approx(minimise(box, values)[0], abs=1e-14)
