"""Runs with learned rewards.

True ones are proven from what is in their file. A number that no longer carries what is claimed,
or a claim that goes beyond the numbers, is noticed.
"""

import numpy as np
import pytest

from learning.test_unknown import EARN, PAY, paying
from rfmdp.learning.methods import RewardRange
from rfmdp.objective import (
    MAX,
    MIN,
    Spec,
    Total,
)
from verification.test_runs import altered, drop, judge, record

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


WIDE = RewardRange(-1.0, 2.5)
REWARDS = [(UNIT, Spec(Total("gain"), MAX, MIN)), (WIDE, PAY)]


@pytest.mark.parametrize(
    ("span", "spec"), [*REWARDS, pytest.param(UNIT, EARN, marks=pytest.mark.slow)], ids=str
)
def test_learned_rewards(span, spec):
    """What rows pay follows from visits and sums, at the share of rewards."""
    header, arrays = record(paying(2), spec, rewards=span)
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
        "stated mean": drop("mean-rewards"),
    }
    if len(never):
        changes["never visited"] = raised(ROW, never[0], 1e-6 * sign)
    changes["share"] = lambda h, a: a["ledger/shares"].__setitem__(1, 0.01)
    changes["no share"] = lambda h, a: a["ledger/shares"].__setitem__(1, 0.0)
    assert_noticed(header, arrays, changes)
