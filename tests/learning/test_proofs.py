"""Proofs for one policy, on one side: as good as those of `solve`, and `verify` agrees."""

import itertools
import time

import numpy as np
import pytest

from outer.games import random_model
from rfmdp.inner.solvers import Exact
from rfmdp.learning.evaluation import initial_guarantee, prove, prove_better
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import LogSpaced, StopWhen, find_method
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec, Until
from rfmdp.outer.task import Limits
from rfmdp.sets.families import Singleton
from rfmdp.solving import solve
from rfmdp.verification.solution import verify


@pytest.mark.parametrize("agent", [MAX, MIN])
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 30))]
)
def test_proofs_of_policies_meet_those_of_solve(seed, agent):
    """The best policy is proven to its value, any other one to no more."""
    model = random_model(seed, most=6)
    target = np.arange(model.states) == model.states - 1
    spec = Spec(Reach(target), agent, agent.opposite)
    whole = solve(model, spec)
    best = prove(model, spec, Exact(), whole.policy.rows[0], Limits())
    assert initial_guarantee(best) == pytest.approx(initial_guarantee(whole), abs=2e-6)
    first = prove(model, spec, Exact(), model.row_ptr[:-1].copy(), Limits())
    found = prove_better(first, Exact(), Limits())
    assert agent.sign * (initial_guarantee(found) - initial_guarantee(whole)) <= 2e-6
    for solution in (best, found):
        assert solution.model is model
        assert (solution.upper is None) == (agent is MAX)
        assert verify(solution).valid


def walk(size: int) -> FactoredMDP:
    """Two walkers on lines, both pushed at once: to the right, or only the first one."""
    cells = [(x, y) for x in range(size) for y in range(size)]
    place = {cell: i for i, cell in enumerate(cells)}

    def to(x, y):
        return place[min(max(x, 0), size - 1), min(max(y, 0), size - 1)]

    rows = [
        [
            ([0, 1], [to(x + a, y + b) for a in (1, -1) for b in (1, -1)], "both"),
            ([2], [to(x + a, y) for a in (1, -1)], "first"),
        ]
        for x, y in cells
    ]
    sets = [Singleton([0.7, 0.3]), Singleton([0.6, 0.4]), Singleton([0.8, 0.2])]
    return FactoredMDP.from_rows(
        rows, sets, labels={"goal": [x == y == size - 1 for x, y in cells]},
        rewards={"cost": Rewards(np.ones(len(cells)), np.zeros(2 * len(cells)))},
    )  # fmt: skip


@pytest.mark.parametrize("method", ["paper-mccormick", "paper-interval", "paper-l1", "anytime"])
@pytest.mark.parametrize(
    "spec", [Spec(ReachReward("goal", "cost"), MIN, MAX), Spec(Until("ground", "goal"), MAX, MIN)]
)
def test_learning_with_cycles_guarantees_what_the_learned_model_has(method, spec):
    """The guarantee is the robust value of the last learned model, and `verify` agrees."""
    model = walk(4)
    ground = np.array([i % 4 < 3 or i // 4 > 1 for i in range(16)])
    model.labels["ground"] = ground
    run = learn(
        model, spec, find_method(method), granularity=Granularity.EFFECT, stop=StopWhen(2000),
        length=30, seed=1, points=LogSpaced(2),
    )  # fmt: skip
    again = solve(run.model, spec, inner=find_method(method).inner)
    assert run.guarantee == pytest.approx(initial_guarantee(again), rel=1e-3)
    assert verify(run).valid


def test_a_slow_machine_changes_nothing(monkeypatch):
    """A run that is given no time to keep to does the same, however fast the clock runs."""
    words = {"stop": StopWhen(500), "length": 30, "seed": 1, "points": LogSpaced(2)}
    spec = Spec(ReachReward("goal", "cost"), MIN, MAX)
    plain = learn(walk(4), spec, "anytime", **words)
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 60.0 * next(clock))
    slow = learn(walk(4), spec, "anytime", **words)
    assert np.array_equal(slow.column("guarantee"), plain.column("guarantee"))
    assert np.array_equal(slow.column("optimistic"), plain.column("optimistic"))
    assert np.array_equal(slow.policy.rows, plain.policy.rows)
