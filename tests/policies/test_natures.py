"""Chains of a policy with nature fixed: their values, and simulations that agree with them."""

import json
import math

import numpy as np
import pytest

from outer.random_specs import OBJECTIVES as TINY, tiny_model
from rfmdp.cli.main import run
from rfmdp.objective import MAX, MIN, Reach, Spec, Until
from rfmdp.outer.solution import Policy
from rfmdp.policies.induced import NatureChoice, resolved
from rfmdp.solving import evaluate, solve

from .test_decisions import OBJECTIVES, walk
from .test_files import GRID

SPEC = Spec(Reach("goal"), MAX, MIN)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_chains_have_the_values_of_their_natures(objective):
    """Worst and best chains attain the policy's bounds; nominal ones lie between."""
    model, spec = walk(), Spec(objective, MAX, MIN)
    policy = solve(model, spec).policy
    worst = evaluate(model, policy, spec, nature=MIN).at_initial()
    best = evaluate(model, policy, spec, nature=MAX).at_initial()
    value = {}
    for nature in NatureChoice:
        found, asked = resolved(model, policy, spec, nature)
        value[nature] = solve(found.model, asked).at_initial()
    assert _meet(value[NatureChoice.WORST], worst)
    assert _meet(value[NatureChoice.BEST], best)
    for nature in NatureChoice:
        assert value[nature].upper >= worst.lower
        assert value[nature].lower <= best.upper


def _meet(one, other):
    return one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_natures_attain_the_bounds_of_any_policy(seed):
    """On random models, for all objectives: the worst chain has the worst proven value."""
    model, rng = tiny_model(seed), np.random.default_rng(seed)
    rows = rng.integers(model.row_ptr[:-1], model.row_ptr[1:])
    for name, objective in TINY.items():
        for agent, nature in ((MAX, MIN), (MIN, MAX)):
            spec = Spec(objective, agent, nature)
            for policy in (Policy(rows[None]), solve(model, spec).policy):
                proven = evaluate(model, policy, spec)
                found, asked = resolved(model, policy, spec, NatureChoice.WORST)
                chain = solve(found.model, asked, states=np.ones(found.model.states, bool))
                for place, state in zip(found.model.initial, model.initial, strict=True):
                    got, wanted = chain.at(int(place)), proven.at(int(state))
                    if np.isfinite(wanted.upper):  # else any answers are given
                        assert _meet(got, wanted), (name, agent, got, wanted)


def test_nature_answers_every_step_anew():
    """The worst chain of a horizon is below that of any one answer for all steps."""
    model, spec = walk(), Spec(Until("live", "goal", latest=3), MAX, MIN)
    stationary = Policy(model.row_ptr[:-1][None])
    found, asked = resolved(model, stationary, spec, NatureChoice.WORST)
    assert found.model.states > model.states
    assert solve(found.model, asked).at_initial().upper == pytest.approx(
        evaluate(model, stationary, spec).at_initial().lower, abs=1e-9
    )
    assert np.array_equal(model.row_states[found.rows], found.states)


PROPERTIES = [
    'Pmaxmin=? [ F<=4 "goal" ]',
    'Pmaxmin=? [ F[2,5] "goal" ]',
    'Pmaxmin=? [ !"goal" U>=3 "goal" ]',
    'Pmaxmin=? [ G<=3 !"goal" ]',
    'Pminmax=? [ G[2,4] !"goal" ]',
    'Pmaxmin=? [ G x<2 ]',
    'Pmaxmin=? [ X x=1 ]',
    'Rmaxmin=? [ I=3 ]',
    'Rminmax=? [ C<=5 ]',
    'Rminmax=? [ F "goal" ]',
]  # fmt: skip


@pytest.mark.parametrize("text", PROPERTIES)
def test_simulated_means_agree_with_certified_values(tmp_path, capsys, text):
    """The mean of 20,000 runs is as far from the proven value as luck of 1e-6 allows.

    Hoeffding: a mean of n values within [0, c] is off by more than c sqrt(ln(2 / 1e-6) / 2n) with
    probability 1e-6 at most. Costs here are bounded by `most`, but for a share of trajectories
    that is less than that.
    """
    model, result = tmp_path / "grid.prism", str(tmp_path / "r.rfmdp")
    model.write_text(GRID + "rewards true : x + 1; endrewards")
    words = [str(model), "--const", "N=3,slip=0.4", "--radius", "0.1", "--prop", text]
    assert run(["solve", *words, "-o", result]) == 0
    capsys.readouterr()
    assert run(["evaluate", *words, "--policy", result, "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    most = 100.0 if text.startswith("R") else 1.0
    off = most * math.sqrt(math.log(2 / 1e-6) / (2 * 20_000))
    for nature in ("worst", "best", "nominal"):
        more = ["--policy", result, "--nature", nature, "--length", "1000", "--json", "--seed", "5"]
        assert run(["simulate", *words, *more, "--trajectories", "20000"]) == 0
        out = capsys.readouterr()
        assert out.err == ""  # nothing was cut off
        proven, mean = evaluated[nature], json.loads(out.out)["mean"]
        assert proven["lower"] - off <= mean <= proven["upper"] + off
        assert proven["status"] == "certified"
