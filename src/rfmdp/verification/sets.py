"""The uncertainty sets of a file: kinds and numbers, checked, then given one exact meaning.

Every float is the rational number that it is. With d the nominal numbers of a set and S = sum d:

SINGLETON  d / S
BOX        {p : lower <= p <= upper, sum p = 1}
L1, LP     {q / S : q >= 0, sum q = S, |q - d| <= radius}, the norm with an exponent
POLYTOPE   the hull of its corners c, each c / sum c

`Sets.settled` decides the cases at the edges of these, once for all that compute with sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.ragged import entries, segment, segment_lengths, segment_sum
from rfmdp.types import FloatArray, IntArray
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.margins import UNIT

SINGLETON, BOX, L1, LP, POLYTOPE = range(5)  # kinds of sets, as files number them
SUM_OFF = 1e-9  # distributions may miss the sum one by this much; they stand for d / sum d


@dataclass(slots=True, eq=False)
class Sets:
    """The uncertainty sets of a model; set j owns outcomes ptr[j]:ptr[j + 1]."""

    ptr: IntArray  # (M + 1,)
    kind: IntArray  # (M,)
    nominal: FloatArray  # (O,)
    lower: FloatArray  # (O,)
    upper: FloatArray  # (O,)
    radius: FloatArray  # (M,)
    exponent: FloatArray  # (M,)
    corner_ptr: IntArray  # (M + 1,)
    corners: FloatArray

    @property
    def sizes(self) -> IntArray:
        """Number of outcomes of every set, (M,)."""
        return segment_lengths(self.ptr)

    def listed(self, j: int | np.integer) -> FloatArray:
        """Return the corners of a set."""
        return self.corners[segment(self.corner_ptr, j)]

    def settled(self) -> Sets:
        """Return the same sets with the kinds that they are, bounds of boxes included.

        What has an exponent is a ball: of radius 0 its centre, of exponent infinity the box of the
        floats max(d - radius, 0) and min(d + radius, 1). An L1 ball of radius 2 has all
        distributions. A box whose lower bounds sum to one or more is the point d = lower; else one
        whose upper bounds sum to one or less is the point d = upper.
        """
        kind = self.kind.copy()
        sizes = self.sizes
        nominal = self.nominal.copy()
        lower, upper = self.lower.copy(), self.upper.copy()
        ball, cube = ~np.isnan(self.exponent), np.isinf(self.exponent)
        kind[ball] = np.where(cube, BOX, np.where(self.exponent == 1.0, L1, LP))[ball]
        kind[np.isin(kind, (L1, LP)) & (self.radius == 0.0)] = SINGLETON
        at = np.repeat(cube, sizes)
        radius = np.repeat(self.radius, sizes)
        lower[at] = np.maximum(nominal - radius, 0.0)[at]
        upper[at] = np.minimum(nominal + radius, 1.0)[at]
        whole = (kind == L1) & (self.radius >= 2.0)
        kind[whole] = BOX
        lower[np.repeat(whole, sizes)], upper[np.repeat(whole, sizes)] = 0.0, 1.0
        box = kind == BOX
        full, scant = excess(lower, self.ptr) >= 0.0, excess(upper, self.ptr) <= 0.0
        for end, alone in ((lower, box & full), (upper, box & scant & ~full)):
            at = entries(self.ptr, np.flatnonzero(alone))
            nominal[at], kind[alone] = end[at], SINGLETON
        kind[sizes == 1] = SINGLETON
        nominal[np.repeat(sizes == 1, sizes)] = 1.0
        return replace(self, kind=kind, nominal=nominal, lower=lower, upper=upper)


def excess(values: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the sum of every segment minus one, rounded correctly where that is near zero."""
    sums = segment_sum(values, ptr) - 1.0
    near = np.flatnonzero(np.abs(sums) < 10.0 * SUM_OFF)
    flat = values.tolist()
    begin = ptr[near].tolist()
    end = ptr[near + 1].tolist()
    sums[near] = [math.fsum((-1.0, *flat[i:k])) for i, k in zip(begin, end, strict=True)]
    return sums


