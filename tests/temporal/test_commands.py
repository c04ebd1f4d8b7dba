"""Policies with memory on the command line: exported, simulated, evaluated and explained."""

import csv

import pytest

from rfmdp.answers.property import parse_property
from rfmdp.cli.main import run
from rfmdp.errors import PrismError
from rfmdp.formats.files import load
from rfmdp.opening import open_model
from rfmdp.solving import solve

from .test_solve import ROBOT

FORMULA = "Pmaxmin=? [ F ((x=1) & (X ((x=2) & (X x=4)))) ]"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.prism").write_text(ROBOT)
    assert (
        run(["solve", "robot.prism", "--radius", "0.05", "--prop", FORMULA, "-o", "r.rfmdp"]) == 0
    )
    return tmp_path


def test_a_policy_with_memory_is_a_table_over_state_and_memory(folder, capsys):
    """The exported table has the automaton's state as a column, and comes back by its names."""
    assert run(["policy", "r.rfmdp", "-o", "policy.csv"]) == 0
    table = list(csv.DictReader((folder / "policy.csv").read_text().splitlines()))
    assert {"x", "broken", "memory", "action"} <= set(table[0])
    capsys.readouterr()
    for policy in ("policy.csv", "r.rfmdp"):
        words = ["evaluate", "robot.prism", "--radius", "0.05", "--policy", policy]
        assert run([*words, "--prop", FORMULA]) == 0
        # 0.65 is what nature leaves of the jump from x=2 to x=4, all before it is sure
        assert "worst     [0.64999" in capsys.readouterr().out


def test_a_policy_with_memory_is_simulated_and_explained(folder, capsys):
    """The commands that take a result take one with memory."""
    words = ["simulate", "robot.prism", "--radius", "0.05", "--policy", "r.rfmdp"]
    assert run([*words, "--prop", FORMULA, "--nature", "worst", "--seed", "1"]) == 0
    assert run(["explain", "r.rfmdp"]) == 0
    assert "memory=0" in capsys.readouterr().out


@pytest.mark.parametrize("formula", ["!broken W x=4", "x=4 R !broken", "!(x<3 U<=4 broken)"])
def test_weak_formulas_are_saved_and_proven_again(formula, tmp_path, monkeypatch, capsys):
    """A single W, R or negated U is a result like any other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.prism").write_text(ROBOT)
    words = ["solve", "robot.prism", "--radius", "0.05", "--prop", f"Pmaxmin=? [ {formula} ]"]
    assert run([*words, "-o", "weak.rfmdp"]) == 0
    assert run(["verify", "weak.rfmdp"]) == 0
    assert "Result: valid" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("F (x=1 & X x=2)", "F ((x=1) & (X (x=2)))"),
        ("F x=1 & X x=2", "F ((x=1) & (X (x=2)))"),
        ("G (x=1 => F<=3 !broken)", "G ((x=1) => (F<=3 (!broken)))"),
        ("x=1 & G F x>2", "(x=1) & (G (F (x>2)))"),
        ("x=0 & X x=1 U x=4", "((x=0) & (X (x=1))) U (x=4)"),
    ],
)
def test_the_last_path_operator_of_a_chain_needs_no_parentheses(short, full):
    """X, F and G end a chain; comparisons belong to their operands in every reading."""
    texts = [parse_property(f"P=? [ {path} ]").text for path in (short, full)]
    assert texts[0] == texts[1]


def test_a_path_operator_within_a_chain_needs_parentheses():
    """`a & X b & c` has two readings, so neither is taken."""
    with pytest.raises(PrismError, match="write the path formula in parentheses"):
        parse_property("P=? [ F (x=1 & X x=2 & x=3) ]").spec()


PATROL = """
mdp
module robot
  place : [0..4];
  [stairs] place=0 -> 0.9 : (place'=1) + 0.1 : (place'=4);
  [left] place=1 -> 0.7 : (place'=2) + 0.3 : true;
  [right] place=1 -> 0.6 : (place'=3) + 0.4 : true;
  [back] place=2 | place=3 -> 0.9 : (place'=1) + 0.1 : true;
  [wait] place=4 -> true;
endmodule
label "one" = place=2;
label "two" = place=3;
label "shaft" = place=4;
"""


@pytest.mark.parametrize("ending", ["tra", "umb"])
@pytest.mark.parametrize("formula", ['(G F "one") & (G F "two")', 'F ("one" & X "one")'])
def test_induced_models_of_products_have_the_value(formula, ending, tmp_path, monkeypatch):
    """The model that a policy with memory leaves, asked the same question, with sets of nature."""
    pytest.importorskip("spot")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patrol.prism").write_text(PATROL)
    question = f"Pmaxmin=? [ {formula} ]"
    words = ["solve", "patrol.prism", "--radius", "0.05", "--prop", question, "-o", "p.rfmdp"]
    assert run(words) == 0
    for nature in ("sets", "worst"):
        assert run(["policy", "p.rfmdp", "--nature", nature, "-o", f"induced.{ending}"]) == 0
        induced = open_model(f"induced.{ending}")
        assert induced.rows == induced.states
        assert induced.uncertain == (nature == "sets")
        again, solution = solve(induced, question).at_initial(), load("p.rfmdp").at_initial()
        assert again.lower <= solution.upper
        assert solution.lower <= again.upper
        assert again.width <= 1e-6


def test_a_budget_is_simulated_explained_and_reported(tmp_path, monkeypatch, capsys):
    """What was paid is part of the state, so all that works for states works for budgets."""
    monkeypatch.chdir(tmp_path)
    text = PATROL.replace("label", 'rewards "tolls" [right] true : 2; endrewards label', 1)
    (tmp_path / "p.prism").write_text(text)
    words = ["p.prism", "--radius", "0.05", "--prop", 'Pmaxmin=? [ F{"tolls"}<=3 "two" ]']
    assert run(["solve", *words, "-o", "p.rfmdp"]) == 0
    assert run(["policy", "p.rfmdp", "-o", "p.csv"]) == 0
    capsys.readouterr()
    for nature in ("nominal", "worst"):
        assert run(["simulate", *words, "--policy", "p.csv", "--nature", nature]) == 0
        assert "Result: 0." in capsys.readouterr().out
    assert run(["explain", "p.rfmdp", "--step", "2"]) == 0
    assert "paid=2" in capsys.readouterr().out
    assert run(["report", "p.rfmdp", "-o", "p.html"]) == 0
