"""Cases small enough to know the answer: loops, traps, ties, infinities, zero lower bounds."""

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    Total,
    Until,
)
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits
from rfmdp.sets.families import Interval, Polytope, Singleton
from rfmdp.solving import solve

PAIRS = [(a, n) for a in (MAX, MIN) for n in (MAX, MIN)]
MOVE = Interval([0.2, 0.4], [0.6, 0.8])  # first outcome within 0.2..0.6


def values(model, spec):
    """Return the certified value of every state."""
    found = solve(model, spec, states=np.ones(model.states, dtype=bool))
    assert found.status is Status.CERTIFIED, (found.lower, found.upper)
    return found.lower


def model_of(rows, sets, goal, cost=None):
    """Return a model with the label goal, and a reward per state."""
    reward = np.ones(len(rows)) if cost is None else np.array(cost, dtype=float)
    count = sum(map(len, rows))
    label = np.zeros(len(rows), dtype=bool)
    label[list(goal)] = True
    rewards = {"cost": Rewards(reward, np.zeros(count))}
    return FactoredMDP.from_rows(rows, sets, labels={"goal": label}, rewards=rewards)


def loop(goal=(1,)):
    """Return 0 -> goal or back to 0, nature chooses within 0.2..0.6."""
    return model_of([[([0], [1, 0])], [([], [1])]], [MOVE], goal)


def split():
    """Return 0 -> goal or trap, and a second row with a fair coin."""
    return model_of(
        [[([0], [1, 2]), ([1], [1, 2])], [([], [1])], [([], [2])]],
        [MOVE, Singleton([0.5, 0.5])],
        [1],
    )


