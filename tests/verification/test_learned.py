"""Runs with learned rewards and returns of rollouts.

True ones are proven from what is in their file. A number that no longer carries what is claimed,
or a claim that goes beyond the numbers, is noticed.
"""

import numpy as np
import pytest

from learning.test_unknown import EARN, PAY, paying
from rfmdp.learning.methods import METHODS
from rfmdp.learning.rewards import DeterministicReward, MixtureReward, RewardRange
from rfmdp.learning.schedule import StopWhen
from rfmdp.objective import (
    MAX,
    MIN,
    Discounted,
    ReachReward,
    Spec,
    Total,
)
from verification.test_runs import altered, drop, judge, record, rolled

UNIT = RewardRange(0.0, 1.0)
ROW = "solution/model.row_reward.0"


def assert_noticed(header, arrays, changes):
    """Check that a run passes as it is, and none of its altered copies."""
    assert judge(header, arrays).valid, str(judge(header, arrays))
    for name, change in changes.items():
        assert not judge(*altered(header, arrays, change)).valid, name


def raised(name, place, by):
    """Return a change that adds to a number."""
    return lambda h, a: a[name].__setitem__(place, a[name][place] + by)


def setting(name, value):
    """Return a change of a setting."""
    return lambda h, a: h["settings"].update({name: value})


REWARDS = [
    (MixtureReward(UNIT), Spec(Total("gain"), MAX, MIN)),
    (MixtureReward(RewardRange(-1.0, 2.5)), PAY),
    (DeterministicReward(UNIT), EARN),
]
MORE = [
    (MixtureReward(UNIT), EARN),
    (MixtureReward(RewardRange(-1.0, 2.5)), PAY),
    (DeterministicReward(UNIT), PAY),
]


@pytest.mark.parametrize(
    ("family", "spec"),
    [*REWARDS, *(pytest.param(*more, marks=pytest.mark.slow) for more in MORE)],
    ids=str,
)
def test_learned_rewards(family, spec):
    """What rows pay follows from visits and sums, at the share of rewards."""
    header, arrays = record(paying(2), spec, rewards=family)
    sign = 1.0 if spec.agent is MAX else -1.0
    visits = arrays["evidence/visits"]
    most = int(np.argmax(visits * (arrays[ROW][: len(visits)] != 0.0)))
    never = np.flatnonzero(visits == 0)
    changes = {
        "row": raised(ROW, most, 1e-5 * sign),
        "end": raised(ROW, 0, sign),
        "state": raised("solution/model.state_reward.0", 0, 1e-3),
        "paid": raised("evidence/paid", most, -sign * 0.05 * visits[most]),
        "beyond the range": lambda h, a: a["evidence/paid"].fill(sign * 1e9),
        "visits": raised("evidence/visits", most, 1),
        "moved visits": lambda h, a: a["evidence/visits"].__setitem__(
            slice(None), a["evidence/visits"][::-1].copy()
        ),
        "no visits": lambda h, a: a.pop("evidence/visits"),
        "nothing paid": lambda h, a: a.pop("evidence/paid"),
        "range": lambda h, a: h["settings"]["rewards"].update(low=-5.0, high=5.0),
        "family": setting("rewards", {"kind": "oracle", "low": 0.0, "high": 1.0}),
        "known": setting("rewards", {"kind": "declared"}),
        "stated": drop("reward-range"),
        "stated mean": drop("mean-rewards", "constant-rewards"),
    }
    if len(never):
        changes["never visited"] = raised(ROW, never[0], 1e-6 * sign)
    if isinstance(family, MixtureReward):
        changes["share"] = lambda h, a: a["ledger/shares"].__setitem__(1, 0.01)
        changes["no share"] = lambda h, a: a["ledger/shares"].__setitem__(1, 0.0)
    assert_noticed(header, arrays, changes)


RETURNS = [
    EARN,
    Spec(Discounted(0.5, "gain"), MAX, MIN),
    Spec(ReachReward("goal", "gain"), MAX, MIN),
]


@pytest.mark.parametrize("spec", RETURNS, ids=str)
def test_returns_of_rollouts(spec):
    """What a certificate says follows from its returns, in their order."""
    longer = StopWhen(trajectories=800)
    header, arrays = record(paying(2), spec, method=METHODS["rollout"], stop=longer)
    assert [each["successes"] for each in header["rollouts"]] == [None]
    last = str(header["rollouts"].index(rolled(header)))
    name = f"returns/{last}"

    def less(h, a):
        a[name] = np.maximum(a[name] - 0.01, 0.0)

    def wider(h, a):
        given = rolled(h)["assumptions"]
        rolled(h)["assumptions"] = [*given[:2], {"kind": "return-range", "low": 0.0, "high": 1.0}]

    changes = {
        "bound": lambda h, a: rolled(h).update(bound=rolled(h)["bound"] + 1e-4),
        "beyond": lambda h, a: rolled(h).update(bound=1e9),
        "not a number": lambda h, a: rolled(h).update(bound=float("nan")),
        "returns": less,
        "impossible returns": lambda h, a: a[name].__setitem__(0, 1e9),
        "no number": lambda h, a: a[name].__setitem__(0, np.nan),
        "no returns": lambda h, a: a.pop(name),
        "fewer returns": lambda h, a: a.update({name: a[name][:-1]}),
        "trajectories": lambda h, a: rolled(h).update(trajectories=len(a[name]) - 1),
        "delta": lambda h, a: rolled(h).update(delta=0.5 * rolled(h)["delta"]),
        "larger delta": lambda h, a: rolled(h).update(delta=0.3),
        "successes": lambda h, a: rolled(h).update(successes=len(a[name])),
        "range": wider,
        "share": lambda h, a: a["ledger/shares"].__setitem__(2, 0.0),
        "history": lambda h, a: h["history"][-1].update(rollout=rolled(h)["bound"] + 1e-9),
        "one more": lambda h, a: h["rollouts"].append(dict(rolled(h))),
    }
    if spec is not EARN:  # whose two steps are fewer than any length
        changes["longer"] = setting("length", 60)
    assert_noticed(header, arrays, changes)
