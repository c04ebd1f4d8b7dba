"""The hidden truth of a simulation, in terms of a learning model."""

from __future__ import annotations

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import entries, owners, segment_lengths, segment_sum
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.tally import shown_outcomes
from rfmdp.types import FloatArray, Int32Array, IntArray


def counted_truth(truth: FactoredMDP, counted: FactoredMDP) -> FactoredMDP:
    """Return a learning model with the probabilities that a truth gives to its outcomes.

    Both have the same states and rows; the learning model may have further ones behind them. An
    outcome gets the probability of the successors that show it, in the first row of its identifier.

    Raises
    ------
    ModelError
        If a successor of the truth shows no outcome of the learning model.
    """
    identifiers, slots = np.unique(counted.row_marginals, return_index=True)
    rows = np.unique(owners(counted.marginal_ptr)[slots])
    sizes, targets, mass = joint_successors(truth, rows, truth.marginals.nominal)
    shown = shown_outcomes(counted, np.repeat(rows, sizes), targets)
    per_slot, slot_ptr = shown.per_slot(counted, mass)
    ptr = counted.marginals.outcome_ptr
    sums = np.zeros(len(counted.marginals.nominal))
    sums[entries(ptr, identifiers)] = per_slot[entries(slot_ptr, slots)]
    points = sums / np.repeat(segment_sum(sums, ptr), segment_lengths(ptr))
    return counted.with_marginals(Marginals.from_points(ptr, points))


def joint_successors(
    model: FactoredMDP, rows: IntArray, values: FloatArray
) -> tuple[IntArray, Int32Array, FloatArray]:
    """Return what rows (N,) lead to, as one distribution over successors each.

    Parameters
    ----------
    model, rows
        Some rows of a model.
    values
        (O,) probabilities of outcomes, or bounds of them: those of the marginals of a row are
        multiplied, and added up where they lead to the same successor.

    Returns
    -------
    sizes
        (N,) different successors of every row.
    targets, mass
        (sum of sizes,) these successors, row after row, and the sums of products.
    """
    from rfmdp.kernels.identify import joint_rows

    lengths = segment_lengths(model.successor_ptr)[rows]
    length = int(lengths.sum())
    sizes = np.empty(len(rows), dtype=np.int64)
    targets, mass = np.empty(length, dtype=np.int32), np.empty(length)
    work = np.full(model.states, -1), np.empty(int(lengths.max(initial=1)))
    entries = np.ascontiguousarray(values)
    used = joint_rows(rows, model.structure, entries, work, sizes, targets, mass)
    return sizes, targets[:used], mass[:used]
