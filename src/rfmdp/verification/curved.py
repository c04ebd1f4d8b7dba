"""Sets whose least mean has no short formula: one of each kind per row, of values (B, X).

`least` proves a bound from below: every number is the value of a dual solution, less what rounding
can do to it. Any dual solution will do, so none has to be found exactly:

KL        max over t <= min v of  t + exp(sum centre ln(v - t) - radius)            (Jensen)
Lp        max over t, w <= v - t of  t + centre.w - radius |w|_q',  1/q + 1/q' = 1   (Hoelder)

`point` is a distribution with nearly the least mean. `share` is the part of the way there from the
centre, which is a member, that stays in the set; `inner_point` goes so far. Subset sets need that
as well: the point of their layers is a member only if they are supermodular.
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
class KLBalls:
    """Kullback-Leibler balls."""

    centre: FloatArray  # (B, X)
    radius: FloatArray  # (B,)

    def least(self, v: FloatArray) -> FloatArray:
        """Return (B,): no more than the least mean."""
        size = v.shape[1]
        least, unit, scaled = _scaled(v)
        seen = self.centre > 0.0
        best = least.copy()
        for shift in (*self._shifts(scaled), np.zeros(len(v))):
            w = scaled + shift[:, None]
            logs = np.where(seen, np.log(np.where(seen, w, 1.0)), 0.0)
            power, spread = mean(self.centre, logs)
            error = slack(size) * (1.0 + spread + self.radius)
            grown = np.exp(power - self.radius - 8.0 * error) * (1.0 - 8.0 * UNIT)
            gain = grown - shift
            gain -= slack(size) * (grown + shift)
            found = least + unit * gain
            found -= slack(1) * (np.abs(least) + unit * np.abs(gain)) + TINY
            best = np.fmax(best, np.where(scaled.any(axis=1), found, least))
        return np.asarray(best)

    def _shifts(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return numbers (B,) just below and above the best least - t, values scaled (B, X)."""
        seen = self.centre > 0.0
        low, high = np.full(len(scaled), -700.0), np.full(len(scaled), 700.0)  # their logarithms
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            w = np.where(seen, scaled + np.exp(middle)[:, None], 1.0)
            slope = (self.centre * np.log(w)).sum(axis=1) + np.log((self.centre / w).sum(axis=1))
            far = slope > self.radius
            low, high = np.where(far, middle, low), np.where(far, high, middle)
        return np.exp(low), np.exp(high)

    def point(self, v: FloatArray) -> FloatArray:
        """Return centre / (v - t); an unseen outcome of the least value gets what is left."""
        (_, _, scaled), seen = _scaled(v), self.centre > 0.0
        w = np.where(seen, scaled + self._shifts(scaled)[1][:, None], 1.0)
        p = self.centre / w
        p /= p.sum(axis=1, keepdims=True)
        spare = np.fmax(self.radius - self._terms(p).sum(axis=1), 0.0)
        unseen = ~seen & (scaled == 0.0)
        first = unseen & (np.cumsum(unseen, axis=1) == 1)
        give = np.where(unseen.any(axis=1), -np.expm1(-spare), 0.0)[:, None]
        return np.asarray(p * (1.0 - give) + first * give)

    def _terms(self, p: FloatArray) -> FloatArray:
        """Return the terms of the divergence of points; infinite where an outcome seen is empty."""
        ratio = np.where(self.centre > 0.0, self.centre / p, 1.0)
        return np.asarray(self.centre * np.log(ratio))

    def share(self, p: FloatArray) -> FloatArray:
        """Return (B,) how far to go to points; divergences grow at least as fast as that."""
        terms = self._terms(p)
        size = 1.0 + np.abs(terms).sum(axis=1) + self.radius
        room = 2.0 * slack(p.shape[1]) * size
        return np.asarray(np.fmax((self.radius - room) / terms.sum(axis=1), 0.0))


@dataclass(slots=True, eq=False)
class LpBalls:
    """Balls of an exponent q, 1 < q < infinity."""

    centre: FloatArray  # (B, X)
    radius: FloatArray  # (B,)
    exponent: FloatArray  # (B,)
    faint: FloatArray  # (B,)

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
            found = level + (total - self.radius * norm)
            size += np.abs(above).max(axis=1)
            found -= error * (np.abs(level) + size + self.radius * norm) + TINY
            found -= self.faint * (np.abs(w).max(axis=1) + norm)
            best = np.fmax(best, found)
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


@dataclass(slots=True, eq=False)
class SubsetSets:
    """Sets with a lower probability for every subset of the outcomes."""

    centre: FloatArray  # (B, X)
    tables: FloatArray  # of all sets, 2 ** X numbers each
    begin: IntArray  # (B,) where those of a row begin

    def share(self, p: FloatArray) -> FloatArray:
        """Return (B,) how far to go to points; no number if the centre is no member."""
        masks = np.arange(1, (1 << p.shape[1]) - 1)
        bits = ((masks >> np.arange(p.shape[1])[:, None]) & 1).astype(np.float64)
        least = self.tables[self.begin[:, None] + masks]
        spare, lost = self.centre @ bits - least, (self.centre - p) @ bits
        room = 2.0 * slack(p.shape[1])
        inside = (spare >= lost + room) | (least == 0.0)  # as the centre is: so all between
        each = np.where(inside, 1.0, np.maximum(spare - room, 0.0) / np.maximum(lost, room))
        return np.where((spare >= 0.0).all(axis=1), each.min(axis=1, initial=1.0), np.nan)


def inner_point(own: KLBalls | LpBalls | SubsetSets, p: FloatArray) -> FloatArray:
    """Return points (B, X) on the way from points to the centre, within rounding of members."""
    p = p / p.sum(axis=1, keepdims=True)
    back = 1.0 - np.minimum(own.share(p), 1.0)  # to the centre, which is a member
    return np.asarray(p + back[:, None] * (own.centre - p))


def unsort(ranked: FloatArray, order: IntArray) -> FloatArray:
    """Return numbers (B, X) that are in an order in their places."""
    found = np.empty_like(ranked)
    np.put_along_axis(found, order, ranked, axis=1)
    return found


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
        found = f(x)
        if np.all((np.abs(found) <= near) | (high - low <= 4.0 * UNIT * np.abs(x))):
            break
        below = found < 0.0
        f_high = np.where(below, np.where(moved < 0.0, 0.5, 1.0) * f_high, found)
        f_low = np.where(below, found, np.where(moved > 0.0, 0.5, 1.0) * f_low)
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
