"""Events that void a run, and Ctrl-C: what is written and raised."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rfmdp as rf


class Machine(gymnasium.Env):
    """A machine that wears, 0..3; after some steps it does something that nobody declared."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(1)

    def __init__(self, event, after):
        self._event, self._left = event, after

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._wear = 0
        return self._wear, {}

    def step(self, action):
        self._left -= 1
        odd = self._left < 0
        if odd and self._event == "interrupt":
            raise KeyboardInterrupt
        self._wear += int(self.np_random.random() < 0.5)
        paid = 1.0 + (odd and self._event == "payment")
        if odd and self._event == "successor":
            self._wear = 3
        if odd and self._event == "state":
            self._wear = 4
        ended = self._wear == 3 or (odd and self._event == "end")
        return self._wear, paid, ended, False, {}


def wearing():
    """Return its structure."""
    up = rf.unknown(2)
    move = rf.Move("wear", {"up": up}, lambda s, identifier, outcome: {"x": s.x + outcome})
    return rf.build(
        {"x": (0, 3)},
        [rf.Action("run", [move], lambda s: s.x < 3)],
        initial={"x": 0},
        labels={"worn": lambda s: s.x == 3},
        rewards={"reward": lambda s: 1.0 * (s.x < 3)},
    )


def words(event, **more):
    source = rf.GymSource(Machine(event, 2000), wearing())
    return {
        "source": source, "spec": 'Pmaxmin=? [ F<=8 "worn" ]', "length": 20,
        "stop": rf.StopWhen(trajectories=5000), **more,
    }  # fmt: skip


@pytest.mark.parametrize("event", ["successor", "state", "end", "payment"])
def test_a_run_file_does_not_outlive_what_voids_it(event, tmp_path):
    """The file says why nothing is guaranteed any more, as the error does."""
    file = tmp_path / "run.rfmdp"
    with pytest.raises(rf.AssumptionAlarm) as caught:
        rf.learn(**words(event, output=file))
    run = rf.load(file)
    assert run.history, "there were evaluations before"
    assert run.alarms == (str(caught.value),)
    assert run.stopped == "alarm"
    assert run.guarantee == -np.inf
    assert "With probability" not in run.statement()
    again = rf.learn(**words(event, resume=file))  # nothing is sampled any more
    assert again.alarms == run.alarms
    assert len(again.history) == len(run.history)


def test_what_voids_a_run_at_once_is_written_too(tmp_path):
    """Before the first evaluation."""
    file = tmp_path / "run.rfmdp"
    source = rf.GymSource(Machine("successor", 3), wearing())
    with pytest.raises(rf.AssumptionAlarm, match="declared successors"):
        rf.learn(**words("", source=source, output=file))
    run = rf.load(file)
    assert run.alarms
    assert not run.history
    assert rf.learn(**words("", source=source, resume=file)).alarms == run.alarms


def test_the_command_line_ends_with_2_after_an_alarm(monkeypatch, capsys, tmp_path):
    """As documented; one line says what happened."""
    from rfmdp.cli.main import run

    name = "Worn-v0"
    gymnasium.register(name, lambda: Machine("successor", 300))
    file = tmp_path / "wear.prism"
    file.write_text(
        "mdp module m x:[0..3]; [run] x<3 -> [0,1]:(x'=x+1) + [0,1]:(x'=x); endmodule "
        'label "worn" = x=3;'
    )
    goal = ["--prop", 'Pmaxmin=? [ F<=8 "worn" ]', "--trajectories", "5000"]
    assert run(["learn", str(file), "--env", name, *goal]) == 2
    error = capsys.readouterr().err
    assert "nothing is guaranteed" in error
    assert "declared successors" in error


def test_an_interrupted_run_is_not_lost():
    """The exception has the run as it was at the last evaluation; it can be saved and used."""
    with pytest.raises(KeyboardInterrupt) as caught:
        rf.learn(**words("interrupt"))
    run = caught.value.run
    assert run.history[-1].steps <= 2000
    assert 0.0 < run.guarantee <= 1.0
    assert rf.verify(run).valid
