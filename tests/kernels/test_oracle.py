"""Minimisers and leaf steps: compiled, pure Python and exact fractions agree."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numba import njit

from examples import half
from kernels import twins
from rfmdp.inner.packing import corners_of, pack_sets
from rfmdp.kernels import decorator, layout, oracle, primitives, products
from rfmdp.rounding import backup_margin
from rfmdp.sets.families import LpBall
from rfmdp.sets.vertices import product as exact_product
from row_problems import (
    any_sets,
    distributions,
    finite_sets,
    intervals,
    joined_model,
    radii,
    row_problems,
    value_vectors,
)
from set_twins import contains, minimise, vertices as exact_vertices


def pack(sets):
    """Return the kernels' arrays of some sets, vertices of polytopes included."""
    from rfmdp.model.arrays import FactoredMDP

    one = FactoredMDP.from_rows(
        [[(range(len(sets)), np.zeros(int(np.prod([s.size for s in sets]))).astype(int))]], sets
    )
    return pack_sets(one.marginals, corners_of(one))


@cache
def compiled(step):
    """Return a kernel that does nothing but take a step, which Python cannot call."""
    decorator._get_ready()

    @njit
    def call(*arguments):
        return step(*arguments)

    return call


minimise_compiled = compiled(oracle.minimise)
MINIMISERS = (minimise_compiled, oracle.minimise)


def run_minimiser(function, uset, values):
    """Return value and member of one minimiser; values stand behind three other numbers."""
    sets = pack([uset])
    d = uset.size
    order, p = np.arange(d)[::-1].copy(), np.full(d + 1, np.nan)
    padded = np.concatenate([[9.0, -9.0, 9.0], values])
    function(sets, 0, (padded, 3, 1), order, np.zeros(d), (p, d), (p, 0))
    return p[d], p[:d]


@st.composite
def sets_with_values(draw, sets=finite_sets):
    """One set, and values of its outcomes."""
    uset = draw(st.integers(1, 6).flatmap(sets))
    return uset, draw(value_vectors(uset.size))


@given(sets_with_values())
def test_minimiser_equals_its_twins(problem):
    """The compiled minimum, the pure Python one and the fraction agree; the answer is a member."""
    uset, values = problem
    values = values - values[0]
    value, p = run_minimiser(minimise_compiled, uset, values)
    plain, q = run_minimiser(oracle.minimise, uset, values)
    exact, _ = twins.minimum(exact_vertices(uset), [Fraction(x) for x in values.tolist()])
    allowed = backup_margin(uset.size, np.ptp(values), np.ptp(values))
    assert abs(Fraction(value) - exact) <= allowed
    assert abs(Fraction(plain) - exact) <= allowed
    assert contains(uset, p, 1e-14)
    assert contains(uset, q, 1e-14)


@given(
    sets_with_values(
        lambda size: st.builds(
            LpBall,
            distributions(size),
            radii(),
            st.sampled_from([1.01, 1.5, 2.0, 7.0, 50.0]),
        )
    )
)
def test_smooth_minimiser_equals_the_plain_one(problem):
    """The dual value is below the member's, they meet, and agree with `sets.minimise`."""
    uset, values = problem
    values = values - values[0]
    span = np.ptp(values)
    value, p = run_minimiser(minimise_compiled, uset, values)
    assert contains(uset, p, 1e-13)
    assert value <= p @ values + backup_margin(uset.size, span, span)
    assert value == pytest.approx(p @ values, abs=1e-13 * span)
    assert value == pytest.approx(minimise(uset, values)[0], abs=1e-10 * span)


@half
@given(
    st.integers(1, 6).flatmap(any_sets), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans()
)
def test_fibres_find_a_common_answer(uset, count, seed, monotone):
    """Values as from `minimiser`; a common answer is a member that attains all of them."""
    rng = np.random.default_rng(seed)
    tensor = rng.integers(0, 4, (count, uset.size)).astype(float)
    if monotone:
        tensor.sort(axis=1)
    sets, d = pack([uset]), uset.size
    for function in MINIMISERS:
        out, point = np.zeros(count), np.full(d + 1, np.nan)
        with np.errstate(over="ignore"):  # as compiled: what is infinitely far is clipped
            memory = np.arange(d), np.zeros(d)
            fibres = tensor.ravel(), 0, count
            same = function(sets, 0, fibres, *memory, (out, 0), (point, 1))
        for fibre, value in zip(tensor, out, strict=True):
            single, _ = run_minimiser(minimise_compiled, uset, fibre)
            assert value == pytest.approx(single, abs=1e-13)
        if same:
            assert contains(uset, point[1:], 1e-13)
            assert tensor @ point[1:] == pytest.approx(out, abs=1e-13)
        elif monotone and not isinstance(uset, LpBall):
            # ties can be answered in several ways by a polytope; a box has one for sorted values
            assert sets[0][0, layout.KIND] == layout.POLYTOPE


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5]), min_size=1, max_size=200))
def test_sort_long_sorts(values):
    """The merge sort and its pure Python twin give ascending values, each once."""
    v = np.array(values)
    for function in (compiled(primitives.sort_long), primitives.sort_long):
        order = np.zeros(2 * len(v), np.int64)
        function(v, len(v), order)
        assert np.array_equal(v[order[: len(v)]], np.sort(v))
        assert np.array_equal(np.sort(order[: len(v)]), np.arange(len(v)))


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_contract_first_equals_the_sum(d, rest, seed):
    """Compiled, pure Python and NumPy agree; zeros are skipped."""
    rng = np.random.default_rng(seed)
    p, tensor = rng.integers(0, 3, d + 1) / 2.0, rng.normal(size=2 + d * rest)
    expected = p[1:] @ tensor[2:].reshape(d, rest)
    step = primitives.contract_first
    for function in (compiled(step), step):
        out = np.full(rest + 1, np.nan)
        function(p, 1, d, tensor, 2, rest, out, 1)
        assert out[1:] == pytest.approx(expected, abs=1e-13)


def test_margin_equals_the_rule():
    """The compiled margin is `rounding.backup_margin`."""
    for terms, span, size in [(5, 0.0, 3.0), (7, 0.25, 1e6), (100, 3.0, 2.0)]:
        assert compiled(layout.margin)(terms, span, size) == backup_margin(terms, span, size)


@half
@given(row_problems(intervals, factors=(1, 4)))
def test_product_bounds_equal_the_products(problem):
    """Bounds of joint outcomes are the products of the marginals' bounds, in C order."""
    model, _ = joined_model([problem])
    sets = pack_sets(model.marginals, corners_of(model))
    axes, total = np.arange(len(problem.sets)), len(problem.successors)
    ends = [twins.bounds(exact_vertices(s)) for s in problem.sets]
    box = np.zeros(layout.LOWER + 3 * total)
    products.product_box(sets, axes, len(axes), total, box)
    lower, slack, _ = np.split(box[layout.LOWER :], 3)
    for found, side in ((lower, 0), (lower + slack, 1)):
        exact = exact_product([end[side] for end in ends])
        assert found == pytest.approx([float(x) for x in exact], abs=1e-14)
    assert box[layout.FREE] == pytest.approx(1.0 - lower.sum(), abs=1e-14)
