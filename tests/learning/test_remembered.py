"""Solving with rewards of state, action and successor: states remember, and values are right."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rfmdp as rf
from examples import quarter
from rfmdp.errors import UnsupportedError
from rfmdp.sets.families import Interval

STATES, OUTCOMES = 4, 3


class Chance:
    """A random model of one factor, with what its transitions pay, and its arrays for a twin."""

    def __init__(self, seed, width):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(OUTCOMES), (2, STATES))
        self.lower, self.upper = np.clip(p - width, 0, 1), np.clip(p + width, 0, 1)
        self.next = rng.integers(0, STATES, (2, STATES, OUTCOMES))
        self.next[:, :, 0] = STATES - 1  # an end that is always possible, and pays nothing
        self.next[:, -1] = STATES - 1
        self.pay = rng.integers(0, 4, (2, STATES, STATES)).astype(float)
        self.pay[:, -1] = 0.0
        self.reward = rf.TransitionReward(lambda s, action, t: self.pay[int(action), s.x, t.x])
        actions = [rf.Action(str(a), [self._move(a)]) for a in range(2)]
        self.model = rf.build(
            {"x": (0, STATES - 1)}, actions, initial={"x": 0},
            labels={"end": lambda s: s.x == STATES - 1}, rewards={"other": 1.0},
        )  # fmt: skip

    def _move(self, a):
        sets = [Interval(self.lower[a, s], self.upper[a, s]) for s in range(STATES)]
        effect = lambda s, identifier, outcome: {"x": self.next[a, s.x, outcome]}  # noqa: E731
        return rf.Move("x", sets, effect, lambda s: s.x)

    def backup(self, value, discount):
        """Return the agent's best against the worst sum of p (pay + discount * value), plainly."""
        best = np.full(STATES, -np.inf)
        for a in range(2):
            for s in range(STATES):
                after = self.next[a, s]
                worth = self.pay[a, s, after] + discount * value[after]
                p = self.lower[a, s].copy()
                for o in np.argsort(worth):
                    p[o] += min(self.upper[a, s, o] - p[o], 1.0 - p.sum())
                best[s] = max(best[s], p @ worth)
        return best

    def iterate(self, steps, discount=1.0, fixed=None):
        value = np.zeros(STATES)
        for _ in range(steps):
            before, value = value, self.backup(value, discount)
            if fixed is not None:
                value[fixed] = 0.0
            if np.array_equal(before, value):
                break  # and so it stays
        return value[0]


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.2]))
@quarter
def test_values_are_those_of_a_plain_iteration(seed, width):
    """Nature weighs what an outcome pays and where it leads together, under every objective."""
    chance = Chance(seed, width)
    ends = [STATES - 1]
    wanted = {
        rf.Cumulative(3, "other"): chance.iterate(3),
        rf.Cumulative(3, "other", 0.5): chance.iterate(3, 0.5),
        rf.Discounted(0.5, "other"): chance.iterate(80, 0.5),
    }
    if chance.lower[:, :, 0].min() > 0.02:
        wanted[rf.ReachReward("end", "other")] = chance.iterate(3000, fixed=ends)
        wanted[rf.Total("other")] = wanted[rf.ReachReward("end", "other")]
    for objective, value in wanted.items():
        pair = rf.with_transition_rewards(chance.model, chance.reward, rf.Spec(objective))
        found = rf.solve(*pair).at_initial()
        slack = 1e-6 * max(1.0, value)
        assert found.lower - slack <= value <= found.upper + slack


def test_what_is_returned_is_a_model_like_any_other():
    """It is valid, can be evaluated and simulated, and says what was paid by a variable."""
    chance = Chance(3, 0.05)
    pair = rf.with_transition_rewards(chance.model, chance.reward, 'R{"other"}maxmin=? [ C<=4 ]')
    assert not rf.validate(pair[0]).issues
    assert [v.name for v in pair[0].variables] == ["x", "paid"]
    solution = rf.solve(*pair)
    again = rf.evaluate(pair[0], solution.policy, pair[1]).at_initial()
    assert again.lower == pytest.approx(solution.at_initial().lower, abs=1e-5)
    assert rf.simulate(pair[0], solution.policy, pair[1], trajectories=200).estimate > 0.0
    assert chance.model.rewards["other"].state.tolist() == [1.0] * STATES


def test_the_amount_on_the_way_into_the_target_counts():
    """Also where the target is left again: it is collected first."""
    loop = rf.parse_prism("mdp module m x:[0..1]; [] x=0 -> (x'=1); [] x=1 -> (x'=0); endmodule")
    reward = rf.TransitionReward(lambda s, action, t: 2.5 * (t.x == 1) + 7.0 * (t.x == 0))
    found = rf.solve(*rf.with_transition_rewards(loop, reward, "Rmaxmin=? [ F x=1 ]"))
    assert found.at_initial().lower == pytest.approx(2.5, abs=1e-6)
    assert found.at_initial().upper == pytest.approx(2.5, abs=1e-6)


def test_goals_without_rewards_are_refused():
    """There is nothing to collect."""
    chance = Chance(0, 0.0)
    for goal in ("Pmaxmin=? [ F x=1 ]", "Rmaxmin=? [ I=3 ]"):
        with pytest.raises(UnsupportedError, match="rewards that are collected"):
            rf.with_transition_rewards(chance.model, chance.reward, goal)
