"""Boxes of probabilities in bulk: exact sums, what must hold of boxes, their attainable bounds.

A box is {p : lower <= p <= upper, sum p = 1}; the numbers (O,) of all boxes stand one after the
other, cut by pointers (M + 1,).

A float is the rational number that it is, and questions about sums are decided exactly. Sums are
first taken in pairs of floats with their rounding errors kept (Knuth's two-sum, which is exact at
all scales); only where that leaves a doubt is a sum taken by `math.fsum`, which rounds the exact
sum once and therefore has its sign. No kernel does this: those may reassociate sums.
"""

from __future__ import annotations

import math

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.ragged import (
    entries,
    owners,
    segment,
    segment_any,
    segment_lengths,
    segment_sum,
    starts,
)
from rfmdp.rounding import ATTAINED, DOUBT, SUM_OFF, SUM_TOLERANCE
from rfmdp.types import BoolArray, FloatArray, IntArray

FEW = 32  # values whose sums are taken at once by `math.fsum`, several times as fast as by arrays


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (a + b rounded, its error): both together are the exact sum."""
    total = a + b
    gain = total - a
    return total, (a - (total - gain)) + (b - gain)


def excess(values: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the sum of every segment minus one, with the sign (or zero) of the exact difference.

    Whether it is beyond `SUM_OFF` is decided by the exact difference rounded once, too. Values lie
    in [0, 1].

    Examples
    --------
    >>> excess(np.array([0.5, 0.5, 0.1, 0.2, 0.7, 1.0, 1e-300]), np.array([0, 2, 5, 7]))
    array([ 0.00000000e+000, -2.77555756e-017,  1.00000000e-300])
    """
    if len(values) <= FEW and np.all((values >= 0.0) & (values <= 1.0)):
        pieces = (values[segment(ptr, j)].tolist() for j in range(len(ptr) - 1))
        return np.array([math.fsum([-1.0, *piece]) for piece in pieces])
    sums = segment_sum(values, ptr) - 1.0
    close = np.flatnonzero(np.abs(sums) <= DOUBT)
    ends = starts(segment_lengths(ptr)[close])
    total, _, lost = _excess_parts(values[entries(ptr, close)], ends)
    near = np.minimum(np.abs(total), np.abs(np.abs(total) - SUM_OFF)) <= lost
    for i in np.flatnonzero(near & (lost > 0.0)):
        j = close[i]
        total[i] = math.fsum([-1.0, *values[segment(ptr, j)].tolist()])
    sums[close] = total
    return sums


def _excess_parts(values: FloatArray, ptr: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (total, rest, lost): the sum minus one is total + rest, up to `lost`; (M,) each."""
    sizes = segment_lengths(ptr)
    high = np.full(len(sizes), -1.0)
    low, lost = np.zeros(len(sizes)), np.zeros(len(sizes))
    open_ = np.arange(len(sizes))
    for k in range(int(sizes.max(initial=0))):
        open_ = open_[sizes[open_] > k]
        high[open_], error = two_sum(high[open_], values[ptr[open_] + k])
        low[open_], error = two_sum(low[open_], error)
        lost[open_] += np.abs(error)
    total, rest = two_sum(high, low)
    return total, rest, 2.0 * lost  # `lost` is a sum of few rounded terms: twice it is beyond


def without_excess(values: FloatArray, other: FloatArray, ptr: IntArray, side: float) -> FloatArray:
    """Return values[i] - (sum of its segment of `other`, minus one), (O,), rounded to a side.

    With the other bounds of a box this is what its entry i must have at least, or at most. The
    result is on its side of the exact number, and mostly the nearest float there.
    """
    total, rest, lost = (np.repeat(a, segment_lengths(ptr)) for a in _excess_parts(other, ptr))
    near, error = two_sum(values, -total)
    error, beyond = two_sum(error, -rest)
    near, error = two_sum(near, error)
    outward = np.nextafter(near, side * np.inf)
    rough = (beyond != 0.0) | (lost > 0.0)
    if rough.any():
        far = np.nextafter(outward + side * 2.0 * lost, side * np.inf)
        outward = np.where(rough, np.nextafter(far, side * np.inf), outward)
    return np.where((side * error > 0.0) | rough, outward, near)


def normalised(values: FloatArray, ptr: IntArray, which: BoolArray | None = None) -> FloatArray:
    """Return distributions as they are stored: divided by their sum if it is off one.

    A sum within `SUM_OFF` of one stays, so that what is stored is stored again as it is. `which`
    (M,) are the distributions among the segments; all if not given.
    """
    off = excess(values, ptr)
    wrong = np.abs(off) > SUM_OFF if which is None else which & (np.abs(off) > SUM_OFF)
    if not wrong.any():
        return values
    stored = values.copy()
    for j in np.flatnonzero(wrong):
        entries_of = segment(ptr, j)
        stored[entries_of] /= math.fsum(values[entries_of].tolist())
    return stored


def needed(upper: FloatArray, ptr: IntArray) -> BoolArray:
    """Return the entries (O,) without which the other upper bounds of their box miss one."""
    lack = upper - np.repeat(segment_sum(upper, ptr) - 1.0, segment_lengths(ptr))
    close = np.flatnonzero(np.abs(lack) <= DOUBT)
    box = owners(ptr)[close]
    sizes, every = segment_lengths(ptr)[box], entries(ptr, box)
    others = every != np.repeat(close, sizes)
    lack[close] = -excess(upper[every[others]], starts(sizes - 1))
    return lack > 0.0


def check_boxes(
    ptr: IntArray, lower: FloatArray, upper: FloatArray, nominal: FloatArray, name: str = ""
) -> None:
    """Raise `ModelError` for a box (O,) that is empty or has a bad nominal member.

    name : of the box, if there is one only
    """
    fits = (lower >= 0.0) & (lower <= upper) & (upper <= 1.0) & (nominal >= 0.0) & (nominal <= 1.0)
    fits &= (nominal >= lower - SUM_TOLERANCE) & (nominal <= upper + SUM_TOLERANCE)
    low, mean, high = (segment_sum(a, ptr) for a in (lower, nominal, upper))
    sums = (low <= 1.0 + SUM_TOLERANCE) & (high >= 1.0 - SUM_TOLERANCE)
    sums &= np.abs(mean - 1.0) <= SUM_TOLERANCE
    for box in np.flatnonzero(~sums | segment_any(~fits, ptr))[:1]:
        k = ptr[box] + int(np.argmin(fits[segment(ptr, box)]))
        raise ModelError(
            f"{name or f'Marginal {box}'}: must have 0 <= lower <= nominal <= upper <= 1, outcome "
            f"{k - ptr[box]} has {lower[k]}, {nominal[k]}, {upper[k]}; and sums of at most 1, of 1 "
            f"and of at least 1, they are {low[box]:.9g}, {mean[box]:.9g}, {high[box]:.9g}."
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
