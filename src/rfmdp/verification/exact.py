"""Sets and products of sets in fractions: nothing is rounded.

Asked are three things: which outcomes nature can do without (`largest`, `can`), the least mean of
some values (`minimum`), and the vertices. Sets of outcomes are bit masks. `Undecided` is raised
where these means do not tell; the caller then has not proven anything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from rfmdp.ragged import segment
from rfmdp.types import BoolArray, FloatArray
from rfmdp.verification.sets import BOX, KL, L1, LP, POLYTOPE, SINGLETON, SUBSETS, Sets

MOST_VERTICES = 4096  # of one set
MOST_OUTCOMES = 12  # of a set whose vertices or supports are listed
MOST_PRODUCTS = 50_000  # of vertices of one row, in fractions

Vector = list[Fraction]


class Undecided(Exception):
    """These means do not tell."""


class ExactSet:
    """One set in fractions."""

    def __init__(self, sets: Sets, j: int) -> None:
        """Take set j of sets that are settled."""
        part, self.kind = segment(sets.ptr, j), int(sets.kind[j])
        self.lower, self.upper = _fractions(sets.lower[part]), _fractions(sets.upper[part])
        self.size = len(self.lower)
        nominal = _fractions(sets.nominal[part])
        total = sum(nominal)
        self.centre = [x / total for x in nominal]
        self.exponent, radius = float(sets.exponent[j]), float(sets.radius[j])
        self.radius = Fraction(radius) / total if self.kind in (L1, LP, KL) else Fraction(0)
        self.table, self.corners = _fractions(sets.listed(j)), list[Vector]()
        if self.kind == POLYTOPE:
            lines = [self.table[i : i + self.size] for i in range(0, len(self.table), self.size)]
            self.corners = [[x / sum(line) for x in line] for line in lines]
        self._largest: dict[int, int] = {}
        self._vertices: list[Vector] | None = None

    @property
    def everything(self) -> int:
        """All outcomes."""
        return (1 << self.size) - 1

    @property
    def certain(self) -> int:
        """The outcomes that every member has."""
        return sum(
            1 << k for k in range(self.size) if not self.largest(self.everything & ~(1 << k))
        )

    @property
    def firm(self) -> bool:
        """Whether all members have the same outcomes."""
        return self.certain == self.largest(self.everything)

    def largest(self, within: int) -> int:
        """Return the outcomes of some member that has only outcomes within a mask; 0 if none.

        Members mix, so there is one that has all that any of them has.
        """
        if within not in self._largest:
            self._largest[within] = self._find_largest(within)
        return self._largest[within]

    def _find_largest(self, within: int) -> int:
        inside = [k for k in range(self.size) if within >> k & 1]
        outside = [k for k in range(self.size) if not within >> k & 1]
        if not inside:
            return 0
        if self.kind in (SINGLETON, KL):
            if any(self.centre[k] > 0 for k in outside):
                return 0
            return within if self.kind == KL else _support(self.centre)
        if self.kind == POLYTOPE:
            held = [_support(v) for v in self.corners]
            return _union(s for s in held if not s & ~within)
        if self.kind == BOX:
            if any(self.lower[k] > 0 for k in outside) or sum(self.upper[k] for k in inside) < 1:
                return 0
            spare = 1 - sum(self.lower)
            return _union(1 << k for k in inside if self.upper[k] > 0 and self.lower[k] + spare > 0)
        if self.kind == SUBSETS:
            if self.table[self.everything & ~within] > 0:
                return 0
            self._need_supermodular()
            return _union(1 << k for k in inside if self.table[self.everything & ~(1 << k)] < 1)
        return within if self._ball_empties(outside, len(inside)) else 0

    def _ball_empties(self, outside: list[int], left: int) -> bool:
        """Return whether a ball of positive radius has a member without some outcomes."""
        gone = [self.centre[k] for k in outside if self.centre[k] > 0]
        if self.kind == L1:
            return 2 * sum(gone) <= self.radius
        if not gone:
            return True
        # what the others receive is spread evenly: distances grow least
        moved = [*gone, *[sum(gone, Fraction(0)) / left] * left]
        if self.exponent <= 64 and self.exponent == int(self.exponent):
            whole = int(self.exponent)
            return sum(x**whole for x in moved) <= self.radius**whole
        with localcontext() as context:
            context.prec, context.Emin, context.Emax = 60, -(10**9), 10**9
            each = [Decimal(x.numerator) / Decimal(x.denominator) for x in moved]
            radius = Decimal(self.radius.numerator) / Decimal(self.radius.denominator)
            power = Decimal(self.exponent)
            far = sum(((x / radius) ** power for x in each), Decimal(0))
            if abs(far - 1) < Decimal(10) ** -40:
                raise Undecided
            return far < 1

    def _need_supermodular(self) -> None:
        """Raise `Undecided` unless the greedy members of a subset set are members."""
        table = self.table
        for a in range(len(table)):
            free = [1 << k for k in range(self.size) if not a >> k & 1]
            for i, k in itertools.combinations(free, 2):
                if table[a | i | k] + table[a] < table[a | i] + table[a | k]:
                    raise Undecided

    def minimum(self, values: Sequence[Fraction]) -> Fraction:
        """Return the least mean of some values."""
        if self.kind == SINGLETON:
            return _dot(self.centre, values)
        if len(set(values)) == 1:
            return values[0]
        if self.kind == POLYTOPE:
            return min(_dot(v, values) for v in self.corners)
        if self.kind == BOX:
            return max(self._box_dual(values, level) for level in set(values))
        if self.kind == L1:
            least = min(values)
            above = [v - least for v in values]
            return least + max(self._l1_dual(above, level) for level in {*above, Fraction(0)})
        if self.kind == SUBSETS:
            self._need_supermodular()
            order = sorted(range(self.size), key=lambda k: values[k])
            total, rest = values[order[0]], self.everything
            for k, after in itertools.pairwise(order):
                rest &= ~(1 << k)
                total += (values[after] - values[k]) * self.table[rest]
            return total
        raise Undecided

    def _box_dual(self, values: Sequence[Fraction], level: Fraction) -> Fraction:
        terms = zip(self.lower, self.upper, values, strict=True)
        return level + sum((low if v > level else high) * (v - level) for low, high, v in terms)

    def _l1_dual(self, above: Sequence[Fraction], level: Fraction) -> Fraction:
        return _dot(self.centre, [min(v, level) for v in above]) - level * self.radius / 2

    def vertices(self) -> list[Vector]:
        """Return the extreme points, perhaps with some more members."""
        if self._vertices is None:
            self._vertices = self._list_vertices()
        return self._vertices

    def _list_vertices(self) -> list[Vector]:
        if self.kind == SINGLETON:
            return [self.centre]
        if self.kind == POLYTOPE:
            return self.corners
        if self.kind == BOX:
            return box_vertices(self.lower, self.upper)
        if self.kind == L1:
            found = []
            for k in range(self.size):  # that receives what is taken from the others
                low, high = [Fraction(0)] * self.size, list(self.centre)
                low[k] = high[k] = min(self.centre[k] + self.radius / 2, Fraction(1))
                found += box_vertices(low, high)
            return found
        raise Undecided

    def matrix(self) -> FloatArray:
        """Return the vertices (V, X), each number rounded once; what is positive remains so."""
        return np.array([[float(x) or 5e-324 * bool(x) for x in line] for line in self.vertices()])


def box_vertices(lower: Vector, upper: Vector) -> list[Vector]:
    """Return the points of a box where all entries but one are at a bound, each once."""
    size = len(lower)
    if size > MOST_OUTCOMES:
        raise Undecided
    one = math.lcm(*(x.denominator for x in (*lower, *upper)))  # integers are faster
    low, high = ([x.numerator * (one // x.denominator) for x in end] for end in (lower, upper))
    found: dict[tuple[int, ...], None] = {}
    for k in range(size):
        ends = [
            [0] if i == k else [a] if a == b else [a, b]
            for i, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        for chosen in itertools.product(*ends):
            rest = one - sum(chosen)
            if low[k] <= rest <= high[k]:
                found[(*chosen[:k], rest, *chosen[k + 1 :])] = None
        if len(found) > MOST_VERTICES:
            raise Undecided
    as_fraction = {x: Fraction(x, one) for x in itertools.chain(*found)}
    return [[as_fraction[x] for x in v] for v in found]


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
        """Return whether some product has allowed successors (K,) only, and one that counts.

        Successors are in C order of the outcomes of the sets.
        """
        key = ids, np.packbits(allowed).tobytes(), np.packbits(hit).tobytes()
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
        own, rest = self[ids[place]], ids[:place] + ids[place + 1 :]
        allowed, hit = np.moveaxis(allowed, place, 0), np.moveaxis(hit, place, 0)
        if not rest:
            found = own.largest(_mask(allowed))
            return bool(found & _mask(hit & allowed))
        for support in self._supports(own, free[place]):
            taken = [k for k in range(own.size) if support >> k & 1]
            inside, counts = np.asarray(allowed[taken].all(axis=0)), hit[taken].any(axis=0)
            if self._search(rest, inside, np.asarray(counts)):
                return True
        return False

    def _supports(self, own: ExactSet, free: bool) -> set[int]:
        if not free:
            return {own.largest(own.everything)}
        if own.size > MOST_OUTCOMES:
            raise Undecided
        return {own.largest(mask) for mask in range(1, 1 << own.size)} - {0}

    def minimum(
        self, ids: tuple[int, ...], values: list[Fraction], bad: BoolArray | None = None
    ) -> Fraction:
        """Return the least mean of values (K,) over products that avoid the bad ones."""
        bad = np.zeros(len(values), dtype=np.bool_) if bad is None else bad
        order = sorted(range(len(ids)), key=lambda i: self[ids[i]].kind != SINGLETON)
        count = 1
        for i in order[: len(order) if bad.any() else -1]:
            count *= len(self[ids[i]].vertices())
        if count > MOST_PRODUCTS:
            raise Undecided
        shape = tuple(self[j].size for j in ids)
        tensor, wrong = np.array(values, dtype=object).reshape(shape), bad.reshape(shape)
        ordered = [ids[i] for i in order]
        least = self._least(ordered, tensor.transpose(order), wrong.transpose(order))
        if least is None:
            raise Undecided
        return least

    def _least(
        self, ids: list[int], tensor: np.ndarray[tuple[int, ...], np.dtype[np.object_]],
        bad: BoolArray,
    ) -> Fraction | None:  # fmt: skip
        if not ids:
            return None if bool(bad) else Fraction(tensor.item())
        if len(ids) == 1 and not bad.any():
            return self[ids[0]].minimum(tensor.tolist())
        best = None
        for vertex in self[ids[0]].vertices():
            weights = np.array(vertex, dtype=object)
            taken = [k for k, x in enumerate(vertex) if x > 0]
            each = self._least(
                ids[1:], np.tensordot(weights, tensor, (0, 0)), np.asarray(bad[taken].any(axis=0))
            )
            if each is not None and (best is None or each < best):
                best = each
        return best


def _fractions(numbers: FloatArray) -> Vector:
    return [Fraction(x) for x in numbers.tolist()]


def _dot(p: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    return sum((x * v for x, v in zip(p, values, strict=True) if x), Fraction(0))


def _support(p: Sequence[Fraction]) -> int:
    return sum(1 << k for k, x in enumerate(p) if x > 0)


def _union(masks: object) -> int:
    union = 0
    for mask in masks:  # type: ignore[attr-defined]
        union |= mask
    return union


def _mask(chosen: BoolArray) -> int:
    return sum(1 << k for k, x in enumerate(chosen.tolist()) if x)
