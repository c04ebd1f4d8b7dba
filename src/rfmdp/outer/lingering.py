"""Groups of states in which those who may linger can walk about for ever at no reward.

A loose inductive bound (see `certify`) must be constant on such a group, for staying proves any
constant. Who lingers is on the side that the bound limits; the other player is fixed to its answer
to the value at hand. Then a group is a maximal end component of explicit choices: a row of the
agent together with a support of nature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels.graph import rows_within
from rfmdp.outer.components import Groups, strong_components
from rfmdp.outer.faces import Faces
from rfmdp.outer.graph import Graph
from rfmdp.outer.problem import Problem
from rfmdp.ragged import entries, segment_all, starts
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray, frozen

GUESSED = 1e-12  # nature's answer to a value takes more; a guess, what rests on it is checked


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Explicit choices: the row of each, and the states that it moves to."""

    row: IntArray  # (C,)
    pointer: IntArray  # (C + 1,)
    successor: Int32Array


def row_choices(graph: Graph, rows: IntArray, probability: FloatArray | None = None) -> Choices:
    """Return one choice per row: all that it can move to, or that of a given distribution."""
    model = graph.model
    place = entries(model.successor_ptr, rows)
    begin, present = successor_starts(model, rows), graph.edges.forward[-1]
    whole = Choices(rows, begin, model.successors[place])
    if probability is not None:
        return _select(whole, probability > GUESSED)
    return _select(whole, present[place]) if len(present) else whole


def vertex_choices(faces: Faces, rows: BoolArray) -> Choices:
    """Return one choice per vertex of the listed rows that are wanted (R,)."""
    wanted = rows[faces.rows][faces.owner]
    sizes = np.diff(faces.entry_ptr)
    keep = np.repeat(wanted, sizes)
    taken = faces.taken[keep]
    rows_of = faces.rows[faces.owner[wanted]]
    whole = Choices(rows_of, starts(sizes[wanted]), faces.successor[keep].astype(np.int32))
    return _select(whole, taken)


def _select(choices: Choices, keep: BoolArray) -> Choices:
    """Return the choices with only some of their successors."""
    return Choices(choices.row, starts(keep)[choices.pointer], choices.successor[keep])


def join(parts: list[Choices]) -> Choices:
    """Return the choices of all parts, sorted by row."""
    row = np.concatenate([p.row for p in parts])
    sizes = np.concatenate([np.diff(p.pointer) for p in parts])
    successor = np.concatenate([p.successor for p in parts])
    order = np.argsort(row, kind="stable")
    return Choices(row[order], starts(sizes[order]), successor[entries(starts(sizes), order)])


def end_groups(problem: Problem, choices: Choices, inside: BoolArray) -> Groups:
    """Return the maximal end components of explicit choices (sorted by row) among some states."""
    model = problem.model
    state = model.row_states[choices.row].astype(np.int32)
    ends = starts(np.bincount(state, minlength=model.states))
    everything = np.empty(0, dtype=np.bool_)
    arrays = ends, state, choices.pointer, choices.successor, everything
    edges = tuple(frozen(array) for array in arrays)  # as those of a `Graph`: compiled once
    alive = inside[state] & segment_all(inside[choices.successor], choices.pointer)
    while True:
        part, _, _ = strong_components(edges, inside, alive)
        stays = alive.copy()
        rows_within(edges, part, stays)
        if np.array_equal(stays, alive):
            break
        alive = stays
    rows = np.zeros(model.rows, dtype=np.bool_)
    rows[choices.row[alive]] = True
    label = np.full(model.states, -1, dtype=np.int64)
    members = np.unique(state[alive])
    _, label[members] = np.unique(part[members], return_inverse=True)
    return Groups(label, rows)
