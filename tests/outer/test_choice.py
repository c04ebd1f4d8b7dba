"""Which engine settles the open part of a problem: the choice changes no value."""

import numpy as np
import pytest

from rfmdp.kernels.sweep import choose
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec, Total
from rfmdp.outer import unbounded
from rfmdp.outer.plain import is_plain
from rfmdp.outer.problem import pose
from rfmdp.outer.region import analyse
from rfmdp.outer.solution import Status
from rfmdp.sets.families import Interval, Singleton
from rfmdp.solving import solve
from rfmdp.verification.solution import verify

from .random_specs import PAIRS

SETS = [
    Singleton([0.5, 0.5]),
    Singleton([0.1, 0.9]),
    Interval([0.2, 0.3], [0.7, 0.8]),
    Interval([0.0, 0.5], [0.5, 1.0]),  # nature may empty an outcome
    Interval([0.0, 0.0], [1.0, 1.0]),
]
OBJECTIVES = [Reach("goal"), ReachReward("goal", "cost"), Total("cost")]


def layered_model(seed: int) -> FactoredMDP:
    """Return a few cycles one below the other, each of plain rows, products or open boxes."""
    rng = np.random.default_rng(seed)
    layers, size = int(rng.integers(2, 5)), 2
    rows, paid = [], []
    for layer in range(layers):
        kinds = ([0, 1, 2], [2, 2, 1], [0, 3, 4])[int(rng.integers(3))]
        for _ in range(size):
            own = []
            for _ in range(int(rng.integers(1, 3))):
                count = 2 if kinds[0] == 2 else 1
                ids = rng.choice(kinds, count).tolist()
                near, far = layer * size, min((layer + 2) * size, layers * size + 2)
                own.append((ids, rng.integers(near, far, 2**count).tolist()))
                paid.append(float(rng.choice([0.0, 1.0, 2.0])))
            rows.append(own)
    goal = layers * size
    rows += [[([], [goal])], [([], [goal + 1])]]
    paid += [0.0, 0.0]
    return FactoredMDP.from_rows(
        rows, SETS, labels={"goal": np.arange(goal + 2) == goal},
        rewards={"cost": Rewards(np.zeros(goal + 2), np.array(paid))},
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_the_choice_of_the_engine_changes_no_value(seed, monkeypatch):
    """Bounds from compiled code meet those of the general engine, and the checker takes both."""
    model = layered_model(seed)
    agent, nature = PAIRS[seed % len(PAIRS)]
    spec = Spec(OBJECTIVES[seed % 3], agent, nature)
    chosen = solve(model, spec)
    monkeypatch.setattr(unbounded, "is_plain", lambda region: False)
    slow = solve(model, spec)
    assert chosen.status is Status.CERTIFIED or slow.status is not Status.CERTIFIED
    for s in range(model.states):
        assert chosen.lower[s] <= slow.upper[s]
        assert slow.lower[s] <= chosen.upper[s]
    assert verify(chosen).valid


def test_an_emptiable_row_that_pays_is_plain():
    """Nature may stay, but who stays pays: compiled code will do."""
    ways = [
        [([0], [0, 1])],
        [([3], [1, 2])],  # nature may stay here for ever
        [([1], [3, 2])],
        [([], [3])],
    ]
    model = FactoredMDP.from_rows(
        ways, SETS, labels={"goal": [False, False, False, True]},
        rewards={"cost": Rewards(np.zeros(4), np.ones(4))},
    )  # fmt: skip
    problem = pose(model, Spec(Reach("goal"), MAX, MAX))
    assert solve(model, Spec(Reach("goal"), MAX, MAX)).at_initial().lower == 1.0
    paid = pose(model, Spec(ReachReward("goal", "cost"), MIN, MIN))
    region = analyse(paid)
    assert is_plain(region)  # who stays pays
    assert np.all(analyse(problem).known == 1.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_ties_keep_the_old_row(sign):
    """A row moves only if another one is better by more than the slack; then to the first best."""
    q = sign * np.array([1.0, 1.0, 1.0 + 1e-9, 2.0, 3.0, 3.0])
    row_ptr, states = np.array([0, 3, 6]), np.array([0, 1])
    for old, expected in ((0, 0), (1, 1), (2, 2), (-1, 2), (5, 2)):
        choice, value = np.array([old, 3]), np.zeros(2)
        choose(q, row_ptr, states, sign, 1e-6, choice, value)
        assert choice.tolist() == [expected, 4]
        assert value.tolist() == [q[2], q[4]]
    choice = np.array([0, 5])
    choose(q, row_ptr, states, sign, 0.0, choice, np.zeros(2))
    assert choice.tolist() == [2, 5]
