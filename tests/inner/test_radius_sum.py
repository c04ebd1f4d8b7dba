"""RadiusSum against SciPy on the product ball, and below the exact minimum."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import APART, zeros_apart
from rfmdp.inner.protocol import Side
from rfmdp.inner.solvers import RadiusSum
from rfmdp.objective import MAX, MIN
from rfmdp.rounding import CURVED_TERMS, TERM
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton
from set_twins import minimise

from .rows import one_row_model, product_tensor, rows_model

EXPONENTS = [1.0, 1.5, 2.0, 4.0, math.inf]


def random_balls(rng, sizes, radius, exponent):
    """Return balls around random distributions."""
    return [LpBall(rng.dirichlet(np.ones(d)), radius, exponent) for d in sizes]


def bound_of(inner, sets, value, nature=MIN):
    """Return the bound of row 0 on the side that is proven."""
    model = one_row_model(sets, len(value))
    below, above = np.full(model.rows, np.nan), np.full(model.rows, np.nan)
    inner.prepare(model, nature).backup(value, np.arange(model.rows), below, above)
    found, other = (below, above) if nature is MIN else (above, below)
    assert np.all(np.isinf(other))
    assert found[1:].tolist() == value[1:].tolist()
    return found[0]


def linear_ball_minimum(centre, radius, exponent, value):
    """Minimise over an L1 or L-infinity ball within the simplex, by SciPy's linear programmes."""
    d = len(centre)
    if math.isinf(exponent):
        box = [(max(0.0, c - radius), min(1.0, c + radius)) for c in centre]
        return linprog(value, A_eq=np.ones((1, d)), b_eq=[1.0], bounds=box).fun
    eye = np.eye(d)
    matrix = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, d)), np.ones((1, d))]])
    rhs = np.concatenate([centre, -centre, [radius]])
    sums = np.concatenate([np.ones(d), np.zeros(d)])[None]
    cost = np.concatenate([value, np.zeros(d)])
    return linprog(cost, matrix, rhs, sums, [1.0], bounds=[(0, 1)] * d + [(0, 2)] * d).fun


def smooth_ball_minimum(centre, radius, exponent, value):
    """Minimise over an Lp ball within the simplex, by SciPy's sequential quadratic programming."""
    limit = radius**exponent
    result = minimize(
        lambda p: value @ p,
        centre,
        jac=lambda p: value,
        bounds=[(0.0, 1.0)] * len(centre),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1.0},
            {
                "type": "ineq",
                "fun": lambda p: limit - np.sum(np.abs(p - centre) ** exponent),
                "jac": lambda p: (
                    -exponent * np.sign(p - centre) * np.abs(p - centre) ** (exponent - 1)
                ),
            },
        ],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert result.success
    return result.fun


