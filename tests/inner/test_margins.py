"""Bounds hold to the last digit: exact fractions, numbers at all scales."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half
from rfmdp.inner.solvers import Exact, IntervalArithmetic, Sequential, VertexEnumeration
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval
from row_problems import boxes, finite_sets, row_problems
from set_twins import product_minimum, vertices as exact_vertices

from .rows import one_row_model

SCALES = [1e-310, 1e-300, 1e-160, 1e-9, 1.0, 1e9, 1e160, 1e300]
SOLVERS = [Exact(), Exact(tolerance=1e-14), Exact(tolerance=0.0), VertexEnumeration()]


def solve(inner, sets, values, nature):
    """Return both bounds of a row with these sets, and values of its joint outcomes."""
    model = one_row_model(sets, len(values))
    below, above = np.zeros((2, model.rows))
    inner.prepare(model, nature).backup(values, np.zeros(1, np.int64), below, above)
    return below[0], above[0]


def exact_value(sets, values, nature):
    """Return the value in fractions."""
    sign = 1 if nature is MIN else -1
    tensor = [sign * Fraction(x) for x in values.tolist()]
    return sign * product_minimum([exact_vertices(s) for s in sets], tensor)


@st.composite
def scaled_rows(draw, sets=finite_sets):
    """Draw a row of up to three sets, and values of some scale with an offset."""
    problem = draw(row_problems(sets, factors=(1, 3), joint=24))
    scale = draw(st.sampled_from(SCALES))
    offset = draw(st.sampled_from([0.0, 0.0, 1.0, -1e3])) * scale
    size = max(float(np.abs(problem.tensor).max()), 1.0)
    return problem.sets, problem.tensor / size * scale + offset


@half
@given(scaled_rows(), st.sampled_from([MIN, MAX]))
def test_exact_solvers_enclose_the_value_at_all_scales(row, nature):
    """Subnormal, ordinary and huge values; any tolerance, none included."""
    value = exact_value(*row, nature)
    for inner in SOLVERS:
        below, above = solve(inner, *row, nature)
        assert below <= above, inner
        assert Fraction(below) <= value <= Fraction(above), inner


@half
@given(scaled_rows(boxes), st.sampled_from([MIN, MAX]))
def test_one_sided_solvers_keep_their_side_at_all_scales(row, nature):
    """The side that is proven is, to the last digit."""
    value = exact_value(*row, nature)
    for inner in (Sequential(), IntervalArithmetic()):
        below, above = solve(inner, *row, nature)
        assert below == -np.inf or Fraction(below) <= value, inner
        assert above == np.inf or value <= Fraction(above), inner


@pytest.mark.parametrize("inner", [Exact(), Sequential(), IntervalArithmetic()], ids=repr)
def test_values_that_overflow_leave_the_sides_open(inner):
    """Differences beyond the largest float prove nothing, and are no NaN."""
    box = Interval([0.25, 0.25], [0.75, 0.75])
    below, above = solve(inner, [box], np.array([-1.7e308, 1.7e308]), MIN)
    assert below == -np.inf
    assert above == np.inf
