"""Random starts: a distribution of the environment, outside of the steps of an objective."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, strategies as st
from scipy import optimize

import rfmdp as rf
from rfmdp.learning import confidence
from rfmdp.learning.confidence import least_mean
from rfmdp.learning.run import run_to_record
from rfmdp.verification import learning
from verification.test_runs import altered, judge

from .model_env import ModelEnv

BROKEN = 5


class Queue(gymnasium.Env):
    """A shop with one to three customers; it never empties."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return int(self.np_random.integers(1, 4)), {}

    def step(self, action):
        return int(self.np_random.integers(1, 4)), 0.0, False, False, {}


class Part(gymnasium.Env):
    """A part that ages by one in each step, and is new or one step old at first."""

    observation_space = spaces.Discrete(BROKEN + 1)
    action_space = spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = int(self.np_random.random() < 0.5)
        return self.age, {}

    def step(self, action):
        self.age += 1
        return self.age, 1.0, self.age == BROKEN, False, {}


def part_structure(**words):
    return rf.gym_structure(
        Part(),
        terminal=lambda s: s.x == BROKEN,
        labels={"broken": lambda s: s.x == BROKEN},
        rewards={"reward": lambda s: 1.0 * (s.x < BROKEN)},
        **words,
    )


def lived(age, steps=math.inf, discount=1.0):
    """Return what a part of some age earns, one for each step until it is broken."""
    if age == BROKEN or steps == 0:
        return 0.0
    return 1.0 + discount * lived(age + 1, steps - 1, discount)


# The truth of both starts, by the recursion above; the four examples are the first ones.
PART = [
    ('Pmaxmin=? [ G<=4 !"broken" ]', [1.0, 0.0]),
    ('R{"reward"}maxmin=? [ F "broken" ]', [lived(0), lived(1)]),
    ('R{"reward"}minmax=? [ C<=4 ]', [lived(0, 4), lived(1, 4)]),
    (rf.Spec(rf.Discounted(0.5, "reward"), rf.MIN, rf.MAX), [lived(0, 9, 0.5), lived(1, 9, 0.5)]),
    ('Pmaxmin=? [ F<=4 "broken" ]', [0.0, 1.0]),
    ('R{"reward"}maxmin=? [ I=4 ]', [1.0, 0.0]),
    ('Pmaxmin=? [ X x=1 ]', [1.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("goal", "truth"), PART, ids=[str(goal) for goal, _ in PART])
def test_the_first_observation_is_step_zero(goal, truth):
    """Labels, rewards, horizons and discounts begin with it; worst and mean are bounds."""
    source = rf.GymSource(Part(), part_structure(initial=lambda s: s.x < 2))
    run = rf.learn(
        source, goal, stop=rf.StopWhen(trajectories=1000), points=rf.LogSpaced(first=1000),
        length=8, beta=0.01,
    )  # fmt: skip
    sign = 1.0 if run.agent is rf.MAX else -1.0
    worst, mean = min(sign * v for v in truth), sign * np.mean(truth)
    assert sign * run.guarantee <= worst
    assert sign * run.mean_guarantee <= mean
    assert sign * run.guarantee > worst - 0.05 * max(1.0, abs(worst))
    assert sign * run.mean_guarantee > mean - 0.15 * max(1.0, abs(mean))
    assert "mean over the starts of episodes" in run.statement()
    assert rf.verify(run).valid


@pytest.mark.parametrize(("goal", "truth"), PART[1:4:2], ids=["most", "least"])
def test_a_mean_that_starts_do_not_carry_is_noticed(goal, truth):
    """The checker proves the mean again from the counts of starts and their share of beta."""
    source = rf.GymSource(Part(), part_structure(initial=lambda s: s.x < 2))
    run = rf.learn(source, goal, stop=rf.StopWhen(400), length=8)
    _, header, arrays = run_to_record(run)
    better = np.argmax if run.agent is rf.MAX else np.argmin
    changes = {
        "more": lambda h, a: h.update(mean_guarantee=h["mean_guarantee"] + 1e-4 * run.agent.sign),
        "one start only": lambda h, a: h.update(mean_guarantee=truth[better(truth)]),
        "fewer starts": lambda h, a: a["starts"].__ifloordiv__(2),
        "worse starts": lambda h, a: a["starts"].__setitem__(better(truth), 0),
        "no starts": lambda h, a: a.update(starts=a["starts"][:0]),
        "no share": lambda h, a: a["ledger/shares"].__setitem__(2, 0.0),
        "no claim": lambda h, a: h.pop("mean_guarantee"),
    }
    assert judge(header, arrays).valid
    for name, change in changes.items():
        assert not judge(*altered(header, arrays, change)).valid, name


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 50)), min_size=1, max_size=5))
def test_the_least_mean_is_that_of_a_linear_programme(rows):
    """Solver and checker stay below it, the checker in fractions, the solver by rounding."""
    values, counts = map(np.array, zip(*rows, strict=True))
    lower, upper = confidence.mixture(counts, counts.sum(), 1e-3)
    least = learning.least_mean(values, lower, upper)
    result = optimize.linprog(
        values,
        A_eq=np.ones((1, len(rows))),
        b_eq=[1.0],
        bounds=list(zip(lower, upper, strict=True)),
    )
    assert float(least) == pytest.approx(result.fun, abs=1e-9)  # HiGHS' tolerance is 1e-7 of 0..1
    assert least_mean(values, counts, 1e-3) <= least


