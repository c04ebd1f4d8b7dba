"""Explanations: numbers that belong together, and what knowing a marginal is worth."""

import numpy as np
import pytest

from rfmdp.answers.answer import check
from rfmdp.errors import ModelError
from rfmdp.formats.files import load, save
from rfmdp.language.build import parse_prism
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec, Until
from rfmdp.policies.explain import collect_next, explain
from rfmdp.solving import solve

from .test_decisions import walk
from .test_files import GRID, SPEC, grid


@pytest.mark.parametrize("state", range(5))
def test_shares_add_up(state):
    """Nature's distributions, nominal ones and those over successors sum to one."""
    found = explain(solve(walk(), Spec(Reach("goal"), MAX, MIN)), state)
    for marginal in found.nature:
        assert sum(o.nature for o in marginal.outcomes) == pytest.approx(1.0, abs=1e-14)
        assert sum(o.nominal for o in marginal.outcomes) == pytest.approx(1.0, abs=1e-14)
        for o in marginal.outcomes:
            assert o.lower - 1e-15 <= o.nature <= o.upper + 1e-15
    assert sum(s.nature for s in found.successors) == pytest.approx(1.0, abs=1e-14)


def test_successors_explain_the_value_of_the_action():
    """Nature's expectation of the values there is the value of the chosen action."""
    found = explain(solve(walk(), Spec(Reach("goal"), MAX, MIN)), 0)
    chosen = next(c for c in found.choices if c.chosen)
    high = sum(s.nature * s.value.upper for s in found.successors)
    assert chosen.value.lower - 1e-12 <= high <= chosen.value.upper + 1e-12


def test_words_name_the_choice_and_what_nature_does():
    """The text shows the chosen action, the shifted probabilities and where it leads."""
    model = grid()
    text = str(explain(solve(model, SPEC), model.find(x=0, up=0)))
    assert "(x=0, up=0)" in text
    assert "> right" in text
    assert "Nature in robot: [right]" in text or "Nature has no choice" in text
    assert "Next" in text


def test_a_step_of_a_horizon_is_explained_with_what_is_left():
    """With one step left, the value of an action is the chance to arrive at once."""
    spec = Spec(Until("live", "goal", latest=3), MAX, MIN)
    found = explain(solve(walk(), spec), 2, step=2)
    best = max(c.value.upper for c in found.choices)
    assert best == pytest.approx(max(0.4, 0.3), abs=1e-9)  # the coin's tails, or the die's third


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_gains_are_those_of_solving_again(agent):
    """Knowing more never hurts, and each gain is the difference of two guarantees."""
    goal = Reach("goal") if agent is MAX else ReachReward("end")
    spec = Spec(goal, agent, MIN if agent is MAX else MAX)
    solution = solve(walk(), spec)
    found = {one.identifier: one.gain for one in collect_next(solution)}
    assert set(found) <= {"marginal 0", "marginal 1"}
    assert all(gain >= 0.0 for gain in found.values())
    known = solve(walk().nominal(), spec).at_initial()
    now = solution.at_initial()
    most = known.upper - now.lower if agent is MAX else now.upper - known.lower
    assert all(gain <= most + 1e-9 for gain in found.values())


def test_states_are_found_by_their_variables():
    """All variables must be given, and the state must be there."""
    model = grid()
    state = model.find(x=2, up=1)
    assert model.valuations[state].tolist() == [2, 1]
    for wrong in {"x": 2}, {"x": 2, "up": 1, "z": 0}, {"x": 99, "up": 0}:
        with pytest.raises(ModelError):
            model.find(**wrong)
    assert np.array_equal([model.find(x=int(x), up=int(u)) for x, u in model.valuations],
                          np.arange(model.states))  # fmt: skip


LEFT = np.array([False, True, False, False, False])  # a state with actions that lead elsewhere


@pytest.mark.parametrize(
    "objective",
    [Reach(LEFT), Until(~LEFT, "goal"), Until(~LEFT, "goal", latest=3), ReachReward(LEFT)],
    ids=["reach", "until", "steps", "reward"],
)
def test_where_all_is_decided_no_action_is_better(objective):
    """What follows a decided state does not count: every action there has the state's value."""
    found = explain(solve(walk(), Spec(objective, MAX, MIN), states=LEFT), 1)
    assert len(found.choices) == 2
    assert {choice.value for choice in found.choices} == {found.value}


@pytest.mark.parametrize(
    "text", ["Pmaxmin=? [ F x=1 ]", "Pminmax=? [ F x=2 ]", "Pmaxmin=? [ G x!=2 ]"]
)
def test_probabilities_stay_probabilities(text):
    """Margins for rounding do not show as probabilities below 0 or above 1."""
    model = parse_prism(
        "imdp module m x:[0..2]; [a] x=0 -> [0,0.3]:(x'=1) + [0.7,1]:(x'=2); "
        "[b] x=0 -> [0,0.4]:(x'=1) + [0.5,1]:(x'=2); [] x>0 -> true; endmodule"
    )
    solution = solve(model, text)
    for state in range(model.states):
        found = explain(solution, state)
        for bounds in (found.value, *(choice.value for choice in found.choices)):
            assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
        assert "[-" not in str(found)


@pytest.mark.parametrize("step", [-1, 3, 4])
def test_no_decision_is_explained_beyond_the_horizon(step):
    """After the last step there is nothing to decide."""
    solution = solve(walk(), Spec(Until("live", "goal", latest=3), MAX, MIN))
    with pytest.raises(ModelError, match=r"step must be in 0\.\.2"):
        explain(solution, 0, step=step)


def test_the_guarantee_has_a_side():
    """Costs are at most, chances at least; with a nature that helps, neither is promised."""
    model = walk()
    chance, cost = Reach("goal"), ReachReward("end")
    assert "guarantees a value of at least 1." in str(explain(solve(model, Spec(chance)), 0))
    costs = str(explain(solve(model, Spec(cost, MIN, MAX)), 0))
    assert 'Property Rminmax=? [ F "end" ]' in costs
    assert "guarantees a value of at most " in costs
    helped = str(explain(solve(model, Spec(chance, MAX, MAX)), 0))
    assert "guarantees" not in helped
    assert "with a nature that helps" in helped


def test_formulas_in_updates_and_properties(tmp_path):
    """Updates are shown as they were written, properties by what their formulas stand for."""
    text = GRID.replace("x'=x+1", "x'=ahead").replace("module", "formula ahead = x+1;\nmodule", 1)
    text += "formula there = x=N;"
    model = parse_prism(text, {"N": 4, "slip": 0.2}).with_radius(0.05)
    save(check(model, "Pmaxmin=? [ F<=9 there ]").solution, tmp_path / "r.rfmdp")
    found = explain(load(tmp_path / "r.rfmdp"), 0)
    assert found.property == "Pmaxmin=? [ F<=9 (x=4) ]"
    assert "(x'=ahead)" in str(found)


def test_renamed_modules_show_what_their_formulas_mean():
    """The name of a formula would mean another variable there."""
    text = """mdp formula ahead = min(x+1,3);
    module a x : [0..3]; [go] true -> 0.5 : (x'=ahead) + 0.5 : true; endmodule
    module b = a [x=y] endmodule"""
    model = parse_prism(text)
    assert model.outcome_names == ("(x'=ahead)", "true", "(y'=min(y+1, 3))", "true")
