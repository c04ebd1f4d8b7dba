"""Linear minimisers against LPs, a general optimiser, and their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import choquet_minimum, kl_minimum
from rfmdp.learning.bounds import KLHistory
from rfmdp.learning.confidence import AllSubsets, ClopperPearson, KLDirichlet, Mixture
from rfmdp.learning.minimisers import (
    kl_divergence,
    minimise_kl,
    minimise_kl_history,
    minimise_l1,
    minimise_subsets,
)

COUNTS, VALUES = np.array([550, 300, 100, 50]), np.array([0.9, 0.2, 0.7, 0.4])


@st.composite
def problems(draw, largest=5):
    size = draw(st.integers(2, largest))
    counts = draw(st.lists(st.integers(0, 400), min_size=size, max_size=size))
    counts[draw(st.integers(0, size - 1))] += 1
    values = draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size))
    return np.array(counts), np.array(values, dtype=float)


def kl_ball(counts, delta=1e-3):
    ball = KLDirichlet().bounds(np.array([0, len(counts)]), counts, np.array([delta]))
    return ball.nominal, float(ball.rho[0])


def subset_table(counts, sets=None, delta=1e-3):
    sets = sets or AllSubsets(Mixture())
    return sets.bounds(np.array([0, len(counts)]), counts, np.array([delta])).table(0)


def subset_lp(table, values):
    """Return the minimum over all 2^k inequalities."""
    size = len(values)
    bits = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    lp = linprog(values, A_ub=-bits, b_ub=-table, A_eq=np.ones((1, size)), b_eq=[1.0])
    assert lp.success
    return lp.fun


def l1_lp(nominal, radius, values):
    """P = nominal + up - down, sum of both at most radius."""
    size = len(values)
    cost = np.concatenate([values, -values])
    equal = np.concatenate([np.ones(size), -np.ones(size)])[None]
    shrink = np.hstack([-np.eye(size), np.eye(size)])
    lp = linprog(
        cost,
        A_ub=np.vstack([np.ones((1, 2 * size)), shrink]),
        b_ub=np.concatenate([[radius], nominal]),
        A_eq=equal,
        b_eq=[0.0],
    )
    assert lp.success
    return lp.fun + nominal @ values


def kl_dual(nominal, rho, values):
    """Maximise the dual over a fine grid of distances, refined three times."""
    low, seen = values.min(), nominal > 0
    exponents = np.linspace(-30, 12, 4001)
    best = low
    for _ in range(4):
        mu = low - np.exp(exponents)
        logs = np.log(values[seen][None] - mu[:, None]) @ nominal[seen]
        dual = mu + np.exp(logs - rho)
        top = int(np.argmax(dual))
        best = max(best, float(dual[top]))
        width = exponents[1] - exponents[0]
        exponents = np.linspace(exponents[top] - 2 * width, exponents[top] + 2 * width, 4001)
    return best


def test_reference_values():
    """Printed digits of the reference values, known support."""
    nominal, rho = kl_ball(COUNTS, 1e-7)
    assert minimise_kl(nominal, rho, VALUES).value == pytest.approx(0.571062792012, abs=6e-13)
    assert minimise_l1(nominal, 0.2, VALUES).value == pytest.approx(0.575, abs=1e-14)
    table = subset_table(COUNTS, AllSubsets(ClopperPearson()), 1e-7 / 7)
    found = minimise_subsets(table, VALUES)
    assert found.value == pytest.approx(0.583135359526, abs=6e-13)
    assert found.value == pytest.approx(subset_lp(table, VALUES), abs=1e-9)


def test_reference_value_with_an_unseen_outcome():
    """A fifth outcome with count 0 and the lowest value."""
    nominal, rho = kl_ball(np.append(COUNTS, 0), 1e-7)
    found = minimise_kl(nominal, rho, np.append(VALUES, 0.1))
    assert found.value == pytest.approx(0.566596500636, abs=6e-13)


@settings(max_examples=80, deadline=None)
@given(problems(7), st.floats(-9, -0.2))
def test_kl_value_and_witness_enclose_the_minimum(problem, exponent):
    """The witness is a member whose value is the proven bound, up to the search's precision."""
    counts, values = problem
    nominal, rho = kl_ball(counts, 10.0**exponent)
    found = minimise_kl(nominal, rho, values)
    span = np.ptp(values)
    assert found.witness.sum() == pytest.approx(1.0, abs=1e-14)
    assert np.all(found.witness >= 0)
    assert kl_divergence(nominal, found.witness) <= rho * (1 + 1e-11) + 1e-15
    assert -1e-14 * (1 + span) <= found.witness @ values - found.value <= 1e-8 * span + 1e-12


@settings(max_examples=40, deadline=None)
@given(problems(6), st.floats(-9, -0.2))
def test_kl_value_is_the_best_dual_bound(problem, exponent):
    """Compiled search equals a fine grid over the dual, and does not exceed it."""
    counts, values = problem
    nominal, rho = kl_ball(counts, 10.0**exponent)
    value, dual = minimise_kl(nominal, rho, values).value, kl_dual(nominal, rho, values)
    assert value == pytest.approx(dual, abs=1e-9 * (1 + np.ptp(values)))


