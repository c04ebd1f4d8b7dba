"""Sets with curved boundaries and tables of subsets: what the checker takes them for."""

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.formats.records import solution_to_record
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Reach, Spec
from rfmdp.sets.families import KLBall, LpBall, SubsetSet
from rfmdp.sets.minimiser import minimise
from rfmdp.solving import solve
from rfmdp.verification.solution import verdict_of
from verification.test_linear import rows_of


def test_the_radius_of_a_kl_ball_is_not_divided():
    """It bounds the divergence from d / sum d, whatever that sum is."""
    rows = rows_of([KLBall([0.5, 0.5], 0.1)], [[0]])
    rows.sets.nominal[:] = 0.5 + 2e-10
    assert rows.rounded.radius[0] == 0.1


def test_a_subset_set_has_its_nominal_distribution():
    """Pairs that are all likely leave nothing, though no set and its complement do."""
    table = np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.5, 1.0])
    goal = {"goal": np.array([False, True, False])}
    rows = [[([0], [0, 1, 2])], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(rows, [SubsetSet(table, np.full(3, 1 / 3))], labels=goal)
    kind, header, arrays = solution_to_record(solve(model, Spec(Reach("goal"), MAX, MIN)))
    assert verdict_of(kind, header, arrays).valid
    empty = np.where(table == 0.5, 0.9, table)
    with pytest.raises(ModelError, match="nominal must be a member"):
        SubsetSet(empty, np.full(3, 1 / 3))
    forged = {**arrays, "model.marginals.corners": empty}
    forged["model.marginals.upper"] = np.full(3, 1.0)
    assert "must be a member" in str(verdict_of(kind, header, forged))


def curved_model(seed, ball):
    """Return a few states with one ball per row."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(3, 7))
    sets, rows = [], []
    for _ in range(states):
        p = rng.dirichlet(np.ones(rng.integers(2, 5)))
        sets.append(ball(p, float(rng.choice([0.02, 0.1, 0.4]))))
        rows.append([([len(sets) - 1], rng.integers(0, states, len(p)))])
    return FactoredMDP.from_rows(rows, sets, labels={"goal": np.arange(states) == states - 1})


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(i, marks=pytest.mark.slow) for i in range(2, 30))]
)
@pytest.mark.parametrize(
    "ball", [lambda p, r: LpBall(p, r, 1.5), lambda p, r: LpBall(p, r, 2.0), KLBall]
)
@pytest.mark.parametrize("text", ['Pmaxmin=? [ F<=4 "goal" ]', 'Pminmax=? [ F<=4 "goal" ]'])
def test_every_step_of_a_certified_horizon_is_proven(text, ball, seed):
    """Steps leave no width but the margins of the solver: those of the checker must be less."""
    solution = solve(curved_model(seed, ball), text)
    verdict = verdict_of(*solution_to_record(solution))
    assert verdict.valid, verdict


@pytest.mark.parametrize("exponent", [1.2, 2.0, 5.0])
def test_the_least_mean_of_an_lp_ball_lies_between_its_bounds(exponent):
    """Members at the rim, made by the solver's minimiser, are no lower than the proven bound."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        uset = LpBall(rng.dirichlet(np.ones(4)), float(rng.uniform(0.01, 0.5)), exponent)
        v = rng.normal(size=4)
        rows = rows_of([uset], [[0]])
        axis = rows.rounded.axis(np.array([0]))
        below, above = (float(axis.least(v[None, None], side)[0, 0]) for side in (-1.0, 1.0))
        member = minimise(uset, v)[1]
        room = float(np.linalg.norm(member - uset.nominal, exponent)) - uset.radius
        assert room <= 1e-12
        assert below <= member @ v + 1e-12 * np.ptp(v)
        assert below <= above <= below + 1e-11 * np.ptp(v)
