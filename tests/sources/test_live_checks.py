"""Samples of environments are checked as records are: wrong structures raise alarms."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rfmdp as rf
from rfmdp.sources.checks import INDEPENDENCE, MARKOV, SHARING, STATIONARITY

from .model_env import ModelEnv


class Stock(gymnasium.Env):
    """A stock 0..2 that falls by what is demanded; the demand is seen a step before."""

    observation_space = spaces.Dict({"demand": spaces.Discrete(3), "stock": spaces.Discrete(3)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stock, self.demand, self.t = 2, int(self.np_random.integers(3)), 0
        return self._seen(), {}

    def _seen(self):
        return {"demand": self.demand, "stock": self.stock}

    def step(self, action):
        sold = self.np_random.random() < (0.1, 0.5, 0.9)[self.demand]
        self.stock = min(2, max(0, self.stock - sold + int(action)))
        self.demand = int(self.np_random.integers(3))
        self.t += 1
        return self._seen(), float(sold), False, self.t == 20, {}


class Pair(gymnasium.Env):
    """Two lamps of which exactly one is on."""

    observation_space = spaces.MultiDiscrete([2, 2])
    action_space = spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([0, 1]), {}

    def step(self, action):
        x = int(self.np_random.integers(2))
        return np.array([x, 1 - x]), 0.0, False, False, {}


class Drift(gymnasium.Env):
    """A position between 0 and 1 of which one sees the tenth; it moves by 0.03 in each step."""

    observation_space = spaces.Discrete(10)
    action_space = spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = 0.0
        return 0, {}

    def step(self, action):
        self.position += 0.03
        return min(int(10 * self.position), 9), 0.0, self.position >= 0.9, False, {}


class Wearing(gymnasium.Env):
    """A coin that gets worse: by its age in the episode, or for ever."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(1)

    def __init__(self, forever):
        self.forever, self.t = forever, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = self.t if self.forever else 0
        return 0, {}

    def step(self, action):
        self.t += 1
        heads = self.np_random.random() < (0.8 if self.t < (4000 if self.forever else 8) else 0.5)
        return int(heads), 0.0, False, self.t % 20 == 0, {}


def learned(env, structure, goal, **words):
    words = {"stop": rf.StopWhen(trajectories=500), "length": 20, "beta": 0.01} | words
    return rf.learn(rf.GymSource(env, structure), goal, **words)


def test_a_parent_that_was_left_out_is_named():
    """The stock depends on the demand, and the structure says that it does not."""
    short = {"short": lambda s: s.stock == 0}
    wrong = rf.gym_structure(
        Stock(), parents={"stock": ["stock"], "demand": []}, labels=short,
        initial={"stock": [2, 2, 2], "demand": [0, 1, 2]},
    )  # fmt: skip
    run = learned(Stock(), wrong, 'Pminmax=? [ F<=20 "short" ]')
    assert run.stopped == "alarm"
    assert any(SHARING in alarm and "by demand" in alarm for alarm in run.alarms)
    assert run.guarantee == np.inf
    right = rf.gym_structure(
        Stock(), parents={"stock": ["stock", "demand"], "demand": []}, labels=short,
        initial={"stock": [2, 2, 2], "demand": [0, 1, 2]},
    )  # fmt: skip
    assert learned(Stock(), right, 'Pminmax=? [ F<=20 "short" ]').alarms == ()


def test_entries_that_always_differ_are_not_independent():
    """Spaces alone do not say that entries move independently; the structure made of them does."""
    model = rf.gym_structure(Pair(), initial={"x_0": 0, "x_1": 1})
    run = learned(Pair(), model, "Pmaxmin=? [ F<=5 x_0=1&x_1=1 ]")  # never
    assert any(INDEPENDENCE in alarm for alarm in run.alarms)


def test_bins_of_real_numbers_depend_on_the_step_before():
    """How long a bin was occupied decides when it is left."""
    model = rf.gym_structure(Drift(), initial={"x": 0}, terminal=lambda s: s.x == 9)
    run = learned(Drift(), model, "Pmaxmin=? [ F<=15 x=9 ]", length=40)
    assert any(MARKOV in alarm and "before" in alarm for alarm in run.alarms)


@pytest.mark.parametrize(
    ("forever", "named"), [(True, STATIONARITY), (False, "steps since the start")]
)
def test_what_wears_out_is_noticed(forever, named):
    """Over all episodes, or in each of them."""
    model = rf.gym_structure(Wearing(forever), initial={"x": 0})
    run = learned(Wearing(forever), model, "Pmaxmin=? [ X x=1 ]")
    assert any(named in alarm for alarm in run.alarms)


def test_checks_are_part_of_the_statement_and_the_file(tmp_path):
    """Also without an alarm, and a resumed run has all the evidence."""
    model = rf.gym_structure(Stock())
    words = {"seed": 3, "stop": rf.StopWhen(trajectories=200)}
    goal, file = "Pminmax=? [ F<=3 stock=0 ]", tmp_path / "run.rfmdp"
    learned(ModelEnv(truth()), hidden(), "Pmaxmin=? [ F<=3 x=1 ]", output=file, **words)
    more = {"seed": 3, "stop": rf.StopWhen(trajectories=400)}
    again = learned(ModelEnv(truth()), hidden(), "Pmaxmin=? [ F<=3 x=1 ]", resume=file, **more)
    whole = learned(ModelEnv(truth()), hidden(), "Pmaxmin=? [ F<=3 x=1 ]", **more)
    assert again.checks == whole.checks == rf.load(file).checks
    assert len(whole.checks) == 4
    assert "What the samples say about assumptions" in whole.statement()
    assert learned(Stock(), model, goal).checks


def truth():
    """Return two coins."""
    throw = [rf.Move(x, {x: rf.Singleton([0.4, 0.6])}, lambda s, i, o, x=x: {x: o}) for x in "xy"]
    return rf.build(
        {"x": (0, 1), "y": (0, 1)}, [rf.Action("throw", throw)], initial={"x": 0, "y": 0}
    )


def hidden():
    """Return their structure."""
    throw = [rf.Move(x, {x: rf.unknown(2)}, lambda s, i, o, x=x: {x: o}) for x in "xy"]
    return rf.build(
        {"x": (0, 1), "y": (0, 1)}, [rf.Action("throw", throw)], initial={"x": 0, "y": 0}
    )


def test_a_simulation_is_not_checked():
    """It draws as the structure says, whatever the samples look like."""
    run = rf.learn(truth(), "Pmaxmin=? [ F<=3 x=1 ]", stop=rf.StopWhen(100), length=3)
    assert run.checks == ()


@pytest.mark.slow
def test_false_alarms_are_rare():
    """Right structures, beta = 0.2: at most 40 alarms of 200 are expected, 60 hardly happen."""
    alarms = 0
    for seed in range(200):
        run = learned(ModelEnv(truth()), hidden(), "Pmaxmin=? [ F<=3 x=1 ]", seed=seed, beta=0.2)
        alarms += bool(run.alarms)
    assert alarms <= 60
