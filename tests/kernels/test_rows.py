"""Row kernels: compiled, pure Python and exact fractions agree; the pair kernel and its twin."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from examples import half
from kernels import twins
from rfmdp.inner.packing import (
    NO_ANSWERS,
    PackedModel,
    branching_weight,
    corners_of,
    pack_rows,
)
from rfmdp.inner.protocol import Side
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.kernels import exact, pair, products
from rfmdp.kernels.layout import MARGINALS
from rfmdp.objective import MIN
from rfmdp.rounding import backup_margin
from rfmdp.types import frozen
from row_problems import boxes, finite_sets, row_problems
from set_twins import product_minimum, vertices as exact_vertices


def bind(problem, weights=True):
    """Return a packed model of one row with all vertices listed, and values."""
    model = problem.model()
    layout = pack_rows(model, branching_weight(model)) if weights else pack_rows(model)
    corners = corners_of(model, np.arange(len(model.marginals)))
    packed = PackedModel(model, MIN, layout, corners)
    return packed, np.concatenate([[0.0], problem.values])


def both(kernel):
    """Return a row kernel and its pure Python twin, which are given the same problems."""
    return kernel, kernel.py_func


def run(function, packed, values, *arguments):
    """Call a row kernel, or its pure Python twin, for row 0."""
    asked = frozen(np.zeros(1, np.int64)), frozen(values), 1.0, 0, 1  # as methods ask
    function(packed.sets, packed.rows, packed.work(0), asked, *arguments)


def exact_corners(problem):
    """Return exact vertices of every set, and the tensor in fractions."""
    tensor = [Fraction(x) for x in problem.tensor.tolist()]
    return [exact_vertices(s) for s in problem.sets], tensor


@half
@given(row_problems(finite_sets, factors=(1, 4), joint=32))
def test_exact_rows_encloses_the_minimum(problem):
    """Both sides enclose the exact minimum and are as close as promised."""
    packed, values = bind(problem)
    value = product_minimum(*exact_corners(problem))
    terms = sum(s.size for s in problem.sets)
    margin = backup_margin(terms, problem.span, np.abs(problem.tensor).max() + problem.span)
    for function in both(exact.exact_rows):
        below, above, nodes = np.zeros(1), np.zeros(1), np.zeros(1, np.int64)
        run(function, packed, values, 1e-12, 10**9, NO_ANSWERS, (below, above), nodes)
        assert Fraction(below[0]) <= value <= Fraction(above[0])
        assert above[0] - below[0] <= 1e-12 * problem.span + 4.0 * margin
        assert nodes[0] >= 0


@given(row_problems(boxes, factors=(2, 2), joint=36))
def test_pair_equals_the_general_kernel(problem):
    """Two boxes by their own kernel and by the general one: the same value, both attained."""
    packed, values = bind(problem)
    tensor = values[packed.model.successors[: len(problem.successors)]].reshape(
        [s.size for s in problem.sets]
    )
    tensor = tensor.T if packed.rows[MARGINALS][0] == 1 else tensor
    slack = 1e-12 * problem.span + 4.0 * backup_margin(
        tensor.shape[0] + tensor.shape[1], problem.span, np.abs(tensor).max() + problem.span
    )
    ends = []
    for function in (pair.pair_rows, exact.exact_rows):
        below, above, nodes = np.zeros(1), np.zeros(1), np.zeros(1, np.int64)
        answers = np.zeros(1, np.int64), np.zeros(sum(tensor.shape))
        run(function, packed, values, 1e-12, 10**9, answers, (below, above), nodes)
        p, q = np.split(answers[1], [len(tensor)])
        assert p @ (tensor - tensor.flat[0]) @ q + tensor.flat[0] == pytest.approx(
            above[0], abs=slack
        )
        ends.append((below[0], above[0]))
    (low, high), (other_low, other_high) = ends
    assert abs(high - other_high) <= slack
    assert low <= other_high
    assert other_low <= high


@half
@given(row_problems(finite_sets, factors=(1, 4), joint=24, largest=5))
def test_vertex_rows_encloses_the_minimum(problem):
    """All products of vertices give the exact minimum to rounding."""
    packed, values = bind(problem)
    value = product_minimum(*exact_corners(problem))
    for function in both(products.vertex_rows):
        below, above = np.zeros((2, 1))
        run(function, packed, values, NO_ANSWERS, (below, above))
        assert Fraction(below[0]) <= value <= Fraction(above[0])


@half
@given(row_problems(finite_sets, factors=(1, 4), joint=24))
def test_sequential_rows_equals_the_contraction(problem):
    """Contraction in the stored order, from the last factor to the first."""
    packed, values = bind(problem, weights=False)
    value = twins.sequential(*exact_corners(problem))
    terms = sum(s.size for s in problem.sets)
    margin = backup_margin(terms, problem.span, np.abs(problem.tensor).max() + problem.span)
    for function in both(products.sequential_rows):
        below, above = np.zeros((2, 1))
        run(function, packed, values, (below, above))
        assert Fraction(below[0]) <= value <= Fraction(below[0]) + Fraction(4.0 * margin)
        assert above[0] == np.inf


@half
@given(row_problems(finite_sets, factors=(1, 4), joint=24))
def test_interval_rows_equals_merged_intervals(problem):
    """PRISM's semantics, in which outcomes that meet in one successor add their intervals up."""
    model = problem.model()
    prepared = IntervalArithmetic().prepare(model, MIN)
    values = np.concatenate([[0.0], problem.values])
    value = twins.interval_arithmetic(
        [exact_vertices(s) for s in problem.sets],
        problem.successors.tolist(),
        [Fraction(x) for x in problem.values.tolist()],
    )
    outcomes = len(problem.successors)
    margin = backup_margin(outcomes, problem.span, np.abs(problem.tensor).max() + problem.span)
    below, above = np.zeros((2, model.rows))
    prepared.backup(values, np.zeros(1, np.int64), below, above)
    assert Fraction(below[0]) <= value <= Fraction(below[0]) + Fraction(4.0 * margin)
    # one box per row is no product: then the other side is proven as well
    assert value <= Fraction(above[0]) if Side.ABOVE in prepared.proves else above[0] == np.inf
