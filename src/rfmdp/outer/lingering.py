"""Groups of states in which those who may linger can walk about for ever at no reward.

A loose inductive bound (see `certify`) must be constant on such a group, for staying proves any
constant. Who lingers is on the side that the bound limits; the other player is fixed to its answer
to the value at hand. Then a group is a maximal end component of explicit choices: a row of the
agent together with a support of nature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.bound import successor_starts
from rfmdp.outer.faces import Faces
from rfmdp.outer.graph import Graph
from rfmdp.outer.problem import Problem
from rfmdp.sets.vertices import TRIFLE
from rfmdp.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Disjoint sets of states, and the rows that can stay in the set of their state."""

    label: IntArray  # (S,) number of the group, -1 outside of all
    rows: BoolArray  # (R,)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.label.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Explicit choices: the row of each, and the states that it moves to."""

    row: IntArray  # (C,)
    pointer: IntArray  # (C + 1,)
    successor: IntArray


def no_groups(problem: Problem) -> Groups:
    """Return no group at all."""
    model = problem.model
    return Groups(np.full(model.states, -1, dtype=np.int64), np.zeros(model.rows, dtype=np.bool_))


def row_choices(graph: Graph, rows: IntArray, probability: FloatArray | None = None) -> Choices:
    """Return one choice per row: all that it can move to, or that of a given distribution."""
    model = graph.model
    begin = successor_starts(model, rows)
    sizes = np.diff(begin)
    within = np.arange(begin[-1]) - np.repeat(begin[:-1], sizes)
    place = np.repeat(model.successor_ptr[rows], sizes) + within
    successor = model.successors[place].astype(np.int64)
    whole, present = Choices(rows, begin, successor), graph.edges.forward[-1]
    if probability is not None:
        return _select(whole, probability > TRIFLE)
    return _select(whole, present[place]) if len(present) else whole


def vertex_choices(faces: Faces, rows: BoolArray) -> Choices:
    """Return one choice per vertex of the listed rows that are wanted (R,)."""
    wanted = rows[faces.rows][faces.owner]
    sizes = np.diff(faces.entry_ptr)
    keep = np.repeat(wanted, sizes)
    taken = faces.taken[keep]
    pointer = np.concatenate([[0], np.cumsum(sizes[wanted])])
    whole = Choices(faces.rows[faces.owner[wanted]], pointer, faces.successor[keep])
    return _select(whole, taken)


def _select(choices: Choices, keep: BoolArray) -> Choices:
    """Return the choices with only some of their successors."""
    total = np.concatenate([[0], np.cumsum(keep)])
    return Choices(choices.row, total[choices.pointer], choices.successor[keep])


def join(parts: list[Choices]) -> Choices:
    """Return the choices of all parts."""
    sizes = np.concatenate([np.diff(p.pointer) for p in parts])
    return Choices(
        np.concatenate([p.row for p in parts]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([p.successor for p in parts]),
    )


def end_groups(problem: Problem, choices: Choices, inside: BoolArray) -> Groups:
    """Return the maximal end components of explicit choices among the states `inside`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    model = problem.model
    state = np.searchsorted(model.row_ptr, choices.row, side="right") - 1
    sizes = np.diff(choices.pointer)
    source = np.repeat(state, sizes)
    alive = inside[state] & _all(inside[choices.successor], choices.pointer)
    shape = (model.states, model.states)
    while True:
        edges = np.repeat(alive, sizes)
        start, end = source[edges], choices.successor[edges]
        graph = csr_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=shape)
        _, part = connected_components(graph, connection="strong")
        stays = alive & _all(part[choices.successor] == part[source], choices.pointer)
        if np.array_equal(stays, alive):
            break
        alive = stays
    rows = np.zeros(model.rows, dtype=np.bool_)
    rows[choices.row[alive]] = True
    label = np.full(model.states, -1, dtype=np.int64)
    members = np.unique(state[alive])
    _, label[members] = np.unique(part[members], return_inverse=True)
    return Groups(label, rows)


def _all(holds: BoolArray, pointer: IntArray) -> BoolArray:
    """Return whether all entries of every (non-empty) segment hold."""
    misses = np.concatenate([[0], np.cumsum(~holds)])
    fine: BoolArray = np.diff(misses[pointer]) == 0
    return fine
