"""Chains of a policy with nature fixed: their values, and simulations that agree with them."""

import json
from itertools import pairwise

import pytest

from rfmdp.cli.main import run
from rfmdp.errors import UnsupportedError
from rfmdp.objective import MAX, MIN, Reach, Spec, Until
from rfmdp.policies.natures import NatureChoice, resolved, trace
from rfmdp.ragged import entries
from rfmdp.sets.membership import contains
from rfmdp.solving import evaluate, solve

from .test_decisions import walk
from .test_files import GRID

SPEC = Spec(Reach("goal"), MAX, MIN)


def test_chains_have_the_values_of_their_natures():
    """Worst and best chains attain the policy's bounds; nominal and random ones lie between."""
    model = walk()
    policy = solve(model, SPEC).policy
    worst = evaluate(model, policy, SPEC, nature=MIN).at_initial()
    best = evaluate(model, policy, SPEC, nature=MAX).at_initial()
    value = {
        nature: solve(resolved(model, policy, SPEC, nature), SPEC).at_initial()
        for nature in NatureChoice
    }
    assert value[NatureChoice.WORST].lower <= worst.upper
    assert worst.lower <= value[NatureChoice.WORST].upper
    assert value[NatureChoice.BEST].upper >= best.lower
    for nature in NatureChoice:
        assert value[nature].upper >= worst.lower
        assert value[nature].lower <= best.upper


def test_random_members_are_members():
    """Whatever the seed, every distribution lies in its set; different seeds differ."""
    model, policy = walk(), solve(walk(), SPEC).policy
    seen = set()
    for seed in range(20):
        chain = resolved(model, policy, SPEC, NatureChoice.RANDOM, seed)
        for uset, point in zip(model.marginals, chain.marginals, strict=True):
            assert contains(uset, point.nominal, 1e-12)
            seen.add(tuple(point.nominal.tolist()))
    assert len(seen) > 20


def test_a_policy_that_changes_with_time_is_refused():
    """Nature's worst case would change with time as well."""
    solution = solve(walk(), Spec(Until("live", "goal", latest=2), MAX, MIN))
    with pytest.raises(UnsupportedError, match="do not change with time"):
        resolved(walk(), solution.policy, solution.spec, NatureChoice.WORST)


def test_a_trace_is_a_trajectory():
    """Every line is a state, and the next one is a successor; it ends where it must stop."""
    model, policy = walk(), solve(walk(), SPEC).policy
    chain = resolved(model, policy, SPEC, NatureChoice.WORST)
    stop = model.label("end")
    for seed in range(5):
        lines = list(trace(chain, 50, stop, seed))
        states = [int(line.split("state ")[1].split()[0]) for line in lines]
        assert states[0] == 0
        assert stop[states[-1]]
        for here, after in pairwise(states):
            assert after in chain.successors[entries(chain.successor_ptr, chain.row_ptr[[here]])]


@pytest.mark.parametrize("nature", ["worst", "best", "nominal"])
def test_simulated_means_agree_with_certified_values(tmp_path, capsys, nature):
    """The interval of many runs contains the proven value (error 0.05, one fixed seed each)."""
    model, result = tmp_path / "grid.prism", str(tmp_path / "r.rfmdp")
    model.write_text(GRID)
    words = [str(model), "--const", "N=3,slip=0.4", "--radius", "0.1"]
    goal = ["--prop", 'Rminmax=? [ F "goal" ]']
    model.write_text(GRID + "rewards true : 1; endrewards")
    assert run(["solve", *words, *goal, "-o", result]) == 0
    capsys.readouterr()
    assert run(["evaluate", *words, *goal, "--policy", result, "--json"]) == 0
    proven = json.loads(capsys.readouterr().out)[nature]
    more = ["--policy", result, "--nature", nature, "--length", "400", "--json", "--seed", "5"]
    assert run(["simulate", *words, *goal, *more]) == 0
    found = json.loads(capsys.readouterr().out)
    middle, half = found["mean"], (found["upper"] - found["lower"]) / 2
    assert abs(middle - (proven["lower"] + proven["upper"]) / 2) <= 2 * half


def test_trace_on_the_command_line(tmp_path, capsys):
    """A readable trajectory comes before the report; it needs a policy."""
    model, result = tmp_path / "grid.prism", str(tmp_path / "r.rfmdp")
    model.write_text(GRID)
    words = [str(model), "--const", "N=3,slip=0.4", "--prop", 'Pmaxmin=? [ F "goal" ]']
    assert run(["solve", *words, "--radius", "0.1", "-o", result]) == 0
    assert run(["simulate", *words, "--radius", "0.1", "--policy", result, "--trace"]) == 0
    text = capsys.readouterr().out
    assert "(x=0, up=0)  right: " in text
    assert run(["simulate", *words, "--trace"]) == 1
    assert run(["simulate", *words, "--nature", "wurst"]) == 1
    assert capsys.readouterr().err.count("\n") == 2