@pytest.mark.parametrize("seed", range(5))
def test_kl_value_against_a_general_optimiser(seed):
    """SLSQP, which knows nothing of duals, finds no smaller value."""
    rng = np.random.default_rng(seed)
    counts, values = rng.integers(1, 200, size=4), rng.uniform(size=4)
    nominal, rho = kl_ball(counts)
    slack = {"type": "ineq", "fun": lambda p: rho - np.sum(nominal * np.log(nominal / p))}
    simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
    general = minimize(
        lambda p: p @ values,
        nominal,
        bounds=[(1e-9, 1)] * 4,
        constraints=[slack, simplex],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    value = minimise_kl(nominal, rho, values).value
    assert value == pytest.approx(general.fun, abs=1e-6)
    assert value <= general.fun + 1e-9


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6])
def test_kl_extremes(scale):
    """Radius 0 is the nominal value, an infinite one the least value, a constant itself."""
    nominal, values = np.array([0.5, 0.3, 0.2]), scale * np.array([3.0, 1.0, 2.0])
    assert minimise_kl(nominal, 0.0, values).value == pytest.approx(2.2 * scale, rel=1e-12)
    assert minimise_kl(nominal, np.inf, values).value == scale
    assert minimise_kl(nominal, 1e-14, values).value == pytest.approx(2.2 * scale, rel=1e-6)
    assert minimise_kl(nominal, 50.0, values).value == pytest.approx(scale, rel=1e-6)
    assert minimise_kl(nominal, 0.1, np.full(3, scale)).value == scale


@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(0, 2))
def test_l1_equals_its_lp(problem, radius):
    """Greedy moving of mass is optimal."""
    counts, values = problem
    nominal = counts / counts.sum()
    found = minimise_l1(nominal, radius, values)
    assert found.value == pytest.approx(l1_lp(nominal, radius, values), abs=1e-7)
    assert np.abs(found.witness - nominal).sum() <= radius + 1e-12


@settings(max_examples=40, deadline=None)
@given(problems())
def test_choquet_equals_its_lp(problem):
    """Interval ends are convex in the count, so the bounds are supermodular and Choquet exact."""
    counts, values = problem
    table = subset_table(counts)
    found = minimise_subsets(table, values)
    assert found.value == pytest.approx(subset_lp(table, values), abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(problems(4), st.randoms(use_true_random=False))
def test_choquet_is_a_lower_bound_for_any_table(problem, random):
    """Also after an intersection, which need not stay supermodular."""
    counts, values = problem
    table = subset_table(counts).copy()
    for mask in range(1, len(table) - 1):
        table[mask] *= random.random()
    found = minimise_subsets(table, values)
    assert found.value <= subset_lp(table, values) + 1e-7
    if found.witness is not None:
        assert found.witness @ values == pytest.approx(found.value, abs=1e-9)


@pytest.mark.parametrize("family", ["l1", "kl", "subsets"])
@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(-50, 50), st.integers(0, 4))
def test_lower_expectation_laws(family, problem, constant, raised):
    """low(v + c) = low(v) + c, and low is monotone in v."""
    counts, values = problem

    def low(v):
        if family == "l1":
            return minimise_l1(counts / counts.sum(), 0.3, v).value
        if family == "kl":
            return minimise_kl(*kl_ball(counts), v).value
        return minimise_subsets(subset_table(counts), v).value

    assert low(values + constant) == pytest.approx(low(values) + constant, abs=1e-9)
    larger = values.copy()
    larger[raised % len(values)] += 2.5
    assert low(larger) >= low(values) - 1e-9


def test_compiled_kernels_equal_their_python_source():
    """The decorated function and its body agree."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        counts, values = rng.integers(0, 50, size=4) + 1, rng.uniform(size=4)
        nominal, rho = kl_ball(counts)
        table = subset_table(counts)
        ours, theirs = np.empty(4), np.empty(4)
        order = np.empty(4, dtype=np.int64)
        assert kl_minimum(nominal, rho, values, ours) == pytest.approx(
            kl_minimum.py_func(nominal, rho, values, theirs), abs=1e-14
        )
        assert choquet_minimum(table, values, order, ours) == pytest.approx(
            choquet_minimum.py_func(table, values, order, theirs), abs=1e-14
        )


def test_history_keeps_the_best_proof():
    """The largest minimum over the stored balls."""
    ptr, delta = np.array([0, 3]), np.array([1e-3])
    balls = [KLDirichlet().bounds(ptr, np.array(c), delta) for c in ([90, 5, 5], [80, 60, 60])]
    values = np.array([1.0, 0.0, 0.5])
    single = [minimise_kl(b.nominal, b.rho[0], values).value for b in balls]
    history = KLHistory((balls[0],)).push(balls[1])
    assert minimise_kl_history(history, 0, values).value == max(single)


def test_bad_input_is_named():
    """Lengths and radii are checked at the border."""
    with pytest.raises(ModelError, match="one length"):
        minimise_kl(np.ones(2) / 2, 0.1, np.ones(3))
    with pytest.raises(ModelError, match="at least 0"):
        minimise_kl(np.ones(2) / 2, -0.1, np.ones(2))
    with pytest.raises(ModelError, match="8 entries"):
        minimise_subsets(np.zeros(4), np.ones(3))
