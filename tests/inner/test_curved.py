"""Rows of smooth sets: exact with one of them, enclosed with several."""

import numpy as np
import pytest
from hypothesis import given

from examples import quarter
from recording import recorded
from rfmdp.inner.solvers import Exact, Sequential
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, LpBall
from row_problems import RowProblem, row_problems, smooth_balls
from set_twins import contains

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
def test_open_rows_enclose_the_value(shape, exponent, nature):
    """Rows keep the gap between the relaxation and a witness, and say that it is open."""
    problems = ball_problems(5, shape, exponent, np.random.default_rng(0))
    below, above, solver = solve(Exact(), problems, nature)
    assert solver.stats.open_rows == np.count_nonzero(above - below > 2e-12)
    relaxed = solve(Sequential(), problems, nature)
    assert np.all(relaxed[0] <= above) if nature is MIN else np.all(relaxed[1] >= below)
    for problem, low, high in zip(problems, below, above, strict=True):
        least, most = problem.bracket(nature)
        assert low <= most
        assert high >= least


@pytest.mark.parametrize("inner", [Exact(), Sequential()], ids=repr)
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


def test_one_smooth_set_among_boxes_is_exact():
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


@quarter
@given(row_problems(smooth_balls, factors=(2, 3), joint=18))
def test_witness_is_a_product_of_members(problem):
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
