"""KL balls and subset sets as marginals of a model."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from rfmdp.errors import ModelError
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.sequential import Sequential
from rfmdp.learning.confidence import AllSubsets, KrichevskyTrofimov
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Reach, Spec
from rfmdp.sets.bounds import bounds
from rfmdp.sets.families import Interval, KLBall, SubsetSet
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.membership import contains
from rfmdp.sets.minimiser import minimise
from rfmdp.sets.supports import supports
from rfmdp.solving import solve

from .strategies import listed, listed_minimal

COUNTS = np.array([55, 30, 10, 5])


def subset_set(counts, delta=1e-3):
    counts = np.asarray(counts)
    pointers = np.array([0, len(counts)])
    found = AllSubsets(KrichevskyTrofimov()).sets(pointers, counts, np.array([delta]))
    return SubsetSet(found.corners, counts / counts.sum())


def kl_ball(counts, radius=0.05):
    return KLBall(np.asarray(counts) / np.sum(counts), radius)


@pytest.mark.parametrize("uset", [kl_ball(COUNTS), subset_set(COUNTS)], ids=["kl", "subsets"])
def test_bounds_are_attained_by_the_minimiser(uset):
    """The least value of an indicator is the lower bound, of its negative the upper one."""
    low, high = bounds(uset)
    for i, unit in enumerate(np.eye(4)):
        value, p = minimise(uset, unit)
        assert value == pytest.approx(low[i], abs=1e-7)
        assert contains(uset, p, 1e-7)
        assert -minimise(uset, -unit)[0] == pytest.approx(high[i], abs=1e-7)
    assert contains(uset, uset.nominal)


def test_subset_minimum_is_that_of_the_linear_programme():
    """The Choquet integral equals the optimum over all subset bounds."""
    uset = subset_set(COUNTS)
    bits = (np.arange(16)[:, None] >> np.arange(4)) & 1
    for values in np.random.default_rng(0).random((10, 4)):
        best = linprog(values, A_ub=-bits, b_ub=-uset.lower, A_eq=np.ones((1, 4)), b_eq=[1.0])
        assert minimise(uset, values)[0] == pytest.approx(best.fun, abs=1e-9)


def test_packed_sets_come_back():
    """Marginals keep kinds, radii and tables."""
    sets = [kl_ball(COUNTS), subset_set(COUNTS), Interval([0.1, 0.2], [0.8, 0.9])]
    packed = Marginals.from_sets(sets)
    assert packed.kind.tolist() == [Kind.KL, Kind.SUBSETS, Kind.BOX]
    ball, table, _ = packed
    assert isinstance(ball, KLBall)
    assert ball.radius == 0.05
    assert isinstance(table, SubsetSet)
    assert np.array_equal(table.lower, sets[1].lower)


def test_supports():
    """A KL ball can empty just what was not seen; a subset set what has no lower probability."""
    seen, all_of_it = kl_ball([6, 4, 0]), KLBall(np.full(3, 1 / 3), np.inf)
    free = SubsetSet(np.array([0, 0, 0, 0.3, 0, 0, 0, 1.0]), np.full(3, 1 / 3))
    found = supports(Marginals.from_sets([seen, all_of_it, free, kl_ball([1, 2, 3])]))
    assert listed(found, 0) == [(0, 1), (0, 1, 2)]
    assert sorted(listed_minimal(found, 1)) == [(0,), (1,), (2,)]
    assert sorted(listed_minimal(found, 2)) == [(0,), (1,)]
    assert found.flexible.tolist() == [True, True, True, False]


@pytest.mark.parametrize("make", [kl_ball, subset_set], ids=["kl", "subsets"])
@pytest.mark.parametrize("factors", [1, 2])
def test_inner_solvers_keep_their_sides(make, factors):
    """Interval arithmetic <= sequential <= exact <= members; one factor is solved exactly."""
    rng = np.random.default_rng(3)
    sets = [make(rng.integers(5, 40, 4)) for _ in range(factors)]
    goal = rng.random(4**factors) < 0.5
    model = FactoredMDP.from_rows(
        [[(list(range(factors)), np.where(goal, 1, 2))], [([], [1])], [([], [2])]],
        sets, labels={"goal": [False, True, False]},
    )  # fmt: skip
    spec = Spec(Reach("goal"), MAX, MIN)
    exact = solve(model, spec, inner=Exact()).at_initial()
    sequential = solve(model, spec, inner=Sequential()).at_initial().lower
    loose = solve(model, spec, inner=IntervalArithmetic()).at_initial().lower
    assert loose <= sequential + 1e-9
    assert sequential <= exact.lower + 1e-9
    if factors == 1:
        assert exact.width <= 1e-6
    members = [[minimise(s, v)[1] for v in rng.random((30, 4))] for s in sets]
    for points in itertools.islice(itertools.product(*members), 400):
        joint = points[0] if factors == 1 else np.outer(*points).ravel()
        assert exact.lower <= joint @ goal + 1e-7


def test_bad_sets_are_refused():
    """Radii, tables and contradictions are named."""
    with pytest.raises(ModelError, match="radius"):
        KLBall(np.array([0.5, 0.5]), -1.0)
    with pytest.raises(ModelError, match="lower probabilities"):
        SubsetSet(np.zeros(3), np.array([0.5, 0.5]))
    with pytest.raises(ModelError, match="complement"):
        SubsetSet(np.array([0.0, 0.7, 0.7, 1.0]), np.array([0.5, 0.5]))
