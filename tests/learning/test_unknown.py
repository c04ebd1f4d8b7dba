"""Unknown rewards in the loop: sound, printed, resumable."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import (
    ANYTIME,
    Doubling,
    Optimistic,
    RewardRange,
    StopWhen,
    UniformRandom,
)
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Instantaneous,
    Spec,
)
from rfmdp.solving import solve

from .tiny import (
    REACH,
    AtTrajectories,
    distinct_factored,
)

POINTS = AtTrajectories((50, 100, 200, 400, 800, 1600, 3200))
UNIT = RewardRange(0.0, 1.0)


def quick(model, spec=REACH, method=ANYTIME, **more):
    """Learn a little."""
    asked = {"length": 3, "points": POINTS, "stop": StopWhen(400), "schedule": Doubling(0.5)}
    return learn(model, spec, method, **{**asked, **more})


def paying(seed: int) -> FactoredMDP:
    """Return the small grid with a reward in [0, 1] for every row."""
    model = distinct_factored(seed)
    row = np.random.default_rng(seed).uniform(size=model.rows)
    row[-2:] = 0.0
    return replace(model, rewards={"gain": Rewards(np.zeros(model.states), row)})


EARN = Spec(Cumulative(2, "gain"), MAX, MIN)
PAY = Spec(Cumulative(2, "gain"), MIN, MAX)


def check_sound(run, model, spec):
    """No guarantee on the wrong side of the optimum or of its own policy."""
    best, sign = solve(model, spec).value[0], spec.agent.sign
    for point in run.history:
        assert sign * point.guarantee <= sign * best + 1e-9
        assert sign * point.guarantee <= sign * point.performance + 1e-9
        assert sign * point.optimistic >= sign * best - 1e-9


@pytest.mark.parametrize("spec", [EARN, PAY], ids=["earn", "pay"])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_unknown_rewards_are_sound(spec, seed):
    """Over seeds and explorations, no guarantee exceeds what is true (beta 1e-4)."""
    model = paying(seed)
    exploration = (Optimistic(), UniformRandom())[seed % 2]
    run = quick(model, spec, seed=seed, rewards=UNIT, exploration=exploration)
    check_sound(run, model, spec)
    assert run.ledger.spent_on_model() <= run.ledger.shares.model <= run.beta
    assert "every reward lies in [0, 1]" in run.statement()
    assert "rewards of the model are as declared" not in run.statement()


def test_rewards_that_are_learned_cost_something():
    """The samples are the same, the guarantee is less, and half of beta is spent on rewards."""
    model, more = paying(4), {"exploration": UniformRandom(), "stop": StopWhen(3200)}
    known, learned = quick(model, EARN, **more), quick(model, EARN, rewards=UNIT, **more)
    assert np.array_equal(known.counts, learned.counts)
    assert learned.guarantee < known.guarantee
    assert learned.ledger.shares.reward == pytest.approx(learned.beta / 2)


def test_wrong_requests_for_rewards_are_refused():
    """Objectives without rewards, ranges that do not hold."""
    with pytest.raises(UnsupportedError, match="objective must be"):
        quick(paying(1), REACH, rewards=UNIT)
    with pytest.raises(ModelError, match="widen the range"):
        quick(paying(1), EARN, rewards=RewardRange(0.0, 0.01))


def test_resumed_runs_with_unknowns_equal_uninterrupted_ones(tmp_path):
    """Drawn rewards are part of the saved state."""
    model, file = paying(7), tmp_path / "run.rfmdp"
    more = {"rewards": UNIT, "seed": 11}
    whole = quick(model, EARN, stop=StopWhen(1600), **more)
    for stop in (100, 400, 1600):
        going_on = file if file.exists() else None
        part = quick(model, EARN, stop=StopWhen(stop), output=file, resume=going_on, **more)
    assert np.array_equal(part.counts, whole.counts)
    assert [p.guarantee for p in part.history] == [p.guarantee for p in whole.history]
    with pytest.raises(ModelError, match="rewards"):
        quick(model, EARN, resume=file, seed=11)


def test_without_an_evaluation_nothing_is_claimed():
    """Numbers that a model declares are no bound of rewards that are learned, or of states."""
    asked = {"stop": StopWhen(trajectories=10, seconds=1e-9)}
    span = RewardRange(-1.0, 1.0)
    assert quick(paying(1), EARN, rewards=span, **asked).guarantee == -math.inf
    model = paying(1)
    debt = {"gain": Rewards(np.full(model.states, -1.0), np.zeros(model.rows))}
    late = Spec(Instantaneous(2, "gain"), MAX, MIN)
    assert quick(replace(model, rewards=debt), late, **asked).guarantee == -math.inf
    assert quick(model, EARN, **asked).guarantee == 0.0