def test_no_label_holds_before_the_first_observation():
    """Nothing is known but the spaces: the queue that never empties is not empty at first."""
    model = rf.gym_structure(Queue(), labels={"empty": lambda s: s.x == 0})
    assert model.states == 4
    run = rf.learn(
        rf.GymSource(Queue(), model), 'Pmaxmin=? [ F<=20 "empty" ]',
        stop=rf.StopWhen(trajectories=200), length=20,
    )  # fmt: skip
    assert run.guarantee == 0.0  # the truth from 1, 2 and 3
    assert 0.0 <= run.mean_guarantee <= 1e-9
    saved = run.starts
    assert saved[0] == 0
    assert saved.sum() == 200


def test_starts_are_saved_and_resumed(tmp_path):
    """A run that goes on ends like one that was never stopped, its mean included."""
    goal, file = 'Pmaxmin=? [ F<=4 "broken" ]', tmp_path / "run.rfmdp"
    words = {"length": 8, "seed": 4}
    source = rf.GymSource(ModelEnv(coins()), hidden(coins()))
    goal = 'Pmaxmin=? [ F<=4 "both" ]'
    rf.learn(source, goal, stop=rf.StopWhen(316), output=file, **words)
    again = rf.learn(source, goal, stop=rf.StopWhen(1000), resume=file, **words)
    whole = rf.learn(source, goal, stop=rf.StopWhen(1000), **words)
    assert again.starts.tolist() == whole.starts.tolist()
    assert again.mean_guarantee == whole.mean_guarantee == rf.load(file).mean_guarantee


def coins():
    """Return two coins that are thrown until both are heads, from any start but that."""
    up = [rf.Move(x, {x: rf.Singleton([0.5, 0.5])}, lambda s, i, o, x=x: {x: o}) for x in "ab"]
    return rf.build(
        {"a": (0, 1), "b": (0, 1)},
        [rf.Action("throw", up, lambda s: (s.a == 0) | (s.b == 0))],
        initial={"a": [0, 0, 1], "b": [0, 1, 0]},
        labels={"both": lambda s: (s.a == 1) & (s.b == 1)},
    )


def hidden(model):
    """Return the structure of a model."""
    return rf.sources.source.Structure.of(model).model


def test_a_start_that_was_not_declared_voids_the_run():
    """Of a part that is said to be new at first, some are not."""
    source = rf.GymSource(Part(), part_structure(initial={"x": 0}))
    with pytest.raises(rf.AssumptionAlarm, match=r"a reset gave \(x=1\).*initial=\{'x': \[0, 1\]"):
        rf.learn(source, 'Pmaxmin=? [ F "broken" ]', length=8)


def test_rewards_are_learned_with_random_starts():
    """Nothing is declared of what is paid: 1 for each step."""
    source = rf.GymSource(Part(), part_structure(initial={"x": [0, 1]}))
    run = rf.learn(
        source, 'R{"reward"}maxmin=? [ C<=4 ]', rewards=rf.RewardRange(0.0, 2.0),
        stop=rf.StopWhen(trajectories=500), length=8,
    )  # fmt: skip
    assert 1.0 < run.guarantee <= 4.0
    assert 1.0 < run.mean_guarantee <= 4.0


def test_the_least_mean_is_the_least_of_all_distributions():
    """Against the programme that defines it, by another solver."""
    from scipy.optimize import linprog

    from rfmdp.learning.confidence import mixture

    rng = np.random.default_rng(0)
    for _ in range(100):
        size = int(rng.integers(2, 7))
        values, counts = rng.normal(size=size), rng.integers(0, 60, size=size)
        lower, upper = mixture(counts, counts.sum(), 0.01)
        bounds = list(zip(lower, upper, strict=True))
        least = linprog(values, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=bounds).fun
        assert least - 1e-9 < least_mean(values, counts, 0.01) <= least + 1e-12


def test_infinite_values_of_starts():
    """A start that is worth nothing at all decides, if it is possible; a good one does not."""
    counts = np.array([10, 0])
    assert least_mean(np.array([1.0, -np.inf]), counts, 0.01) == -np.inf
    assert least_mean(np.array([1.0, np.inf]), counts, 0.01) == pytest.approx(1.0)


@pytest.mark.slow
def test_false_means_are_rare():
    """Over many runs that stop at will the mean is true, at beta = 0.2 (at most 40 expected)."""
    false = 0
    for seed in range(200):
        source = rf.GymSource(ModelEnv(coins()), hidden(coins()))
        goal = 'Pmaxmin=? [ F<=4 "both" ]'
        run = rf.learn(source, goal, stop=rf.StopWhen(300), length=4, seed=seed, beta=0.2)
        truth = np.mean(rf.solve(coins(), 'Pmax=? [ F<=4 "both" ]').lower[coins().initial])
        false += run.mean_guarantee > truth
    assert false <= 60
