"""The least mean of values over a set, for many rows at once, rounded outwards.

`Axis.least` bounds it from below by the value of a dual solution, less what rounding can do to it
(`margins`). For these kinds the best dual solutions are known, so the same numbers with the margin
added are bounds from above:

singleton, polytope  the least of its corners
box, L1              the layers of v, each with the least probability of what reaches it (Choquet)

Lp balls have no short formula (`Axis._dual`). For these `Axis.point` gives a distribution with
nearly the least mean, and how far at most (in L1) a member is from it: from above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rfmdp.ragged import segment, segment_any
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.margins import BLUR, NORMAL, TINY, UNIT, VAGUE, slack, two_sum, weighed
from rfmdp.verification.sets import BOX, L1, LP, POLYTOPE, SINGLETON, ExactRows, Sets, excess

LEVEL, RIM = 2.0**-49, 2.0**-44  # how near sums come to one, and distances (relatively) to radii

Vertices = tuple[FloatArray, float]
"""Vertices (X, V) of a set, and the relative error of means by them."""


class RoundedSets:
    """Settled sets in floats: centres, radii and corners divided by their sums."""

    def __init__(self, sets: Sets, exact: ExactRows) -> None:
        self.sets, self.exact, sizes = sets, exact, sets.sizes
        total = 1.0 + excess(sets.nominal, sets.ptr)
        self.centre = sets.nominal / np.repeat(total, sizes)
        self.radius = sets.radius / total
        self.corners = sets.corners.copy()
        faint = segment_any((self.centre > 0.0) & (self.centre < NORMAL), sets.ptr)
        faint |= ((sets.kind == L1) | (sets.kind == LP)) & (self.radius < NORMAL)
        for j in np.flatnonzero(sets.kind == POLYTOPE):
            corners = sets.listed(j)
            ends = np.arange(0, len(corners) + 1, sizes[j])
            sums = np.repeat(1.0 + excess(corners, ends), sizes[j])
            self.corners[segment(sets.corner_ptr, j)] = corners / sums
            faint[j] = ((corners > 0.0) & (corners < NORMAL)).any()
        # (M,) with weights of too few digits: floats prove nothing of them
        self.faint: BoolArray = faint & (sets.kind != BOX)
        self._vertices: dict[int, Vertices] = {}

    def axis(self, ids: IntArray) -> Axis:
        """Return some sets of the same kind, size and number of corners together."""
        return Axis(self, int(self.sets.kind[ids[0]]), int(self.sets.sizes[ids[0]]), ids)

    def vertices(self, j: int) -> Vertices:
        """Return those of a set, each number rounded once; none if they are not listed.

        Those of boxes of equal numbers often differ in their last digits only, and count as one
        then.
        """
        if j not in self._vertices:
            exact = self.exact[j].vertices
            points = np.array([[float(x) or 5e-324 * bool(x) for x in line] for line in exact])
            if not len(points) or ((points > 0.0) & (points < NORMAL)).any():
                return np.empty((0, 0)), 0.0
            mantissa, exponent = np.frexp(points)
            blurred = np.ldexp(np.rint(mantissa * (2.0 / BLUR)) * (BLUR / 2.0), exponent)
            merged, error = np.unique(blurred, axis=0), slack(points.shape[1])
            if 2 * len(merged) <= len(points):
                points, error = merged, error + BLUR
            self._vertices[j] = points.T, error
        return self._vertices[j]


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
    def corners(self) -> FloatArray:
        """Corners (B, V, X) of points and polytopes."""
        if self.kind == SINGLETON:
            return self.sets.centre[self._at][:, None]
        ptr = self.sets.sets.corner_ptr
        count = ptr[self.ids[0] + 1] - ptr[self.ids[0]]
        flat = self.sets.corners[ptr[self.ids][:, None] + np.arange(count)]
        return flat.reshape(len(flat), -1, self.size)

    @property
    def vertices(self) -> Vertices:
        """The vertices of a set alone."""
        return self.sets.vertices(int(self.ids[0]))

    @property
    def faint(self) -> BoolArray:
        """Where (B,) weights have too few digits."""
        return self.sets.faint[self.ids]

    def least(self, v: FloatArray, side: float = -1.0) -> FloatArray:
        """Return (B, N): no more than the least mean of values (B, N, X); with side +1 no less."""
        if self.kind in (SINGLETON, POLYTOPE):
            each = weighed(v, self.corners.swapaxes(1, 2), side, slack(self.size))
            return np.asarray(each.min(axis=2))
        if self.kind == BOX and self.size == 2:
            return self._of_two(v[:, :, 0], v[:, :, 1], side)
        if self.kind in (BOX, L1):
            bound = self._by_layers(v, side)
        else:
            lines = v.reshape(-1, self.size)
            axis = self.take(np.repeat(np.arange(len(v)), v.shape[1]))
            bound = axis._attained(lines) if side > 0.0 else axis._dual(lines)
            bound = bound.reshape(v.shape[:2])
        return bound if side > 0.0 else np.fmax(bound, v.min(axis=2))  # a bound, too, and exact

    def _attained(self, v: FloatArray) -> FloatArray:
        """Return (B,): no less than the least mean of values (B, X), by a member near `point`."""
        p, off = self.point(v)
        mean = weighed(v[:, None], p[:, :, None], 1.0, slack(self.size))[:, 0, 0]
        return np.asarray(mean + 2.0 * off * np.abs(v).max(axis=1))

    @cached_property
    def _ends(self) -> FloatArray:
        """The vertices (2, 2, B, 1) of boxes of two outcomes, least of each, rounded once."""
        low, high = self.sets.sets.lower[self._at].T, self.sets.sets.upper[self._at].T[::-1]
        total, rest = two_sum(low, high)
        held = (total - 1.0) + rest >= 0.0  # exactly: else the other outcome has all it may have
        least, most = np.where(held, low, 1.0 - high), np.where(held, 1.0 - low, high)
        return np.array([[least[0], most[0]], [most[1], least[1]]])[..., None]

    def _of_two(self, a: FloatArray, b: FloatArray, side: float) -> FloatArray:
        """Return what `least` does of boxes of two outcomes, of values a and b (B, N) of these."""
        (least, rest), (most, left) = self._ends
        falls = a > b
        p, q = np.where(falls, least, most), np.where(falls, rest, left)
        first, second = p * a, q * b
        size = np.abs(first) + np.abs(second)
        bound = first + second + side * slack(2) * size
        vague = size < VAGUE
        if vague.any():
            moved = ((p > 0.0) & (a != 0.0)) | ((q > 0.0) & (b != 0.0))
            bound += side * TINY * (vague & moved)
        return np.asarray(bound if side > 0.0 else np.fmax(bound, np.minimum(a, b)))

    def _by_layers(self, v: FloatArray, side: float) -> FloatArray:
        """Return the values (B, N) nearest zero, plus layers above, less what layers below lack."""
        order = np.argsort(v, axis=2, kind="stable")
        ranked = np.take_along_axis(v, order, axis=2)
        nearest = np.abs(ranked).argmin(axis=2)[:, :, None]
        least, most = self._layers(order, side)
        above = np.arange(self.size - 1) >= nearest
        step = np.diff(ranked, axis=2)
        terms, weights = np.empty_like(ranked), np.ones_like(ranked)
        terms[:, :, :1] = np.take_along_axis(ranked, nearest, axis=2)
        terms[:, :, 1:] = np.where(above, step, -step)
        weights[:, :, 1:] = np.maximum(np.where(above, least, most), 0.0)
        return weighed(terms[:, :, None], weights[..., None], side, slack(self.size))[:, :, 0, 0]

    def _layers(self, order: IntArray, side: float) -> tuple[FloatArray, FloatArray]:
        """Return the least probabilities (B, N, X - 1) of outcomes from the second, third, ... on.

        They are rounded to a side; and the most that the others have, rounded to the other side.
        """
        more, less = 1.0 + side * slack(self.size), 1.0 - side * slack(self.size)
        at = self._at[:, :1, None] + order

        def after(p: FloatArray) -> FloatArray:
            return np.cumsum(p[at[:, :, :0:-1]], axis=2)[:, :, ::-1]

        def before(p: FloatArray) -> FloatArray:
            return np.cumsum(p[at[:, :, :-1]], axis=2)

        if self.kind == BOX:
            sets = self.sets.sets
            least, most = more * after(sets.lower), less * before(sets.upper)
            return (
                np.maximum(least, 1.0 - most + side * UNIT),
                np.minimum(most, 1.0 - least - side * UNIT),
            )
        half = 0.5 * self.sets.radius[self.ids][:, None, None]
        return (
            np.maximum(more * after(self.sets.centre) - less * half, 0.0),
            np.minimum(less * (before(self.sets.centre) + half), 1.0),
        )

    def point(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p (B, X) with nearly the least mean of values (B, X), and how far off it is.

        Within that distance in L1 there is a member. A member near p has none of the outcomes of
        the greatest value if p has none and some member has none.
        """
        off = np.full(len(v), slack(self.size))
        if self.kind == POLYTOPE:
            best = np.einsum("bvx,bx->bv", self.corners, v).argmin(axis=1)
            return self.corners[np.arange(len(v)), best], 0.0 * off
        if self.kind == LP:
            return self._inner(v), off
        order = np.argsort(v, axis=1, kind="stable")
        weights = np.pad(self._layers(order[:, None], 0.0)[0][:, 0], ((0, 0), (1, 1)))
        weights[:, 0] = 1.0
        p = np.empty_like(v)
        np.put_along_axis(p, order, np.maximum(weights[:, :-1] - weights[:, 1:], 0.0), axis=1)
        return p, self.size * off

    @cached_property
    def _ball(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centres (B, X), radii (B,) and exponents q, 1 < q < infinity, of Lp balls."""
        exponent = self.sets.sets.exponent[self.ids]
        return self.sets.centre[self._at], self.sets.radius[self.ids], exponent

    def _dual(self, v: FloatArray) -> FloatArray:
        """Return (B,): no more than the least mean of values (B, X) over Lp balls.

        It is the value of a dual solution, less what rounding can do to it:

            max over t, w <= v - t of  t + centre.w - radius |w|_q',  1/q + 1/q' = 1   (Hoelder)

        Any w <= v - t proves it, so only the norm of w has to be known: powers are right to 4 u and
        what their ratios are off by counts once after the root, as do the X terms of the sum; the
        rounded exponents 1/q and q' cost ln X <= X times 3 u. That is less than 4 slack(X).
        """
        _, level, pace = self._rim(v)
        centre, radius, q = self._ball
        error = 4.0 * slack(v.shape[1])
        above = v - level[:, None]
        best = v.min(axis=1)
        cap = (centre / pace[:, None]) ** (q[:, None] - 1.0)
        for w in (np.minimum(above, cap), above):
            lost = radius * _norm(np.abs(w), q / (q - 1.0))
            terms = centre * w
            size = np.abs(terms).sum(axis=1) + np.abs(above).max(axis=1) + np.abs(level) + lost
            best = np.fmax(best, level + (terms.sum(axis=1) - lost) - (error * size + TINY))
        return np.asarray(best)

    def _inner(self, v: FloatArray) -> FloatArray:
        """Return (B, X), within rounding of members of Lp balls, with nearly the least mean.

        From the point of `_rim` back to the centre, which is a member: norms shrink as fast.
        """
        centre, radius, exponent = self._ball
        p = self._rim(v)[0]
        p = p / p.sum(axis=1, keepdims=True)
        room = 2.0 * slack(p.shape[1]) * (1.0 + radius)
        distance = _norm(np.abs(p - centre), exponent)
        back = 1.0 - np.fmin(np.fmax((radius - room) / distance, 0.0), 1.0)
        return np.asarray(p + back[:, None] * (centre - p))

    def _rim(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p = (centre - pace sign(v - t) |v - t|^(1/(q-1)))+ near the rim, t and pace."""
        centre, radius, exponent = self._ball
        least, span = v.min(axis=1), np.ptp(v, axis=1)
        unit = np.where(span > 0.0, span, 1.0)
        scaled = (v - least[:, None]) / unit[:, None]
        scaled[scaled < VAGUE] = 0.0  # makes it no larger: logarithms of subnormals are wild
        power = 1.0 / (exponent[:, None] - 1.0)
        level = np.full(len(v), 0.5)

        def at(pace: FloatArray, level: FloatArray) -> FloatArray:
            d = scaled - level[:, None]
            moved = centre - pace[:, None] * np.sign(d) * np.abs(d) ** power
            return np.asarray(np.maximum(moved, 0.0))

        def rim(pace: FloatArray) -> FloatArray:
            nonlocal level
            level = _root(lambda t: at(pace, t).sum(axis=1) - 1.0, level, (0.0, 1.0), LEVEL)
            p = at(pace, level)
            # large exponents jump where t meets a value: that outcome takes the rest, at no price
            nearest = np.arange(len(v)), np.abs(scaled - level[:, None]).argmin(axis=1)
            p[nearest] = np.maximum(p[nearest] + (1.0 - p.sum(axis=1)), 0.0)
            return p

        def beyond(log_pace: FloatArray) -> FloatArray:
            distance = _norm(np.abs(rim(np.exp2(log_pace)) - centre), exponent)
            return np.log(np.fmax(distance, TINY)) - np.log(np.fmax(radius, TINY))

        pace = np.exp2(_root(beyond, np.zeros(len(v)), (-80.0, 80.0), RIM))
        p = rim(pace)
        # in units of v: |v - t|^(1/(q-1)) = unit^(1/(q-1)) |scaled - level|^(1/(q-1))
        return p, least + unit * level, pace / unit ** power[:, 0]


def _root(
    f: Callable[[FloatArray], FloatArray], x: FloatArray, ends: tuple[float, float], near: float
) -> FloatArray:
    """Return (B,) where rising functions are as near zero as that, between both ends, from x on.

    By secants, and every third time in the middle. The value of an end that stays twice is halved,
    so that the other one moves, too (Illinois' rule).
    """
    low, high = np.full(len(x), ends[0]), np.full(len(x), ends[1])
    f_low, f_high, moved = -np.ones(len(x)), np.ones(len(x)), np.zeros(len(x))
    for step in range(162):
        height = f(x)
        if np.all((np.abs(height) <= near) | (high - low <= 4.0 * UNIT * np.abs(x))):
            break
        below = height < 0.0
        f_high = np.where(below, np.where(moved < 0.0, 0.5, 1.0) * f_high, height)
        f_low = np.where(below, height, np.where(moved > 0.0, 0.5, 1.0) * f_low)
        low, high = np.where(below, x, low), np.where(below, high, x)
        moved = np.where(below, -1.0, 1.0)
        x = 0.5 * (low + high)
        if step % 3 < 2:
            secant = low - f_low * (high - low) / (f_high - f_low)
            x = np.where((low < secant) & (secant < high), secant, x)
    return x


def _norm(size: FloatArray, exponent: FloatArray) -> FloatArray:
    """Return the norms, of exponents (B,), of vectors (B, X) of numbers >= 0."""
    largest = size.max(axis=1)
    ratio = size / np.where(largest > 0.0, largest, 1.0)[:, None]
    power = np.where(ratio > 0.0, ratio, 1.0) ** exponent[:, None] * (ratio > 0.0)
    return np.asarray(largest * power.sum(axis=1) ** (1.0 / exponent))
