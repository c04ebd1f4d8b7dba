"""Lower bounds by discounting: true, inductive, and close however long plays linger."""

import numpy as np
import pytest

from outer.games import random_model
from rfmdp import policy_bound
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Reach, Spec
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Status
from rfmdp.policy_bound import GAIN, initial_guarantee, prove
from rfmdp.sets.families import Interval
from rfmdp.solving import evaluate
from rfmdp.verification.solution import verify


@pytest.fixture(autouse=True)
def _every_model_is_large(monkeypatch):
    monkeypatch.setattr(policy_bound, "LARGE", 0)


GOAL = Spec(Reach("goal"), MAX, MIN)


@pytest.mark.parametrize("inner", [Exact(), IntervalArithmetic()], ids=repr)
@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_below_the_value_of_the_policy_and_close(seed, inner):
    """For any policy, from a start that is far too high, and `verify` agrees."""
    model = random_model(seed, most=6)
    target = np.arange(model.states) == model.states - 1
    spec = Spec(Reach(target), MAX, MIN)
    rows = np.random.default_rng(seed).integers(model.row_ptr[:-1], model.row_ptr[1:])
    found = prove(model, spec, inner, rows, Limits(), np.ones(model.states))
    true = evaluate(model, found.policy, spec, inner=inner)
    assert np.all(found.lower <= true.guarantee + 1e-6)
    assert initial_guarantee(found) >= (1.0 - 2.0 * GAIN) * initial_guarantee(true) - 1e-9
    assert verify(found).valid


def lingering(leave: float) -> FactoredMDP:
    """Two states in a circle that is left with a small probability, half of it to the goal."""
    stay = 1.0 - 4.0 * leave
    move = Interval([stay, leave, leave], [1.0 - 2.0 * leave, 2.0 * leave, 2.0 * leave])
    rows = [[([0], [1, 2, 3])], [([0], [0, 2, 3])], [([], [2])], [([], [3])]]
    return FactoredMDP.from_rows(rows, [move], labels={"goal": np.arange(4) == 2})


@pytest.mark.parametrize("leave", [1e-2, 1e-3, 1e-4])
def test_what_is_left_rarely_is_proven_nevertheless(leave):
    """Nature sends two of three plays to the trap; a millionth is lost per step until then."""
    model, steps = lingering(leave), 1.0 / (3.0 * leave)
    found = prove(model, GOAL, Exact(), model.row_ptr[:-1].copy(), Limits())
    assert (1.0 - GAIN - 1e-6 * steps) / 3.0 <= initial_guarantee(found) <= 1.0 / 3.0


def test_no_time_proves_nothing_wrong():
    """A proof that is cut off leaves a bound, be it 0."""
    model = lingering(1e-3)
    limits = Limits(seconds=1e-9)
    found = prove(model, GOAL, Exact(), model.row_ptr[:-1].copy(), limits, np.ones(4))
    assert found.status is Status.TIME_LIMIT
    assert initial_guarantee(found) <= 1.0 / 3.0
    assert verify(found).valid
