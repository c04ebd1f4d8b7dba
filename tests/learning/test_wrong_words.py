"""What people hand over by mistake: it works, or one line says what to give."""

import gymnasium
import pytest

import rfmdp as rf
from rfmdp.cli.main import run as command

from .tiny import REACH, two_arms


@pytest.fixture(scope="module")
def run():
    return rf.learn(two_arms(0.6, 0.4), REACH, stop=rf.StopWhen(trajectories=300), length=1)


def test_a_run_is_written_as_a_policy(run, tmp_path):
    """As its solution is."""
    rf.write_policy(run, tmp_path / "run.csv")
    rf.write_policy(run.solution, tmp_path / "solution.csv")
    assert (tmp_path / "run.csv").read_text() == (tmp_path / "solution.csv").read_text()
    with pytest.raises(rf.UnsupportedError, match="a run that proves something, found a Policy"):
        rf.write_policy(run.policy, tmp_path / "policy.csv")


def test_models_are_simulated_with_policies(run):
    """A run or a solution has a policy; an environment is no model."""
    model = two_arms(0.6, 0.4)
    words = {"spec": REACH, "length": 1, "trajectories": 100}
    found = [rf.simulate(model, p, **words).estimate for p in (run, run.solution, run.policy)]
    assert found[0] == found[1] == found[2]
    with pytest.raises(rf.UnsupportedError, match=r"must be given a model.*gym_model\(env\)"):
        rf.simulate(gymnasium.make("FrozenLake-v1"), None, REACH)
    with pytest.raises(rf.UnsupportedError, match=r"must be given a policy.*found a function"):
        rf.simulate(model, lambda state: 0, **words)


def test_modules_that_are_missing_are_one_line(tmp_path, capsys):
    """An environment by the name of its module, as Gymnasium takes it."""
    with pytest.raises(rf.ModelError, match=r"'nomodule:X-v0' must be the name.*nomodule"):
        rf.gym_structure("nomodule:X-v0")
    file = tmp_path / "coin.prism"
    file.write_text("mdp module m x:[0..1]; [] true -> [0,1]:(x'=0) + [0,1]:(x'=1); endmodule")
    assert (
        command(["learn", str(file), "--env", "nomodule:X-v0", "--prop", "Pmaxmin=? [ X x=1 ]"])
        == 1
    )
    assert capsys.readouterr().err.count("\n") == 1


ARRAYS = [
    {"guard": lambda s: s.x < 2 and s.y < 2},
    {"update": lambda s: {"x": min(s.x + 1, 2)}},
    {"guard": lambda s: not s.x},
]


@pytest.mark.parametrize("words", ARRAYS)
def test_functions_see_arrays(words):
    """`and`, `or`, `not`, `min` are for one number."""
    action = {"guard": None, "update": lambda s: {"x": (s.x + s.y) % 3}} | words
    with pytest.raises(rf.ModelError, match=r"arrays of many states: write \(s\.x < 2\) &"):
        rf.build(
            {"x": (0, 2), "y": (0, 2)}, [rf.Action("go", [], **action)],
            initial={"x": [0, 1], "y": [2, 1]},
        )  # fmt: skip
    with pytest.raises(rf.ModelError, match=r"gym_structure.*arrays of many states"):
        rf.gym_structure("FrozenLake-v1", terminal=lambda s: s.x == 5 or s.x == 7)


def test_advice_is_in_the_words_of_the_asker(tmp_path, capsys):
    """Python's in Python, options on the command line."""
    file, saved = tmp_path / "coin.prism", tmp_path / "run.rfmdp"
    file.write_text("mdp module m x:[0..1]; [] true -> 0.5:(x'=0) + 0.5:(x'=1); endmodule")
    saved.write_text("")
    model = rf.load_prism(file)
    with pytest.raises(rf.RfmdpError, match=r"`stop=StopWhen\(guarantee=...\)`") as python:
        rf.learn(model, "Pmaxmin>=0.4 [ X x=1 ]")
    assert "--" not in str(python.value)
    assert command(["learn", str(file), "--prop", "Pmaxmin>=0.4 [ X x=1 ]"]) == 1
    assert "(--target)" in capsys.readouterr().err
    with pytest.raises(rf.FileError, match="`resume=`"):
        rf.learn(model, "Pmaxmin=? [ X x=1 ]", output=saved)


def test_the_advised_reward_can_be_asked_for():
    """What pays by the successor has a name that a property may have."""
    lake = rf.gym_model("FrozenLake-v1")
    with pytest.raises(rf.ModelError, match=r'ask for R\{"expected_reward"\}'):
        rf.learn(lake, "Rmaxmin=? [ C<=5 ]")
    assert rf.check(lake, 'R{"expected_reward"}max=? [ C<=100 ]').value > 0.7
