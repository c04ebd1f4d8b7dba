"""Exact questions about sums of floats, in bulk: floats are rationals, and nothing is near enough.

Sums are first taken in pairs of floats with their rounding errors kept (Knuth's two-sum, which is
exact at all scales); only where that leaves a doubt is a sum taken by `math.fsum`, which rounds
the exact sum once and therefore has its sign. No kernel does this: those may reassociate sums.
"""

from __future__ import annotations

import math

import numpy as np

from rfmdp.rounding import SUM_OFF
from rfmdp.types import BoolArray, FloatArray, IntArray


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (a + b rounded, its error): both together are the exact sum.

    Examples
    --------
    >>> two_sum(np.array([1.0]), np.array([1e-30]))
    (array([1.]), array([1.e-30]))
    """
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


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
    total, _, lost = _excess_parts(values, ptr)
    near = np.minimum(np.abs(total), np.abs(np.abs(total) - SUM_OFF)) <= lost
    for j in np.flatnonzero(near & (lost > 0.0)):
        total[j] = math.fsum([-1.0, *values[ptr[j] : ptr[j + 1]].tolist()])
    return total


def _excess_parts(values: FloatArray, ptr: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (total, rest, lost): the sum minus one is total + rest, up to `lost`; (M,) each."""
    sizes = np.diff(ptr)
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
    """Return values[i] - (sum of its segment of `other`, minus one), rounded to a side (+1 up).

    With the other bounds of a box this is what its entry i must have at least, or at most. The
    result is on its side of the exact number, and mostly the nearest float there.
    """
    total, rest, lost = (np.repeat(a, np.diff(ptr)) for a in _excess_parts(other, ptr))
    near, error = two_sum(values, -total)
    error, beyond = two_sum(error, -rest)
    near, error = two_sum(near, error)
    error = side * (error + beyond)
    outward = np.nextafter(near, side * np.inf)
    rough = (beyond != 0.0) | (lost > 0.0)
    if rough.any():
        far = np.nextafter(outward + side * 2.0 * lost, side * np.inf)
        outward = np.where(rough, np.nextafter(far, side * np.inf), outward)
    return np.where((error > 0.0) | rough, outward, near)


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
        part = slice(ptr[j], ptr[j + 1])
        stored[part] /= math.fsum(values[part].tolist())
    return stored
