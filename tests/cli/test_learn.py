"""`rfmdp learn` by argv."""

import json
from dataclasses import replace
from os import terminal_size

import pytest

from rfmdp.cli.main import run
from rfmdp.formats.files import load
from rfmdp.learning import evaluation
from rfmdp.outer.solution import Status

FEW = ["--const", "N=3", "--trajectories", "300", "--length", "20", "--method", "tied"]
REACH = ["--prop", 'Pmaxmin=? [ F<=4 "top" ]']


def test_prints_the_guarantee_with_its_assumptions(folder, capsys):
    """The statement names probability, validity and assumptions."""
    assert run(["learn", "m.prism", *REACH, *FEW]) == 0
    out = capsys.readouterr().out
    assert "With probability at least 0.9999" in out
    assert "Assumptions:" in out
    assert "Result: " in out


def test_json_of_several_seeds(folder, capsys):
    """One object per seed, run files by seed."""
    words = ["--json", "--seeds", "2", "--jobs", "1", "-o", "run.rfmdp"]
    assert run(["learn", "m.prism", *REACH, *FEW, *words]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["seed"] for r in records] == [0, 1]
    assert records[0]["history"] != records[1]["history"]
    assert records[0]["validity"] == "anytime"
    assert load(folder / "run-1.rfmdp").guarantee == records[1]["guarantee"]


def test_resume_goes_on(folder, capsys):
    """A run with more trajectories continues the file and equals one that was never stopped."""
    run(["learn", "m.prism", *REACH, *FEW, "-o", "a.rfmdp"])
    more = [*FEW[:3], "900", *FEW[4:]]
    assert run(["learn", "m.prism", *REACH, *more, "-o", "a.rfmdp", "--resume"]) == 0
    run(["learn", "m.prism", *REACH, *more, "-o", "b.rfmdp"])
    first, second = load(folder / "a.rfmdp"), load(folder / "b.rfmdp")
    assert (first.counts == second.counts).all()
    assert first.guarantee == second.guarantee


@pytest.mark.parametrize("as_json", [True, False])
def test_a_seed_that_fails_does_not_take_the_others_with_it(folder, capsys, as_json):
    """Its file is damaged: it is reported, the seeds before and after it are learned."""
    (folder / "run-1.rfmdp").write_bytes(b"nothing")
    words = ["--seeds", "3", "--jobs", "1", "-o", "run.rfmdp", "--resume"]
    words += ["--json"] if as_json else []
    assert run(["learn", "m.prism", *REACH, *FEW, *words]) == 1
    out, error = capsys.readouterr()
    assert "rfmdp: error: seed 1: run-1.rfmdp" in error
    if as_json:
        records = [json.loads(line) for line in out.splitlines()]
        assert [record["seed"] for record in records] == [0, 1, 2]
        assert ["error" in record for record in records] == [False, True, False]
    else:
        assert [line for line in out.splitlines() if line.startswith("seed ")] == [
            "seed 0: all trajectories run", "seed 2: all trajectories run"
        ]  # fmt: skip
    assert load(folder / "run-2.rfmdp").stopped == "all trajectories run"


def test_ctrl_c_advises_to_resume_only_what_is_there(folder, capsys, monkeypatch):
    """Before the first evaluation there is no file to go on with."""

    def interrupted(*_, output, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rfmdp.learning.learn.learn", interrupted)
    words = ["learn", "m.prism", *REACH, *FEW, "--seeds", "2", "--jobs", "1", "-o", "run.rfmdp"]
    assert run(words) == 130
    assert "--resume" not in capsys.readouterr().err
    (folder / "run-0.rfmdp").write_bytes(b"a run")
    assert run([*words, "--resume"]) == 130
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize("prop", ['Pmax=? [ F "top" ]', 'Pmin=? [ F "top" ]'])
def test_help_from_nature_is_no_guarantee(folder, capsys, prop):
    """What is unknown must work against the agent, or the statement would be false."""
    assert run(["learn", "m.prism", "--prop", prop, "--const", "N=3"]) == 1
    assert "nothing would be guaranteed; write Pmaxmin" in capsys.readouterr().err


def test_assumptions_are_words(folder, capsys):
    """Options reach the loop, and what they assume is printed."""
    words = [
        *("--method", "tied", "--p-min", "0.01", "-o", "run.rfmdp"),
    ]
    few = ["--const", "N=3", "--trajectories", "300", "--length", "20"]
    assert run(["learn", "m.prism", *REACH, *few, *words]) == 0
    out = capsys.readouterr().out
    assert "p_min = 0.01" in out
    assert "equal probabilities in the model are the same" in out
    assert load(folder / "run.rfmdp").settings["method"] == "tied"
    cost = ["--prop", 'R{"moves"}minmax=? [ F "top" ]', "--rewards", "0:2", "--json"]
    assert run(["learn", "m.prism", *cost, *few]) == 0
    record = json.loads(capsys.readouterr().out)
    assert "every reward lies in [0, 2]" in record["assumptions"]
    assert record["guarantee"] == "Infinity" or record["guarantee"] > 0


def test_progress_on_a_terminal(folder, capsys, monkeypatch):
    """One line that changes: guarantee, true value, speed, time left."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("rfmdp.cli.terminal.PATIENCE", 0.001)
    monkeypatch.setattr("rfmdp.cli.terminal.REFRESH", 0.0)
    monkeypatch.setattr("rfmdp.cli.terminal.get_terminal_size", lambda: terminal_size((200, 20)))
    run(["learn", "m.prism", *REACH, *FEW])
    lines = [x for x in capsys.readouterr().err.split("\r") if "guarantee" in x]
    assert lines
    assert all("true value" in x and "steps/s" in x and "s left" in x for x in lines)


def test_ctrl_c_that_a_solver_caught_ends_the_run(folder, monkeypatch, capsys):
    """It returns its bounds with a note in the status; learning does not go on with them."""
    solve = evaluation.solve

    def interrupted(*args, **words):
        return replace(solve(*args, **words), status=Status.INTERRUPTED)

    monkeypatch.setattr(evaluation, "solve", interrupted)
    assert run(["learn", "m.prism", *REACH, *FEW]) == 130


def test_json_has_the_ledger(folder, capsys):
    """What was spent is at most what there was."""
    assert run(["learn", "m.prism", *REACH, *FEW, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.0 < found["ledger"]["spent_on_model"] <= found["ledger"]["model"] <= found["beta"]


def test_progress_away_from_a_terminal(folder, capsys, monkeypatch):
    """Plain lines, one in a while; here the while is short."""
    monkeypatch.setattr("rfmdp.cli.terminal.PLAIN", 0.0)
    run(["learn", "m.prism", *REACH, *FEW])
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("learning: ") and "\r" not in line for line in lines)
