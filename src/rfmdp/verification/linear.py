"""The least mean of values over a set, for many rows at once, rounded outwards.

`Axis.least` proves a bound from below: every number it returns is the value of a dual solution,
less what rounding can do to it. Any dual solution will do, so none has to be found exactly:

box       max over levels t of  t + sum lower (v - t)+ - sum upper (t - v)+
L1        min v + max over t of  sum centre min(v - min v, t) - t radius / 2
Lp        max over t, w <= v - t of  t + centre.w - radius |w|_q',  1/q + 1/q' = 1   (Hoelder)
KL        max over t <= min v of  t + exp(sum centre ln(v - t) - radius)            (Jensen)
subsets   the layers of v, each with its lower probability                          (Choquet)

`Axis.point` gives a distribution with nearly the least mean, and how far at most (in L1) a member
is from it: from above. A sum of zeros is exactly zero, however it is weighed.

Rounding, with u = 2^-53: every number passes through at most so many operations, and one u is paid
for each, relative to the sum of sizes, and one more for the squares of u that are left out (sets
have fewer than 10^7 outcomes). Two things are not relative. Weights that had to be divided and are
subnormal are off by up to 2^-1075 each, whatever values they meet: `Axis.faint`. Products that
underflow are off by as much: beside a sum of sizes from `VAGUE` on that is less than the spare u,
below it `TINY` is paid unless all products are of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import ExactRows
from rfmdp.verification.reading import BOX, KL, L1, LP, POLYTOPE, SINGLETON, SUBSETS, Sets

UNIT = 2.0**-53
TINY = 1e-300  # more than all that underflow takes from a sum
FAINT = 2.0**-1074  # twice what rounding takes from a subnormal weight
NORMAL = 2.0**-1021  # weights from here on, and their halves, are rounded relatively
VAGUE = 1e-280  # a sum of sizes below which some of its terms may have vanished
HALVINGS = 54
PIECE = 1 << 14  # numbers that stay in a cache


def slack(size: int) -> float:
    """Return the relative error of a mean of some values, weights a few roundings off."""
    return (2.0 * size + 8.0) * UNIT


def two_sum(a: AnyArray, b: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return a + b rounded and the exact error of that, after Knuth."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def directed(a: FloatArray, b: FloatArray, side: float) -> FloatArray:
    """Return a + b, rounded to a side (+1 up) unless exact."""
    total, error = two_sum(a, b)
    return np.where(side * error > 0.0, np.nextafter(total, side * np.inf), total)


def excess(values: FloatArray, ptr: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return the sum of every segment minus one, nearly, and whether it is exactly one."""
    sizes = np.diff(ptr)
    high, low, lost = -np.ones(len(sizes)), np.zeros(len(sizes)), np.zeros(len(sizes))
    left = np.arange(len(sizes))
    for k in range(int(sizes.max(initial=0))):
        left = left[sizes[left] > k]
        high[left], error = two_sum(high[left], values[ptr[left] + k])
        low[left], error = two_sum(low[left], error)
        lost[left] += np.abs(error)
    return high + low, np.asarray((high + low == 0.0) & (lost == 0.0))


