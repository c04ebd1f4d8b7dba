"""Strategies of both players of a parity game, each improved until no better one is found.

What is found here are candidates: nothing rests on the tolerances below, see docs/soundness.md.

*Agent.* A row that is worth more than the value of a policy against its worst nature is taken. If
there is none, look at the states of one value, and at nature's answers that keep it: where the
agent wins almost surely while nature keeps the value and does not leave these states, that way of
playing is better, for nature has to give something away or lose [Chatterjee2006].

*Nature.* Her answers that keep the game's value are moves of a game of supports: she wins if the
play leaves its component or the states of its value, or fails the agent for ever. Her winning
answers are vertices. The `Restriction` is a box around each, inside of its set, with the vertex's
outcomes: nature may still choose numbers, but no successors.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Restriction
from rfmdp.objective import MAX
from rfmdp.outer.backups import Faces
from rfmdp.outer.graph import Graph
from rfmdp.outer.region import components
from rfmdp.ragged import segment, segment_any
from rfmdp.sets.boxes import excess
from rfmdp.sets.families import Interval, Singleton
from rfmdp.sets.marginals import Kind
from rfmdp.temporal.regions import Arena, Regions
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.temporal.parity import ParityGame

SAME = 1e-8  # values that differ by less are one
LURE = 1e-5  # what nature is promised for leaving the states of one value
CLASSES = 256  # of values that are looked at one by one
MOST_ROWS = 20_000  # of a game of supports
NOWHERE = np.empty(0, dtype=np.int64)


def better_policy(
    game: ParityGame, policy: IntArray, value: FloatArray, open_: BoolArray
) -> IntArray | None:
    """Return a policy (S,) that is better than one with a value (S,); None if none was found.

    open_ : (S,) where staying for ever is neither won nor lost whatever happens
    """
    model, graph, spec, sign = game.model, Graph(game.model), game.spec, game.spec.agent.sign
    worth = _worth(game, value)
    best = np.maximum.reduceat(sign * worth, model.row_ptr[:-1])
    hits = np.flatnonzero(sign * worth == best[model.row_states])[::-1]
    first = policy.copy()
    first[model.row_states[hits]] = hits
    switched = best > sign * worth[policy] + SAME
    if switched.any():
        return np.where(switched, first, policy)
    # what wins where nature keeps to states of one value
    owner = graph.edges.row_state
    won = 1.0 if spec.agent is MAX else 0.0
    level = _levels(value)
    better = policy.copy()
    for number in np.unique(level[open_ & (np.abs(value - won) > SAME)])[:CLASSES]:
        inside = level == number
        # rows that keep the value, and whose answers that leave give some of it away
        lured = _worth(game, np.where(inside, value, value - sign * LURE))
        rows = inside[owner] & (sign * (worth - value[owner]) >= -SAME)
        rows &= sign * (lured - value[owner]) >= -SAME
        rows &= graph.rows_can_stay(inside)
        stuck = inside & ~segment_any(rows, game.model.row_ptr)
        regions = Regions(graph, game.priority, spec.agent, spec.nature, spec.agent)
        arena = regions.away_from(stuck, Arena(inside, rows), np.zeros_like(stuck))
        sure = regions.almost_sure(arena)
        better[sure] = regions.choice[sure]
    return None if np.array_equal(better, policy) else better


def _worth(game: ParityGame, value: FloatArray) -> FloatArray:
    """Return what the rows (R,) are worth with nature's best answers."""
    low, high = np.empty((2, game.model.rows))
    nature = Exact().prepare(game.model, game.spec.nature)
    nature.backup(value, np.arange(game.model.rows), low, high)
    return 0.5 * (low + high)


def _levels(value: FloatArray) -> IntArray:
    """Return the numbers (S,) of values, those next to each other together."""
    order = np.argsort(value, kind="stable")
    level = np.empty(len(value), dtype=np.int64)
    level[order] = np.concatenate([[0], np.cumsum(np.diff(value[order]) > SAME)])
    return level


