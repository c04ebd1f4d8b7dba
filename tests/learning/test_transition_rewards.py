"""Known rewards of (s, a, s'): nature's say in them, all objectives, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rfmdp as rf
from examples import quarter
from rfmdp.inner.exact import Exact
from rfmdp.learning.schedule import LogSpaced
from rfmdp.learning.transition_rewards import TransitionRewardBounds
from rfmdp.sets.vertices import vertices

SIZE = 3
AMOUNTS = st.lists(st.integers(-3, 5), min_size=60, max_size=60)
CHANCES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=4, max_size=4)
OBJECTIVES = [
    rf.ReachReward("end", "gain"),
    rf.Cumulative(4, "gain"),
    rf.Cumulative(3, "gain", 0.5),
    rf.Discounted(0.75, "gain"),
]


def system(chances, actions=("left", "right")):
    """Return two coordinates that move or stay, by coins of their own for each action."""

    def move(name, step, chance):
        low, high = max(0.0, (chance[0] - chance[1]) / 10), min(1.0, sum(chance) / 10)
        coin = rf.Interval([1.0 - high, low], [1.0 - low, high])
        return rf.Move(name, coin, lambda s, _, o: {name: np.minimum(s[name] + o * step, SIZE - 1)})

    found = [
        rf.Action(
            action,
            [move("x", 1 + i, chances[2 * i]), move("y", 2 - i, chances[2 * i + 1])],
            guard=lambda s: (s.x < SIZE - 1) | (s.y < SIZE - 1),
        )
        for i, action in enumerate(actions)
    ]
    return rf.build(
        {"x": (0, SIZE - 1), "y": (0, SIZE - 1)},
        found,
        initial={"x": 0, "y": 0},
        labels={"end": lambda s: (s.x == SIZE - 1) & (s.y == SIZE - 1)},
        rewards={"gain": 0.0},
    )


def table(amounts):
    """Return a reward that looks itself up by state, action and successor."""
    numbers = np.array(amounts, dtype=float)
    return rf.TransitionReward(
        lambda s, a, t: numbers[(7 * s.x + 3 * s.y + 11 * len(a) + 5 * t.x + 2 * t.y) % 60]
    )


def known(reward, model, spec):
    """Return what the transitions of a model pay."""
    return TransitionRewardBounds(reward, model, spec, Exact())


def answers(model, corners, row):
    """Return all products of vertices of a row's sets, one line each over its successors."""
    sets = model.row_marginals[slice(*model.marginal_ptr[row : row + 2])]
    found = np.ones((1, 1))
    for own in (corners[j] for j in sets):
        found = np.einsum("ik,jl->ijkl", found, own).reshape(len(found) * len(own), -1)
    return found


def transitions(model, reward):
    """Return (state, answers, payments, successors) of every row."""
    corners, found = [vertices(uset) for uset in model.marginals], []
    for row, state in enumerate(model.row_states):
        after = model.successors[slice(*model.successor_ptr[row : row + 2])]
        paid = reward.of(model, np.full(len(after), row), after)
        found.append((int(state), answers(model, corners, row), paid, after))
    return found


def twin(model, reward, objective, agent):
    """Return the robust value by brute force: V = opt_a opt_p sum_k p_k (r_k + discount V_k)."""
    discount = getattr(objective, "discount", 1.0)
    steps = getattr(objective, "steps", 500)  # a chance of 0.1 is missed 500 times: 1e-23
    over = model.label("end") if isinstance(objective, rf.ReachReward) else model.label("deadlock")
    rows, value = transitions(model, reward), np.zeros(model.states)
    (worst, best), sign = (np.min, max) if agent is rf.MAX else (np.max, min), agent.sign
    for _ in range(steps):
        found = np.where(over, 0.0, -sign * np.inf)
        for state, masses, paid, after in rows:
            if not over[state]:
                q = float(worst(masses @ (paid + discount * value[after])))
                found[state] = best(found[state], q)
        if np.array_equal(found, value):
            break  # and so it stays
        value = found
    return value


@quarter
@given(CHANCES, AMOUNTS)
def test_rows_pay_what_nature_lets_them(chances, amounts):
    """The bounds of a row are the extremes over all products of vertices."""
    model = system(chances)
    reward, spec = table(amounts), rf.Spec(rf.Cumulative(2, "gain"))
    found = known(reward, model, spec)
    low, high = (found.bounds(model.marginals, side) for side in (True, False))
    for row, (_, masses, paid, _) in enumerate(transitions(model, reward)):
        means = masses @ paid
        assert low[row] <= min(means) + 1e-12
        assert low[row] == pytest.approx(min(means), abs=1e-9)
        assert high[row] >= max(means) - 1e-12
        assert high[row] == pytest.approx(max(means), abs=1e-9)


@pytest.mark.parametrize("agent", [rf.MAX, rf.MIN])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: f"{o!r:.22}")
@settings(max_examples=4)
@given(chances=CHANCES, amounts=AMOUNTS)
def test_values_count_every_payment_in_its_step(objective, agent, chances, amounts):
    """A guarantee for the agent in general; without a choice of nature the value itself."""
    if isinstance(objective, rf.ReachReward):
        amounts = [abs(x) for x in amounts]
        chances = [(p, min(d, p - 1)) for p, d in chances]  # else nature can stay for ever
    for widths in (True, False):
        model = system([(p, d if widths else 0) for p, d in chances])
        spec, reward = rf.Spec(objective, agent, agent.opposite), table(amounts)
        rewards, low = known(reward, model, spec), agent is rf.MAX
        paying = rewards.apply(model, low)
        found, exact = rf.solve(paying, spec).value, twin(model, reward, objective, agent)
        start = int(model.initial[0])
        assert agent.sign * found[start] <= agent.sign * exact[start] + 1e-4
        if not widths:
            assert found[start] == pytest.approx(exact[start], abs=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: f"{o!r:.22}")
