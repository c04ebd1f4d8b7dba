"""Single rows of a lattice, written out as a model of these rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import LatticeMDP
from rfmdp.ragged import segment_product, starts
from rfmdp.types import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """Rows of a lattice; their successors are states of the lattice."""

    model: FactoredMDP  # a state per row; its successors are numbers of the lattice
    states: IntArray  # (R,)
    actions: IntArray  # (R,)


def written_out(
    model: LatticeMDP, states: IntArray, actions: IntArray, at_once: int
) -> Iterator[WrittenRows]:
    """Yield the given rows in portions of about `at_once` successors."""
    moves = model.row_moves(states, actions)
    sizes = np.diff(model.moves.target_ptr)[moves]
    ends = np.cumsum(np.prod(sizes, axis=1))
    begin = 0
    while begin < len(states):
        done = 0 if begin == 0 else ends[begin - 1]
        end = max(begin + 1, int(np.searchsorted(ends, done + at_once)))
        yield _portion(model, states[begin:end], actions[begin:end], moves[begin:end])
        begin = end


def _portion(
    model: LatticeMDP, states: IntArray, actions: IntArray, moves: IntArray
) -> WrittenRows:
    """Write some rows out: certain moves are added to all successors, the others are marginals."""
    inner = np.cumprod([1, *model.sizes[:0:-1]])[::-1]  # what a local state counts
    marginal = model.moves.marginal[moves]
    uncertain = marginal >= 0
    targets = model.moves.targets[model.moves.target_ptr[moves]]  # the first ones
    base = np.where(uncertain, 0, targets * inner).sum(axis=1)
    marginal_ptr = starts(uncertain.sum(axis=1))
    sizes = np.diff(model.moves.target_ptr)[moves][uncertain]
    successor_ptr = starts(segment_product(sizes, marginal_ptr))
    row = np.repeat(np.arange(len(states)), np.diff(successor_ptr))
    rest = np.arange(successor_ptr[-1]) - successor_ptr[row]
    successors = base[row]
    for d in range(len(model.factors) - 1, -1, -1):
        size = np.where(uncertain[:, d], np.diff(model.moves.target_ptr)[moves[:, d]], 1)[row]
        outcome = rest % size
        rest //= size
        first = model.moves.target_ptr[moves[row, d]]
        step = model.moves.targets[first + np.where(uncertain[row, d], outcome, 0)] * inner[d]
        successors = successors + np.where(uncertain[row, d], step, 0)
    rows = FactoredMDP(
        row_ptr=np.arange(len(states) + 1),
        marginal_ptr=marginal_ptr,
        row_marginals=marginal[uncertain].astype(np.int32),
        successor_ptr=successor_ptr,
        successors=successors.astype(np.int32),
        marginals=model.marginals,
        initial=np.zeros(1, dtype=np.int64),
        row_actions=np.zeros(len(states), dtype=np.int32),
        actions=("",),
    )
    return WrittenRows(rows, states, actions)
