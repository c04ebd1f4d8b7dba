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


def differences(
    there: FloatArray, here: FloatArray, reward: FloatArray, rest: FloatArray, discount: float
) -> tuple[FloatArray, FloatArray]:
    """Return reward + rest + discount * there - here, (b, K), and bounds of the error, 0 if exact.

    `rest` is what rounding took from the reward. Where `there` is infinite, so is the difference.
    """
    lost: FloatArray | float = 0.0
    if discount != 1.0:
        some = there != 0.0
        there = discount * there
        lost = 2.0 * UNIT * np.abs(there) + TINY * some
    first, error = two_sum(there, -here)
    total, more = two_sum(first, reward)
    infinite = np.isinf(there)
    exact = infinite | ((error == 0.0) & (more == 0.0) & (rest == 0.0))
    difference = np.where(infinite, first, total + (error + more + rest))
    sizes = np.abs(difference) + np.abs(error) + np.abs(more) + np.abs(rest)
    error = np.where(exact, 0.0, 4.0 * UNIT * sizes)
    return difference, np.where(infinite, 0.0, error + lost)


def mean(p: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of p v over the last axis, and that of the sizes of its terms."""
    terms = p * v
    return terms.sum(axis=-1), np.abs(terms).sum(axis=-1)
