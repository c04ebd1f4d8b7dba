"""The one place that says how float error is kept out of certified bounds.

Backups subtract a reference value first, so that the error of an inner product of K terms is
bounded by a multiple of the *span* of the row's values and not of their size: a row whose
successors all have one value is exact. That also makes the error of a distribution that stands
for itself divided by its sum (see `sets.families`) one of the span, at most 5 u per marginal.
With unit roundoff u, a dot product of K products is off by at most gamma_K times the sum of
absolute terms [Higham2002, 3.1]; bounds and slacks of the sets are themselves rounded once, and
the reference is added back with one more rounding. The factors below are generous on purpose:
four ulps per term cost nothing in a gap of 1e-6.
"""

from __future__ import annotations

import numpy as np

from rfmdp.types import FloatArray, IntArray

UNIT = 2.0**-53
TERM = 8.0 * UNIT  # per term of a contraction, relative to the span
SUM = 2.0 * UNIT  # of the final addition, relative to the result
SUM_SLACK = 1e-12  # learned bounds contradict each other if their sums miss one by more than this
SUM_TOLERANCE = 1e-9  # constructors take probabilities whose sum misses one by this much
SUM_OFF = 4.0 * UNIT  # what they store misses it by this much at most, see `sets.families`
REWARD = 4.0 * UNIT  # of reward + discount * q, relative to both parts
RESOLUTION = 2.0**-40  # of the largest value: a width that no precision asks to undercut


def backup_margin(terms: int, span: float, magnitude: float) -> float:
    """Return a bound of the float error of a backup.

    Parameters
    ----------
    terms
        Longest chain of products added up: the sum of the sizes of the row's marginals.
    span
        Largest minus smallest successor value of the row.
    magnitude
        Largest absolute successor value of the row.

    Examples
    --------
    >>> backup_margin(10, 0.0, 5.0)
    0.0
    """
    if span == 0.0:
        return 0.0
    return TERM * terms * span + SUM * magnitude


def expectation_margin(terms: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return bounds of the float error of `reference + sum p * (value - reference)`, arrays.

    `terms` products with values between `low` and `high`; 0 where all values are the same.
    """
    magnitude = np.maximum(np.abs(low), np.abs(high))
    error = TERM * terms * (high - low) + SUM * magnitude
    return np.where(high > low, error, 0.0)


def reward_margin(reward: FloatArray, rest: FloatArray) -> FloatArray:
    """Return bounds of the float error of reward + rest, `rest` a rounded product."""
    return REWARD * (np.abs(reward) + np.abs(rest))


def one_minus(bound: FloatArray, side: float) -> FloatArray:
    """Return 1 - bound of probabilities, rounded to a side (+1 up); 0 and 1 stay exact."""
    turned = np.nextafter(1.0 - bound, side * np.inf)
    exact = (bound == 0.0) | (bound == 1.0)
    return np.where(exact, 1.0 - bound, np.clip(turned, 0.0, 1.0))
