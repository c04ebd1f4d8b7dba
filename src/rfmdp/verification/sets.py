"""The uncertainty sets of a file: kinds and numbers, checked, then given one exact meaning.

Every float is the rational number that it is; docs/soundness.md has what it means. `Sets.settled`
decides the cases at the edges, once for all that compute with sets.
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

    @property
    def shapes(self) -> IntArray:
        """Numbers (M,), the same of sets of one kind, size and number of corners."""
        described = np.column_stack([self.kind, self.sizes, segment_lengths(self.corner_ptr)])
        return np.unique(described, axis=0, return_inverse=True)[1].reshape(-1)

    def listed(self, j: int | np.integer) -> FloatArray:
        """Return the corners of a set."""
        return self.corners[segment(self.corner_ptr, j)]

    def settled(self) -> Sets:
        """Return the same sets with the kinds that they are, as docs/soundness.md says.

        What has an exponent is a ball, of exponent infinity a box. An L1 ball of radius 2 has all
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
    _check_corners(sets)
    return sets


def _check_numbers(sets: Sets) -> None:
    """Bounds are bounds, distributions sum to one, kinds have the numbers that they need."""
    kind, radius, exponent = sets.kind, sets.radius, sets.exponent
    nominal, lower, upper = sets.nominal, sets.lower, sets.upper
    off, low, high = (segment_sum(a, sets.ptr) - 1.0 for a in (nominal, lower, upper))
    ball, point = ~np.isnan(exponent), kind == SINGLETON
    of_point = np.repeat(point, sets.sizes)
    # a ball may be a known distribution, which the solver takes for its centre
    still = (sets.sizes == 1) | (radius <= np.where(ball, 2.0 * UNIT, 0.0))
    for holds, text in (
        ((nominal >= 0) & (nominal <= 1), "nominal: must lie in [0, 1]"),
        ((lower >= 0) & (lower <= upper) & (upper <= 1), "lower <= upper: in [0, 1]"),
        ((lower - SUM_OFF <= nominal) & (nominal <= upper + SUM_OFF),
         "nominal: must lie within lower and upper"),
        (np.abs(off) <= SUM_OFF, "nominal: must sum to one"),
        (low <= SUM_OFF, "lower: sums to more than one"),
        (high >= -SUM_OFF, "upper: sums to less than one"),
        (~of_point | ((lower == nominal) & (upper == nominal)),
         "lower, upper: a known distribution must be its own bounds"),
        (~ball | (exponent >= 1.0), "exponent: must be at least 1"),
        (ball | ~np.isin(kind, (L1, LP)), "exponent: balls must have one"),
        (~ball | (kind != POLYTOPE), "exponent: only balls have one"),
        ((kind != L1) | (exponent == 1.0), "exponent: must be 1 for an L1 ball"),
        ((kind != LP) | ((exponent > 1.0) & np.isfinite(exponent)),
         "exponent: must be above 1 and finite for an Lp ball"),
        ((kind != BOX) | ~ball | np.isinf(exponent), "exponent: must be infinite for a box"),
        (~ball | ((radius >= 0.0) & np.isfinite(radius)), "radius: must be at least 0, and finite"),
        (np.where(point, still & (radius >= 0.0), ball) | np.isnan(radius),
         "radius: only balls have one"),
    ):  # fmt: skip
        need(holds.all(), text)


def _check_corners(sets: Sets) -> None:
    """Polytopes have their vertices, all others nothing."""
    lengths, sizes = segment_lengths(sets.corner_ptr), sets.sizes
    hull = (sets.kind == POLYTOPE) | ((sets.kind == SINGLETON) & (lengths > 0))
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
