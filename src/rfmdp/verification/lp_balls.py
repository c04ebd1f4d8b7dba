"""Lp balls, whose least mean has no short formula: one per row, of values (B, X).

`least` proves a bound from below: every number is the value of a dual solution, less what rounding
can do to it. Any dual solution will do, so none has to be found exactly:

    max over t, w <= v - t of  t + centre.w - radius |w|_q',  1/q + 1/q' = 1   (Hoelder)

`point` is a distribution with nearly the least mean. `share` is the part of the way there from the
centre, which is a member, that stays in the set; `inner_point` goes so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfmdp.types import FloatArray, IntArray
from rfmdp.verification.margins import TINY, UNIT, VAGUE, mean, slack

HALVINGS = 54
LEVEL, RIM = 2.0**-49, 2.0**-44  # how near sums come to one, and distances (relatively) to radii


@dataclass(slots=True, eq=False)
class LpBalls:
    """Balls of an exponent q, 1 < q < infinity."""

    centre: FloatArray  # (B, X)
    radius: FloatArray  # (B,)
    exponent: FloatArray  # (B,)

    def least(self, v: FloatArray) -> FloatArray:
        """Return (B,): no more than the least mean.

        Any w <= v - t proves it, so only the norm of w has to be known: powers are right to 4 u and
        what their ratios are off by counts once after the root, as do the X terms of the sum; the
        rounded exponents 1/q and q' cost ln X <= X times 3 u. That is less than 4 slack(X).
        """
        _, level, pace = self._rim(v)
        q = self.exponent
        dual = q / (q - 1.0)
        error = 4.0 * slack(v.shape[1])
        above = v - level[:, None]
        best = v.min(axis=1)
        cap = (self.centre / pace[:, None]) ** (q[:, None] - 1.0)
        for w in (np.minimum(above, cap), above):
            norm = _norm(np.abs(w), dual)
            total, size = mean(self.centre, w)
            bound = level + (total - self.radius * norm)
            size += np.abs(above).max(axis=1)
            bound -= error * (np.abs(level) + size + self.radius * norm) + TINY
            best = np.fmax(best, bound)
        return np.asarray(best)

    def point(self, v: FloatArray) -> FloatArray:
        """Return the point of `_rim`."""
        return self._rim(v)[0]

    def _rim(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p = (centre - pace sign(v - t) |v - t|^(1/(q-1)))+ near the rim, t and pace."""
        least, unit, scaled = _scaled(v)
        power = 1.0 / (self.exponent[:, None] - 1.0)
        level = np.full(len(v), 0.5)

        def at(pace: FloatArray, level: FloatArray) -> FloatArray:
            d = scaled - level[:, None]
            moved = self.centre - pace[:, None] * np.sign(d) * np.abs(d) ** power
            return np.asarray(np.maximum(moved, 0.0))

        def level_of(pace: FloatArray) -> FloatArray:
            nonlocal level
            level = _root(lambda t: at(pace, t).sum(axis=1) - 1.0, level, (0.0, 1.0), LEVEL)
            return level

        def rim(pace: FloatArray) -> FloatArray:
            p = at(pace, level_of(pace))
            # large exponents jump where t meets a value: that outcome takes the rest, at no price
            nearest = np.arange(len(v)), np.abs(scaled - level[:, None]).argmin(axis=1)
            p[nearest] = np.maximum(p[nearest] + (1.0 - p.sum(axis=1)), 0.0)
            return p

        def beyond(log_pace: FloatArray) -> FloatArray:
            distance = _norm(np.abs(rim(np.exp2(log_pace)) - self.centre), self.exponent)
            return np.log(np.fmax(distance, TINY)) - np.log(np.fmax(self.radius, TINY))

        pace = np.exp2(_root(beyond, np.zeros(len(v)), (-80.0, 80.0), RIM))
        p = rim(pace)
        # in units of v: |v - t|^(1/(q-1)) = unit^(1/(q-1)) |scaled - level|^(1/(q-1))
        return p, least + unit * level, pace / unit ** power[:, 0]

    def share(self, p: FloatArray) -> FloatArray:
        """Return (B,) how far to go to points; norms grow as fast as that."""
        room = 2.0 * slack(p.shape[1]) * (1.0 + self.radius)
        distance = _norm(np.abs(p - self.centre), self.exponent)
        return np.asarray(np.fmax((self.radius - room) / distance, 0.0))


def inner_point(balls: LpBalls, p: FloatArray) -> FloatArray:
    """Return points (B, X) on the way from points to the centre, within rounding of members."""
    p = p / p.sum(axis=1, keepdims=True)
    back = 1.0 - np.minimum(balls.share(p), 1.0)  # to the centre, which is a member
    return np.asarray(p + back[:, None] * (balls.centre - p))


def unsort(ranked: FloatArray, order: IntArray) -> FloatArray:
    """Return numbers (B, X) that are in an order in their places."""
    placed = np.empty_like(ranked)
    np.put_along_axis(placed, order, ranked, axis=1)
    return placed


def _root(
    f: Callable[[FloatArray], FloatArray], x: FloatArray, ends: tuple[float, float], near: float
) -> FloatArray:
    """Return (B,) where rising functions are as near zero as that, between both ends, from x on.

    By secants, and every third time in the middle. The value of an end that stays twice is halved,
    so that the other one moves, too (Illinois' rule).
    """
    low, high = np.full(len(x), ends[0]), np.full(len(x), ends[1])
    f_low, f_high, moved = -np.ones(len(x)), np.ones(len(x)), np.zeros(len(x))
    for step in range(3 * HALVINGS):
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


def _scaled(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the least of values (B, X), their span or one, and (v - least) / span.

    What is nearly the least counts as that, which makes it no larger: logarithms of subnormal
    numbers are wild.
    """
    least = v.min(axis=1)
    span = np.ptp(v, axis=1)
    unit = np.where(span > 0.0, span, 1.0)
    scaled = (v - least[:, None]) / unit[:, None]
    scaled[scaled < VAGUE] = 0.0
    return least, unit, scaled
