"""Plans: a planner that is kept makes those of a new one; when they are made anew, and end."""

import math

import numpy as np
import pytest

from rfmdp.learning.confidence import ClopperPearson, SetStore, Weissman
from rfmdp.learning.sampling import Planner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Singleton

from .tiny import COST, REACH, distinct_factored, identified, loop_to_goal


def updates(store, rng, rounds=12):
    """Give new samples to a few identifiers, again and again."""
    counts = np.zeros(int(store.ptr[-1]), dtype=np.int64)
    for _ in range(rounds):
        for j in rng.choice(len(store.totals), size=min(2, len(store.totals)), replace=False):
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
def test_plans_of_a_kept_planner_are_those_of_a_new_one(model, spec, nature, confidence):
    """After every update the kept planner agrees with a fresh one, value by value."""
    structure = identified(model).model
    sets = structure.marginals
    store = SetStore(confidence, sets.outcome_ptr, np.full(len(sets), 0.01), nested=False)
    kept = Planner(structure, spec)
    for _ in updates(store, np.random.default_rng(1)):
        plain = Planner(structure, spec)
        plain.choice[:] = kept.choice  # ties keep the row of the last plan
        value, rows = kept.plan(store.marginals(), nature)
        fresh, fresh_rows = plain.plan(store.marginals(), nature)
        assert np.array_equal(value, fresh)
        assert np.array_equal(rows, fresh_rows)


def test_other_rewards_are_not_mistaken_for_old_ones():
    """New rewards of the rows change the plan although no set changed."""
    structure = identified(loop_to_goal(0.5)).model
    sets = structure.marginals
    store = SetStore(ClopperPearson(), sets.outcome_ptr, np.full(len(sets), 0.01))
    store.refresh(np.array([50, 50]))
    planner = Planner(structure, COST)
    first, _ = planner.plan(store.marginals(), MIN)
    planner.pay(2.0 * planner.problem.reward)
    second, _ = planner.plan(store.marginals(), MIN)
    assert second[0] == pytest.approx(2.0 * first[0], rel=1e-3)


def test_a_plan_ends_at_its_deadline():
    """After the deadline there is one sweep: what comes back is rough, but a plan."""
    structure = identified(distinct_factored(2)).model
    planner = Planner(structure, REACH)
    planner.deadline = -math.inf
    value, rows = planner.plan(structure.marginals, MIN)
    assert rows.shape == (1, structure.states)
    assert value[0] < Planner(structure, REACH).plan(structure.marginals, MIN)[0][0]


def test_bonuses_are_collected_also_where_the_objective_is_decided():
    """The rules of `collect` are those of a plain backward recursion that goes on past the goal."""
    coin, other = Singleton([0.3, 0.7]), Singleton([0.6, 0.4])
    model = FactoredMDP.from_rows(
        [
            [([0], [1, 2]), ([1], [0, 2])],
            [([0, 1], [0, 1, 2, 0]), ([1], [2, 1])],
            [([1], [1, 0]), ([], [2])],
        ],
        [coin, other],
        labels={"goal": [False, True, False]},
    )
    bonus = np.array([0.5, 1.0, 3.0, 0.25, 2.0, 0.0])
    steps = 6
    rules = Planner(model, REACH).collect(model.marginals, bonus, steps)
    value = np.zeros(3)
    for step in reversed(range(steps)):
        gain = []
        for row in range(model.rows):
            ids = model.row_marginals[model.marginal_ptr[row] : model.marginal_ptr[row + 1]]
            chances = np.ones(1)
            for j in ids:
                chances = np.outer(chances, model.marginals[int(j)].nominal).ravel()
            onward = model.successors[model.successor_ptr[row] : model.successor_ptr[row + 1]]
            gain.append(bonus[row] + chances @ value[onward])
        best = [
            max(range(model.row_ptr[s], model.row_ptr[s + 1]), key=gain.__getitem__)
            for s in range(3)
        ]
        assert rules[step].tolist() == best
        value = np.array([gain[row] for row in best])
    assert value[1] > bonus[2]  # the goal is left, and pays again
