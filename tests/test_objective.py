"""Objectives and specifications check themselves."""

from __future__ import annotations

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import ModelError
from rfmdp.state_sets import NamedStates

WRONG = [
    (lambda: rf.Reach(5), "Reach: target must be a label, a boolean array"),
    (lambda: rf.Reach(np.zeros(3)), "Reach: target must be"),
    (lambda: rf.Until("a", None), "Until: target must be"),
    (lambda: rf.Until("a", "b", latest=2.5), "Until: latest must be a number of steps >= 0 or"),
    (lambda: rf.Until("a", "b", latest=2, earliest=3), "0 <= earliest <= latest, got 3, 2"),
    (lambda: rf.Globally("a", latest=-1), "Globally: latest must be"),
    (lambda: rf.Cumulative("10"), "Cumulative: steps must be a number of steps >= 0, got '10'"),
    (lambda: rf.Cumulative(True), "Cumulative: steps must be"),
    (lambda: rf.Instantaneous(-1), "Instantaneous: step must be"),
    (lambda: rf.Discounted("0.9"), r"Discounted: discount must be a number in \(0, 1\]"),
    (lambda: rf.Discounted(float("nan")), "Discounted: discount must be"),
    (lambda: rf.Discounted(-5.0), "Discounted: discount must be"),
    (lambda: rf.Discounted(1.0), "discount must be < 1"),
    (lambda: rf.ReachReward("goal", 3), "ReachReward: reward must be a name or None"),
    (lambda: rf.Total(["cost"]), "Total: reward must be a name or None"),
    (lambda: rf.Spec("goal"), "Spec: objective must be one, got 'goal'"),
    (lambda: rf.Spec(rf.Reach("goal"), "max"), "Spec: agent must be MAX or MIN, got 'max'"),
    (lambda: rf.Spec(rf.Reach("goal"), rf.MAX, 1), "Spec: nature must be MAX or MIN, got 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_fields_are_named(make, message):
    """A wrong field is refused where it is made, with its name."""
    with pytest.raises(ModelError, match=message):
        make()


@pytest.mark.parametrize(
    "objective",
    [
        rf.Reach("nowhere"),
        rf.ReachReward("init", "gold"),
        rf.Cumulative(3, "gold"),
        rf.Discounted(0.5, "gold"),
        rf.Total(),
        rf.Reach(np.zeros(2, dtype=np.bool_)),
    ],
)
def test_what_a_model_does_not_have(objective):
    """Labels, rewards and states of another model are named when it is solved."""
    model = rf.FactoredMDP.from_rows([[([], [0])]], [])
    with pytest.raises(ModelError, match=r"nowhere|reward structure|gold|1 entries"):
        rf.solve(model, rf.Spec(objective))


def test_numbers_of_numpy_are_numbers():
    """Counts and discounts may come from arrays."""
    assert rf.Cumulative(np.int64(3), discount=np.float64(0.5)).steps == 3
    assert rf.Until("a", "b", latest=np.int32(3)).latest == 3


@pytest.mark.parametrize(
    "text",
    [
        'Pmaxmin=? [ F "goal" ]',
        'Pminmax=? [ "safe" U[2,5] (x>0) ]',
        "Pmaxmax=? [ G<=4 !done ]",
        'Pmaxmin=? [ F>=3 "goal" ]',
        'Pmaxmin=? [ X "goal" ]',
        'R{"cost"}minmax=? [ F "goal" ]',
        "Rmaxmin=? [ C{discount=0.9}<=7 ]",
        "Rmaxmin=? [ C{discount=0.5} ]",
        "Rmaxmin=? [ C ]",
        "Rmaxmin=? [ I=3 ]",
    ],
)
def test_a_specification_reads_like_its_property(text):
    """What is printed is the property, and can be read again."""
    spec = rf.parse_property(text).spec()
    assert str(spec) == text
    assert str(rf.parse_property(str(spec)).spec()) == text


def test_states_by_name_are_those_of_one_model():
    """They keep their text, and refuse another number of states."""
    spec = rf.Spec(rf.Reach(NamedStates("x>0", np.array([True, False]))))
    assert str(spec) == "Pmaxmin=? [ F (x>0) ]"
    with pytest.raises(ModelError, match="x>0"):
        rf.solve(rf.FactoredMDP.from_rows([[([], [0])]], []), spec)


SAID = [  # what the words of each class say: rewarded, summed, complement, span, sets
    (rf.Reach("a"), False, False, (0, None), {"target": "a"}),
    (rf.Until("a", "b", 5, 2), False, False, (2, 5), {"stay": "a", "target": "b"}),
    (rf.Globally("a", 4), False, True, (0, 4), {"stay": "a"}),
    (rf.Next("a"), False, False, (1, 1), {"target": "a"}),
    (rf.ReachReward("a", "gold"), True, False, (0, None), {"target": "a"}),
    (rf.Cumulative(3, "gold", 0.5), True, False, (0, 3), {}),
    (rf.Instantaneous(3, "gold"), True, False, (3, 3), {}),
    (rf.Discounted(0.5, "gold"), True, False, (0, None), {}),
    (rf.Total("gold"), True, False, (0, None), {}),
]


@pytest.mark.parametrize(("objective", "rewarded", "complement", "span", "sets"), SAID)
def test_objectives_say_what_they_are(objective, rewarded, complement, span, sets):
    """Who computes with an objective asks its properties, and need not know its class."""
    assert (objective.rewarded, objective.complement) == (rewarded, complement)
    assert (objective.span, objective.sets) == (span, sets)
    assert objective.reward_name == ("gold" if rewarded else None)
    assert objective.factor == getattr(objective, "discount", 1.0)
    assert objective.summed == (not isinstance(objective, rf.Instantaneous))


def test_small_rewards_are_no_probabilities():
    """Rewards between 0 and 1 are not probabilities: widths count by the values that there are."""
    coin = rf.Interval([0.3, 0.3], [0.7, 0.7])
    tiny = np.array([0.0, 1e-9, 3e-9])
    model = rf.FactoredMDP.from_rows(
        [[([0, 0], [0, 1, 1, 2])], [([0], [1, 2])], [([], [2])]],
        [coin],
        rewards={"tiny": rf.Rewards(tiny, np.zeros(3))},
    )
    result = rf.solve(model, rf.Spec(rf.Instantaneous(40, "tiny"))).require_certified()
    bounds = result.at_initial()
    assert bounds.width <= 1e-6 * bounds.upper