def test_guarantees_are_sound_and_close_in(objective):
    """Bounds of a learned run enclose the truth, and close in on it."""
    model = system([(6, 0), (5, 0), (3, 0), (8, 0)])
    reward = table([abs(3 * i % 7) for i in range(60)])
    asked = {"length": 12, "stop": rf.StopWhen(trajectories=4000), "points": LogSpaced(3)}
    run = rf.learn(model, rf.Spec(objective), rewards=reward, **asked)
    truth = twin(model, reward, objective, rf.MAX)[int(model.initial[0])]
    for point in run.history:
        assert point.guarantee <= truth + 1e-6
        assert point.guarantee <= point.performance + 1e-9
        assert point.optimistic >= truth - 1e-6
    assert run.guarantee > 0.8 * truth
    assert run.history[0].guarantee < run.guarantee
    assert "every transition pays what was declared" in run.statement()


def test_an_end_pays_nothing_more():
    """Where a state has no action, nothing is paid, whatever the function says."""
    model = system([(5, 0)] * 4)
    run = rf.learn(
        model, rf.Spec(rf.Discounted(0.9, "gain")), length=20,
        rewards=rf.TransitionReward(lambda s, a, t: (t.x == SIZE - 1) & (t.y == SIZE - 1)),
        stop=rf.StopWhen(trajectories=2000),
    )  # fmt: skip
    assert 0.0 < run.guarantee < run.history[-1].optimistic <= 1.0 + 1e-9


def test_frozen_lake_pays_on_arrival():
    """What an environment pays is compared with the function, transition by transition."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1")
    lake = rf.gym_structure(
        env, initial={"x": 0}, terminal=lambda s: np.isin(s.x, [5, 7, 11, 12, 15]),
        rewards={"reward": 0.0},
    )  # fmt: skip
    asked = {"stop": rf.StopWhen(trajectories=100), "length": 100, "seed": 1}
    goal = 'R{"reward"}maxmin=? [ C<=100 ]'
    arrival = rf.TransitionReward(lambda s, a, t: t.x == 15)
    run = rf.learn(rf.GymSource(env, lake), goal, rewards=arrival, **asked)
    assert 0.0 <= run.guarantee < 0.7442 < run.history[-1].optimistic
    wrong = rf.TransitionReward(lambda s, a, t: t.x == 14)
    with pytest.raises(rf.ModelError, match=r"\(x=10\).* paid 0, must pay the declared 1"):
        rf.learn(rf.GymSource(env, lake), goal, rewards=wrong, **asked)


def test_resumed_runs_need_the_same_payments(tmp_path):
    """A run knows its rewards by what they pay, not by where the function lies in memory."""
    model, file = system([(5, 1)] * 4), tmp_path / "run.rfmdp"
    spec, amounts = rf.Spec(rf.Cumulative(3, "gain")), list(range(60))
    asked = {"length": 4, "stop": rf.StopWhen(trajectories=50)}
    rf.learn(model, spec, rewards=table(amounts), output=file, **asked)
    more = {**asked, "stop": rf.StopWhen(trajectories=100), "resume": file}
    assert rf.learn(model, spec, rewards=table(amounts), **more).history[-1].trajectories == 100
    with pytest.raises(rf.ModelError, match="rewards"):
        rf.learn(model, spec, rewards=table(amounts[::-1]), **more)


def test_wrong_requests_are_refused():
    """Functions that give no numbers, supports that are not listed, objectives without rewards."""
    model, spec = system([(5, 0)] * 4), rf.Spec(rf.Cumulative(3, "gain"))
    asked = {"length": 4, "stop": rf.StopWhen(trajectories=10)}
    nothing = rf.TransitionReward(lambda s, a, t: 0.0)
    with pytest.raises(rf.ModelError, match=r"must be finite, found inf from \(x=0, y=0\)"):
        rf.learn(model, spec, rewards=rf.TransitionReward(lambda s, a, t: np.inf), **asked)
    with pytest.raises(rf.ModelError, match="must give numbers"):
        rf.learn(model, spec, rewards=rf.TransitionReward(lambda s, a, t: "much"), **asked)
    with pytest.raises(rf.UnsupportedError, match="outcomes must be listed"):
        rf.learn(model, spec, rewards=nothing, support=rf.DomainSupport(), **asked)
    with pytest.raises(rf.UnsupportedError, match="objective must be"):
        rf.learn(model, rf.Spec(rf.Reach("end")), rewards=nothing, **asked)
    bare = rf.FactoredMDP.from_rows(
        [[([], [0])]], [], rewards={"gain": rf.Rewards(np.zeros(1), np.zeros(1))}
    )
    with pytest.raises(rf.UnsupportedError, match="must have variables"):
        rf.learn(bare, spec, rewards=nothing, **asked)
