import itertools

import numpy as np
from hypothesis import assume, given, strategies as st

from examples import half
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN
from rfmdp.outer.graph import Graph
from rfmdp.sets.families import Interval, Polytope, Singleton

from .games import (
    PAIRS,
    combinations,
    corner_members,
    enumerated_total,
    explicit,
    naive_almost_sure,
    naive_positive,
    naive_recurrent,
    random_model,
    reach_game,
)

SEEDS = st.integers(0, 10**6)


def states(mask):
    return set(np.flatnonzero(mask).tolist())


def random_sets(model, seed):
    """Return a target, which may be empty or everything, and states to stay in."""
    rng = np.random.default_rng(seed)
    target = rng.random(model.states) < rng.choice([0.0, 0.3, 0.3, 0.3, 1.0])
    return target, rng.random(model.states) < rng.choice([0.7, 1.0])


def check_reach(graph, game, target, stay):
    """Compare with the naive fixed points over explicit supports, all four pairs."""
    for agent, nature in PAIRS:
        args = states(target), states(stay), agent, nature
        found = graph.positive(target, stay, agent=agent, nature=nature)
        assert states(found) == naive_positive(game, *args), (agent, nature)
        found = graph.almost_sure(target, stay, agent=agent, nature=nature)
        assert states(found) == naive_almost_sure(game, *args), (agent, nature)


@half
@given(SEEDS)
def test_reach_equals_naive_game(seed):
    """Fixed points over all explicit supports give the same states."""
    model = random_model(seed, 6)
    check_reach(Graph(model), explicit(model), *random_sets(model, seed))


@half
@given(SEEDS)
def test_rows_equal_definitions(seed):
    """The predicates of rows are what the explicit supports say."""
    model = random_model(seed)
    graph, game = Graph(model), explicit(model)
    target, _ = random_sets(model, seed)
    hit = states(target)
    choices = [game.supports(r) for r in range(model.rows)]
    expected = {
        "rows_possible": [any(b & hit for b in row) for row in choices],
        "rows_can_stay": [any(b <= hit for b in row) for row in choices],
    }
    for name, rows in expected.items():
        assert getattr(graph, name)(target).tolist() == rows, name
    bends = [len(set(row)) > 1 for row in choices]
    assert all(graph.flexible[r] for r in range(model.rows) if bends[r])


def small_game(seed):
    """Return a model and its game over vertices, small enough to enumerate strategies."""
    model = random_model(seed, 4)
    game = explicit(model, members=corner_members)
    assume(combinations(game) <= 1500)
    return model, game


@half
@given(SEEDS)
def test_reach_agrees_with_values(seed):
    """Positive is value > 0, almost sure is value 1, for values by strategy enumeration."""
    model, game = small_game(seed)
    target, stay = random_sets(model, seed)
    values = enumerated_total(*reach_game(game, states(target), states(stay)))
    graph = Graph(model)
    for (agent, nature), value in values.items():
        value = value[:-1]
        found = graph.positive(target, stay, agent=agent, nature=nature)
        assert found.tolist() == (value > 1e-9).tolist(), (agent, nature)
        found = graph.almost_sure(target, stay, agent=agent, nature=nature)
        assert found.tolist() == (value > 1 - 1e-9).tolist(), (agent, nature)


@half
@given(SEEDS)
def test_total_reward_agrees_with_values(seed):
    """Total reward is 0 or infinite exactly where the graph says so."""
    model, game = small_game(seed)
    reward = (np.random.default_rng(seed).random(model.rows) < 0.4).astype(float)
    graph, nowhere = Graph(model), np.zeros(model.states, dtype=bool)
    for (agent, nature), value in enumerated_total(game, reward).items():
        found = graph.positive(nowhere, agent=agent, nature=nature, rows=reward > 0)
        assert found.tolist() == (value >= 1e-9).tolist(), (agent, nature)
        found = graph.recurrent_positive(reward > 0, agent=agent, nature=nature)
        assert found.tolist() == np.isinf(value).tolist(), (agent, nature)


@half
@given(SEEDS)
def test_infinite_reward_equals_naive_game(seed):
    """The three nested fixed points, written down over explicit supports, give the same states."""
    model = random_model(seed, 7)
    rng = np.random.default_rng(seed)
    positive, allowed = rng.random(model.rows) < 0.3, rng.random(model.rows) < 0.9
    graph, game = Graph(model).with_rows(allowed), explicit(model, allowed)
    for agent, nature in PAIRS:
        found = graph.recurrent_positive(positive, agent=agent, nature=nature)
        assert states(found) == naive_recurrent(game, positive, agent, nature), (agent, nature)


