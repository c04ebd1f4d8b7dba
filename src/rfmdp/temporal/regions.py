"""What a parity objective's graph decides, exactly: where it holds almost surely, and blocks.

A turn of the game: the agent takes a row, nature a product of members, chance a successor. The
recursion of Zielonka, for plays with chance (docs/soundness.md): an arena is a set of states and
rows in which every move that is left stays inside. Two questions to a row are enough, see `Graph`:
can nature stay inside a set, and can she stay inside and touch another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.kernels.graph import component_levels
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.graph import Graph
from rfmdp.outer.region import components
from rfmdp.ragged import segment_any
from rfmdp.sets.marginals import Kind
from rfmdp.types import BoolArray, IntArray

MIXED = 256  # components that are looked at one by one


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