@pytest.mark.parametrize("exponent", [1.0, math.inf])
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.3])
def test_linear_balls_equal_scipy(exponent, radius):
    """One ball around the product with the summed radius, as a linear programme."""
    rng = np.random.default_rng(1)
    sets = random_balls(rng, (2, 3, 2), radius, exponent)
    value = 5.0 + rng.normal(size=12)
    centre = product_tensor([s.nominal for s in sets])
    expected = linear_ball_minimum(centre, 3 * radius, exponent, value)
    found = bound_of(RadiusSum(), sets, value)
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("exponent", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("radius", [0.05, 0.15])
def test_smooth_balls_equal_scipy(exponent, radius):
    """The same for norms in between."""
    rng = np.random.default_rng(2)
    sets = random_balls(rng, (2, 3), radius, exponent)
    value = rng.normal(size=6)
    centre = product_tensor([s.nominal for s in sets])
    expected = smooth_ball_minimum(centre, 2 * radius, exponent, value)
    assert bound_of(RadiusSum(), sets, value) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_bound_is_below_every_product(exponent):
    """No product of members is below the bound; members by alternating minimisation."""
    rng = np.random.default_rng(3)
    for radius, sizes in [(0.02, (3, 2)), (0.2, (2, 2, 2)), (0.6, (2, 2))]:
        sets = random_balls(rng, sizes, radius, exponent)
        value = rng.normal(size=int(np.prod(sizes)))
        bound = bound_of(RadiusSum(), sets, value)
        members = [minimise(s, rng.normal(size=s.size))[1] for s in sets]
        for k in range(len(sets)):
            tensor = value.reshape(sizes)
            for axis in reversed(range(len(sets))):
                if axis != k:
                    tensor = np.tensordot(tensor, members[axis], axes=([axis], [0]))
            members[k] = minimise(sets[k], tensor)[1]
        assert bound <= product_tensor(members) @ value


def test_bits_do_not_depend_on_where_memory_lies():
    """Scratch arrays lie apart, so that compiled loops add up in one order wherever they are.

    The two minima of the ball above once differed in their last digits: arrays less than 128 bytes
    apart are swept entry by entry.
    """
    for length in (1, 9, 100):
        arrays = zeros_apart([length, 1, length], np.float64)
        ends = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
        base = arrays[0].base
        ends = [(0, base.ctypes.data), *ends, (base.ctypes.data + base.nbytes, math.inf)]
        assert all(first[1] + 8 * APART <= then[0] for first, then in pairwise(ends))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_radius_is_capped(exponent):
    """A ball that holds the whole simplex gives the least value, however large its radius."""
    rng = np.random.default_rng(5)
    value = rng.normal(size=6)
    for radius in (1.9, 1e3, 1e300):
        sets = random_balls(rng, (2, 3), radius, exponent)
        found = bound_of(RadiusSum(), sets, value)
        assert found == pytest.approx(value.min(), abs=1e-12)
        assert found <= value.min()


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_radius_zero_is_the_nominal_expectation(exponent):
    """Balls of radius zero and singletons are known."""
    rng = np.random.default_rng(6)
    sets = [*random_balls(rng, (3,), 0.0, exponent), Singleton(rng.dirichlet(np.ones(2)))]
    value = rng.normal(size=6)
    expected = product_tensor([s.nominal for s in sets]) @ value
    assert bound_of(RadiusSum(), sets, value) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_directions_mirror_and_witness_attains(exponent):
    """Maximising v is minimising -v; the answer is a distribution with that value."""
    rng = np.random.default_rng(7)
    sets = [*random_balls(rng, (2, 3), 0.1, exponent), Singleton(np.array([0.5, 0.5]))]
    value = rng.normal(size=12)
    model = one_row_model(sets, 12)
    upper = bound_of(RadiusSum(), sets, value, MAX)
    mirrored = -bound_of(RadiusSum(), sets, -value, MIN)
    # each within its margin of one number: the order of sums depends on where arrays lie
    margin = 2.0 * CURVED_TERMS * TERM * (len(value) + len(sets)) * np.ptp(value)
    assert upper == pytest.approx(mirrored, rel=0.0, abs=margin)
    prepared = RadiusSum().prepare(model, MAX)
    assert prepared.proves is Side.ABOVE
    answer = prepared.respond(value, np.array([3, 0]))
    assert answer[0] == 1.0
    assert answer.min() >= 0.0
    assert answer[1:].sum() == pytest.approx(1.0, abs=1e-12)
    assert answer[1:] @ value == pytest.approx(upper, abs=1e-7)


def test_exponents_may_differ_between_rows():
    """Only the marginals of one row must share their exponent."""
    sets = [L1Ball([0.5, 0.5], 0.1), LinfBall([0.5, 0.5], 0.1), Singleton(np.array([1.0]))]
    model = rows_model([[0, 0], [1, 2, 1], [0]], sets, 5)
    below, above = np.empty(model.rows), np.empty(model.rows)
    prepared = RadiusSum().prepare(model, MIN)
    prepared.backup(np.arange(5.0), np.arange(model.rows), below, above)
    assert np.all(np.isfinite(below))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([L1Ball([0.5, 0.5], 0.1), LinfBall([0.5, 0.5], 0.1)], "others: marginal 0, marginal 1"),
        ([L1Ball([0.5, 0.5], 0.1), Interval([0.4, 0.4], [0.6, 0.6])], "marginal 0, marginal 1"),
        ([Polytope([[0.5, 0.5], [0.4, 0.6]])], "those of state 0, .* are others: marginal 0"),
    ],
)
def test_other_sets_are_refused_before_work(sets, message):
    """The refusal names the marginal, the row and what was found."""
    model = one_row_model(sets, 4)
    with pytest.raises(UnsupportedError, match=message):
        RadiusSum().prepare(model, MIN)
