"""The hidden truth behind a simulation, as it is counted."""

from __future__ import annotations

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import entries, owners, segment_product, segment_sum, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, Int32Array, IntArray


def counted_truth(truth: FactoredMDP, counted: FactoredMDP) -> FactoredMDP:
    """Return a learning model with the probabilities that a truth gives to its outcomes.

    Both have the same states and rows (the learning model may have further ones behind them); an
    outcome of the learning model has the probability of the successors that show it, in the first
    row that counts for its identifier.

    Raises
    ------
    ModelError
        If a successor of the truth shows no outcome of the learning model.
    """
    identifiers, slots = np.unique(counted.row_marginals, return_index=True)
    rows = owners(counted.marginal_ptr)[slots]
    sizes, targets, mass = _multiplied(truth, rows)
    owner = np.repeat(np.arange(len(rows)), sizes)
    place = _places(counted, rows, owner, targets)
    d = counted.marginals.sizes[identifiers]
    outcome = place // _strides(counted, slots, rows)[owner] % d[owner]
    at = counted.marginals.outcome_ptr[identifiers][owner] + outcome
    sums = np.bincount(at, weights=mass, minlength=len(counted.marginals.nominal)).astype(float)
    ptr = counted.marginals.outcome_ptr
    points = sums / np.repeat(segment_sum(sums, ptr), np.diff(ptr))
    return counted.with_marginals(Marginals.from_points(ptr, points))


def _multiplied(truth: FactoredMDP, rows: IntArray) -> tuple[IntArray, Int32Array, FloatArray]:
    """Return numbers of successors, successors and probabilities of rows, one after the other."""
    from rfmdp.kernels.identify import joint_rows

    length = int(np.sum(np.diff(truth.successor_ptr)[rows]))
    sizes = np.empty(len(rows), dtype=np.int64)
    targets, mass = np.empty(length, dtype=np.int32), np.empty(length)
    used = joint_rows(
        rows, truth.marginal_ptr, truth.row_marginals, truth.marginals.outcome_ptr,
        truth.marginals.nominal, truth.successor_ptr, truth.successors, truth.states,
        sizes, targets, mass,
    )  # fmt: skip
    return sizes, targets[:used], mass[:used]


def _places(counted: FactoredMDP, rows: IntArray, owner: IntArray, targets: Int32Array) -> IntArray:
    """Return where targets (N,) stand in the tensors of their rows rows[owner]."""
    lengths = np.diff(counted.successor_ptr)[rows]
    at, ptr = entries(counted.successor_ptr, rows), starts(lengths)
    if np.array_equal(counted.successors[at], targets):  # rows that are counted as a whole
        return np.arange(len(targets)) - ptr[owner]
    keys = owners(ptr) * counted.states + counted.successors[at]
    known, first = np.unique(keys, return_index=True)
    wanted = owner * counted.states + targets
    found = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    if np.any(known[found] != wanted):
        fault = int(np.argmax(known[found] != wanted))
        raise ModelError(
            f"Simulation: {counted.row_name(int(rows[owner[fault]]))} must lead to a declared "
            f"successor, found {counted.state_name(int(targets[fault]))}; the structure must be "
            "that of the truth."
        )
    return np.asarray(first[found] - ptr[owner], dtype=np.int64)


def _strides(counted: FactoredMDP, slots: IntArray, rows: IntArray) -> IntArray:
    """Return by how much an outcome of a slot moves within the tensor of its row."""
    later = np.stack([slots + 1, counted.marginal_ptr[rows + 1]], axis=1).reshape(-1)
    behind = entries(later, 2 * np.arange(len(slots)))
    ptr = starts(later[1::2] - later[::2])
    return segment_product(counted.marginals.sizes[counted.row_marginals[behind]], ptr)