@half
@given(SEEDS)
def test_fewer_rows(seed):
    """A policy, or some rows of the agent, give the answers of the game with these only."""
    model = random_model(seed, 5)
    rng = np.random.default_rng(seed)
    policy = np.array([rng.integers(a, b) for a, b in itertools.pairwise(model.row_ptr)])
    chosen = np.zeros(model.rows, dtype=bool)
    chosen[policy] = True
    masks = rng.random(model.rows) < 0.7  # may leave states without rows
    graph, sets = Graph(model), random_sets(model, seed)
    check_reach(graph.with_rows(policy), explicit(model, chosen), *sets)
    check_reach(graph.with_rows(masks), explicit(model, masks), *sets)


def test_removable_edge():
    """Nature may block a move with lower bound 0, and cannot block one with a positive bound."""
    goal = np.array([False, True])
    for low, blocked in ((0.0, True), (1e-9, False)):
        step = Interval([low, 0.5], [0.5, 1.0])
        graph = Graph(FactoredMDP.from_rows([[([0], [1, 0])], [([], [1])]], [step]))
        assert graph.almost_sure(goal, agent=MAX, nature=MIN)[0] != blocked
        assert graph.positive(goal, agent=MAX, nature=MIN)[0] != blocked
        assert graph.almost_sure(goal, agent=MAX, nature=MAX)[0]


def test_minimiser_between_two_losses():
    """A minimiser who can only repeat reward or risk an infinite loop of it has lost."""
    coin = Singleton([0.5, 0.5])
    # 0: reward for ever, or zero reward into 1 (reward for ever) or 2 (nothing)
    rows = [[([], [0]), ([0], [1, 2])], [([], [1])], [([], [2])]]
    graph = Graph(FactoredMDP.from_rows(rows, [coin]))
    positive = np.array([True, False, True, False])
    for nature in (MAX, MIN):
        lost = graph.recurrent_positive(positive, agent=MIN, nature=nature)
        assert lost.tolist() == [True, True, False]


def stay_or_part(rewarding):
    """Return a graph: state 0 stays, or moves to 1 and 2 evenly, as nature likes; these stay."""
    either = Polytope([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    rows = [[([0], [0, 1, 2])], [([], [1])], [([], [2])]]
    return Graph(FactoredMDP.from_rows(rows, [either])), np.array(rewarding)


def test_nature_cannot_stay_and_advance_at_once():
    """A helpful nature that can wait safely or advance with risk does not win almost surely."""
    graph, goal = stay_or_part([False, True, False])
    for agent in (MAX, MIN):
        assert states(graph.almost_sure(goal, agent=agent, nature=MAX)) == {1}
        assert states(graph.positive(goal, agent=agent, nature=MAX)) == {0, 1}


def test_nature_escapes_only_through_a_loss():
    """A minimising nature may leave a rewarding loop only by risking another one: it has lost."""
    graph, positive = stay_or_part([True, True, False])
    for agent in (MAX, MIN):
        assert states(graph.recurrent_positive(positive, agent=agent, nature=MIN)) == {0, 1}


def test_reward_once_is_not_infinite():
    """An agent who may wait for ever before a single reward does not get infinitely much."""
    graph = Graph(FactoredMDP.from_rows([[([], [0]), ([], [1])], [([], [1])]], []))
    positive = np.array([False, True, False])
    assert not graph.recurrent_positive(positive, agent=MAX, nature=MIN).any()
    nowhere = np.zeros(2, dtype=bool)
    assert not graph.positive(nowhere, agent=MIN, nature=MAX, rows=positive).any()
    found = graph.positive(nowhere, agent=MAX, nature=MAX, rows=positive)
    assert found.tolist() == [True, False]


def test_inputs_stay_unchanged():
    """Read-only masks are accepted and nothing given is written to."""
    model = random_model(7, 6)
    target = np.zeros(model.states, dtype=bool)
    target[0] = True
    target.flags.writeable = False
    for agent, nature in PAIRS:
        Graph(model).almost_sure(target, ~target, agent=agent, nature=nature)
    assert states(target) == {0}