def nature_answers(game: ParityGame, value: FloatArray, open_: BoolArray) -> Restriction | None:
    """Return sets that nature keeps to, in rows of open states (S,), if the game's value is (S,).

    None if she wins her game of supports nowhere, or has too many vertices.
    """
    graph = Graph(game.model)
    rows = np.flatnonzero(open_[graph.edges.row_state])
    if len(rows) > MOST_ROWS:
        return None
    faces = Faces(game.model, rows[graph.flexible[rows]])
    if len(faces) < graph.flexible[rows].sum():
        return None
    answers = list(_answers(game, graph, faces, value, rows))
    supports, priority = _game_of_supports(game, graph, answers, value, open_)
    agent, nature = game.spec.nature, game.spec.agent
    regions = Regions(Graph(supports), priority, agent, nature, agent)
    sure = regions.almost_sure()
    taken = (regions.choice - supports.row_ptr[:-1])[int(open_.sum()) :]  # first those of the rows
    won = sure[int(open_.sum()) :]
    chosen = [line[k][0] for line, k, wins in zip(answers, taken, won, strict=False) if wins]
    return _restriction(game.model, faces, [vertex for vertex in chosen if vertex >= 0])


Answer: TypeAlias = tuple[int, IntArray]  # a vertex of `Faces`, and the successors that it takes


def _answers(
    game: ParityGame, graph: Graph, faces: Faces, value: FloatArray, rows: IntArray
) -> Iterator[list[Answer]]:
    """Yield for every row nature's answers that keep the value.

    A row in which supports do not change has one, vertex -1. A row by which the agent gives
    something away has the best, which leads nowhere.
    """
    sign, owner = game.spec.agent.sign, graph.edges.row_state
    worth, mean = _worth(game, value), faces.expectations(value)[0]
    number = dict(zip(faces.rows.tolist(), range(len(faces)), strict=True))
    pointers, successors = graph.edges.forward[2:]
    for row in rows.tolist():
        here = value[owner[row]]
        if row not in number:
            lost = sign * (worth[row] - here) < -SAME
            yield [(-1, NOWHERE if lost else successors[segment(pointers, row)])]
            continue
        vertices = np.arange(*faces.vertex_ptr[number[row] : number[row] + 2])
        loss = sign * (here - mean[vertices])
        if loss.max() > SAME:
            yield [(int(vertices[np.argmax(loss)]), NOWHERE)]
            continue
        places = [segment(faces.entry_ptr, vertex) for vertex in vertices[loss >= -SAME]]
        supports = [faces.successor[at][faces.taken[at]] for at in places]
        yield list(zip(vertices[loss >= -SAME].tolist(), supports, strict=True))


def _game_of_supports(
    game: ParityGame, graph: Graph, answers: list[list[Answer]], value: FloatArray, open_: BoolArray
) -> tuple[FactoredMDP, IntArray]:
    """Return nature's game of supports, and priorities: her answers are the rows of a row.

    States are the open states, their rows, and two ends: one that she wins, one that she loses.
    Somebody else, the agent, chooses among the rows of a state by a set over them. The chances of a
    move are the same: supports are all that counts.
    """
    row_ptr, owner = game.model.row_ptr, graph.edges.row_state
    states, rows = np.flatnonzero(open_), np.flatnonzero(open_[owner])
    won = len(states) + len(rows)
    place = np.full(game.model.states, won)
    place[states] = np.arange(len(states))
    component = components(graph, open_).component
    label = _levels(value) * (int(component.max()) + 2) + component + 1
    moves: list[list[list[int]]] = []
    for row, line in zip(rows, answers, strict=True):
        here = label[owner[row]]
        after = [np.unique(np.where(label[to] == here, place[to], won)).tolist() for _, to in line]
        moves.append([kept or [won] for kept in after] or [[won + 1]])
    sizes = (row_ptr[states + 1] - row_ptr[states]).tolist()
    most = max([*sizes, *(len(move) for line in moves for move in line)])
    points = [Singleton(np.full(n, 1.0 / n)) for n in range(1, most + 1)]
    choices = [Interval(np.zeros(n), np.ones(n)) for n in range(1, most + 1)]
    ends = np.cumsum([len(sizes), *sizes]).tolist()
    agents = [
        [([most + n - 1], list(range(end - n, end)))]
        for n, end in zip(sizes, ends[1:], strict=True)
    ]
    natures = [[([len(move) - 1], move) for move in line] for line in moves]
    supports = FactoredMDP.from_rows(
        [*agents, *natures, [([], [won])], [([], [won + 1])]], [*points, *choices]
    )
    lost = 0 if game.spec.nature is MAX else 1
    hers = np.zeros(len(rows), dtype=np.int64)
    return supports, np.concatenate([game.priority[states], hers, [lost, 1 - lost]])


