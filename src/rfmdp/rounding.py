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
EPS = 2.0 * UNIT  # from one to the next float
TERM = 8.0 * UNIT  # per term of a contraction, relative to the span
# terms that an outcome of an Lp ball counts as: its minimum is the value of a dual solution, by
# powers, and a checker with formulas of its own has to come as close
CURVED_TERMS = 32
BRANCH = 32.0 * UNIT  # more, per term, where a tree left out vertices by bounds of differences
SUM = 3.0 * UNIT  # of adding reference and margin, relative to the result
TINY = 2.0**-1022  # per term, absolute: products below the normal range lose their digits
LAST_DIGITS = 2.0**-1072  # absolute error of a product or quotient below the normal range, and more
SUM_SLACK = 1e-12  # learned bounds contradict each other if their sums miss one by more than this
SUM_TOLERANCE = 1e-9  # constructors take probabilities whose sum misses one by this much
SUM_OFF = 4.0 * UNIT  # what they store misses it by this much at most, see `sets.families`
REWARD = 4.0 * UNIT  # of reward + discount * q, relative to both parts: the reward may be a sum of
# two floats, then the product, the sum and the margin are rounded, each by one unit at most
DOUBT = 1e-9  # float sums of up to 10^6 numbers in [0, 1] are right to this; closer ones are exact
ATTAINED = 8.0 * UNIT  # bounds of boxes this close to attainable ones are kept
MERGED = 4.0 * UNIT  # vertices of equal support whose fractions are this close to bounds are one
NORMAL = 1e-290  # floats above are as precise as any, and so are their sums
RENAMED = 1e-12  # entries of vertices that differ by less may be equal ones (`kernels.exact`)
RESOLUTION = 2.0**-40  # of the largest value: a width that no precision asks to undercut

# Of searches, in shares of the span. They decide how long to look, never what is true.
EXACT = 1e-12  # a row is exact when its sides are this close
CLOSED = 1e-11  # a row that cheap bounds enclose so needs no relaxation; of the span of all values
LP_UNUSED = 1e-14  # of its radius that the answer of an Lp ball may leave unused, and ten times
# what the answer's sum may miss one by
KNOWN = 1e-12  # free mass up to which McCormick takes a marginal as known, and charges for it


def backup_margin(terms: int, span: float, magnitude: float) -> float:
    """Return a bound of the float error of a backup (also compiled, as `kernels.layout.margin`).

    Let d be the size of a marginal, u = UNIT, all in units of the span. Its stored numbers miss
    what they stand for by 5 u in sum (`sets.families`), slack and free mass are rounded (d u), so
    that a computed member sums to one up to (d + 6) u; the entries that it is multiplied with are
    differences rounded once (u), and the products are added in some order (d u). That is at most
    (2 d + 7) u per marginal, which errors of earlier axes are only averaged by, and 8 u d covers
    d >= 2; a marginal of one outcome multiplies by one and costs nothing. The reference is added
    and the margin subtracted, each with a rounding of the result. Products that underflow are off
    by less than 2^-1074 each.

    terms : longest chain of products added up, the sum of the sizes of the row's marginals
    span : largest minus smallest successor value of the row
    magnitude : largest absolute successor value of the row
    """
    if span == 0.0:
        return 0.0
    return TERM * terms * span + SUM * magnitude + TINY * terms


def branching_margin(terms: int, span: float) -> float:
    """Return what a lower bound may be too high by, beside `backup_margin`, after branching.

    Vertices are left out by U + sum_i (v - p)[i] * extreme_q R[i].q (`kernels.pair`). An entry of R
    is up to two spans large and (d1 + 3) u off, its extreme over q thus (4 d2 + d1 + 17) u;
    sum |v - p| <= 2 doubles that. sum (v - p) is off zero by (2 d1 + 12) u, adding up costs 4 d1 u,
    and U itself is (2 d1 + 2 d2 + 14) u off. Together 10 d1 + 10 d2 + 60 <= 25 (d1 + d2) for
    d1, d2 >= 2. The plain bounds `corner . slices` cost no more than a backup, and where a vertex
    stands for others that differ by names of outcomes (`kernels.exact`), its entries are those
    of the others up to (2 d + 12) u in sum, 8 u d at most.
    """
    return BRANCH * terms * span


def expectation_margin(terms: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return bounds of the float error of `reference + sum p * (value - reference)`, arrays.

    `terms` products with values between `low` and `high`; 0 where all values are the same.
    """
    magnitude = np.maximum(np.abs(low), np.abs(high))
    error = TERM * terms * (high - low) + SUM * magnitude + TINY * terms
    return np.where(high > low, error, 0.0)


def reward_margin(reward: FloatArray, rest: FloatArray) -> FloatArray:
    """Return bounds of the float error of reward + rest, `rest` a rounded product.

    A product below the normal range is off by half of the least float, and so is this margin: a
    sum of exact zeros alone is exact.
    """
    size = np.abs(reward) + np.abs(rest)
    return REWARD * size + np.where(size > 0.0, LAST_DIGITS, 0.0)


def one_minus(bound: FloatArray, side: float) -> FloatArray:
    """Return 1 - bound of probabilities, rounded to a side (+1 up); 0 and 1 stay exact."""
    turned = np.nextafter(1.0 - bound, side * np.inf)
    exact = (bound == 0.0) | (bound == 1.0)
    return np.where(exact, 1.0 - bound, np.clip(turned, 0.0, 1.0))
