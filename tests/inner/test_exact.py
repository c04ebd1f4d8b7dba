"""Exact: against vertices and fractions, its limits, its witness, its rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half, quarter
from recording import recorded
from rfmdp.inner import solvers as exact_module
from rfmdp.inner.solvers import Exact, IntervalArithmetic, VertexEnumeration
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, L1Ball, Singleton
from row_problems import RowProblem, boxes, finite_sets, joined_model, row_problems

from .rows import random_box, random_problems


def solve(inner, problems, nature=MIN):
    """Return (below, above, solver) of the problems' rows."""
    model, values = joined_model(problems)
    solver = inner.prepare(model, nature)
    below, above = np.full(model.rows, np.nan), np.full(model.rows, np.nan)
    solver.backup(values, np.arange(len(problems)), below, above)
    return below[: len(problems)], above[: len(problems)], solver


@pytest.mark.parametrize(("factors", "needed"), [(2, {"pair_rows"}), (3, {"exact_rows"})])
def test_only_kernels_that_are_needed_run(factors, needed):
    """Rows of two boxes have a kernel of their own; without rows none runs, nor is compiled."""
    box = Interval([0.2, 0.4], [0.6, 0.8])
    outcomes = np.arange(2**factors)
    problem = RowProblem((box,) * factors, outcomes, outcomes.astype(np.float64))
    model, values = joined_model([problem])
    solver = Exact().prepare(model, MIN)
    for rows, kernels in (([0], needed), ([], set())):
        with recorded() as calls:
            solver.backup(values, np.array(rows, dtype=np.int64), *np.empty((2, model.rows)))
        assert {kernel.__name__ for kernel, _ in calls} == kernels


@quarter
@given(st.lists(row_problems(finite_sets), min_size=1, max_size=4))
def test_exact_equals_all_vertices(problems):
    """Both exact methods enclose one number, to 1e-12 of the span and rounding."""
    spans = np.array([p.span for p in problems])
    sizes = np.array([np.abs(p.tensor).max() for p in problems])
    allowed = 2e-12 * spans + 1e-15 * sizes
    for nature in (MIN, MAX):
        low, high, _ = solve(Exact(), problems, nature)
        plain_low, plain_high, _ = solve(VertexEnumeration(), problems, nature)
        assert np.all(np.abs(low - plain_low) <= allowed)
        assert np.all(np.abs(high - plain_high) <= allowed)


@half
@given(row_problems(boxes, factors=(2, 3), joint=24), st.integers(-12, 12), st.integers(-12, 12))
def test_bounds_hold_for_badly_scaled_values(problem, scale, offset):
    """Rounding is inside the bounds, whatever the size of the values and their distance from 0."""
    values = problem.values * 10.0**scale + 10.0**offset
    scaled = RowProblem(problem.sets, problem.successors, values)
    below, above, _ = solve(Exact(), [scaled])
    exact, _ = scaled.bracket(MIN)
    assert Fraction(below[0]) <= exact <= Fraction(above[0])