def read_sets(fields: Fields) -> Sets:
    """Return sets that are what their kinds say."""
    nominal, corners = fields.floats("nominal"), fields.floats("corners")
    ptr = fields.pointers("outcome_ptr", len(nominal))
    count = len(ptr) - 1
    need((segment_lengths(ptr) > 0).all(), "marginals: every set must have an outcome")
    sets = Sets(
        ptr, fields.integers("kind", count, POLYTOPE + 1), nominal,
        fields.floats("lower", len(nominal)), fields.floats("upper", len(nominal)),
        fields.floats("radius", count, plain=False), fields.floats("exponent", count, plain=False),
        fields.pointers("corner_ptr", len(corners), count + 1), corners,
    )  # fmt: skip
    _check_numbers(sets)
    _check_balls(sets)
    _check_corners(sets)
    return sets


def _check_numbers(sets: Sets) -> None:
    """Bounds are bounds, nominal distributions sum to one and lie within."""
    nominal, lower, upper = sets.nominal, sets.lower, sets.upper
    need(((nominal >= 0) & (nominal <= 1)).all(), "nominal: must lie in [0, 1]")
    need(((lower >= 0) & (lower <= upper) & (upper <= 1)).all(), "lower <= upper: in [0, 1]")
    within = (lower - SUM_OFF <= nominal) & (nominal <= upper + SUM_OFF)
    need(within.all(), "nominal: must lie within lower and upper")
    off, low, high = (segment_sum(a, sets.ptr) - 1.0 for a in (nominal, lower, upper))
    need((np.abs(off) <= SUM_OFF).all(), "nominal: must sum to one")
    need((low <= SUM_OFF).all(), "lower: sums to more than one")
    need((high >= -SUM_OFF).all(), "upper: sums to less than one")
    point = np.repeat(sets.kind == SINGLETON, sets.sizes)
    same = (lower == nominal) & (upper == nominal)
    need(same[point].all(), "lower, upper: a known distribution must be its own bounds")


def _check_balls(sets: Sets) -> None:
    """Radius and exponent are there exactly where the kind has them."""
    kind, radius, exponent = sets.kind, sets.radius, sets.exponent
    ball = ~np.isnan(exponent)
    need((exponent[ball] >= 1.0).all(), "exponent: must be at least 1")
    need(ball[(kind == L1) | (kind == LP)].all(), "exponent: balls must have one")
    need(not ball[kind == POLYTOPE].any(), "exponent: only balls have one")
    need((exponent[kind == L1] == 1.0).all(), "exponent: must be 1 for an L1 ball")
    curved = (exponent[kind == LP] > 1.0) & np.isfinite(exponent[kind == LP])
    need(curved.all(), "exponent: must be above 1 and finite for an Lp ball")
    need((np.isinf(exponent) | ~ball)[kind == BOX].all(), "exponent: must be infinite for a box")
    need((radius[ball] >= 0.0).all(), "radius: must be at least 0")
    need(np.isfinite(radius[ball]).all(), "radius: must be finite")
    # a ball may be a known distribution, which the solver takes for its centre
    single = kind == SINGLETON
    point = (sets.sizes == 1) | (radius <= np.where(ball, 2.0 * UNIT, 0.0))
    fits = np.where(single, point & (radius >= 0.0), ball)
    need((fits | np.isnan(radius)).all(), "radius: only balls have one")


def _check_corners(sets: Sets) -> None:
    """Polytopes have their vertices, all others nothing."""
    kind = sets.kind
    lengths = segment_lengths(sets.corner_ptr)
    sizes = sets.sizes
    hull = (kind == POLYTOPE) | ((kind == SINGLETON) & (lengths > 0))
    need((lengths[~hull] == 0).all(), "corners: only polytopes have any")
    fits = (lengths[hull] > 0) & (lengths[hull] % sizes[hull] == 0)
    need(fits.all(), "corners: a polytope must have whole vertices")
    need(((sets.corners >= 0) & (sets.corners <= 1)).all(), "corners: must lie in [0, 1]")
    for j in np.flatnonzero(hull):
        vertices = sets.listed(j).reshape(-1, sizes[j])
        outcomes = segment(sets.ptr, j)
        need((np.abs(vertices.sum(1) - 1.0) <= SUM_OFF).all(), f"corners: set {j}, sums not one")
        same = (vertices.min(0) == sets.lower[outcomes]) & (vertices.max(0) == sets.upper[outcomes])
        need(same.all(), f"lower, upper: set {j}, not those of its vertices")
