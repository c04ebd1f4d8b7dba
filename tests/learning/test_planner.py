"""Plans that recompute only what changed are the plans that recompute everything."""

import numpy as np
import pytest

from rfmdp.learning.confidence import ClopperPearson, Weissman
from rfmdp.learning.identifiers import identify
from rfmdp.learning.planner import Planner
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX, MIN

from .tiny import COST, REACH, distinct_factored, loop_to_goal


def updates(store, rng, rounds=12):
    """Give new samples to a few identifiers, again and again."""
    counts = np.zeros(int(store.ptr[-1]), dtype=np.int64)
    for _ in range(rounds):
        for j in rng.choice(len(store.kind), size=min(2, len(store.kind)), replace=False):
            size = store.ptr[j + 1] - store.ptr[j]
            counts[store.ptr[j] : store.ptr[j + 1]] += rng.integers(0, 20, size=size)
        store.refresh(counts)
        yield


@pytest.mark.parametrize("confidence", [ClopperPearson(), Weissman()], ids=lambda c: c.label)
@pytest.mark.parametrize("nature", [MIN, MAX])
@pytest.mark.parametrize(
    ("model", "spec"),
    [(distinct_factored(2), REACH), (loop_to_goal(0.3), COST)],
    ids=["dag", "loop"],
)
def test_incremental_plans_are_full_plans(model, spec, nature, confidence):
    """After every update the kept planner agrees with a fresh one, value by value."""
    structure = identify(model).model
    sets = structure.marginals
    store = SetStore(confidence, sets.outcome_ptr, np.full(len(sets), 0.01), nested=False)
    kept = Planner(structure, spec)
    for _ in updates(store, np.random.default_rng(1)):
        value, rows = kept.plan(store, nature)
        fresh, fresh_rows = Planner(structure, spec).plan(store.marginals(), nature)
        assert np.array_equal(value, fresh)
        assert np.array_equal(rows, fresh_rows)


def test_other_rewards_are_not_mistaken_for_old_ones():
    """New rewards of the rows change the plan although no set changed."""
    structure = identify(loop_to_goal(0.5)).model
    sets = structure.marginals
    store = SetStore(ClopperPearson(), sets.outcome_ptr, np.full(len(sets), 0.01))
    store.refresh(np.array([50, 50]))
    planner = Planner(structure, COST)
    first, _ = planner.plan(store, MIN)
    planner.pay(2.0 * planner.problem.reward)
    second, _ = planner.plan(store, MIN)
    assert second[0] == pytest.approx(2.0 * first[0], rel=1e-3)
