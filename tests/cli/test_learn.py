"""`rfmdp learn` by argv."""

import json

import pytest

from rfmdp.cli.main import run
from rfmdp.files import load

FEW = ["--const", "N=3", "--trajectories", "300", "--length", "20", "--method", "gap-directed"]
REACH = ["--prop", 'Pmaxmin=? [ F<=4 "top" ]']


def test_prints_the_guarantee_with_its_assumptions(folder, capsys):
    """The statement names probability, validity and assumptions."""
    assert run(["learn", "m.prism", *REACH, *FEW]) == 0
    out = capsys.readouterr().out
    assert "With probability at least 0.9999" in out
    assert "Assumptions:" in out
    assert "Result: " in out


def test_json_of_several_seeds_and_a_plot(folder, capsys):
    """One object per seed, run files by seed, a curve with its band."""
    words = ["--json", "--seeds", "2", "--plot", "curve.png", "-o", "run.rfmdp"]
    assert run(["learn", "m.prism", *REACH, *FEW, *words]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["seed"] for r in records] == [0, 1]
    assert records[0]["history"] != records[1]["history"]
    assert records[0]["validity"] == "anytime"
    assert (folder / "curve.png").stat().st_size > 1000
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


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--method", "magic"], "no learning method"),
        (["--resume"], "-o FILE"),
        (["--seeds", "0"], "--seeds"),
        (["--inner", "magic"], "--inner"),
    ],
)
def test_wrong_words_are_one_line(folder, capsys, words, complaint):
    """User errors end with code 1 and say what to try."""
    assert run(["learn", "m.prism", *REACH, "--const", "N=3", *words]) == 1
    assert complaint in capsys.readouterr().err


def test_lists_methods(folder, capsys):
    """`--method list` names all methods."""
    assert run(["learn", "m.prism", "--method", "list"]) == 0
    assert "paper-mccormick" in capsys.readouterr().out