@pytest.mark.parametrize(("agent", "nature", "value"), [
    (MAX, MIN, 0.5), (MAX, MAX, 0.6), (MIN, MIN, 0.2), (MIN, MAX, 0.5),
])  # fmt: skip
def test_reach_in_all_directions(agent, nature, value):
    """The agent picks coin or move, nature the probability of the move."""
    assert values(split(), Spec(Reach("goal"), agent, nature))[0] == pytest.approx(value, abs=1e-12)
    spec = Spec(Globally("goal"), agent, nature)
    assert values(split(), spec).tolist() == [0.0, 1.0, 0.0]
    assert values(split(), Spec(Next("goal"), agent, nature))[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_self_loop_is_left_almost_surely(agent, nature):
    """A loop that nature cannot keep up for ever has probability one, and mean 1 / p steps."""
    assert values(loop(), Spec(Reach("goal"), agent, nature)).tolist() == [1.0, 1.0]
    steps = values(loop(), Spec(ReachReward("goal", "cost"), agent, nature))[0]
    assert steps == pytest.approx(5.0 if nature is MAX else 1 / 0.6, rel=1e-6)


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_nature_that_may_block_decides(agent, nature):
    """With lower bound 0 nature can stay for ever: probability 0 or 1, cost infinite or finite."""
    blocked = Interval([0.0, 0.5], [0.5, 1.0])
    model = model_of([[([0], [1, 0])], [([], [1])]], [blocked], [1])
    reach = values(model, Spec(Reach("goal"), agent, nature))[0]
    assert reach == (0.0 if nature is MIN else 1.0)
    steps = values(model, Spec(ReachReward("goal", "cost"), agent, nature))[0]
    assert steps == (np.inf if nature is MAX else pytest.approx(2.0, rel=1e-6))
    total = values(model, Spec(Total("cost"), agent, nature))
    assert total.tolist() == [np.inf, np.inf]  # the goal pays for ever as well


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_unreachable_target(agent, nature):
    """What cannot be reached has probability 0 and infinite reward to it."""
    model = model_of([[([], [0])], [([], [1])]], [], [1])
    assert values(model, Spec(Reach("goal"), agent, nature)).tolist() == [0.0, 1.0]
    assert values(model, Spec(ReachReward("goal", "cost"), agent, nature)).tolist() == [np.inf, 0.0]


def test_zero_reward_cycle_is_no_way_out_for_a_minimiser():
    """Going round for nothing never arrives: the agent has to pay 3 for the way."""
    rows = [[([], [1]), ([], [2])], [([], [0])], [([], [3])], [([], [3])]]
    model = model_of(rows, [], [3], cost=[0, 0, 3, 1])
    spec = Spec(ReachReward("goal", "cost"), MIN, MAX)
    found = solve(model, spec, states=np.ones(4, dtype=bool)).require_certified()
    assert found.lower == pytest.approx([3, 3, 3, 0], rel=1e-6)
    assert found.policy.row(0) == 1


def test_end_component_waits_for_the_better_exit():
    """In a loop of two states, each with an exit, both have the value of the better one."""
    rows = [
        [([], [1]), ([0], [2, 3])],
        [([], [0]), ([1], [2, 3])],
        [([], [2])],
        [([], [3])],
    ]
    model = model_of(rows, [Singleton([0.3, 0.7]), Singleton([0.8, 0.2])], [2])
    assert values(model, Spec(Reach("goal"), MAX, MIN))[:2] == pytest.approx([0.8, 0.8], abs=1e-12)
    assert values(model, Spec(Reach("goal"), MIN, MIN))[:2] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_agent_does_not_wait_for_a_move_that_nature_blocks():
    """False fixed point: waiting for a goal that nature withholds looks like value one."""
    blocked = Interval([0.0, 0.5], [0.5, 1.0])
    rows = [[([0], [1, 0]), ([1], [1, 2])], [([], [1])], [([], [2])]]
    model = model_of(rows, [blocked, Singleton([0.3, 0.7])], [1])
    assert values(model, Spec(Reach("goal"), MAX, MIN))[0] == pytest.approx(0.3, abs=1e-9)


def test_nature_leaves_its_own_loop_when_it_wants_to():
    """Nature that maximises may stay in a loop at no cost, yet leaves to reach the goal."""
    free = Interval([0.0, 0.0, 0.0], [1.0, 0.25, 1.0])
    rows = [[([0], [0, 1, 2])], [([], [1])], [([0], [2, 3, 0])], [([], [3])]]
    model = model_of(rows, [free], [1])
    assert values(model, Spec(Reach("goal"), MIN, MAX)).tolist() == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_step_bounds(agent, nature):
    """Within k steps of the loop: 1 - (1 - p)^k; a late window of one step: the last only."""
    p = 0.6 if nature is MAX else 0.2
    for k in (0, 1, 5):
        spec = Spec(Until("init", "goal", k), agent, nature)
        assert values(loop(), spec)[0] == pytest.approx(1 - (1 - p) ** k, abs=1e-12)
    # after exactly two steps in "init" the goal cannot be left again, so window = within
    everything = np.ones(2, dtype=bool)
    spec = Spec(Until(everything, "goal", None, 2), agent, nature)
    assert values(loop(), spec).tolist() == [1.0, 1.0]
    spec = Spec(Until("init", "goal", 2, 2), agent, nature)
    p = 0.6 if nature is MAX else 0.2
    # the first step must stay in 0: nature MAX plays for 0.6 last and 0.8 first
    first = 0.8 if nature is MAX else 0.4
    assert values(loop(), spec)[0] == pytest.approx(first * p, abs=1e-12)


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_rewards_over_time(agent, nature):
    """Cumulative, instantaneous and discounted rewards of the loop, negative ones included."""
    model = model_of([[([0], [1, 0])], [([], [1])]], [MOVE], [1], cost=[-2.0, 1.0])
    p = 0.6 if nature is MAX else 0.2
    two = -2.0 + p * 1.0 + (1 - p) * -2.0
    found = values(model, Spec(Cumulative(2, "cost"), agent, nature))
    assert found == pytest.approx([two, 2.0], rel=1e-12)
    found = values(model, Spec(Instantaneous(1, "cost"), agent, nature))
    assert found == pytest.approx([p - 2 * (1 - p), 1.0], rel=1e-12)
    g = 0.5
    end = 1 / (1 - g)
    found = values(model, Spec(Discounted(g, "cost"), agent, nature))
    assert found == pytest.approx([(-2 + g * p * end) / (1 - g * (1 - p)), end], rel=1e-6)
    assert values(model, Spec(Cumulative(0, "cost"), agent, nature)).tolist() == [0.0, 0.0]


def test_negative_rewards_without_end_are_refused():
    """The message names the row, its reward and what to use instead."""
    model = model_of([[([0], [1, 0])], [([], [1])]], [MOVE], [1], cost=[-2.0, 0.0])
    with pytest.raises(ModelError, match=r"state 0.*pays -2.*Cumulative"):
        solve(model, Spec(Total("cost"), MAX, MIN))


def test_total_reward_of_a_chain_that_ends():
    """Total reward counts what is paid on the way; the last state pays nothing."""
    rows = [[([0], [1, 0])], [([], [2])], [([], [2])]]
    model = model_of(rows, [MOVE], [2], cost=[1.0, 4.0, 0.0])
    assert values(model, Spec(Total("cost"), MAX, MIN)) == pytest.approx(
        [1 / 0.6 + 4, 4, 0], rel=1e-6
    )
    assert values(model, Spec(Total("cost"), MIN, MAX)) == pytest.approx([9, 4, 0], rel=1e-6)


def test_rare_event_keeps_its_relative_precision():
    """Ten coins of 0.02 in a row: about 1e-17 is far below the resolution, 1e-9 is not."""
    rows = [[([0], [k + 1, 6])] for k in range(5)] + [[([], [5])], [([], [6])]]
    model = model_of(rows, [Interval([0.01, 0.97], [0.03, 0.99])], [5])
    found = solve(model, Spec(Reach("goal"), MAX, MIN)).require_certified()
    assert found.lower[0] == pytest.approx(1e-10, rel=1e-2)
    assert found.lower[0] <= 1e-10 * (1 + 1e-12) <= found.upper[0] * (1 + 1e-9)


def test_impossible_outcome_is_no_way_out():
    """A loop whose only way out has probability 0: the agent has to pay."""
    stuck = Singleton([0.0, 1.0])
    model = model_of(
        [[([], [0])], [([0], [0, 1]), ([], [2])], [([], [0])]], [stuck], [0], [0, 0, 1]
    )
    for nature in (MAX, MIN):
        found = values(model, Spec(ReachReward("goal", "cost"), MIN, nature))
        assert found == pytest.approx([0.0, 1.0, 1.0], rel=1e-6)


def test_policy_takes_the_row_that_nature_cannot_block():
    """All three outcomes can be emptied, but not together: that row arrives, the other does not."""
    block = Interval([0.0, 0.0], [1.0, 1.0])
    free = Interval([0.0, 0.0, 0.0], [1.0, 1.0, 0.25])
    model = model_of([[([0], [1, 0]), ([1], [1, 1, 1])], [([], [1])]], [block, free], [1])
    found = solve(model, Spec(Reach("goal"), MAX, MIN))
    assert found.lower[0] == 1.0
    assert found.policy.row(0) == 1


def test_policy_keeps_an_infinite_reward_infinite():
    """To miss the target for ever the agent must not take the row that arrives."""
    model = model_of([[([], [1]), ([], [0])], [([], [1])]], [], [1])
    found = solve(model, Spec(ReachReward("goal", "cost"), MAX, MIN))
    assert found.lower[0] == np.inf
    assert found.policy.row(0) == 1
    paid = solve(model_of([[([], [1]), ([], [0])], [([], [1])]], [], [], [1, 0]),
                 Spec(Total("cost"), MAX, MIN))  # fmt: skip
    assert paid.lower[0] == np.inf
    assert paid.policy.row(0) == 1


def test_nature_waits_for_the_sure_way():
    """Most of the goal at once means some of the trap: nature takes less, again and again."""
    corners = Polytope([[0.9, 0.1, 0.0], [0.1, 0.0, 0.9]])
    model = model_of([[([0], [1, 2, 0])], [([], [1])], [([], [2])]], [corners], [1])
    found = solve(model, Spec(Reach("goal"), MAX, MAX))
    assert found.lower[0] == 1.0
    assert found.nature().of(0)[0].probabilities == pytest.approx((0.1, 0.0, 0.9))


def test_tiny_probabilities_are_not_nothing():
    """An outcome of 1e-13 that nature cannot avoid ends a loop in the long run."""
    leak = Interval([1e-13, 0.0, 0.0], [1e-13, 1.0, 1.0])
    model = model_of([[([0], [1, 0, 2])], [([], [1])], [([], [2])]], [leak], [1])
    found = solve(model, Spec(Reach("goal"), MAX, MAX))
    assert found.lower[0] <= 1.0 <= found.upper[0]
    least = solve(model, Spec(Reach("goal"), MAX, MIN))
    assert least.lower[0] <= 1e-13 <= least.upper[0]
    assert least.upper[0] < 1e-9


@pytest.mark.parametrize(("agent", "nature"), PAIRS)
def test_errors_of_rows_hardly_reached_hardly_count(agent, nature):
    """Forty levels of products behind a rare move: one sweep per side proves ten digits."""
    rng = np.random.default_rng(0)
    first, second = Interval([0.2, 0.3, 0.1], [0.4, 0.6, 0.5]), Interval([0.25] * 3, [0.5] * 3)
    rare = Interval([1e-3, 1 - 2e-3], [2e-3, 1 - 1e-3])
    rows = [[([2, 3], [3, 4, 2, 2])], [([], [1])], [([], [2])]]
    for state in range(3, 43):
        after = state + 1 if state < 42 else 1
        moves = [*rng.choice([1, 2, after], 8), after]
        rows.append([([0, 1], [int(move) for move in moves])])
    model = model_of(rows, [first, second, rare, MOVE], [1])
    spec = Spec(Reach("goal"), agent, nature)
    rough, fine = (solve(model, spec, limits=Limits(precision=p)) for p in (1e-6, 1e-10))
    assert fine.status is Status.CERTIFIED
    assert fine.stats.robust_sweeps <= 3
    low, high = fine.at_initial().lower, fine.at_initial().upper
    assert rough.at_initial().lower <= low <= high <= rough.at_initial().upper
    assert high - low <= 1e-10 * high
