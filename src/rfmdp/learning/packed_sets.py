"""Many confidence sets as one `Marginals`: made, picked and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rfmdp.ragged import entries, owners, segment_lengths, segment_sum, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, FloatArray, IntArray


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


def with_table(sets: Marginals, table: FloatArray) -> Marginals:
    """Return sets whose subset sets have other lower probabilities, 2^k each, by bitmask."""
    which = np.flatnonzero(sets.kind == Kind.SUBSETS)
    at = entries(sets.outcome_ptr, which)
    owner = owners(sets.outcome_ptr)[at]
    begin, end = sets.corner_ptr[owner], sets.corner_ptr[owner + 1]
    single = 1 << (at - sets.outcome_ptr[owner])  # the bitmask of an outcome alone
    lower, upper = np.array(sets.lower), np.array(sets.upper)
    lower[at], upper[at] = table[begin + single], 1.0 - table[end - 1 - single]
    return replace(sets, lower=lower, upper=upper, corners=table)


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


def joined(parts: Sequence[Marginals]) -> Marginals:
    """Return the sets of several parts, one after the other."""

    def flat(name: str) -> AnyArray:
        return np.concatenate([getattr(part, name) for part in parts])

    def pointers(name: str) -> IntArray:
        return starts(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

    return Marginals(
        outcome_ptr=pointers("outcome_ptr"),
        kind=flat("kind"),
        nominal=flat("nominal"),
        lower=flat("lower"),
        upper=flat("upper"),
        radius=flat("radius"),
        exponent=flat("exponent"),
        corner_ptr=pointers("corner_ptr"),
        corners=flat("corners"),
    )
