"""Discounted guarantees are about the policy that is returned."""

import numpy as np
import pytest

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.restrict import restrict
from rfmdp.objective import MAX, MIN, Discounted, Spec
from rfmdp.outer.settings import Limits
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
