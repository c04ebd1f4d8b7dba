"""Exact questions about sums of floats, in bulk: a float is the rational number that it is.

Sums are first taken in pairs of floats with their rounding errors kept (Knuth's two-sum, which is
exact at all scales); only where that leaves a doubt is a sum taken by `math.fsum`, which rounds
the exact sum once and therefore has its sign. No kernel does this: those may reassociate sums.
"""

from __future__ import annotations

import math

import numpy as np

from rfmdp.ragged import (
    entries,
    owner,
    owners,
    segment,
    segment_any,
    segment_lengths,
    segment_sum,
    starts,
)
from rfmdp.rounding import DOUBT, SUM_OFF
from rfmdp.types import BoolArray, FloatArray, IntArray

FEW = 32  # values whose sums are taken at once by `math.fsum`, several times as fast as by arrays


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (a + b rounded, its error): both together are the exact sum.

    Examples
    --------
    >>> two_sum(np.array([1.0]), np.array([1e-30]))
    (array([1.]), array([1.e-30]))
    """
    total = a + b
    gain = total - a
    return total, (a - (total - gain)) + (b - gain)


def excess(values: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the sum of every segment minus one, with the sign (or zero) of the exact difference.

    Whether it is beyond `SUM_OFF` is decided by the exact difference rounded once, too.

    Parameters
    ----------
    values : (N,) array, entries in [0, 1]
    ptr : (M + 1,) array

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
    if len(values) <= FEW:
        pieces = [(-other[segment(ptr, j)]).tolist() for j in owners(ptr)]
        sums = ([1.0, x, *piece] for x, piece in zip(values.tolist(), pieces, strict=True))
        return np.array([_sum_on_side(terms, side) for terms in sums])
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


def _sum_on_side(terms: list[float], side: float) -> float:
    """Return the float nearest to an exact sum that is not on the other side of it."""
    near = math.fsum(terms)
    error = math.fsum([*terms, -near])  # rounds once, so that it has the sign of what is left
    return math.nextafter(near, side * math.inf) if side * error > 0.0 else near


def normalised(values: FloatArray, ptr: IntArray, which: BoolArray | None = None) -> FloatArray:
    """Return distributions as they are stored: divided by their sum if it is off one.

    A sum within `SUM_OFF` of one stays, so that what is stored is stored again as it is.

    Parameters
    ----------
    values : (O,) array
    ptr : (M + 1,) array
    which : (M,) array
        The distributions among the segments; all if not given.
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
    """Return the entries (O,) without which the other upper bounds of their box miss one.

    Examples
    --------
    >>> needed(np.array([0.5, 0.5, 0.2, 0.75, 0.25]), np.array([0, 3, 5])).tolist()
    [True, True, False, True, True]
    """
    lack = upper - np.repeat(segment_sum(upper, ptr) - 1.0, segment_lengths(ptr))
    close = np.flatnonzero(segment_any(np.abs(lack) <= DOUBT, ptr))
    place = entries(ptr, close)
    ends = starts(segment_lengths(ptr)[close])
    bounds = upper[place]
    most, lack[place] = (without_excess(bounds, bounds, ends, side) for side in (1.0, -1.0))
    for i in np.flatnonzero((most > 0.0) & (lack[place] <= 0.0)):  # rounding leaves a doubt
        box = segment(ends, owner(ends, i))
        others = np.delete(bounds[box], i - box.start)
        lack[place[i]] = math.fsum([1.0, *(-others).tolist()])
    return lack > 0.0


def digits(values: FloatArray, base_bits: int) -> IntArray:
    """Return numbers in [0, 2] to a base, exactly: (N, L), the highest digit first.

    The first digit counts 2^-base_bits, the next one that to the square, and so on; as many as
    the numbers need.

    Examples
    --------
    >>> digits(np.array([0.5, 1.0, 2.0**-33]), 32).tolist()
    [[2147483648, 0], [4294967296, 0], [0, 2147483648]]
    """
    base = 2.0**base_bits
    rest = values.astype(np.float64)
    columns: list[IntArray] = []
    while not columns or rest.any():
        scaled = rest * base
        whole = np.floor(scaled)
        columns.append(whole.astype(np.int64))
        rest = scaled - whole
    return np.stack(columns, axis=1)
