"""The model that a policy leaves has the value of the policy, in every format."""

import numpy as np
import pytest

from outer.test_storm import random_mdp
from rfmdp.cli.main import run
from rfmdp.formats.files import save
from rfmdp.objective import (
    MAX,
    MIN,
    BudgetUntil,
    Cumulative,
    Discounted,
    LongRunAverage,
    Reach,
    ReachReward,
    Spec,
    Until,
)
from rfmdp.opening import open_model
from rfmdp.outer.task import Limits
from rfmdp.policies.induced import NatureChoice, induced_model
from rfmdp.solving import solve

# of the unfolded and unrolled models, memory is in the state: what is left to ask of them
QUESTIONS = {
    Reach("goal"): Reach("goal"),
    ReachReward("goal", "cost"): ReachReward("goal", "cost"),
    Discounted(0.9, "cost"): Discounted(0.9, "cost"),
    LongRunAverage("cost"): LongRunAverage("cost"),
    Until("safe", "goal", 6): Until("safe", "goal", 6),
    Cumulative(5, "cost"): Cumulative(5, "cost"),
    BudgetUntil("safe", "goal", 6, "cost"): Until("safe", "goal"),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", QUESTIONS, ids=str)
@pytest.mark.parametrize("agent", [MAX, MIN])
def test_an_induced_model_has_the_value_of_the_policy(objective, seed, agent):
    """With its sets, and with nature at its worst; both lie between the bounds of the solution."""
    model = random_mdp(seed, radius=0.1)
    solution = solve(model, Spec(objective, agent, agent.opposite), limits=Limits(precision=1e-9))
    left = induced_model(solution)
    worst = induced_model(solution, NatureChoice.WORST)
    assert left.rows == left.states
    assert worst.rows == worst.states
    assert not worst.uncertain
    bounds = solution.at_initial()
    for induced in (left, worst):
        question = Spec(QUESTIONS[objective], agent, agent.opposite)
        value = solve(induced, question, limits=Limits(precision=1e-9)).at_initial()
        # nature's answers are those to one bound: as good as the bounds are close
        slack = 1e-5 * max(1.0, abs(bounds.upper)) if np.isfinite(bounds.upper) else 0.0
        assert value.lower <= bounds.upper + slack
        assert bounds.lower - slack <= value.upper


def test_memory_is_a_variable():
    """Steps and payments tell states apart that are one state of the model."""
    model = random_mdp(1, radius=0.1)
    for objective, name, most in ((Until("safe", "goal", 4), "step", 4),
                                  (BudgetUntil("safe", "goal", 4, "cost"), "paid", 5)):  # fmt: skip
        induced = induced_model(solve(model, Spec(objective, MAX, MIN)))
        assert [v.name for v in induced.variables] == ["state", name]
        assert induced.variables[1].high == most
        assert len(np.unique(induced.valuations, axis=0)) == induced.states


@pytest.mark.parametrize("nature", ["sets", "worst"])
@pytest.mark.parametrize("ending", ["umb", "tra", "rfmdp"])
def test_files_of_induced_models(ending, nature, tmp_path, monkeypatch, capsys):
    """They are complete: read again, the question has the same value. Tables take no nature."""
    monkeypatch.chdir(tmp_path)
    spec = Spec(Reach("goal"), MAX, MIN)
    solution = solve(random_mdp(2, factors=1, radius=0.1), spec)
    save(solution, "a.rfmdp")
    assert run(["policy", "a.rfmdp", "-o", f"i.{ending}", "--nature", nature]) == 0
    assert f"i.{ending}" in capsys.readouterr().out
    again = solve(open_model(f"i.{ending}"), spec).at_initial()
    assert again.lower == pytest.approx(solution.at_initial().lower, abs=1e-6)
    assert run(["policy", "a.rfmdp", "-o", "i.csv", "--nature", "worst"]) == 1
    assert "--nature needs a model file" in capsys.readouterr().err
