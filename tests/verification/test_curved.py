"""Lp balls, which have curved boundaries: what the checker takes them for."""

import numpy as np
import pytest

from rfmdp.formats.records import solution_to_record
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.families import LpBall
from rfmdp.solving import solve
from rfmdp.verification.solution import verdict_of
from set_twins import minimise
from verification.test_linear import rows_of


def curved_model(seed, exponent):
    """Return a few states with one ball per row."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(3, 7))
    sets, rows = [], []
    for _ in range(states):
        p = rng.dirichlet(np.ones(rng.integers(2, 5)))
        sets.append(LpBall(p, float(rng.choice([0.02, 0.1, 0.4])), exponent))
        rows.append([([len(sets) - 1], rng.integers(0, states, len(p)))])
    return FactoredMDP.from_rows(rows, sets, labels={"goal": np.arange(states) == states - 1})


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(i, marks=pytest.mark.slow) for i in range(2, 30))]
)
@pytest.mark.parametrize("exponent", [1.5, 2.0])
@pytest.mark.parametrize("text", ['Pmaxmin=? [ F<=4 "goal" ]', 'Pminmax=? [ F<=4 "goal" ]'])
def test_every_step_of_a_certified_horizon_is_proven(text, exponent, seed):
    """Steps leave no width but the margins of the solver: those of the checker must be less."""
    solution = solve(curved_model(seed, exponent), text)
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