@dataclass(slots=True, eq=False)
class Families:
    """All sets as `Axis` needs them: kinds and numbers as the exact definitions settle them."""

    ptr: IntArray  # (M + 1,)
    kind: IntArray  # (M,)
    centre: FloatArray  # (O,)
    lower: FloatArray  # (O,)
    upper: FloatArray  # (O,)
    radius: FloatArray  # (M,)
    exponent: FloatArray  # (M,)
    corner_ptr: IntArray  # (M + 1,)
    corners: FloatArray
    error: FloatArray  # (M,) relative, of the weights
    faint: FloatArray  # (M,) absolute, of their sum

    @staticmethod
    def of(sets: Sets, exact: ExactRows) -> Families:
        """Settle the kinds; near the edge of a definition, exactly."""
        sizes, first = sets.sizes, sets.ptr[:-1]
        kind, lower, upper = sets.kind.copy(), sets.lower.copy(), sets.upper.copy()
        if not len(kind):
            return Families(sets.ptr, kind, sets.nominal, lower, upper, sets.radius, sets.exponent,
                            sets.corner_ptr, sets.corners, sets.radius, sets.radius)  # fmt: skip
        over, exactly = excess(sets.nominal, sets.ptr)
        total = 1.0 + over
        centre = sets.nominal / np.repeat(total, sizes)
        error = np.where(exactly, 0.0, 2.5 * UNIT)
        kind[(kind == SINGLETON) & (np.diff(sets.corner_ptr) > 0)] = POLYTOPE
        radius = sets.radius / total
        low, high = np.add.reduceat(lower, first), np.add.reduceat(upper, first)
        plain_box = (kind == BOX) & np.isnan(sets.exponent)
        near = (np.abs(low - 1.0) < 1e-8) | (np.abs(high - 1.0) < 1e-8) | (low > 1) | (high < 1)
        for j in np.flatnonzero((~plain_box | near) & (kind != POLYTOPE) & (kind != SUBSETS)):
            if kind[j] == SINGLETON and np.isnan(sets.exponent[j]):
                continue
            own, part = exact[int(j)], slice(sets.ptr[j], sets.ptr[j + 1])
            kind[j] = own.kind
            centre[part] = [float(x) for x in own.centre]
            error[j] = max(error[j], UNIT)
            lower[part] = [float(x) for x in own.lower]
            upper[part] = [float(x) for x in own.upper]
        kind[sizes == 1] = SINGLETON
        centre[np.repeat(sizes == 1, sizes)] = 1.0
        corners = sets.corners.copy()
        small = (centre > 0.0) & (centre < NORMAL)
        subnormal = np.logical_or.reduceat(small, first) & (error > 0.0)
        for j in np.flatnonzero(kind == POLYTOPE):
            part = slice(sets.corner_ptr[j], sets.corner_ptr[j + 1])
            each = corners[part].reshape(-1, sizes[j])
            over, exactly = excess(each.ravel(), np.arange(0, each.size + 1, sizes[j]))
            error[j] = 0.0 if exactly.all() else 2.5 * UNIT
            corners[part] = (each / (1.0 + over)[:, None]).ravel()
            subnormal[j] = ((each > 0.0) & (each < NORMAL)).any()
        subnormal |= ((kind == L1) | (kind == LP)) & (radius < NORMAL)
        faint = np.where(subnormal, (sizes + 1.0) * FAINT, 0.0)
        return Families(sets.ptr, kind, centre, lower, upper, radius, sets.exponent,
                        sets.corner_ptr, corners, error, faint)  # fmt: skip

    def axis(self, ids: IntArray) -> Axis:
        """Return some sets of the same kind, size and number of corners together."""
        kind, size = int(self.kind[ids[0]]), int(self.ptr[ids[0] + 1] - self.ptr[ids[0]])
        at = self.ptr[ids][:, None] + np.arange(size)
        none = np.empty((len(ids), 0))
        count = int(self.corner_ptr[ids[0] + 1] - self.corner_ptr[ids[0]])
        corners = none
        if kind in (POLYTOPE, SUBSETS):
            corners = self.corners[self.corner_ptr[ids][:, None] + np.arange(count)]
        box = kind == BOX
        return Axis(
            kind, size, none if box else self.centre[at], self.lower[at] if box else none,
            self.upper[at] if box else none, self.radius[ids], self.exponent[ids], corners,
            self.error[ids], self.faint[ids],
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class Axis:
    """Sets of one kind and size, one per row."""

    kind: int
    size: int
    centre: FloatArray  # (B, X)
    lower: FloatArray  # (B, X) of boxes
    upper: FloatArray  # (B, X)
    radius: FloatArray  # (B,)
    exponent: FloatArray  # (B,)
    corners: FloatArray  # (B, V * X) of polytopes, (B, 2 ** X) of subset sets
    error: FloatArray  # (B,) relative, of the weights
    faint: FloatArray  # (B,) absolute, of their sum

    def take(self, rows: IntArray) -> Axis:
        """Return the sets of some of the rows."""
        named = [getattr(self, f.name) for f in fields(self)]
        return Axis(*named[:2], *(a[rows] for a in named[2:]))

    def least(self, v: FloatArray, side: float = -1.0) -> FloatArray:
        """Return (B, N): no more than the least mean of values (B, N, X); with side +1 no less."""
        if self.kind == SINGLETON:
            return self._mean(self.centre, v, side)
        if self.kind == BOX:
            return self._least_box(v, side)
        if self.kind == L1:
            return self._least_l1(v, side)
        if self.kind == POLYTOPE:
            corners = self.corners.reshape(len(v), -1, self.size)
            each = [self._mean(corners[:, i], v, side) for i in range(corners.shape[1])]
            return np.asarray(np.minimum.reduce(each))
        if side > 0.0:
            return self._attained(v)
        if self.kind == SUBSETS:
            return self._least_subsets(v)
        own, flat = self._per_line(v)
        found = own._least_kl(flat) if self.kind == KL else own._least_lp(flat)
        # the least value is a bound as well, and exact
        return np.asarray(np.maximum(found, flat.min(axis=1)).reshape(v.shape[:2]))

    def _mean(self, p: FloatArray, v: FloatArray, side: float) -> FloatArray:
        """Return the mean of v (B, N, X), rounded to a side; zero if all its terms are."""
        total, size = _mean(p[:, None, :], v)
        found = total + side * self._slack * size
        vague = size < VAGUE
        if vague.any():
            found[vague & ((p[:, None, :] != 0.0) & (v != 0.0)).any(axis=-1)] += side * TINY
        if self.faint.any():
            found += side * self.faint[:, None] * np.abs(v).max(axis=-1)
        return found

    @property
    def _slack(self) -> FloatArray:
        """The relative error of a mean, (B, 1)."""
        return ((self.size + 3.0) * UNIT + self.error)[:, None]

    def _per_line(self, v: FloatArray) -> tuple[Axis, FloatArray]:
        """Return the sets with one line of values (B, N, X) each, and the lines (B * N, X)."""
        own = self if v.shape[1] == 1 else self.take(np.repeat(np.arange(len(v)), v.shape[1]))
        return own, v.reshape(-1, self.size)

    def _attained(self, v: FloatArray) -> FloatArray:
        """Return (B, N): no less than the least mean, by a member near `point`."""
        own, flat = self._per_line(v)
        p, off = own.point(flat)
        total, size = _mean(p, flat)
        largest = np.abs(flat).max(axis=1)
        error = slack(self.size) * size + 2.0 * off * largest
        return np.asarray((total + error + TINY * (largest > 0.0)).reshape(v.shape[:2]))

    def _least_box(self, v: FloatArray, side: float) -> FloatArray:
        """Return the best of the duals at all levels, piece by piece, as caches like it."""
        best = np.full(v.shape[:2], -np.inf)
        across, down = (max(1, PIECE // size) for size in (v[:1].size, self.size))
        for row in range(0, len(v), across):
            rows = slice(row, row + across)
            lower, upper = self.lower[rows].T[:, :, None], self.upper[rows].T[:, :, None]
            for line in range(0, v.shape[1], down):
                part = rows, slice(line, line + down)
                # outcomes first: sums over a short last axis are slow
                columns = np.ascontiguousarray(np.moveaxis(v[part], 2, 0))
                for level in columns:
                    np.fmax(best[part], self._box_dual(columns, level, lower, upper, side),
                            out=best[part])  # fmt: skip
        return best

    def _box_dual(
        self, columns: FloatArray, level: FloatArray, lower: FloatArray, upper: FloatArray,
        side: float,
    ) -> FloatArray:  # fmt: skip
        """Return the dual of boxes (X, B, 1) at a level (B, N), values (X, B, N)."""
        above = columns - level
        gain = (lower * np.maximum(above, 0.0)).sum(axis=0)
        loss = (upper * np.minimum(above, 0.0)).sum(axis=0)
        size = np.abs(level) + (gain - loss)
        found = level + (gain + loss) + (side * (self.size + 4.0) * UNIT) * size
        vague = size < VAGUE
        if vague.any():
            weighed = ((above > 0.0) & (lower > 0.0)) | ((above < 0.0) & (upper > 0.0))
            found[vague & weighed.any(axis=0)] += side * TINY
        return np.asarray(found)

    def _least_l1(self, v: FloatArray, side: float) -> FloatArray:
        least = v.min(axis=2)
        above = v - least[:, :, None]
        best = np.zeros_like(least)
        for k in range(self.size):
            level = above[:, :, k]
            kept = (self.centre[:, None, :] * np.minimum(above, level[:, :, None])).sum(axis=2)
            lost = 0.5 * self.radius[:, None] * level
            error = (self._slack + 8.0 * UNIT) * (kept + lost) + TINY
            error += self.faint[:, None] * level
            np.fmax(best, kept - lost + side * error * (level > 0.0), out=best)
        total = least + best + side * 2.0 * UNIT * np.abs(least + best)
        return np.asarray(np.where(best > 0.0, total, least))

    def _least_subsets(self, v: FloatArray) -> FloatArray:
        order = np.argsort(v, axis=2, kind="stable")
        ranked = np.take_along_axis(v, order, axis=2)
        bits = np.cumsum(1 << order[:, :, ::-1], axis=2)[:, :, ::-1]  # outcomes from here on
        weights = np.take_along_axis(self.corners[:, None, :], bits, axis=2)
        layers = weights[:, :, 1:] * np.diff(ranked, axis=2)
        rest = layers.sum(axis=2)
        least = ranked[:, :, 0]
        error = slack(self.size) * (np.abs(least) + rest) + TINY
        return np.asarray(np.fmax(least + rest - error, least))

    def _least_kl(self, v: FloatArray) -> FloatArray:
        least, unit, scaled = _scaled(v)
        seen, best = self.centre > 0.0, least.copy()
        for shift in (*self._kl_shifts(scaled), np.zeros(len(v))):
            w = scaled + shift[:, None]
            logs = np.where(seen, np.log(np.where(seen, w, 1.0)), 0.0)
            power = (self.centre * logs).sum(axis=1) - self.radius
            error = slack(self.size) * (1.0 + (self.centre * np.abs(logs)).sum(axis=1)
                                        + self.radius)  # fmt: skip
            grown = np.exp(power - 8.0 * error) * (1.0 - 8.0 * UNIT)
            gain = grown - shift
            gain -= slack(self.size) * (grown + shift)
            found = least + unit * gain
            found -= slack(1) * (np.abs(least) + unit * np.abs(gain)) + TINY
            best = np.fmax(best, np.where(scaled.any(axis=1), found, least))
        return np.asarray(best)

    def _kl_shifts(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
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

    def _least_lp(self, v: FloatArray) -> FloatArray:
        _, level, pace = self._lp_point(v)
        q = self.exponent[:, None]
        cap = (self.centre / pace[:, None]) ** (q - 1.0)
        best = v.min(axis=1).copy()
        for w in (np.minimum(v - level[:, None], cap), v - level[:, None]):
            largest = np.abs(w).max(axis=1)
            unit = np.where(largest > 0.0, largest, 1.0)[:, None]
            ratio = np.abs(w) / unit
            dual = q / (q - 1.0)
            power = np.where(ratio > 0.0, ratio, 1.0) ** dual * (ratio > 0.0)
            norm = unit[:, 0] * power.sum(axis=1) ** (1.0 / dual[:, 0])
            error = slack(self.size) * (4.0 + dual[:, 0] + q[:, 0])
            mean, size = _mean(self.centre, w)
            found = level + (mean - self.radius * norm)
            size += np.abs(v - level[:, None]).max(axis=1)
            found -= error * (np.abs(level) + size + self.radius * norm) + TINY
            found -= self.faint * (largest + norm)
            best = np.fmax(best, found)
        return np.asarray(best)

    def _lp_point(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p = (centre - pace sign(v - t) |v - t|^(1/(q-1)))+ near the rim, t and pace."""
        least, unit, scaled = _scaled(v)
        power = 1.0 / (self.exponent[:, None] - 1.0)

        def at(pace: FloatArray) -> tuple[FloatArray, FloatArray]:
            low, high = np.zeros(len(v)), np.ones(len(v))
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                d = scaled - middle[:, None]
                p = np.maximum(self.centre - pace[:, None] * np.sign(d) * np.abs(d) ** power, 0.0)
                short = p.sum(axis=1) < 1.0
                low, high = np.where(short, middle, low), np.where(short, high, middle)
            return p, middle

        small, large = np.full(len(v), -80.0), np.full(len(v), 80.0)
        for _ in range(HALVINGS):
            middle = 0.5 * (small + large)
            p, _ = at(np.exp2(middle))
            size = np.abs(p - self.centre)
            inside = self._norm(size) < self.radius
            small, large = np.where(inside, middle, small), np.where(inside, large, middle)
        pace = np.exp2(small)
        p, level = at(pace)
        # in units of v: |v - t|^(1/(q-1)) = unit^(1/(q-1)) |scaled - level|^(1/(q-1))
        return p, least + unit * level, pace / unit ** power[:, 0]

    def _norm(self, size: FloatArray) -> FloatArray:
        """Return the norms of some vectors (B, X) of numbers >= 0."""
        largest = size.max(axis=1)
        ratio = size / np.where(largest > 0.0, largest, 1.0)[:, None]
        power = np.where(ratio > 0.0, ratio, 1.0) ** self.exponent[:, None] * (ratio > 0.0)
        return np.asarray(largest * power.sum(axis=1) ** (1.0 / self.exponent))

    def point(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p (B, X) with nearly the least mean of values (B, X), and how far off it is.

        Within that distance in L1 there is a member. A member near p has none of the outcomes of
        the greatest value if p has none and some member has none.
        """
        off = np.full(len(v), slack(self.size))
        if self.kind == SINGLETON:
            return self.centre, np.zeros(len(v))
        if self.kind == POLYTOPE:
            corners = self.corners.reshape(len(v), -1, self.size)
            best = np.einsum("bvx,bx->bv", corners, v).argmin(axis=1)
            return corners[np.arange(len(v)), best], self.faint
        order = np.argsort(v, axis=1, kind="stable")
        if self.kind == BOX:
            low, high = (np.take_along_axis(a, order, axis=1) for a in (self.lower, self.upper))
            free = np.maximum(1.0 - low.sum(axis=1), 0.0)
            room = high - low
            before = np.cumsum(room, axis=1) - room
            return _unsort(low + np.clip(free[:, None] - before, 0.0, room), order), off
        if self.kind == L1:
            held = np.take_along_axis(self.centre, order, axis=1)
            given = held[:, ::-1].copy()  # from the greatest value down
            given[:, -1] = 0.0
            before = np.cumsum(given, axis=1) - given
            taken = np.clip(0.5 * self.radius[:, None] - before, 0.0, given)[:, ::-1]
            p = np.maximum(held - taken, 0.0)
            p[:, 0] += taken.sum(axis=1)
            return _unsort(p, order), off
        return self._inner_point(v, order), off

    def _inner_point(self, v: FloatArray, order: IntArray) -> FloatArray:
        """Return points of curved and of subset sets, moved towards the centre until inside."""
        if self.kind == KL:
            p = self._kl_point(v)
        elif self.kind == LP:
            p = self._lp_point(v)[0]
        else:
            bits = np.cumsum(1 << order[:, ::-1], axis=1)[:, ::-1]
            weights = np.take_along_axis(self.corners, bits, axis=1)
            after = np.concatenate([weights[:, 1:], np.zeros((len(v), 1))], axis=1)
            p = _unsort(np.maximum(weights - after, 0.0), order)
        p = p / p.sum(axis=1, keepdims=True)
        done, known = p, self._inside(p)
        for share in (*(2.0**-k for k in range(50, 0, -2)), 1.0):
            moved = p + share * (self.centre - p)
            done = np.where(known[:, None], done, moved)
            known = known | self._inside(moved)
        return np.where(known[:, None], done, np.nan if self.kind == SUBSETS else self.centre)

    def _kl_point(self, v: FloatArray) -> FloatArray:
        (_, _, scaled), seen = _scaled(v), self.centre > 0.0
        w = np.where(seen, scaled + self._kl_shifts(scaled)[1][:, None], 1.0)
        p = self.centre / w
        p /= p.sum(axis=1, keepdims=True)
        # an outcome never seen, of the least value, takes all the ball has to give
        spare = self.radius - self._distance(p)
        unseen = ~seen & (scaled == 0.0)
        give = np.where(unseen.any(axis=1) & (spare > 0.0), -np.expm1(-np.maximum(spare, 0.0)), 0.0)
        first = unseen & (np.cumsum(unseen, axis=1) == 1)
        return np.asarray(p * (1.0 - give[:, None]) + first * give[:, None])

    def _distance(self, p: FloatArray) -> FloatArray:
        seen = self.centre > 0.0
        ratio = np.where(seen, self.centre, 1.0) / np.where(seen, p, 1.0)
        return np.asarray((self.centre * np.log(ratio)).sum(axis=1))

    def _inside(self, p: FloatArray) -> BoolArray:
        """Return whether everything as near as rounding to points (B, X) is in the set."""
        room = 2.0 * slack(self.size)
        if self.kind == KL:
            ratio = np.where(self.centre > 0.0, self.centre / np.where(p > 0.0, p, np.nan), 1.0)
            terms = self.centre * np.log(ratio)
            size = 1.0 + np.abs(terms).sum(axis=1) + self.radius
            return np.asarray(terms.sum(axis=1) + room * size <= self.radius)
        if self.kind == LP:
            size = np.abs(p - self.centre)
            return self._norm(size) + room * (1.0 + self.radius) <= self.radius
        masks = np.arange(1, self.corners.shape[1] - 1)
        held = p @ ((masks >> np.arange(self.size)[:, None]) & 1).astype(np.float64)
        return np.asarray(
            (held >= self.corners[:, 1:-1] + room).all(axis=1)
            | ((held >= self.corners[:, 1:-1]).all(axis=1) & (p == self.centre).all(axis=1))
        )


def _mean(p: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of p v over the last axis, and that of the sizes of its terms."""
    if v.shape[-1] > 16:
        terms = p * v
        return terms.sum(axis=-1), np.abs(terms).sum(axis=-1)
    total = p[..., 0] * v[..., 0]
    size = np.abs(total)
    for k in range(1, v.shape[-1]):
        term = p[..., k] * v[..., k]
        total += term
        size += np.abs(term)
    return total, size


def _scaled(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the least of values (B, X), their span or one, and (v - least) / span.

    What is nearly the least counts as that, which makes it no larger: logarithms of subnormal
    numbers are wild.
    """
    least, span = v.min(axis=1), np.ptp(v, axis=1)
    unit = np.where(span > 0.0, span, 1.0)
    scaled = (v - least[:, None]) / unit[:, None]
    scaled[scaled < VAGUE] = 0.0
    return least, unit, scaled


def _unsort(ranked: FloatArray, order: IntArray) -> FloatArray:
    found = np.empty_like(ranked)
    np.put_along_axis(found, order, ranked, axis=1)
    return found
