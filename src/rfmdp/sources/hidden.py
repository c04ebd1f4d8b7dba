"""The hidden truth behind a simulation, as it is counted."""

from __future__ import annotations

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, segment_sum
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.tally import shown_outcomes
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
    shown = shown_outcomes(counted, rows[owner], targets)
    ptr = counted.marginals.outcome_ptr
    sums = np.zeros(len(counted.marginals.nominal))
    for slot, outcome in zip(shown.slots, shown.outcomes, strict=True):
        own = slot == slots[owner]
        at = ptr[identifiers][owner[own]] + outcome[own]
        sums += np.bincount(at, weights=mass[own], minlength=len(sums))
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
