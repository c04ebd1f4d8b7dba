"""Discounted guarantees are about the policy that is returned."""

from dataclasses import replace

import numpy as np
import pytest

from rfmdp.inner import METHODS
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX, MIN, Discounted, Spec
from rfmdp.outer.task import Limits
from rfmdp.sets.families import Interval
from rfmdp.solving import solve
from rfmdp.verification.solution import verify
from true_values import LEEWAY, true_value

from .random_specs import PAIRS, tiny_model


@pytest.mark.parametrize("sweeps", [1, 2, 5, 1000])
def test_the_guarantee_holds_for_the_returned_policy(sweeps):
    """However early the solver stops, ties included: the policy attains what is guaranteed."""
    for seed in range(12):
        model = tiny_model(seed)
        agent, nature = PAIRS[seed % len(PAIRS)]
        spec = Spec(Discounted(0.9, "signed"), agent, nature)
        found = solve(model, spec, limits=Limits(sweeps=sweeps))
        attained = true_value(restrict(model, found.policy.rows[0]), spec)
        leeway = LEEWAY * np.maximum(1.0, np.abs(attained))
        if agent is MAX:
            assert np.all(found.guarantee <= attained + leeway), seed
        else:
            assert np.all(found.guarantee >= attained - leeway), seed


def tied_model(seed: int, size: int = 8, rows: int = 4) -> FactoredMDP:
    """Return a model with few different rewards and sets, so that many rows are equally good."""
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(2), 6)
    sets = [Interval(np.maximum(p - 0.1, 0.0), np.minimum(p + 0.1, 1.0)) for p in points]
    moves = [
        [([int(rng.integers(6))], rng.integers(0, size, 2).tolist()) for _ in range(rows)]
        for _ in range(size)
    ]
    paid = Rewards(np.zeros(size), rng.integers(-1, 2, size * rows).astype(float))
    return FactoredMDP.from_rows(moves, sets, rewards={"signed": paid})


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_ties_do_not_spoil_the_proof(agent):
    """A check of the returned policy alone accepts every certified result."""
    for seed in range(12):
        spec = Spec(Discounted(0.95, "signed"), agent, agent.opposite)
        found = solve(tied_model(seed), spec)
        assert verify(found.require_certified()).valid, seed


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("linger", [100.0, 0.1, 5e-324])
def test_a_value_of_zero_is_never_excluded(linger, discount):
    """Going round pays nothing: iteration that ends above 0, at the least floats, proves no more.

    Found as a lower bound of 2e-323 of a value that is 0: discounting the least floats by 0.9 gives
    them back, so margins below the normal range must not be relative only.
    """
    for sign, agent in ((1.0, MIN), (-1.0, MAX)):
        paid = Rewards(np.zeros(2), sign * np.array([0.0, linger, 0.0, linger]))
        model = FactoredMDP.from_rows(
            [[([], [1]), ([], [0])], [([], [0]), ([], [1])]], [], rewards={"paid": paid}
        )
        warm = np.full(2, sign * 1e-300)
        for start in (None, warm):
            result = solve(model, Spec(Discounted(discount, "paid"), agent, MAX), warm=start)
            assert result.lower is not None
            assert result.upper is not None
            assert np.all(result.lower <= 0.0)
            assert np.all(result.upper >= 0.0)
            assert np.all(result.upper - result.lower <= 1e-9 * linger + 1e-300)


@pytest.mark.parametrize("method", ["sequential", "interval", "mccormick"])
def test_values_are_within_the_only_bound(method):
    """A value that rounding left below a bound of 0 made a file that did not prove itself."""
    model = tiny_model(52)
    paid = np.random.default_rng(59).choice([0.0, 0.0, 1.0, 1e9], model.rows) * 1e90
    model = replace(model, rewards={"q": Rewards(np.zeros(model.states), paid)})
    for sweeps in range(2, 30, 2):
        solution = solve(
            model, Spec(Discounted(0.9, "q"), MIN, MIN), inner=METHODS[method](),
            limits=Limits(sweeps=sweeps), states=np.ones(model.states, bool),
        )  # fmt: skip
        assert solution.lower is None or np.all(solution.lower <= solution.value)
        assert solution.upper is None or np.all(solution.value <= solution.upper)
        assert verify(solution).valid, str(verify(solution))
