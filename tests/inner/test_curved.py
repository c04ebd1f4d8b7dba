"""Rows of several smooth sets: outer polytopes that enclose the ball, bounds that close."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import quarter
from rfmdp.inner.alternating import Alternating
from rfmdp.inner.curved import OuterPolytope
from rfmdp.inner.exact import Exact
from rfmdp.inner.sequential import Sequential
from rfmdp.kernels.decorator import recorded
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, LpBall
from rfmdp.sets.questions import contains, distance_to_hull, minimise
from row_problems import RowProblem, row_problems, smooth_balls

from .test_exact import solve


def ball_problems(count, shape, exponent, rng, radius=0.15):
    """Return rows of balls around random distributions, with random values."""
    total = int(np.prod(shape))
    return [
        RowProblem(
            tuple(LpBall(rng.dirichlet(np.full(d, 2.0)), radius, exponent) for d in shape),
            np.arange(total),
            rng.random(total),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("nature", [MIN, MAX])
@pytest.mark.parametrize(("shape", "exponent"), [((3, 3), 2.0), ((4, 3), 1.5), ((3, 2, 3), 3.0)])
def test_gap_closes(shape, exponent, nature):
    """Both sides meet to 1e-9 of the span, between the relaxation and the restriction."""
    problems = ball_problems(5, shape, exponent, np.random.default_rng(0))
    below, above, solver = solve(Exact(), problems, nature)
    assert solver.stats.open_rows == 0
    assert np.all(above - below <= 1.1e-9)
    sides = solve(Sequential(), problems, nature)[:2], solve(Alternating(), problems, nature)[:2]
    relaxed, restricted = sides if nature is MIN else sides[::-1]
    assert np.all(relaxed[0] <= above)
    assert np.all(below <= restricted[1])


@pytest.mark.parametrize("inner", [Exact(), Sequential(), Alternating()], ids=repr)
def test_kernels_were_compiled_once_more_for_smooth_sets(inner):
    """Sets of all kinds have arrays of the same types, so that one compilation serves them."""
    found = []
    for uset in (Interval([0.4, 0.4], [0.6, 0.6]), LpBall([0.5, 0.5], 0.1, 2.0)):
        problem = RowProblem((uset,) * 3, np.arange(8), np.arange(8.0))
        with recorded() as calls:
            solve(inner, [problem])
        found.append(
            {kernel.__name__: types for kernel, types in calls if "rows" in kernel.__name__}
        )
    boxes, smooth = found
    assert boxes == smooth


def test_two_outcomes_are_an_interval():
    """A ball over two outcomes is a segment: its two ends are tried, nothing is cut."""
    sets = (LpBall([0.5, 0.5], 0.1, 2.0), LpBall([0.3, 0.7], 0.1, 2.0))
    problem = RowProblem(sets, np.arange(4), np.array([0.0, 1.0, 1.0, 0.0]))
    below, above, solver = solve(Exact(), [problem])
    reach = 0.1 / np.sqrt(2.0)
    p, q = 0.5 + reach, 0.3 - reach
    expected = min(a * (1 - b) + b * (1 - a) for a in (p, 1 - p) for b in (q, 0.3 + reach))
    assert below[0] == pytest.approx(expected, abs=1e-10)
    assert above[0] == pytest.approx(expected, abs=1e-10)
    assert solver.stats.open_rows == 0


def test_one_smooth_set_among_boxes_needs_no_cut():
    """A single ball comes last, where its own minimiser is exact."""
    rng = np.random.default_rng(1)
    ball = ball_problems(1, (3,), 2.0, rng)[0].sets[0]
    box = LpBall([0.2, 0.3, 0.5], 0.1, np.inf)
    for sets in ((ball, box), (box, ball), (box, ball, box)):
        total = 3 ** len(sets)
        problem = RowProblem(sets, np.arange(total), rng.random(total))
        below, above, solver = solve(Exact(), [problem])
        assert above[0] - below[0] <= 2e-12
        low, high = problem.bracket(MIN)
        assert below[0] <= high
        assert above[0] >= low
        assert solver.stats.open_rows == 0


def test_cut_limit_leaves_an_honest_gap():
    """After one cut the sides are apart, counted as open, and enclose the value."""
    problems = ball_problems(6, (4, 4), 2.0, np.random.default_rng(2))
    below, above, solver = solve(Exact(cut_limit=1), problems)
    low, high, _ = solve(Exact(), problems)
    assert solver.stats.open_rows > 0
    assert np.all(below <= high)
    assert np.all(above >= low)


@quarter
@given(st.integers(2, 4).flatmap(smooth_balls), st.integers(0, 2**32 - 1))
def test_outer_polytope_keeps_the_set_inside(uset, seed):
    """After many cuts, members of the ball are within the hull of the vertices."""
    rng = np.random.default_rng(seed)
    outer = OuterPolytope(uset)
    for _ in range(8):
        values = rng.normal(size=uset.size)
        vertex = outer.vertices[np.argmin(outer.vertices @ values)]
        if not contains(uset, vertex, 1e-12):
            assert outer.cut(vertex)
        value, p = minimise(uset, values)
        assert (outer.vertices @ values).min() <= value + 1e-13
        assert distance_to_hull(outer.vertices, p) <= 1e-10
        assert contains(uset, outer.pull(vertex), 1e-12)


@quarter
@given(row_problems(smooth_balls, factors=(2, 3), joint=18))
def test_witness_of_a_cut_row_is_a_product_of_members(problem):
    """The marginals are members, and their product attains the upper side."""
    below, above, solver = solve(Exact(), [problem])
    values = np.concatenate([[0.0], problem.values])
    points = solver.marginals(values, np.zeros(1, np.int64))
    joint, at = np.ones(1), 0
    for uset in problem.sets:
        p = points[at : at + uset.size]
        at += uset.size
        assert contains(uset, p, 1e-10)
        joint = np.multiply.outer(joint, p).ravel()
    first = problem.tensor[0]
    value = first + joint @ (problem.tensor - first)
    assert below[0] - 1e-9 * problem.span <= value <= above[0] + 1e-9 * problem.span
