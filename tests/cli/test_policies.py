"""The commands about policies: policy, evaluate, explain."""

import json
from pathlib import Path

import pytest

from policies.test_files import GRID
from rfmdp.cli.main import run

QUESTION = 'Pmaxmin=? [ F<=9 "goal" ]'
CONSTANTS = "N=4,slip=0.2"


@pytest.fixture
def files(tmp_path):
    """Return a model file and a saved result of it."""
    model, result = tmp_path / "grid.prism", tmp_path / "result.rfmdp"
    model.write_text(GRID)
    words = ["--const", CONSTANTS, "--radius", "0.05", "--prop", QUESTION, "-o", str(result)]
    assert run(["solve", str(model), *words]) == 0
    return str(model), str(result)


def evaluated(capsys, model, policy, radius="0.05"):
    """Return what `evaluate` prints as JSON."""
    capsys.readouterr()
    words = ["--const", CONSTANTS, "--radius", radius, "--prop", QUESTION, "--json"]
    assert run(["evaluate", model, "--policy", str(policy), *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("ending", ["csv", "rfmdp"])
def test_an_exported_policy_has_the_value_of_the_result(files, tmp_path, capsys, ending):
    """The policy read again has the value that `solve` proved; nominal and best are no worse."""
    model, result = files
    policy = result
    if ending != "rfmdp":
        policy = tmp_path / f"policy.{ending}"
        assert run(["policy", result, "-o", str(policy)]) == 0
    found = evaluated(capsys, model, policy)
    assert run(["solve", model, "--const", CONSTANTS, "--radius", "0.05", "--prop", QUESTION,
                "--json"]) == 0  # fmt: skip
    solved = json.loads(capsys.readouterr().out)
    assert found["worst"]["lower"] <= solved["upper"]
    assert solved["lower"] <= found["worst"]["upper"]
    assert found["worst"]["lower"] <= found["nominal"]["upper"] <= found["best"]["upper"] + 1e-12


def test_less_uncertainty_never_hurts_a_fixed_policy(files, capsys):
    """The worst case of the same policy at a smaller radius is at least as good."""
    model, result = files
    large, small = (evaluated(capsys, model, result, r)["worst"] for r in ("0.1", "0.01"))
    assert small["upper"] >= large["lower"]


def test_explain_names_state_actions_and_nature(files, capsys):
    """A state by its variables; the text for people, and JSON with the same numbers."""
    model, result = files
    capsys.readouterr()
    assert run(["explain", result, "--state", "x=1,up=false"]) == 0
    text = capsys.readouterr().out
    assert f"source    {Path(model).name}" in text
    assert "(x=1, up=0)" in text
    assert "Actions:" in text
    assert run(["explain", result, "--state", "x=1,up=0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(choice["chosen"] for choice in found["choices"]) == 1
    assert found["origin"]["source"].startswith(Path(model).name)


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "RESULT", "--state", "x=1"],
        ["explain", "RESULT", "--state", "x=one,up=0"],
        ["explain", "RESULT", "--state", "x=99,up=0"],
        ["explain", "MODEL"],
        ["policy", "RESULT", "-o", "policy.xls"],
        ["policy", "none.rfmdp", "-o", "policy.csv"],
        ["evaluate", "MODEL", "--policy", "none.csv", "--const", CONSTANTS, "--prop", QUESTION],
        ["evaluate", "MODEL", "--policy", "RESULT", "--const", "N=6,slip=0.2", "--prop", QUESTION],
    ],
)
def test_mistakes_are_one_line(files, capsys, words):
    """Wrong states, files and models: exit code 1 and one line."""
    model, result = files
    named = {"RESULT": result, "MODEL": model}
    capsys.readouterr()
    assert run([named.get(word, word) for word in words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rfmdp: error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("question", "row", "side"),
    [
        ('Pmaxmin=? [ F<=9 "goal" ]', "worst", "lower"),
        ('Pmax=? [ F<=9 "goal" ]', "best", "lower"),
        ('Pminmax=? [ F<=9 "goal" ]', "worst", "upper"),
        ('Pmin=? [ F<=9 "goal" ]', "best", "upper"),
    ],
)
def test_the_result_has_the_nature_of_the_property(files, capsys, question, row, side):
    """As in `solve`: one word moves both players, a pair names them."""
    model, result = files
    words = ["--policy", result, "--const", CONSTANTS, "--radius", "0.05", "--prop", question]
    capsys.readouterr()
    assert run(["evaluate", model, *words]) == 0
    printed = capsys.readouterr().out.splitlines()[-1].removeprefix("Result: ")
    assert run(["evaluate", model, *words, "--json"]) == 0
    assert float(printed) == json.loads(capsys.readouterr().out)[row][side]
