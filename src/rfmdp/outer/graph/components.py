"""Strongly connected components and end components of a graph.

>>> from rfmdp.model.arrays import FactoredMDP
>>> chain = FactoredMDP.from_rows([[([], [1])], [([], [2])], [([], [1])]], [])
>>> graph, everywhere = Graph(chain), np.ones(3, dtype=np.bool_)
>>> parts = components(graph)
>>> parts.component.tolist(), parts.trivial.tolist(), parts.levels()[1].tolist()
([1, 0, 0], [False, True], [0])
>>> end_components(graph.edges, graph.rows, everywhere).label.tolist()
[-1, 0, 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rfmdp.kernels import graph as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.graph.graph import Edges, Graph
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Strongly connected components by level, bottom first.

    Level l is the components `level_ptr[l] : level_ptr[l + 1]`; component c is the states
    `states[component_ptr[c] : component_ptr[c + 1]]`. Edges lead to lower levels only, or stay
    within a component, or leave the analysed states.
    """

    component: IntArray  # (S,) -1 for states that were not analysed
    states: IntArray  # (N,) by level, then by component
    component_ptr: IntArray  # (C + 1,)
    level_ptr: IntArray  # (L + 1,)
    trivial: BoolArray  # (C,) a single state that cannot move to itself

    def levels(self) -> list[IntArray]:
        """Return the states (N,) of every level, bottom first."""
        ends = self.component_ptr[self.level_ptr].tolist()
        return [self.states[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Disjoint sets of states, and the rows that can stay in them."""

    label: IntArray  # (S,) number of the group, -1 outside of all
    rows: BoolArray  # (R,) that can stay in the group of their state

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.label.max(initial=-1)) + 1

    @property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of all groups, one group after the other: pointers (G + 1,) and states."""
        states = np.flatnonzero(self.label >= 0)
        states = states[np.argsort(self.label[states], kind="stable")]
        return starts(np.bincount(self.label[states])), states


def no_groups(model: FactoredMDP) -> Groups:
    """Return no group at all."""
    return Groups(np.full(model.states, -1, dtype=np.int64), np.zeros(model.rows, dtype=np.bool_))


def components(graph: Graph, states: BoolArray | None = None) -> Components:
    """Return the strongly connected components of possible moves among `states` (all if None).

    Tarjan's algorithm, then the longest way down as level of a component. O(K).
    """
    inside = np.ones(graph.model.states, dtype=np.bool_) if states is None else states
    component, order, count = strong_components(graph.edges.forward, inside, graph.rows)
    level, loop = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    size, kinds = np.bincount(component[order], minlength=count), np.arange(count)
    edges = graph.edges.forward
    kernels.component_levels(edges, graph.rows, component, order, kinds, level, loop)
    rank = np.argsort(level, kind="stable")
    number = np.empty(count + 1, dtype=np.int64)
    number[rank] = np.arange(count)
    number[-1] = -1  # so that -1 stays -1
    component = number[component]
    # Tarjan's list is grouped by the old numbers: sorting by the new ones moves whole groups
    order = order[np.argsort(component[order], kind="stable")]
    return Components(
        component=component,
        states=order,
        component_ptr=starts(size[rank]),
        level_ptr=starts(np.bincount(level)),
        trivial=((size == 1) & ~loop)[rank],
    )


def end_components(edges: Edges, rows: BoolArray, states: BoolArray) -> Groups:
    """Return the maximal end components of some rows (R,) among `states` (S,): where one can stay.

    A row counts as one that makes all of its moves. Rounds of Tarjan's algorithm: rows that may
    leave their component go, then all states that cannot avoid states without rows; components
    that lost nothing are done.
    """
    state = edges.row_state
    still = states.copy()
    rows = rows.copy()
    label = np.full(len(states), -1, dtype=np.int64)
    stay = np.zeros_like(rows)
    result = 0
    queue = np.empty(len(states), dtype=np.int32)
    while True:
        left = np.zeros(len(states), dtype=np.int64)
        kernels.drop_leaving(edges.forward, edges.backward, still, rows, left, queue)
        if not still.any():
            return Groups(label, stay)
        component, _, count = strong_components(edges.forward, still, rows)
        kept = rows.copy()
        kernels.rows_within(edges.forward, component, kept)
        changed = np.zeros(count, dtype=np.bool_)
        changed[component[state[rows & ~kept]]] = True
        done = still & ~changed[component]
        numbers, renamed = np.unique(component[done], return_inverse=True)
        label[done] = result + renamed
        result += len(numbers)
        stay |= rows & done[state]
        still &= ~done
        rows = kept & still[state]


def strong_components(
    edges: tuple[AnyArray, ...], inside: BoolArray, rows: BoolArray
) -> tuple[IntArray, IntArray, int]:
    """Return (component (S,), states grouped by component, number), bottom first.

    `edges` as in `kernels.graph`; only states `inside` and some rows are looked at.
    """
    size = len(inside)
    index = np.where(inside, kernels.UNSEEN, kernels.OUTSIDE).astype(np.int64)
    component = np.full(size, -1, dtype=np.int64)
    low, row, edge, path, order = (np.empty(size, dtype=np.int64) for _ in range(5))
    visits = index, low, row, edge
    count = kernels.strong_components(edges, rows, visits, path, order, component)
    return component, order[: np.count_nonzero(inside)], count
