"""Every inner solver keeps the contract of `rfmdp.inner.protocol`."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

from examples import quarter
from rfmdp import threads
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.solvers import Exact, IntervalArithmetic, RadiusSum, Sequential, VertexEnumeration
from rfmdp.objective import MIN
from rfmdp.sets.families import L1Ball
from row_problems import (
    RowProblem,
    any_sets,
    boxes,
    check_inner_solver,
    distributions,
    finite_sets,
    joined_model,
    row_problems,
    smooth_balls,
)

from .rows import random_problems

FINITE = [
    Exact(),
    Exact(node_limit=1),
    VertexEnumeration(),
    IntervalArithmetic(),
    Sequential(),
]
SMOOTH = [Exact(), IntervalArithmetic(), Sequential()]


class KnownProblem(RowProblem):
    """A problem whose exact optimum is found once, however many solvers are compared with it."""

    bracket = lru_cache(maxsize=16)(RowProblem.bracket)


def check_all(solvers, problems):
    """Check several solvers on the same problems, which take longer to draw than to solve."""
    known = [KnownProblem(p.sets, p.successors, p.values) for p in problems]
    for inner in solvers:
        note(inner)
        check_inner_solver(inner, known)


@quarter
@given(st.lists(row_problems(finite_sets, factors=(0, 5), joint=24), min_size=1, max_size=4))
def test_solvers_keep_the_contract(problems):
    """On rows of all families with vertices, mixed in one model."""
    check_all(FINITE, problems)


@quarter
@given(st.lists(row_problems(any_sets, factors=(1, 3), joint=12), min_size=1, max_size=2))
def test_solvers_keep_the_contract_with_smooth_sets(problems):
    """On rows that may have Lp balls anywhere."""
    check_all(SMOOTH, problems)


@quarter
@given(st.lists(row_problems(boxes, factors=(1, 3), joint=16), min_size=1, max_size=3))
def test_mccormick_keeps_the_contract(problems):
    """Linear programmes are right to their tolerance; the bounds hold exactly all the same."""
    check_inner_solver(McCormick(), problems, tolerance=1e-5)


@quarter
@given(st.lists(row_problems(smooth_balls, factors=(1, 1), largest=4), min_size=1, max_size=2))
def test_radius_sum_keeps_the_contract_with_one_ball(problems):
    """With one factor the ball around the product is the ball itself."""
    check_inner_solver(RadiusSum(), problems)


@quarter
@given(
    st.lists(
        row_problems(
            lambda size: st.builds(L1Ball, distributions(size), st.floats(0.0, 1.0)), largest=5
        ),
        min_size=1,
        max_size=3,
    )
)
def test_radius_sum_keeps_the_contract_with_l1_balls(problems):
    """Several L1 balls."""
    check_inner_solver(RadiusSum(), problems)


@pytest.fixture(scope="module")
def sixty_rows():
    """Return a model whose first 60 rows are boxes of all shapes, and the values of its states."""
    return joined_model(random_problems(60, np.random.default_rng(5)))


@pytest.mark.parametrize("inner", FINITE, ids=repr)
def test_many_threads_agree_with_one(inner, sixty_rows, monkeypatch):
    """Parts of the rows on several threads give the same bounds and answers, bit by bit."""
    model, values = sixty_rows
    rows = np.arange(60)
    results = []
    for part in (1, 10**9):
        monkeypatch.setattr(threads, "PART", part)
        solver = inner.prepare(model, MIN)
        below, above = np.zeros(model.rows), np.zeros(model.rows)
        solver.backup(values, rows, below, above)
        results.append((below, above, solver.respond(values, rows)))
    for several, one in zip(*results, strict=True):
        assert np.array_equal(several, one)