def test_nearly_degenerate_vertices_stay_enclosed():
    """Widths that use up the mass but for 1e-15 to 1e-13 are no reason to lose a vertex."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        problems = []
        for step in 10.0 ** rng.uniform(-15.5, -13.0, 6):
            lower = np.array([0.125, 0.25, 0.125])
            wide = np.array([0.25, 0.5 + step, 0.25 + step * rng.integers(-1, 2)])
            box = Interval(lower, np.minimum(lower + wide, 1.0))
            problems.append(RowProblem((box, random_box(rng, 3)), np.arange(9), rng.random(9)))
        exact = [p.bracket(MIN)[0] for p in problems]
        for inner in (Exact(), VertexEnumeration()):
            below, above, _ = solve(inner, problems)
            for value, low, high in zip(exact, below, above, strict=True):
                assert Fraction(low) <= value <= Fraction(high)


def test_node_limit_leaves_an_honest_gap():
    """With one node per row the bounds are apart, still enclose the value, and are counted."""
    problems = random_problems(60, np.random.default_rng(0))
    below, above, solver = solve(Exact(node_limit=1), problems)
    assert solver.stats.open_rows > 0
    gaps = above - below
    assert np.count_nonzero(gaps > 1e-9) == solver.stats.open_rows
    for p, low, high in zip(problems, below, above, strict=True):
        assert Fraction(low) <= p.bracket(MIN)[0] <= Fraction(high)


def test_tolerance_stops_early():
    """A coarse tolerance needs fewer nodes and keeps its promise."""
    problems = random_problems(60, np.random.default_rng(1))
    below, above, coarse = solve(Exact(tolerance=0.02), problems)
    _, _, fine = solve(Exact(), problems)
    assert coarse.stats.nodes < fine.stats.nodes
    assert np.all(above - below <= 0.02 * np.array([p.span for p in problems]) + 1e-12)


def test_separable_values_need_no_branching():
    """A sum of functions of the factors is solved by the first contraction."""
    rng = np.random.default_rng(2)
    shape = (3, 4, 2)
    sets = tuple(random_box(rng, d) for d in shape)
    tensor = np.add.outer(np.add.outer(rng.random(3), rng.random(4)), rng.random(2)).ravel()
    _, _, solver = solve(Exact(), [RowProblem(sets, np.arange(24), tensor)])
    assert solver.stats.branched == 0


def test_worked_example_of_the_paper():
    """Two coins, p in [0.2, 0.6] and q in [0.1, 0.3]: intervals give the spurious vertex H."""
    sets = (Interval([0.2, 0.4], [0.6, 0.8]), Interval([0.1, 0.7], [0.3, 0.9]))
    problem = RowProblem(sets, np.arange(4), np.array([0.0, 3.0, 1.0, 2.0]))
    below, _, loose = solve(IntervalArithmetic(), [problem])
    _, values = joined_model([problem])
    spurious = loose.respond(values, np.zeros(1, np.int64))
    assert spurious == pytest.approx([0.18, 0.14, 0.24, 0.44], abs=1e-15)
    assert below[0] == pytest.approx(1.54, abs=1e-13)
    low, high, solver = solve(Exact(), [problem])
    assert (low[0], high[0]) == pytest.approx((1.78, 1.78), abs=1e-12)
    witness = solver.marginals(values, np.zeros(1, np.int64))
    assert witness == pytest.approx([0.2, 0.8, 0.3, 0.7], abs=1e-15)


def test_product_of_two_coins():
    """The 2x2 product set is not convex: its corners are those of the two intervals."""
    sets = (Interval([0.2, 0.4], [0.6, 0.8]), Interval([0.1, 0.7], [0.3, 0.9]))
    for k, best in enumerate([0.02, 0.14, 0.04, 0.28]):
        value = np.zeros(4)
        value[k] = 1.0
        low, high, _ = solve(Exact(), [RowProblem(sets, np.arange(4), value)])
        assert (low[0], high[0]) == pytest.approx((best, best), abs=1e-12)


def test_rows_without_uncertainty_and_without_marginals():
    """A certain move and a known distribution have one value."""
    known = RowProblem((Singleton([0.25, 0.75]),), np.arange(2), np.array([1.0, 5.0]))
    certain = RowProblem((), np.zeros(1, np.int64), np.array([0.1]))
    below, above, solver = solve(Exact(), [known, certain])
    assert below == pytest.approx([4.0, 0.1])
    assert above == pytest.approx([4.0, 0.1])
    assert below[1] == above[1] == 0.1
    assert solver.stats.branched == 0


@pytest.mark.parametrize(
    "family", [random_box, lambda rng, d: L1Ball(rng.dirichlet(np.ones(d)), 0.3)]
)
def test_unlisted_vertices_leave_an_honest_gap(family, monkeypatch):
    """Rows of sets with too many vertices to list enclose the value, and are counted as open."""
    rng = np.random.default_rng(4)
    problems = [
        RowProblem((family(rng, 4), family(rng, 4)), np.arange(16), rng.random(16))
        for _ in range(8)
    ]
    low, high, _ = solve(Exact(), problems)
    monkeypatch.setattr(exact_module, "CORNER_LIMIT", 0)
    below, above, solver = solve(Exact(), problems)
    assert solver.stats.open_rows == np.count_nonzero(above - below > 2e-12)
    assert np.all(below <= high)
    assert np.all(above >= low)
