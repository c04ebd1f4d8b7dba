"""Row kernels: compiled, pure Python and exact fractions agree; the pair kernel and its twin."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from rfmdp import reference
from rfmdp.inner.bound import Bound, branching_weight, corners_of
from rfmdp.inner.layout import interval_scratch, pack_rows, scratch
from rfmdp.kernels import exact, pair, plain
from rfmdp.kernels import interval as kernels_interval
from rfmdp.kernels.rows import load, take_axes
from rfmdp.objective import MIN
from rfmdp.rounding import backup_margin
from rfmdp.testing import boxes, finite_sets, row_problems

NONE = np.empty(0, np.int64)


def bind(problem, weights=True, memory=scratch):
    """Return a bound model of one row with all vertices listed, its scratch memory and values."""
    model = problem.model()
    layout = pack_rows(model, branching_weight(model)) if weights else pack_rows(model)
    bound = Bound(model, MIN, layout, corners_of(model, np.arange(len(model.marginals))), memory)
    return bound, bound.work(0), np.concatenate([[0.0], problem.values])


def exact_corners(problem):
    """Return exact vertices of every set, and the tensor in fractions."""
    tensor = [Fraction(x) for x in problem.tensor.tolist()]
    return [reference.vertices(s) for s in problem.sets], tensor


@pytest.mark.parametrize("function", [exact.exact_rows, exact.exact_rows.py_func])
@settings(max_examples=50)
@given(row_problems(finite_sets, factors=(1, 4), joint=32))
def test_exact_rows_encloses_the_minimum(function, problem):
    """Both sides enclose the exact minimum and are as close as promised."""
    bound, work, values = bind(problem)
    below, above, nodes = np.zeros((2, bound.model.rows)), None, np.zeros(1, np.int64)
    below, above = below
    function(
        bound.sets, bound.rows, work, np.zeros(1, np.int64), values, 1.0, 1e-12, 10**9, NONE,
        np.empty(0), below, above, nodes,
    )  # fmt: skip
    value, _ = reference.product_minimum(*exact_corners(problem))
    assert Fraction(below[0]) <= value <= Fraction(above[0])
    terms = sum(s.size for s in problem.sets)
    margin = backup_margin(terms, problem.span, np.abs(problem.tensor).max() + problem.span)
    assert above[0] - below[0] <= 1e-12 * problem.span + 4.0 * margin
    assert nodes[0] >= 0


def solve(bound, work, values, use_pair):
    """Solve row 0 by the pair kernel or the general one: (L, U, nodes, witness)."""
    levels, slices, folds, point, best, p, order, cursor, axes = work
    head, data, corners = bound.sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = bound.rows
    size, _, low, high = load(
        successor_ptr, successors, kind, gather_ptr, gather, 0, values, 1.0, levels
    )
    n, width = take_axes(marginal_ptr, marginals, 0, head, axes)
    gap = 1e-12 * (high - low)
    if use_pair:
        result = pair.solve_pair(
            head, data, corners, axes, levels, slices, folds, point, best, order, gap, 10**9
        )
    else:
        result = exact.solve_tensor(
            head, data, corners, axes, n, levels, size, slices, folds, point, best, width, order,
            p, cursor, gap, 10**9,
        )  # fmt: skip
    return *result, best[:width].copy(), gap


@settings(max_examples=80)
@given(row_problems(boxes, factors=(2, 2), joint=36))
def test_pair_equals_the_general_kernel(problem):
    """Two boxes by their own kernel and by the general one: the same value, both attained."""
    bound, work, values = bind(problem)
    low, high, _, witness, gap = solve(bound, work, values, use_pair=True)
    other_low, other_high, _, other, _ = solve(bound, work, values, use_pair=False)
    slack = gap + 1e-13 * problem.span
    assert abs(high - other_high) <= slack
    assert low <= other_high + slack
    assert other_low <= high + slack
    axes = bound.rows[3]
    first = bound.model.marginals.sizes[axes[0]]
    tensor = values[bound.model.successors[: len(problem.successors)]].reshape(
        [s.size for s in problem.sets]
    )
    if axes[0] == 1:
        tensor = tensor.T
    for value, p in ((high, witness), (other_high, other)):
        attained = p[:first] @ (tensor - tensor.flat[0]) @ p[first:]
        assert attained == pytest.approx(value, abs=slack + 1e-13 * problem.span)


@pytest.mark.parametrize("function", [plain.vertex_rows, plain.vertex_rows.py_func])
@settings(max_examples=40)
@given(row_problems(finite_sets, factors=(1, 4), joint=24, largest=5))
def test_vertex_rows_encloses_the_minimum(function, problem):
    """All products of vertices give the exact minimum to rounding."""
    bound, work, values = bind(problem)
    below, above = np.zeros((2, bound.model.rows))
    function(
        bound.sets, bound.rows, work, np.zeros(1, np.int64), values, 1.0, NONE, np.empty(0),
        below, above,
    )  # fmt: skip
    value, _ = reference.product_minimum(*exact_corners(problem))
    assert Fraction(below[0]) <= value <= Fraction(above[0])


@pytest.mark.parametrize("function", [plain.sequential_rows, plain.sequential_rows.py_func])
@settings(max_examples=40)
@given(row_problems(finite_sets, factors=(1, 4), joint=24))
def test_sequential_rows_equals_the_contraction(function, problem):
    """Contraction in the stored order, from the last factor to the first."""
    bound, work, values = bind(problem, weights=False)
    below, above = np.zeros((2, bound.model.rows))
    function(bound.sets, bound.rows, work, np.zeros(1, np.int64), values, 1.0, below, above)
    value = reference.sequential(*exact_corners(problem))
    terms = sum(s.size for s in problem.sets)
    margin = backup_margin(terms, problem.span, np.abs(problem.tensor).max() + problem.span)
    assert Fraction(below[0]) <= value <= Fraction(below[0]) + Fraction(4.0 * margin)
    assert above[0] == np.inf


@pytest.mark.parametrize(
    "function", [kernels_interval.interval_rows, kernels_interval.interval_rows.py_func]
)
@settings(max_examples=40)
@given(row_problems(finite_sets, factors=(1, 4), joint=24))
def test_interval_rows_equals_merged_intervals(function, problem):
    """PRISM's semantics, in which outcomes that meet in one successor add their intervals up."""
    bound, work, values = bind(problem, weights=False, memory=interval_scratch)
    below, above = np.zeros((2, bound.model.rows))
    function(bound.sets, bound.rows, work, np.zeros(1, np.int64), values, 1.0, below, above)
    value = reference.interval_arithmetic(
        [reference.vertices(s) for s in problem.sets],
        problem.successors.tolist(),
        [Fraction(x) for x in problem.values.tolist()],
    )
    joint = len(problem.successors)
    margin = backup_margin(joint, problem.span, np.abs(problem.tensor).max() + problem.span)
    assert Fraction(below[0]) <= value <= Fraction(below[0]) + Fraction(4.0 * margin)
    assert above[0] == np.inf


@pytest.mark.parametrize("function", [plain.alternating_rows, plain.alternating_rows.py_func])
@settings(max_examples=30)
@given(row_problems(finite_sets, factors=(1, 3), joint=18))
def test_alternating_rows_is_a_local_minimum(function, problem):
    """The witness is attained, and exact coordinate descent from it finds nothing better."""
    bound, work, values = bind(problem, weights=False)
    below, above = np.zeros((2, bound.model.rows))
    answer = np.zeros(sum(s.size for s in problem.sets))
    function(
        bound.sets, bound.rows, work, np.zeros(1, np.int64), values, 1.0, 2, 0,
        np.zeros(1, np.int64), answer, below, above,
    )  # fmt: skip
    corners, tensor = exact_corners(problem)
    ends = np.cumsum([0] + [s.size for s in problem.sets])
    points = [reference.fractions(answer[a:b].tolist()) for a, b in itertools.pairwise(ends)]
    value, _ = reference.coordinate_descent(corners, tensor, points)
    margin = 1e-13 * problem.span + backup_margin(0, problem.span, np.abs(problem.tensor).max())
    assert below[0] == -np.inf
    assert Fraction(above[0]) - Fraction(4.0 * margin) <= value <= Fraction(above[0])
