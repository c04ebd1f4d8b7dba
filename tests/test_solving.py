"""What `solve` and `evaluate` accept."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import ModelError, PrismError, UnsupportedError

TEXT = 'Pmaxmin=? [ F "goal" ]'


@pytest.fixture
def model():
    """Return one uncertain step to the goal or a sink."""
    return rf.FactoredMDP.from_rows(
        [[([0], [1, 2])], [([], [1])], [([], [2])]],
        [rf.Interval([0.2, 0.4], [0.6, 0.8])],
        labels={"goal": [False, True, False]},
    )


@pytest.mark.parametrize(
    "spec", [TEXT, rf.parse_property(TEXT), rf.Spec(rf.Reach("goal"))], ids=["text", "parsed", "S"]
)
def test_a_question_in_any_form(model, spec):
    """A specification, a parsed property and its text are the same question everywhere."""
    solution = rf.solve(model, spec)
    again = rf.evaluate(model, solution.policy, spec)
    best = rf.evaluate(model, solution.policy, spec, nature=rf.MAX)
    loose = rf.solve(model, spec, inner=rf.IntervalArithmetic())
    for found in (solution, again, loose):
        value = found.at_initial().lower
        assert value == pytest.approx(0.2, abs=1e-6)
    assert best.at_initial().upper == pytest.approx(0.6, abs=1e-6)


def test_what_is_no_question(model):
    """Other texts, other properties and other things say what must be given."""
    with pytest.raises(PrismError):
        rf.solve(model, "Pmax=? [ F ")
    with pytest.raises(UnsupportedError, match="single P or R"):
        rf.solve(model, 'filter(min, P=? [ F "goal" ], true)')
    with pytest.raises(UnsupportedError, match="a parsed property or its text, got a Reach"):
        rf.solve(model, rf.Reach("goal"))


@pytest.mark.parametrize("text", ['P=? [ F "goal" ]', "R=? [ C<=2 ]"])
def test_a_question_without_a_direction(model, text):
    """Where somebody has a choice that matters, min or max must be said, as for `check`."""
    paid = rf.Rewards(np.ones(3), np.zeros(3))
    model = replace(model, rewards={"steps": paid})
    policy = rf.solve(model, 'Pmaxmin=? [ F "goal" ]').policy
    for ask in (
        lambda: rf.solve(model, text),
        lambda: rf.solve(model, rf.parse_property(text)),
        lambda: rf.evaluate(model, policy, text),
        lambda: rf.check(model, text),
    ):
        with pytest.raises(PrismError, match="must say min or max on a model with choices"):
            ask()
    low, high = (rf.evaluate(model, policy, text, nature=n).at_initial() for n in (rf.MIN, rf.MAX))
    assert low.lower <= high.upper
    assert rf.simulate(model, policy, text, trajectories=10).estimate >= 0.0
    with pytest.raises(ModelError, match="must oppose the agent"):
        rf.learn(model, text)
    rf.solve(model.nominal(), text)  # a chain: nobody has a choice


def test_the_policy_is_the_choice_of_an_mdp():
    """An MDP needs a direction to be solved; with a policy, and without sets, nothing is open."""
    model = rf.FactoredMDP.from_rows(
        [[([], [0], "stay"), ([], [1], "go")], [([], [1], "stay")]],
        [],
        labels={"goal": [False, True]},
    )
    text = 'P=? [ F "goal" ]'
    with pytest.raises(PrismError, match="here: agent"):
        rf.solve(model, text)
    worst = rf.solve(model, 'Pmin=? [ F "goal" ]')
    assert rf.evaluate(model, worst.policy, text).at_initial().upper == 0.0


def test_what_is_no_policy(model):
    """A solution stands for its policy; other things say what must be given."""
    solution = rf.solve(model, TEXT)
    found = rf.evaluate(model, solution, TEXT).at_initial()
    assert found == rf.evaluate(model, solution.policy, TEXT).at_initial()
    with pytest.raises(UnsupportedError, match=r"evaluate: must be a policy, .* got a ndarray"):
        rf.evaluate(model, solution.policy.rows, TEXT)


def test_values_of_constants():
    """Numbers of NumPy are numbers; what is no mapping, or no number, is said so."""
    text = "dtmc const int N; const double p; module m x:[0..N]; [] x<N -> (x'=x+1); "
    text += "[] x=N -> p:(x'=0) + 1-p:(x'=N); endmodule"
    assert rf.parse_prism(text, {"N": np.int64(16), "p": np.float32(0.5)}).states == 17
    with pytest.raises(PrismError, match="must be of type int"):
        rf.parse_prism(text, {"N": np.float64(16), "p": 0.5})
    with pytest.raises(ModelError, match=r"constants: must be a mapping .*got 'N=16'"):
        rf.parse_prism(text, "N=16")
    with pytest.raises(ModelError, match=r"constants: N must be a number, .*got \[1, 2\]"):
        rf.parse_prism(text, {"N": [1, 2], "p": 0.5})
    prop = rf.parse_property("const int k; P=? [ F<=k x=1 ]", {"k": np.int8(1)})
    model = rf.parse_prism(text, {"N": 2, "p": 0.5})
    assert rf.check(model, prop).value == 1.0
    assert rf.check(model, "const int k; P=? [ F<=k x=1 ]", constants={"k": np.uint8(0)}).value == 0
    with pytest.raises(ModelError, match="constants: must be a mapping"):
        rf.check(model, "const int k; P=? [ F<=k x=1 ]", constants="k=1")


def test_what_cannot_be_verified():
    """`verify` says what it takes."""
    with pytest.raises(UnsupportedError, match=r"verify: must be a solution, .* got a int"):
        rf.verify(3)


@pytest.mark.parametrize("warm", [np.zeros(2), np.zeros((3, 1)), np.full(3, np.nan), np.array("x")])
def test_warm_values_of_another_model(model, warm):
    """Values that do not fit the states are refused before any work."""
    with pytest.raises(ModelError, match="warm: must have one number per state of this model"):
        rf.solve(model, TEXT, warm=warm)


def test_warm_solution_of_another_model(model):
    """So is a solution of a model of another size; one of the same states is a start."""
    small = rf.FactoredMDP.from_rows([[([], [0])]], [], labels={"goal": [True]})
    with pytest.raises(ModelError, match="warm"):
        rf.solve(model, TEXT, warm=rf.solve(small, TEXT))
    assert rf.solve(model, TEXT, warm=rf.solve(model, TEXT)).at_initial().width < 1e-6


@pytest.mark.parametrize("reward", [1e100, 1e-100])
@pytest.mark.parametrize("objective", [rf.ReachReward("goal"), rf.Total(), rf.Cumulative(10)])
def test_rewards_at_the_ends_of_the_floats(reward, objective):
    """The largest rewards allowed, and tiny ones, give bounds that hold the exact value."""
    model = rf.FactoredMDP.from_rows(
        [[([0], [0, 1])], [([], [1])]],
        [rf.Singleton([0.5, 0.5])],
        labels={"goal": [False, True]},
        rewards={"cost": rf.Rewards([reward, 0.0], [0.0, 0.0])},
    )
    steps = 2 if not isinstance(objective, rf.Cumulative) else 2 - Fraction(1, 512)
    bounds = rf.solve(model, rf.Spec(objective, rf.MIN, rf.MAX)).at_initial()
    exact = Fraction(reward) * steps
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)


def test_values_that_overflow():
    """What does not fit into floats is an error, never a bound."""
    model = rf.FactoredMDP.from_rows(
        [[([], [0])]], [], rewards={"cost": rf.Rewards([1e100], [0.0])}
    )
    almost = rf.Discounted(math.nextafter(1.0, 0.0))
    bounds = rf.solve(model, rf.Spec(almost), limits=rf.Limits(sweeps=1000)).at_initial()
    assert bounds.lower <= 1e100 * 2.0**53 <= bounds.upper


def test_a_file_in_place_of_a_model_was_an_attribute_error():
    """The message says what opens files."""
    for ask in (
        lambda: rf.solve("model.prism", TEXT),
        lambda: rf.evaluate("model.prism", rf.Policy(np.zeros((1, 1), int)), TEXT),
    ):
        with pytest.raises(UnsupportedError, match="got a str; `open_model` opens files"):
            ask()
