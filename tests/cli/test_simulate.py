"""`rfmdp simulate` by argv, and learning from what it recorded."""

import json

import numpy as np
import pytest

from rfmdp.cli.main import run
from rfmdp.formats.files import load

MODEL = ["m.prism", "--const", "N=3"]
REACH = ["--prop", 'Pmaxmin=? [ F<=4 "top" ]']
COST = ["--prop", 'R{"moves"}minmax=? [ F "top" ]']


def test_mean_of_the_optimal_policy_is_its_value(folder, capsys):
    """The interval of a simulated optimum holds the solved one (seed fixed)."""
    run(["solve", *MODEL, *COST, "--json"])
    value = json.loads(capsys.readouterr().out)["value"]
    words = ["--policy", "optimal", "--json", "--trajectories", "20000", "--length", "1000"]
    assert run(["simulate", *MODEL, *COST, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lower"] <= value <= found["upper"]
    assert found["ended"] == 1.0
    assert found["steps_per_second"] > 0


def test_cut_off_trajectories_are_told(folder, capsys):
    """A note says that a mean over too short trajectories is not the property's value."""
    assert run(["simulate", *MODEL, *COST, "--trajectories", "100", "--length", "1"]) == 0
    assert "were cut off after 1 steps" in capsys.readouterr().err
    assert run(["simulate", *MODEL, *COST, "--trajectories", "100", "--length", "10000"]) == 0
    assert capsys.readouterr().err == ""


def test_policies_come_from_files(folder, capsys):
    """Solutions and learning runs hold policies; step bounds set the length."""
    run(["solve", *MODEL, *REACH, "-o", "s.rfmdp"])
    run(["learn", *MODEL, *REACH, "--trajectories", "200", "-o", "l.rfmdp"])
    capsys.readouterr()
    for file in ("s.rfmdp", "l.rfmdp"):
        assert run(["simulate", *MODEL, *REACH, "--policy", file]) == 0
        out = capsys.readouterr().out
        assert "Clopper-Pearson" in out
        assert "million steps per second" in out


def test_recorded_transitions_are_learned_from(folder, capsys):
    """Counts of a file are those of the simulation; one look, no truth, its own assumption."""
    words = ["--trajectories", "4000", "--length", "20", "--seed", "3", "--record", "d.csv"]
    assert run(["simulate", *MODEL, *REACH, *words]) == 0
    capsys.readouterr()
    data = ["--data", "d.csv", "--selection", "none"]
    assert run(["learn", *MODEL, *REACH, *data, "-o", "r.rfmdp"]) == 0
    out = capsys.readouterr().out
    assert "every transition of the source was recorded" in out
    learned = load(folder / "r.rfmdp")
    assert 4000 <= learned.counts.sum() < len((folder / "d.csv").read_text().splitlines())
    assert np.isnan(learned.history[-1].performance)
    run(["solve", *MODEL, *REACH, "--json"])
    best = json.loads(capsys.readouterr().out)["value"]
    assert 0.3 * best < learned.guarantee <= best


def test_a_nature_that_answers_every_step_anew_is_noticed(folder, capsys):
    """The worst nature of a horizon is no fixed distribution: its records raise an alarm."""
    run(["solve", *MODEL, *REACH, "--radius", "0.1", "-o", "s.rfmdp"])
    words = ["--radius", "0.1", "--policy", "s.rfmdp", "--nature", "worst", "--record", "d.csv"]
    assert run(["simulate", *MODEL, *REACH, *words]) == 0
    assert run(["learn", *MODEL, *REACH, "--data", "d.csv", "--selection", "none"]) == 2
    assert "ALARM: what happens does not depend on what was before" in capsys.readouterr().out


def test_discounted_trajectories_are_told_to_be_cut_off(folder, capsys):
    """Where what follows counts, a note says so; where it does not, nothing is said."""
    words = ["--prop", 'R{"moves"}max=? [ C{discount=0.9} ]', "--trajectories", "100"]
    assert run(["simulate", *MODEL, *words, "--length", "5"]) == 0
    assert "100 % of the trajectories were cut off after 5 steps" in capsys.readouterr().err
    assert run(["simulate", *MODEL, *words, "--length", "500"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([*REACH, "--policy", "nobody.rfmdp"], "cannot be read"),
        ([*REACH, "--policy", "m.rfmdp"], "must hold a policy"),
        ([*REACH, "--nature", "worst"], "--nature needs a policy"),
        ([], "A property is needed"),
        ([*REACH, "--trajectories", "0"], "--trajectories must be > 0"),
    ],
)
def test_wrong_words_are_one_line(folder, capsys, words, complaint):
    """User errors end with code 1 and say what must hold."""
    run(["convert", *MODEL, "m.rfmdp"])
    capsys.readouterr()
    assert run(["simulate", *MODEL, *words]) == 1
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_data_of_another_model_is_refused(folder, capsys):
    """Its states are not those of the structure."""
    run(["simulate", *MODEL, *REACH, "--record", "d.csv"])
    data = ["--data", "d.csv", "--selection", "none"]
    assert run(["learn", "m.prism", "--const", "N=2", *REACH, *data]) == 1
    assert "have no value of x in 0..2 in column 'next_x'" in capsys.readouterr().err


def test_trajectories_that_cannot_win_any_more_were_called_cut_off(folder, capsys):
    """A longer trajectory would tell nothing new about them, so that is not advised."""
    words = ["--prop", 'Pmaxmin=? [ F "goal" ]', "--trajectories", "1000"]
    assert run(["simulate", "interval.prism", *words]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "% can never reach the target)" in told.out
    assert run(["simulate", "interval.prism", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.6 < found["lost"] < 0.8
    assert found["ended"] + found["lost"] == pytest.approx(1.0)
    assert found["mean"] == found["ended"]
