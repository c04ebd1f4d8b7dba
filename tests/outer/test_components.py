import itertools

import numpy as np
from hypothesis import given, strategies as st

from examples import half
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.graph import Graph
from rfmdp.outer.region import components, end_components
from rfmdp.sets.families import Singleton

from .games import explicit, random_model

SEEDS = st.integers(0, 10**6)


def edge_matrix(game, inside):
    """Return which state may move to which in one step, (S, S)."""
    edge = np.zeros((game.states, game.states), dtype=bool)
    for s, rows in enumerate(game.rows):
        for p in (p for r in rows for p in game.moves[r]):
            edge[s] |= p > 0
    return edge & inside & inside[:, None]


def closure(edge):
    reach = edge | np.eye(len(edge), dtype=bool)
    for _ in range(len(edge)):
        reach = reach @ reach
    return reach


@half
@given(SEEDS)
def test_components_equal_mutual_reachability(seed):
    """Components, levels and triviality follow from the closure of the edges."""
    model = random_model(seed, 8)
    rng = np.random.default_rng(seed)
    inside, allowed = rng.random(model.states) < 0.8, rng.random(model.rows) < 0.8
    found = components(Graph(model).with_rows(allowed), inside)
    edge = edge_matrix(explicit(model, allowed), inside)
    both = closure(edge) & closure(edge).T
    assert ((found.component >= 0) == inside).all()
    for s, t in itertools.product(np.flatnonzero(inside), repeat=2):
        assert (found.component[s] == found.component[t]) == both[s, t]
    level = np.full(model.states, -1)
    for number, states in enumerate(found.levels()):
        level[states] = number
    for s in np.flatnonzero(inside):
        others = [
            level[t] + 1
            for m in np.flatnonzero(both[s] & inside)
            for t in np.flatnonzero(edge[m] & ~both[s])
        ]
        assert level[s] == max(others, default=0)
        c = found.component[s]
        assert found.trivial[c] == (both[s].sum() == 1 and not edge[s, s])
        part = found.states[found.component_ptr[c] : found.component_ptr[c + 1]]
        assert s in part
    assert len(found.states) == inside.sum() == found.component_ptr[-1]


def everywhere(graph):
    """Return the end components of all rows and states."""
    return end_components(graph.edges, graph.rows, np.ones(graph.model.states, dtype=bool))


def naive_end_components(game, inside):
    """Return the maximal sets of states with rows that connect them and stay, by enumeration.

    Nature takes every possible move.
    """
    moves = {r: frozenset().union(*game.supports(r)) for r in game.moves}
    found = []
    members = np.flatnonzero(inside).tolist()
    for count in range(len(members), 0, -1):
        for chosen in map(set, itertools.combinations(members, count)):
            rows = {s: [r for r in game.rows[s] if moves[r] <= chosen] for s in chosen}
            if not all(rows.values()) or any(chosen <= other for other, _ in found):
                continue
            edge = np.zeros((game.states, game.states), dtype=bool)
            for s in chosen:
                for r in rows[s]:
                    edge[s, list(moves[r])] = True
            part = np.ix_(sorted(chosen), sorted(chosen))
            if closure(edge)[part].all():
                found.append((chosen, sorted(itertools.chain(*rows.values()))))
    return found


@half
@given(SEEDS)
def test_end_components_equal_enumeration(seed):
    """Maximal end components and their rows are those found by trying all sets."""
    model = random_model(seed, 6)
    rng = np.random.default_rng(seed)
    inside, allowed = rng.random(model.states) < 0.9, rng.random(model.rows) < 0.9
    found = end_components(Graph(model).edges, allowed, inside)
    expected = naive_end_components(explicit(model, allowed), inside)
    ours = [set(np.flatnonzero(found.label == c).tolist()) for c in range(found.count)]
    assert sorted(map(sorted, ours)) == sorted(sorted(chosen) for chosen, _ in expected)
    rows = sorted(itertools.chain(*(rows for _, rows in expected)))
    assert np.flatnonzero(found.rows).tolist() == rows


def test_long_chain_needs_no_recursion():
    """A path of 100,000 states has as many levels; one that leaks has no end component."""
    size = 100_000
    chain = FactoredMDP.from_rows([[([], [min(s + 1, size - 1)])] for s in range(size)], [])
    found = components(Graph(chain))
    assert len(found.level_ptr) == size + 1
    assert found.states.tolist() == list(range(size - 1, -1, -1))
    assert found.trivial.sum() == size - 1
    assert everywhere(Graph(chain)).count == 1


def test_end_components_shrink_in_one_round():
    """A ring of which one state leaks is empty, and that takes no round per state."""
    size = 20_000
    rows = [[([0], [s + 1, 0])] for s in range(size)]
    ring = FactoredMDP.from_rows([*rows, [([], [size])]], [Singleton([0.5, 0.5])])
    found = everywhere(Graph(ring))
    assert found.count == 1
    assert np.flatnonzero(found.label == 0).tolist() == [size]
