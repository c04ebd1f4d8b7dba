"""Random starts: what a policy is worth on average over the starts of episodes.

The distribution of starts is the source's. It is learned from what resets gave, with one interval
of the mixture sequence per initial state, so it holds at all times together.
"""

from __future__ import annotations

import math

import numpy as np

from rfmdp.learning.intervals import mixture
from rfmdp.rounding import EPS
from rfmdp.types import FloatArray, IntArray


def least_mean(values: FloatArray, counts: IntArray, delta: float) -> float:
    """Return a lower bound of the mean of some values under the distribution that was sampled.

    For all q within bounds l, u that sum to 1, and every number c,
        sum q v  >=  c + sum min(l (v - c), u (v - c)),
    with equality at the least mean if c is the value at which the mass of 1 is used up. Rounding
    is subtracted.

    Parameters
    ----------
    values : (I,) of the initial states
    counts : (I,) episodes that began in each
    delta : error probability of each interval

    Examples
    --------
    >>> round(least_mean(np.array([0.0, 1.0]), np.array([500, 500]), 1e-3), 3)
    0.429
    """
    lower, upper = mixture(counts, counts.sum(), delta)
    values, lower, upper = (a[upper > 0.0] for a in (values, lower, upper))
    if np.min(values) == -math.inf or np.min(values) == math.inf:
        return float(np.min(values))
    values = np.minimum(values, np.max(values[np.isfinite(values)]))  # less than infinite
    order = np.argsort(values, kind="stable")
    left = 1.0 - float(lower.sum())
    used = np.cumsum((upper - lower)[order])
    c = float(values[order[min(int(np.searchsorted(used, left)), len(order) - 1)]])
    terms = np.minimum(lower * (values - c), upper * (values - c))
    size = abs(c) + math.fsum(np.abs(terms)) + float(np.max(np.abs(values)))
    return max(c + math.fsum(terms) - 8.0 * EPS * size, float(np.min(values)))
