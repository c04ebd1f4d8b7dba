"""The uncertainty sets of a file: kinds and numbers, checked, then given one exact meaning.

Every float is the rational number that it is; docs/soundness.md has what it means. `Sets.settled`
decides the cases at the edges, once for all that compute with sets.

In fractions, where nothing is rounded, sets and products of sets are asked three things: which
outcomes nature can do without (`largest`, `can`), the least mean of some values (`minimum`), and
the vertices. Sets of outcomes are bit masks. `Undecided` is raised where these means do not tell;
the caller then has not proven anything.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from rfmdp.ragged import entries, segment, segment_lengths, segment_sum
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.margins import UNIT

SINGLETON, BOX, L1, LP, POLYTOPE = range(5)  # kinds of sets, as files number them
SUM_OFF = 1e-9  # distributions may miss the sum one by this much; they stand for d / sum d
MOST_VERTICES = 4096  # of one set
MOST_OUTCOMES = 12  # of a set whose vertices or supports are listed
MOST_PRODUCTS = 50_000  # of vertices of one row, in fractions

Vector = list[Fraction]
Numbers = tuple[Fraction, ...]
"""A number of several parts: the first decides, in ties the next."""
Objects = np.ndarray[Any, np.dtype[np.object_]]


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
    of_ball = np.where(exponent == 1.0, L1, np.where(np.isinf(exponent), BOX, LP))
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
        (np.where(ball, (exponent >= 1.0) & (point | (kind == of_ball)), ~np.isin(kind, (L1, LP))),
         "exponent: only balls have one, 1 for L1, infinite for a box, between these for Lp"),
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


class Undecided(Exception):
    """These means do not tell, or do not know something that the text names."""


class ExactSet:
    """One set in fractions.

    Points and polytopes have corners. Boxes and L1 balls are {p : p(A) >= low(A) for all A}, with
    `low` supermodular: for any order of the outcomes some member has low(A) of all last ones A at
    once. Lp balls have neither.
    """

    def __init__(self, sets: Sets, j: int) -> None:
        """Read set j; `sets` must come from `Sets.settled()`."""
        outcomes = segment(sets.ptr, j)
        self.kind = int(sets.kind[j])
        self.lower, self.upper = _fractions(sets.lower[outcomes]), _fractions(sets.upper[outcomes])
        self.size = len(self.lower)
        self.everything = (1 << self.size) - 1  # all outcomes
        nominal = _fractions(sets.nominal[outcomes])
        total = sum(nominal)
        self.centre = [x / total for x in nominal]
        self.exponent, radius = float(sets.exponent[j]), float(sets.radius[j])
        self.radius = Fraction(radius) / total if self.kind in (L1, LP) else Fraction(0)
        self.corners = [self.centre] if self.kind == SINGLETON else list[Vector]()
        if self.kind == POLYTOPE:
            table = _fractions(sets.listed(j))
            lines = [table[i : i + self.size] for i in range(0, len(table), self.size)]
            totals = [sum(line) for line in lines]
            self.corners = [[x / t for x in line] for line, t in zip(lines, totals, strict=True)]
        self._largest: dict[int, int] = {}

    def low(self, mask: int) -> Fraction:
        """Return the least probability of some outcomes of a box or an L1 ball."""
        if self.kind == BOX:
            rest = _sum(self.upper, self.everything & ~mask)
            return max(_sum(self.lower, mask), 1 - rest)
        held = _sum(self.centre, mask)
        return held if mask == self.everything else max(held - self.radius / 2, Fraction(0))

    @cached_property
    def possible(self) -> int:
        """The outcomes that some member has."""
        if self.kind == LP:
            return self.everything
        if self.corners:
            return _mask([any(column) for column in zip(*self.corners, strict=True)])
        return _mask([self.low(self.everything & ~(1 << k)) < 1 for k in range(self.size)])

    @cached_property
    def firm(self) -> bool:
        """Whether all members have the same outcomes."""
        held = (1 << k for k in range(self.size) if self.possible >> k & 1)
        return not any(self.largest(self.everything & ~outcome) for outcome in held)

    def largest(self, within: int) -> int:
        """Return all outcomes that members with outcomes within a mask only have; 0 if none.

        Members mix, so one of them has all of these.
        """
        if within not in self._largest:
            support = within & self.possible
            if self.corners:
                held = (_mask(corner) for corner in self.corners)
                support = functools.reduce(operator.or_, (s for s in held if not s & ~within), 0)
            elif not within or not self._avoids(within):
                support = 0
            self._largest[within] = support
        return self._largest[within]

    def _avoids(self, within: int) -> bool:
        """Return whether some member has only outcomes within a mask."""
        if self.kind != LP:
            return self.low(self.everything & ~within) == 0
        left = within.bit_count()
        gone = [x for k, x in enumerate(self.centre) if not within >> k & 1]
        # what the others receive is spread evenly: distances grow least
        return self.reaches([*gone, *[sum(gone, Fraction(0)) / left] * left])

    def reaches(self, distances: Vector) -> bool:
        """Return whether a ball has what is at some distances, by outcomes, from its centre."""
        moved = [abs(x) for x in distances if x]
        if not moved or max(moved) > self.radius:
            return not moved
        exponent = self.exponent
        if exponent <= 64 and exponent == int(exponent):
            return sum(x ** int(exponent) for x in moved) <= self.radius ** int(exponent)
        # ratios are at most one and rounded once; powers make that up to `exponent` times as much
        power = math.fsum(float(x / self.radius) ** exponent for x in moved)
        if abs(power - 1.0) <= 4.0 * UNIT * (exponent + 8.0) * (power + 1.0):
            raise Undecided
        return power < 1.0

    def minimum(self, values: Objects) -> Numbers:
        """Return the least mean of values (X, c): of their first parts, then of the next."""
        parts = [tuple(line) for line in values]
        if len(set(parts)) == 1:
            return parts[0]
        if self.corners:
            return min(tuple(np.array(corner, dtype=object) @ values) for corner in self.corners)
        if self.kind == LP:
            raise Undecided
        order = sorted(range(self.size), key=parts.__getitem__)
        total, rest = values[order[0]], self.everything
        for k, after in itertools.pairwise(order):
            rest &= ~(1 << k)
            if parts[after] > parts[k]:
                total = total + (values[after] - values[k]) * self.low(rest)
        return tuple(total)

    @cached_property
    def vertices(self) -> list[Vector]:
        """The extreme points, perhaps with some more members; none if they are not listed."""
        if self.kind == BOX:
            return box_vertices(self.lower, self.upper)
        if self.kind != L1:
            return self.corners
        faces = []
        for k in range(self.size):  # that receives what is taken from the others
            low, high = [Fraction(0)] * self.size, list(self.centre)
            low[k] = high[k] = min(self.centre[k] + self.radius / 2, Fraction(1))
            faces.append(box_vertices(low, high))
        return list(itertools.chain(*faces)) if all(faces) else []


def box_vertices(lower: Vector, upper: Vector) -> list[Vector]:
    """Return the points of a box where all entries but one are at a bound; none if too many."""
    size = len(lower)
    if size > MOST_OUTCOMES:
        return []
    one = math.lcm(*(x.denominator for x in (*lower, *upper)))  # integers are faster
    low, high = ([x.numerator * (one // x.denominator) for x in end] for end in (lower, upper))
    corners: dict[tuple[int, ...], None] = {}
    for k in range(size):
        ends = [sorted({a, b}) for a, b in zip(low, high, strict=True)]
        ends[k] = [0]
        for chosen in itertools.product(*ends):
            rest = one - sum(chosen)
            if low[k] <= rest <= high[k]:
                corners[(*chosen[:k], rest, *chosen[k + 1 :])] = None
        if len(corners) > MOST_VERTICES:
            return []
    as_fraction = {x: Fraction(x, one) for x in itertools.chain(*corners)}
    return [[as_fraction[x] for x in v] for v in corners]


class ExactRows:
    """Products of exact sets: what a row can avoid and reach, and its least mean."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self._sets: dict[int, ExactSet] = {}
        self._can: dict[tuple[tuple[int, ...], bytes, bytes], bool] = {}

    def __getitem__(self, j: int) -> ExactSet:
        if j not in self._sets:
            self._sets[j] = ExactSet(self.sets, j)
        return self._sets[j]

    def can(self, ids: tuple[int, ...], allowed: BoolArray, hit: BoolArray) -> bool:
        """Return whether some product has allowed successors (K,) only, and one that counts."""
        key = ids, allowed.tobytes(), hit.tobytes()
        if key not in self._can:
            shape = tuple(self[j].size for j in ids)
            self._can[key] = self._search(list(ids), allowed.reshape(shape), hit.reshape(shape))
        return self._can[key]

    def _search(self, ids: list[int], allowed: BoolArray, hit: BoolArray) -> bool:
        """Try all supports of all sets but the last; that one takes all it may."""
        if not ids:
            return bool(allowed) and bool(hit)
        if not allowed.any() or not hit.any():
            return False
        # sets whose members all have the same outcomes first
        free = [not self[j].firm for j in ids]
        place = free.index(False) if len(ids) > 1 and not all(free) else 0
        uset, rest = self[ids[place]], ids[:place] + ids[place + 1 :]
        allowed, hit = np.moveaxis(allowed, place, 0), np.moveaxis(hit, place, 0)
        if not rest:
            support = uset.largest(_mask(allowed.tolist()))
            return bool(support & _mask((hit & allowed).tolist()))
        supports = {uset.possible}
        if free[place]:
            if uset.size > MOST_OUTCOMES:
                raise Undecided
            supports = {uset.largest(mask) for mask in range(1, 1 << uset.size)} - {0}
        for support in supports:
            taken = [k for k in range(uset.size) if support >> k & 1]
            inside, counts = allowed[taken].all(axis=0), hit[taken].any(axis=0)
            if self._search(rest, np.asarray(inside), np.asarray(counts)):
                return True
        return False

    def minimum(self, ids: tuple[int, ...], values: Sequence[Numbers]) -> Numbers:
        """Return the least mean of values (K, c): of their first parts, then of the next.

        Of infinite values, say how many times infinity they are, then what is left.
        """
        # points first, by their kinds
        order = sorted(range(len(ids)), key=lambda i: self[ids[i]].kind)
        count = math.prod(len(self[ids[i]].vertices) for i in order[:-1])
        if not 0 < count <= MOST_PRODUCTS:
            raise Undecided
        tensor = np.array(values, dtype=object).reshape(*(self[j].size for j in ids), -1)
        return self._least([ids[i] for i in order], tensor.transpose(*order, len(ids)))

    def _least(self, ids: list[int], tensor: Objects) -> Numbers:
        """Return the least mean; all vertices of all sets but the last are tried."""
        if not ids:
            return tuple(tensor)
        if len(ids) == 1:
            return self[ids[0]].minimum(tensor)
        weights = np.array(self[ids[0]].vertices, dtype=object)
        return min(self._least(ids[1:], np.tensordot(p, tensor, (0, 0))) for p in weights)


def _fractions(numbers: FloatArray) -> Vector:
    return [Fraction(x) for x in numbers.tolist()]


def _mask(held: Iterable[object]) -> int:
    return sum(1 << k for k, x in enumerate(held) if x)


def _sum(numbers: Vector, mask: int) -> Fraction:
    return sum((x for k, x in enumerate(numbers) if mask >> k & 1), Fraction(0))
