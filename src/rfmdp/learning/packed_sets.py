"""Many confidence sets as one `Marginals`: made and picked."""

from __future__ import annotations

import numpy as np

from rfmdp.ragged import entries, segment_lengths, segment_sum, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import FloatArray, IntArray


def packed(
    outcome_ptr: IntArray,
    kind: Kind,
    nominal: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: FloatArray | None = None,
) -> Marginals:
    """Return sets of one kind, without corners; radius nan if it has none."""
    count = len(outcome_ptr) - 1
    return Marginals(
        outcome_ptr=outcome_ptr,
        kind=np.full(count, kind, dtype=np.int8),
        nominal=nominal,
        lower=lower,
        upper=upper,
        radius=np.full(count, np.nan) if radius is None else radius,
        exponent=np.full(count, 1.0 if kind is Kind.L1 else np.nan),
        corner_ptr=np.zeros(count + 1, dtype=np.int64),
        corners=np.empty(0),
    )


def empirical(outcome_ptr: IntArray, counts: IntArray) -> FloatArray:
    """Return counts (O,) divided by the totals of marginals; uniform where nothing was seen."""
    sizes = segment_lengths(outcome_ptr)
    totals = np.repeat(segment_sum(np.asarray(counts, dtype=np.float64), outcome_ptr), sizes)
    uniform = 1.0 / np.repeat(sizes, sizes)
    return np.where(totals > 0, counts / np.maximum(totals, 1.0), uniform)


def pick(sets: Marginals, chosen: IntArray) -> Marginals:
    """Return some of the sets, in the order of `chosen`."""
    at, corners = entries(sets.outcome_ptr, chosen), entries(sets.corner_ptr, chosen)
    return Marginals(
        outcome_ptr=starts(sets.sizes[chosen]),
        kind=sets.kind[chosen],
        nominal=sets.nominal[at],
        lower=sets.lower[at],
        upper=sets.upper[at],
        radius=sets.radius[chosen],
        exponent=sets.exponent[chosen],
        corner_ptr=starts(segment_lengths(sets.corner_ptr)[chosen]),
        corners=sets.corners[corners],
    )
