"""Groups of states in which those who may linger can walk about for ever at no reward.

A loose inductive bound (see `certify`) must be constant on such a group, for staying proves any
constant. Who lingers is on the side that the bound limits; the other player is fixed to its answer
to the value at hand. Then a group is a maximal end component of explicit choices: a row of the
agent together with a support of nature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.graph.components import Groups, end_components, no_groups
from rfmdp.outer.graph.graph import Edges
from rfmdp.outer.proofs.backups import ProvenBackups
from rfmdp.outer.proofs.faces import Faces
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

GUESSED = 1e-12  # nature takes what its answer gives more than this; a guess, checked later


class Choices(NamedTuple):
    """Explicit choices: the row of each, and the states that it moves to."""

    row: IntArray  # (C,)
    pointer: IntArray  # (C + 1,)
    successor: Int32Array  # of all choices, one after the other


def lingering_groups(backups: ProvenBackups, value: FloatArray, choice: IntArray) -> Groups:
    """Return the groups in which the lingerer can stay, the other player fixed.

    An agent who does not linger follows its choice (S,), nature gives its answers to the value.
    """
    problem, region, graph = backups.problem, backups.region, backups.region.graph
    lingers = problem.agent is problem.lingerer
    rows = backups.open_rows if lingers else choice[backups.states]
    rows = rows[(problem.reward[rows] == 0.0) & region.finite_rows[rows]]
    bends = graph.flexible[rows]
    if not bends.any():
        return region.groups if lingers else no_groups(problem.model)
    if backups.nature_lingers:
        bent = _vertex_choices(backups.faces, rows[bends])
    else:
        answers = backups.operator.inner.respond(value, rows[bends])
        model = problem.model
        every = _row_choices(rows[bends], model.successor_ptr, model.successors)
        bent = _select(every, answers > GUESSED)
    rigid = _row_choices(rows[~bends], *graph.edges.forward[2:])
    return _staying(problem.model, _join(rigid, bent), region.open)


def _row_choices(rows: IntArray, pointer: IntArray, successor: Int32Array) -> Choices:
    """Return one choice per row, with all its successors."""
    return Choices(rows, starts(segment_lengths(pointer)[rows]), successor[entries(pointer, rows)])


def _vertex_choices(faces: Faces, rows: IntArray) -> Choices:
    """Return one choice per vertex of some rows, of those that are listed."""
    vertices = np.flatnonzero(np.isin(faces.rows, rows)[faces.owner])
    places = entries(faces.entry_ptr, vertices)
    pointer = starts(segment_lengths(faces.entry_ptr)[vertices])
    successors = faces.successor[places].astype(np.int32)
    return _select(
        Choices(faces.rows[faces.owner[vertices]], pointer, successors), faces.taken[places]
    )


def _select(choices: Choices, keep: BoolArray) -> Choices:
    """Return the choices with only some of their successors."""
    return Choices(choices.row, starts(keep)[choices.pointer], choices.successor[keep])


def _join(*parts: Choices) -> Choices:
    """Return the choices of all parts, sorted by row."""
    row = np.concatenate([p.row for p in parts])
    sizes = np.concatenate([segment_lengths(p.pointer) for p in parts])
    successor = np.concatenate([p.successor for p in parts])
    order = np.argsort(row, kind="stable")
    return Choices(row[order], starts(sizes[order]), successor[entries(starts(sizes), order)])


def _staying(model: FactoredMDP, choices: Choices, inside: BoolArray) -> Groups:
    """Return the maximal end components of explicit choices (sorted by row) among some states."""
    row_ptr = starts(np.bincount(model.row_states[choices.row], minlength=model.states))
    every = np.ones(len(choices.row), dtype=np.bool_)
    found = end_components(Edges(row_ptr, choices.pointer, choices.successor), every, inside)
    rows = np.zeros(model.rows, dtype=np.bool_)
    rows[choices.row[found.rows]] = True
    return Groups(found.label, rows)
