"""Policies with memory on the command line: exported, simulated, evaluated and explained."""

import csv

import pytest

from rfmdp.cli.main import run

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
