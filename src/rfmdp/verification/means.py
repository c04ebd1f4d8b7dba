"""The least mean of values over a set, for many rows at once, rounded outwards.

`Axis.least` bounds it from below by the value of a dual solution, less what rounding can do to it
(`margins`). For these kinds the best dual solutions are known, so the same numbers with the margin
added are bounds from above:

singleton  sum centre v
polytope   the least of its corners
box        max over levels t of  t + sum lower (v - t)+ - sum upper (t - v)+
L1         min v + max over t of  sum centre min(v - min v, t) - t radius / 2

For the kinds of `curved`, `Axis.point` gives a distribution with nearly the least mean, and how far
at most (in L1) a member is from it: from above.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from rfmdp.ragged import segment, segment_any
from rfmdp.types import FloatArray, IntArray
from rfmdp.verification.curved import Curved, KLBalls, LpBalls, SubsetSets, inner_point, unsort
from rfmdp.verification.exact import ExactRows
from rfmdp.verification.margins import BLUR, FAINT, NORMAL, TINY, UNIT, VAGUE, mean, slack
from rfmdp.verification.sets import BOX, KL, L1, LP, POLYTOPE, SINGLETON, Sets, excess

PIECE = 1 << 14  # numbers that stay in a cache


class RoundedSets:
    """Settled sets in floats: centres, radii and corners divided by their sums."""

    def __init__(self, sets: Sets, exact: ExactRows) -> None:
        self.sets, self.exact, sizes = sets, exact, sets.sizes
        total = 1.0 + excess(sets.nominal, sets.ptr)
        self.centre = sets.nominal / np.repeat(total, sizes)
        self.radius = sets.radius / total
        self.corners = sets.corners.copy()
        subnormal = segment_any((self.centre > 0.0) & (self.centre < NORMAL), sets.ptr)
        subnormal |= ((sets.kind == L1) | (sets.kind == LP)) & (self.radius < NORMAL)
        for j in np.flatnonzero(sets.kind == POLYTOPE):
            own, ends = sets.listed(j), np.arange(0, len(sets.listed(j)) + 1, sizes[j])
            sums = np.repeat(1.0 + excess(own, ends), sizes[j])
            self.corners[segment(sets.corner_ptr, j)] = own / sums
            subnormal[j] = ((own > 0.0) & (own < NORMAL)).any()
        self.faint = np.where(subnormal, (sizes + 1.0) * FAINT, 0.0)
        self._vertices: dict[int, Vertices] = {}

    def axis(self, ids: IntArray) -> Axis:
        """Return some sets of the same kind, size and number of corners together."""
        return Axis(self, int(self.sets.kind[ids[0]]), int(self.sets.sizes[ids[0]]), ids)

    def vertices(self, j: int) -> Vertices:
        """Return those of a set."""
        if j not in self._vertices:
            self._vertices[j] = _rounded(self.exact[j].vertices)
        return self._vertices[j]


@dataclass(slots=True, eq=False)
class Vertices:
    """Vertices of a set, none if they are not listed, and the errors of means by them."""

    points: FloatArray  # (V, X)
    error: float  # relative
    faint: float  # times the largest value


def _rounded(vertices: list[list[Fraction]]) -> Vertices:
    """Return vertices, each number rounded once; what is positive remains so.

    Those of boxes of equal numbers often differ in their last digits only, and count as one then.
    """
    points = np.array([[float(x) or 5e-324 * bool(x) for x in line] for line in vertices])
    if not len(points):
        return Vertices(points, 0.0, 0.0)
    mantissa, exponent = np.frexp(points)
    merged = np.unique(np.ldexp(np.rint(mantissa * (2.0 / BLUR)) * (BLUR / 2.0), exponent), axis=0)
    size, error = points.shape[1], slack(points.shape[1])
    if 2 * len(merged) <= len(points):
        points, error = merged, error + BLUR
    subnormal = ((points > 0.0) & (points < NORMAL)).any()
    return Vertices(points, error, size * FAINT * subnormal)


@dataclass(eq=False)
class Axis:
    """Sets of one kind, size and number of corners, one per row."""

    sets: RoundedSets
    kind: int
    size: int
    ids: IntArray  # (B,)

    def take(self, rows: IntArray) -> Axis:
        """Return the sets of some of the rows."""
        return replace(self, ids=self.ids[rows])

    @cached_property
    def _at(self) -> IntArray:
        return self.sets.sets.ptr[self.ids][:, None] + np.arange(self.size)

    @cached_property
    def centre(self) -> FloatArray:
        """Centres (B, X)."""
        return self.sets.centre[self._at]

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds (B, X) of boxes."""
        return self.sets.sets.lower[self._at], self.sets.sets.upper[self._at]

    @cached_property
    def corners(self) -> FloatArray:
        """Corners (B, V, X) of points and polytopes."""
        if self.kind == SINGLETON:
            return self.centre[:, None]
        ptr = self.sets.sets.corner_ptr
        count = ptr[self.ids[0] + 1] - ptr[self.ids[0]]
        flat = self.sets.corners[ptr[self.ids][:, None] + np.arange(count)]
        return flat.reshape(len(flat), -1, self.size)

    @property
    def vertices(self) -> Vertices:
        """The vertices of a set alone."""
        return self.sets.vertices(int(self.ids[0]))

    @cached_property
    def faint(self) -> FloatArray:
        """What subnormal weights are off by, (B,)."""
        return self.sets.faint[self.ids]

    @cached_property
    def radius(self) -> FloatArray:
        """Radii (B,)."""
        return self.sets.radius[self.ids]

    def _curved(self) -> Curved:
        if self.kind == KL:
            return KLBalls(self.centre, self.radius)
        if self.kind == LP:
            return LpBalls(self.centre, self.radius, self.sets.sets.exponent[self.ids], self.faint)
        return SubsetSets(self.centre, self.sets.sets.corners, self.sets.sets.corner_ptr[self.ids])

    def least(self, v: FloatArray, side: float = -1.0) -> FloatArray:
        """Return (B, N): no more than the least mean of values (B, N, X); with side +1 no less."""
        if self.kind in (SINGLETON, POLYTOPE):
            each = (self._mean(self.corners[:, i], v, side) for i in range(self.corners.shape[1]))
            return functools.reduce(np.minimum, each)
        if self.kind == BOX:
            return self._least_box(v, side)
        if self.kind == L1:
            return self._least_l1(v, side)
        lines = v.reshape(-1, self.size)
        own = self if v.shape[1] == 1 else self.take(np.repeat(np.arange(len(v)), v.shape[1]))
        found = own._attained(lines) if side > 0.0 else np.fmax(
            own._curved().least(lines), lines.min(axis=1)  # a bound as well, and exact
        )  # fmt: skip
        return np.asarray(found.reshape(v.shape[:2]))

    def _mean(self, p: FloatArray, v: FloatArray, side: float) -> FloatArray:
        """Return the mean of v (B, N, X), rounded to a side; zero if all its terms are."""
        total, size = mean(p[:, None, :], v)
        found = total + side * slack(self.size) * size
        vague = size < VAGUE
        if vague.any():
            found[vague & ((p[:, None, :] != 0.0) & (v != 0.0)).any(axis=-1)] += side * TINY
        if self.faint.any():
            found += side * self.faint[:, None] * np.abs(v).max(axis=-1)
        return found

    def _attained(self, v: FloatArray) -> FloatArray:
        """Return (B,): no less than the least mean of values (B, X), by a member near `point`."""
        p, off = self.point(v)
        total, size = mean(p, v)
        largest = np.abs(v).max(axis=1)
        error = slack(self.size) * size + 2.0 * off * largest
        return np.asarray(total + error + TINY * (largest > 0.0))

    def _least_box(self, v: FloatArray, side: float) -> FloatArray:
        """Return the best of the duals at all levels, piece by piece, as caches like it."""
        best = np.full(v.shape[:2], -np.inf)
        across, down = (max(1, PIECE // size) for size in (v[:1].size, self.size))
        for row in range(0, len(v), across):
            rows = slice(row, row + across)
            lower, upper = (end[rows].T[:, :, None] for end in self.ends)
            for line in range(0, v.shape[1], down):
                part = rows, slice(line, line + down)
                # outcomes first: sums over a short last axis are slow
                columns = np.ascontiguousarray(np.moveaxis(v[part], 2, 0))
                for level in columns:
                    found = _box_dual(columns, level, lower, upper, side)
                    np.fmax(best[part], found, out=best[part])
        return best

    def _least_l1(self, v: FloatArray, side: float) -> FloatArray:
        least = v.min(axis=2)
        above = v - least[:, :, None]
        best = np.zeros_like(least)
        for k in range(self.size):
            level = above[:, :, k]
            kept = (self.centre[:, None, :] * np.minimum(above, level[:, :, None])).sum(axis=2)
            lost = 0.5 * self.radius[:, None] * level
            error = slack(self.size) * (kept + lost) + TINY + self.faint[:, None] * level
            np.fmax(best, kept - lost + side * error * (level > 0.0), out=best)
        total = least + best + side * 2.0 * UNIT * np.abs(least + best)
        return np.asarray(np.where(best > 0.0, total, least))

    def point(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p (B, X) with nearly the least mean of values (B, X), and how far off it is.

        Within that distance in L1 there is a member. A member near p has none of the outcomes of
        the greatest value if p has none and some member has none.
        """
        if self.kind == POLYTOPE:
            best = np.einsum("bvx,bx->bv", self.corners, v).argmin(axis=1)
            return self.corners[np.arange(len(v)), best], self.faint
        off = np.full(len(v), slack(self.size))
        order = np.argsort(v, axis=1, kind="stable")
        if self.kind == BOX:
            low, high = (np.take_along_axis(end, order, axis=1) for end in self.ends)
            free = np.maximum(1.0 - low.sum(axis=1), 0.0)
            room = high - low
            before = np.cumsum(room, axis=1) - room
            return unsort(low + np.clip(free[:, None] - before, 0.0, room), order), off
        if self.kind == L1:
            held = np.take_along_axis(self.centre, order, axis=1)
            given = held[:, ::-1].copy()  # from the greatest value down
            given[:, -1] = 0.0
            before = np.cumsum(given, axis=1) - given
            taken = np.clip(0.5 * self.radius[:, None] - before, 0.0, given)[:, ::-1]
            p = np.maximum(held - taken, 0.0)
            p[:, 0] += taken.sum(axis=1)
            return unsort(p, order), off
        return inner_point(self._curved(), v), off


def _box_dual(
    columns: FloatArray, level: FloatArray, lower: FloatArray, upper: FloatArray, side: float
) -> FloatArray:
    """Return the dual of boxes (X, B, 1) at a level (B, N), values (X, B, N)."""
    above = columns - level
    gain = (lower * np.maximum(above, 0.0)).sum(axis=0)
    loss = (upper * np.minimum(above, 0.0)).sum(axis=0)
    size = np.abs(level) + (gain - loss)
    found = level + (gain + loss) + (side * slack(len(columns))) * size
    vague = size < VAGUE
    if vague.any():
        weighed = ((above > 0.0) & (lower > 0.0)) | ((above < 0.0) & (upper > 0.0))
        found[vague & weighed.any(axis=0)] += side * TINY
    return np.asarray(found)
