"""What rounding can do: all margins are here.

With u = 2^-53, one u is paid for every rounding that a number passes through, relative to the sum
of sizes, and some for the squares of u that are left out (sets have fewer than 10^7 outcomes). Two
things are not relative. Weights below `NORMAL` that had to be divided have lost digits: floats
prove nothing with them. Products that underflow are off by up to 2^-1075 each: beside sizes from
`VAGUE` on that is less than a spare u, below it `TINY` is paid unless all products are of zeros. A
sum of zeros is exactly zero, however it is weighed.
"""

from __future__ import annotations

import numpy as np

from rfmdp.types import AnyArray, FloatArray

UNIT = 2.0**-53
TINY = 1e-300  # more than all that underflow takes from a sum
NORMAL = 2.0**-1021  # weights from here on, and their halves, are rounded relatively
BLUR = 2.0**-47  # relative: numbers that agree up to this may count as one
VAGUE = 1e-280  # a sum of sizes below which some of its terms may have vanished


def slack(size: int) -> float:
    """Return the relative error of a mean of some values, weights three roundings off."""
    return (2.0 * size + 8.0) * UNIT


def two_sum(a: AnyArray, b: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return a + b rounded and the exact error of that, after Knuth."""
    total = a + b
    shift = total - a
    return total, (a - (total - shift)) + (b - shift)


def directed(a: FloatArray, b: FloatArray, side: float) -> FloatArray:
    """Return a + b, rounded to a side (+1 up) unless exact."""
    total, error = two_sum(a, b)
    return np.where(side * error > 0.0, np.nextafter(total, side * np.inf), total)


def scaled(rate: float, a: FloatArray, side: float) -> FloatArray:
    """Return rate * a, rounded to a side; zeros stay, and so does all at a rate of one."""
    exact = (a == 0.0) | (rate == 1.0)
    return np.where(exact, a, np.nextafter(rate * a, side * np.inf))


def weighed(v: FloatArray, p: FloatArray, side: float, error: float) -> FloatArray:
    """Return v @ p with weights p >= 0, rounded to a side; zero if all terms are.

    The error is relative to the sum of the sizes of the terms.
    """
    size = np.abs(v) @ p
    bound = v @ p + side * error * size
    vague = size < VAGUE
    if vague.any():
        moved = (v != 0.0).astype(np.float64) @ (p > 0.0).astype(np.float64)
        bound += side * TINY * (vague & (moved > 0.0))
    return np.asarray(bound)
