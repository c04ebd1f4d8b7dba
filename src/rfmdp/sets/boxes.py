"""Boxes of probabilities in bulk: what must hold of them, their members, their attainable bounds.

A box is {p : lower <= p <= upper, sum p = 1}; the numbers (O,) of all boxes stand one after the
other, cut by pointers (M + 1,).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.ragged import entries, owner, segment, segment_any, segment_lengths, segment_sum, starts
from rfmdp.rounding import ATTAINED, DOUBT, SUM_TOLERANCE
from rfmdp.sets.exact import excess, normalised, without_excess
from rfmdp.types import BoolArray, FloatArray, IntArray


def are_bounds(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Return which pairs (O,) are bounds of a probability: 0 <= lower <= upper <= 1."""
    ordered: BoolArray = (lower >= 0.0) & (lower <= upper) & (upper <= 1.0)
    return ordered


def check_boxes(
    ptr: IntArray, lower: FloatArray, upper: FloatArray, nominal: FloatArray, name: str = ""
) -> None:
    """Raise `ModelError` for a box (O,) that is empty or has a bad nominal member.

    name : of the box, if there is one only
    """

    def refuse(wrong: BoolArray, message: Callable[[int, int], str]) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            box = owner(ptr, at)
            where = name or f"Marginal {box}"
            raise ModelError(f"{where}: {message(at, at - int(ptr[box]))}")

    named = {"lower bounds": lower, "upper bounds": upper, "nominal probabilities": nominal}
    for what, values in named.items():
        refuse(
            ~((values >= 0.0) & (values <= 1.0)),
            lambda at, i: f"{what} must lie in [0, 1], outcome {i} has {values[at]}.",  # noqa: B023
        )
    refuse(
        lower > upper,
        lambda at, i: f"lower must be <= upper, outcome {i} has [{lower[at]}, {upper[at]}].",
    )
    below, above, off = (segment_sum(a, ptr) - 1.0 for a in (lower, upper, nominal))
    limits = ("at most 1", "at least 1", "1")
    wrong = below > SUM_TOLERANCE, above < -SUM_TOLERANCE, np.abs(off) > SUM_TOLERANCE
    for (what, values), bad, limit in zip(named.items(), wrong, limits, strict=True):
        for box in np.flatnonzero(bad)[:1]:
            total = math.fsum(values[segment(ptr, box)].tolist())
            where = name or f"Marginal {box}"
            raise ModelError(f"{where}: {what} must sum to {limit}, they sum to {total!r}.")
    refuse(
        (nominal < lower - SUM_TOLERANCE) | (nominal > upper + SUM_TOLERANCE),
        lambda at, i: (
            f"nominal must lie within the bounds, outcome {i} has {nominal[at]}, not in "
            f"[{lower[at]}, {upper[at]}]."
        ),
    )


def settled_boxes(
    outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray, nominal: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return checked boxes (O,) as they are stored: lower, upper, nominal.

    A box that holds one distribution, or none because of rounding, has it in all three arrays.
    """
    full = excess(lower, outcome_ptr) >= 0.0
    scant = excess(upper, outcome_ptr) <= 0.0
    single = full | scant
    nominal = normalised(nominal, outcome_ptr)
    if not single.any():
        return lower, upper, nominal
    sizes = segment_lengths(outcome_ptr)
    point = normalised(np.where(np.repeat(full, sizes), lower, upper), outcome_ptr, single)
    inside = np.repeat(single, sizes)
    return (
        np.where(inside, point, lower),
        np.where(inside, point, upper),
        np.where(inside, point, nominal),
    )


def box_centres(outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the member lower + t (upper - lower) of every box (O,), with one t per box."""
    width = upper - lower
    room = segment_sum(width, outcome_ptr)
    missing = 1.0 - segment_sum(lower, outcome_ptr)
    fraction = np.divide(missing, room, out=np.zeros(len(room)), where=room > 0.0)
    shares = np.repeat(np.clip(fraction, 0.0, 1.0), segment_lengths(outcome_ptr))
    centres: FloatArray = np.minimum(lower + shares * width, upper)
    return centres


def tighten(
    outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return attainable bounds (O,) of boxes: l_i >= 1 - sum of the other u, and u_i likewise.

    One pass is enough. Bounds are rounded outwards, so that the set stays the same to the last
    bit; a bound that would move by no more than rounding stays as it is given.
    """
    lower = np.asarray(lower, dtype=np.float64)
    upper = np.asarray(upper, dtype=np.float64)
    if len(outcome_ptr) <= 1:
        return lower, upper
    sizes = segment_lengths(outcome_ptr)
    width = upper - lower
    spare_low = np.repeat(1.0 - segment_sum(lower, outcome_ptr), sizes)
    spare_high = np.repeat(segment_sum(upper, outcome_ptr) - 1.0, sizes)
    # floats find the few boxes for which the exact numbers are needed
    loose = segment_any(width > np.minimum(spare_low, spare_high) - DOUBT, outcome_ptr)
    which = np.flatnonzero(loose)
    if not len(which):
        return lower, upper
    place = entries(outcome_ptr, which)
    ends = starts(sizes[which])
    low, high = lower[place], upper[place]
    tight_upper = without_excess(low, low, ends, 1.0)
    tight_lower = without_excess(high, high, ends, -1.0)
    lower, upper = lower.copy(), upper.copy()
    lower[place] = np.where(tight_lower > low + ATTAINED, tight_lower, low)
    upper[place] = np.where(tight_upper < high - ATTAINED, tight_upper, high)
    return lower, upper