def _restriction(model: FactoredMDP, faces: Faces, vertices: list[int]) -> Restriction | None:
    """Return boxes around the marginals of some vertices; None if rounding left one empty."""
    places: list[int] = []
    bounds: list[tuple[FloatArray, FloatArray]] = []
    for vertex in vertices:
        row = int(faces.rows[faces.owner[vertex]])
        ids = model.row_marginals[segment(model.marginal_ptr, row)].tolist()
        joint = faces.distribution(vertex).reshape([int(model.marginals.sizes[j]) for j in ids])
        support = faces.taken[segment(faces.entry_ptr, vertex)].reshape(joint.shape)
        for axis, j in enumerate(ids):
            others = tuple(k for k in range(len(ids)) if k != axis)
            if model.marginals.kind[j] in (Kind.SINGLETON, Kind.LP):
                continue
            point = np.where(support.any(axis=others), joint.sum(axis=others), 0.0)
            box = _box(model, j, point)
            if box is None:
                return None
            places.append(int(model.marginal_ptr[row]) + axis)
            bounds.append(box)
    if not places:
        return None
    lower, upper = (np.concatenate(side) for side in zip(*bounds, strict=True))
    return Restriction(np.array(places, dtype=np.int64), lower, upper)


def _box(
    model: FactoredMDP, marginal: int, point: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return a box inside of a set, around a vertex, all of whose members have its outcomes."""
    sets = model.marginals
    outcomes = segment(sets.outcome_ptr, marginal)
    kind = sets.kind[marginal]
    if kind == Kind.POLYTOPE:
        corners = sets.corners[segment(sets.corner_ptr, marginal)].reshape(-1, len(point))
        same = ((corners > 0.0) == (point > 0.0)).all(axis=1)
        far = np.where(same, np.abs(corners - point).max(axis=1), np.inf)
        corner = corners[int(np.argmin(far))]
        return corner, corner
    lower, upper = np.zeros(len(point)), np.ones(len(point))
    if kind == Kind.BOX:
        lower, upper = sets.lower[outcomes].copy(), sets.upper[outcomes].copy()
    elif sets.radius[marginal] < 2.0:  # members of an L1 ball of which one outcome receives all
        exact = [Fraction(x) for x in sets.nominal[outcomes].tolist()]
        total = sum(exact)
        receiver = int(np.argmax(point - sets.nominal[outcomes]))
        exact[receiver] += Fraction(float(sets.radius[marginal])) / 2
        near = [(x / total, min(float(x / total), 1.0)) for x in exact]
        upper = np.array([y if y <= x else np.nextafter(y, 0.0) for x, y in near])
    upper[point == 0.0] = 0.0
    lower = np.minimum(np.maximum(lower, 0.5 * point), upper)
    ends = np.array([0, len(point)])
    room = excess(lower, ends)[0] < 0.0 <= excess(upper, ends)[0]
    return (lower, upper) if room and (lower[point > 0.0] > 0.0).all() else None
