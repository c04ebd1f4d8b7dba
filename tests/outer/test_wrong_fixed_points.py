"""Models on which policy iteration settles on a fixed point that is not the value."""

import numpy as np
import pytest

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec, Total
from rfmdp.outer.solution import Status
from rfmdp.solving import solve
from rfmdp.verification.solution import verify

from .random_specs import bent_set


def bent_model(seed: int) -> FactoredMDP:
    """Return 4 to 9 states of rows that nature can bend, mostly at no reward; scales differ."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(4, 10))
    sets = [bent_set(rng, int(rng.choice([2, 2, 3]))) for _ in range(5)]
    lines = []
    for s in range(states):
        rows = []
        for _ in range(rng.integers(1, 4)):
            chosen = rng.integers(0, 5, int(rng.choice([1, 1, 2])))
            size = int(np.prod([sets[j].size for j in chosen]))
            pool = rng.choice([s, *range(states)], int(rng.integers(2, 4)))
            rows.append((chosen.tolist(), rng.choice(pool, size).tolist()))
        lines.append(rows)
    scale = float(rng.choice([1.0, 1.0, 1e-9, 1e9]))
    paid = scale * rng.choice([0, 0, 0, 1.0, 3.0], sum(map(len, lines)))
    goal = np.zeros(states, dtype=bool)
    goal[rng.integers(states)] = True
    return FactoredMDP.from_rows(
        lines, sets, labels={"goal": goal}, rewards={"some": Rewards(np.zeros(states), paid)}
    )


@pytest.mark.parametrize(
    ("seed", "spec"),
    [
        (3, Spec(ReachReward("goal", "some"), MIN, MAX)),
        (37, Spec(ReachReward("goal", "some"), MAX, MIN)),
        (42, Spec(ReachReward("goal", "some"), MIN, MIN)),
        (42, Spec(Reach("goal"), MAX, MIN)),
        (48, Spec(Total("some"), MAX, MIN)),
        (63, Spec(Total("some"), MIN, MAX)),
        (751, Spec(ReachReward("goal", "some"), MAX, MIN)),  # by games that get better slowly
    ],
    ids=str,
)
def test_the_strict_side_leads_to_the_value(seed, spec):
    """Bounds come together, though proofs around the first value found fail."""
    model = bent_model(seed)
    found = solve(model, spec, states=np.ones(model.states, dtype=bool))
    assert found.status is Status.CERTIFIED
    assert verify(found).valid


@pytest.mark.parametrize(
    ("seed", "spec"),
    [
        (93, Spec(ReachReward("goal", "some"), MAX, MIN)),  # some 500 steps to the target
        (271, Spec(Total("some"), MAX, MIN)),  # rows tie, and whether to linger is up to nature
        (763, Spec(Reach("goal"), MAX, MIN)),  # likewise
        (553, Spec(ReachReward("goal", "some"), MIN, MAX)),  # 1e-9, and infinite elsewhere
        (635, Spec(Total("some"), MAX, MAX)),  # likewise
        (635, Spec(ReachReward("goal", "some"), MAX, MIN)),  # likewise
        (894, Spec(ReachReward("goal", "some"), MIN, MAX)),  # likewise
        (1120, Spec(ReachReward("goal", "some"), MIN, MAX)),  # chains at value and candidate differ
        (1356, Spec(ReachReward("goal", "some"), MIN, MAX)),  # likewise
    ],
    ids=str,
)
def test_no_solve_stays_open(seed, spec):
    """Bounds come together where ties, many steps or tiny rewards hid the proof."""
    model = bent_model(seed)
    found = solve(model, spec, states=np.ones(model.states, dtype=bool))
    assert found.status is Status.CERTIFIED
    assert verify(found).valid
