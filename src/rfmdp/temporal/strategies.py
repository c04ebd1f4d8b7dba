"""Who wins a parity game where, and by what strategies: what its graph decides, and candidates.

*Regions* are exact. A turn of the game: the agent takes a row, nature a product of members, chance
a successor. The recursion of Zielonka, for plays with chance (docs/soundness.md): an arena is a set
of states and rows in which every move that is left stays inside. Two questions to a row are enough,
see `Graph`: can nature stay inside a set, and can she stay inside and touch another one.

In between, strategies of both players are improved until no better one is found. These are
candidates: nothing rests on the tolerances below, see docs/soundness.md.

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
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfmdp.inner.solvers import Exact
from rfmdp.kernels.graph import component_levels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Restriction
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.backups import Faces
from rfmdp.outer.graph import Graph
from rfmdp.outer.region import components
from rfmdp.ragged import segment, segment_any
from rfmdp.sets.boxes import excess
from rfmdp.sets.families import Interval, Singleton
from rfmdp.sets.marginals import Kind
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.temporal.parity import ParityGame

MIXED = 256  # components that are looked at one by one
SAME = 1e-8  # values that differ by less are one
LURE = 1e-5  # what nature is promised for leaving the states of one value
CLASSES = 256  # of values that are looked at one by one
MOST_ROWS = 20_000  # of a game of supports
NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """States (S,) and rows (R,) of a game in which moves stay."""

    states: BoolArray
    rows: BoolArray


class Regions:
    """The game of a graph and priorities (S,), from the side of those with a direction.

    `choice` (S,) becomes the agent's rows where it wins, if it is one of those.
    """

    def __init__(
        self, graph: Graph, priority: IntArray, agent: Direction, nature: Direction, side: Direction
    ) -> None:
        self.graph = graph
        self.priority = priority if side is MAX else priority + 1
        self.agent = MAX if agent is side else MIN
        self.nature = MAX if nature is side else MIN
        self.owner = graph.edges.row_state
        self.choice: IntArray = graph.model.row_ptr[:-1].copy()

    def almost_sure(self, arena: Arena | None = None) -> BoolArray:
        """Return where the side wins with probability one, (S,)."""
        if arena is None:
            arena = Arena(np.ones(len(self.priority), dtype=np.bool_), self.graph.rows.copy())
        nothing = np.zeros(len(self.priority), dtype=np.bool_)
        if not arena.states.any():
            return nothing
        largest = int(self.priority[arena.states].max())
        top = arena.states & (self.priority == largest)
        if largest % 2 == 0:
            self._take_first_rows(arena, top)
            return self._around(arena, top, nothing)
        won = self.almost_sure(self.away_from(top, arena, nothing))
        return self._around(arena, won, won) if won.any() else won

    def _around(self, arena: Arena, target: BoolArray, ends: BoolArray) -> BoolArray:
        """Return where the side wins, if coming to the target for ever, or to an end once, does."""
        while (target & arena.states).any():
            rest = self.away_from(target, arena, ends, helping=True)
            lost = rest.states & ~self.almost_sure(rest)
            if not lost.any():
                return arena.states
            arena = self.away_from(lost, arena, ends)
            self._take_first_rows(arena, target & ~ends)
        return self.almost_sure(arena)

    def away_from(
        self, target: BoolArray, arena: Arena, ends: BoolArray, *, helping: bool = False
    ) -> Arena:
        """Return the arena without all from where the others, or the side, come to a target."""
        agent, nature = self.agent, self.nature
        if not helping:
            agent, nature = agent.opposite, nature.opposite
        near, rows = self.graph.attract(
            target, arena.states, arena.rows, ~ends, agent=agent, nature=nature,
            choice=self.choice if helping and self.agent is MAX else None,
        )  # fmt: skip
        rest = arena.states & ~near
        return Arena(rest, arena.rows & ~rows & rest[self.owner])

    def _take_first_rows(self, arena: Arena, states: BoolArray) -> None:
        """Let the agent take a row of the arena in some states."""
        if self.agent is MAX:
            rows = np.flatnonzero(arena.rows & states[self.owner])[::-1]
            self.choice[self.owner[rows]] = rows


class CurvedSets(Exception):
    """Nature can empty an outcome of an Lp ball: she may approach what she cannot attain.

    A ball with 1 < p < inf may touch a face in one point; possible successors do not tell then.
    """


def stays(graph: Graph, priority: IntArray, open_: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the open states (S,) in whose components staying for ever is won, and is lost.

    It is if priorities have one parity, or if all players together cannot do otherwise. CurvedSets
    is raised if a component has both, and nature can empty an outcome of an Lp ball.
    """
    if not open_.any():
        return open_, open_
    parts = components(graph, open_)
    count = len(parts.trivial)
    evens, odds = (
        np.bincount(parts.component[open_ & (priority % 2 == p)], minlength=count) > 0
        for p in (0, 1)
    )
    won, lost = ~odds, ~evens
    mixed = np.flatnonzero(~won & ~lost)
    curved = (graph.model.marginals.kind == Kind.LP)[graph.model.row_marginals]
    if len(mixed) and (segment_any(curved, graph.model.marginal_ptr) & graph.flexible).any():
        raise CurvedSets
    for number in mixed[:MIXED]:
        inside = parts.component == number
        rows = graph.rows & inside[graph.edges.row_state]
        while True:  # what can stay at all
            rows &= graph.rows_can_stay(inside)
            staying = np.zeros_like(inside)
            staying[graph.edges.row_state[rows]] = True
            if np.array_equal(staying, inside):
                break
            inside = staying
            rows &= inside[graph.edges.row_state]
        arena = Arena(inside, rows)
        lost[number], won[number] = (
            not Regions(graph, priority, side, side, side).almost_sure(arena).any()
            for side in (MAX, MIN)
        )
        won[number] &= not lost[number]
    return open_ & won[parts.component], open_ & lost[parts.component]


def number_blocks(graph: Graph, won: BoolArray, open_: BoolArray) -> IntArray:
    """Return the blocks (S,) of open states, -1 elsewhere; staying is won where `won` (S,) is.

    That is the same in all states of a component that one can stay in.
    """
    if not open_.any():
        return np.full(len(open_), -1, dtype=np.int64)
    parts = components(graph, open_)
    kind = np.zeros(len(parts.trivial), dtype=np.int64)
    kind[parts.component[open_]] = won[open_]
    phase, loop = kind.copy(), np.zeros(len(kind), dtype=np.bool_)
    edges = graph.edges.forward
    component_levels(edges, graph.rows, parts.component, parts.states, kind, phase, loop)
    return np.where(open_, phase[parts.component], -1)


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
