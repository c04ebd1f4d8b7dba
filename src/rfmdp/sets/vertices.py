"""Vertices of marginal sets: exact supports, numbers rounded once.

Vertices of polytopes are those that were given. Those of boxes and L1 balls are found by integers:

A vertex of {lower <= p <= upper, sum p = 1} has every entry at a bound except at most one, the
*fractional* entry. So it is a set U of entries at their upper bound, of total width w(U), where
the mass to give out, R = 1 - sum(lower), is either used up (w(U) = R), or leaves a rest that is
strictly less than the width of one further entry.

Coordinate after coordinate, all partial choices that can still be completed are extended at
once. Every partial choice kept is the beginning of some vertex of the box in which its
fractional entry is free again, so at most X * V of them exist per coordinate (X outcomes, V
vertices): no scan of 2^X candidates.

All of this is done with integers: the numbers of a box times a power of two, in 64 bits where
they fit and else in Python's. So a vertex has exactly the support that it should have. Where
widths use up the mass only nearly (0.2 times five misses one by an ulp), what is one vertex to
the eye is several, an ulp apart. Those with equal supports are merged, which moves an entry by at
most `rounding.MERGED`; `rounding.TERM` pays for that.

`box_vertices` are those of one box in fractions, slow and obvious: for thresholds that a value
meets exactly, where nature's best product is the best of all products of vertices (Theorem 1 of
the paper), and as the twin of kernels in tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.ragged import entries, owners, segment_lengths, starts
from rfmdp.rounding import MERGED
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

Vector: TypeAlias = tuple[Fraction, ...]
VERTEX_LIMIT = 1 << 18  # of one set
CHUNK = 1 << 18
LOWER, FRACTION, UPPER = 0, 1, 2


def vertices_bulk(
    marginals: Marginals, which: IntArray, limit: int = VERTEX_LIMIT
) -> tuple[IntArray, FloatArray]:
    """Return the vertices of some marginals (N,) of any kind: pointers (N + 1,), and all entries.

    They are the extreme points, merged where rounding cannot tell them apart; of a polytope, all
    points that were given. Entries of one marginal are its (V, X) array in C order. Sets of one
    kind and size are treated together; only polytopes are taken one by one.

    Raises
    ------
    UnsupportedError
        For sets without finitely many vertices (Lp balls with 1 < p < inf), or with more than
        `limit`.
    """
    which = np.asarray(which, dtype=np.int64)
    sizes, kinds = marginals.sizes[which], marginals.kind[which]
    groups: list[tuple[IntArray, FloatArray]] = []
    for kind, size in sorted({(int(k), int(x)) for k, x in zip(kinds, sizes, strict=True)}):
        place = np.flatnonzero((kinds == kind) & (sizes == size))
        item, points = _same_kind(marginals, which[place], Kind(kind), size, limit)
        groups.append((place[item], points))
    counts = np.zeros(len(which), dtype=np.int64)
    for place, _ in groups:
        np.add.at(counts, place, 1)
    vertex_ptr = starts(counts * sizes)
    flat = np.empty(vertex_ptr[-1])
    for place, points in groups:
        # rank of a vertex within its marginal: places ascend within a part
        rank = np.arange(len(place)) - np.searchsorted(place, place)
        start = vertex_ptr[place] + rank * points.shape[1]
        flat[start[:, None] + np.arange(points.shape[1])] = points
    return vertex_ptr, flat


def _same_kind(
    marginals: Marginals, which: IntArray, kind: Kind, size: int, limit: int
) -> tuple[IntArray, FloatArray]:
    """Return (position in `which`, points) for marginals of one kind and size."""
    at = marginals.outcome_ptr[which][:, None] + np.arange(size)
    match kind:
        case Kind.SINGLETON:
            return np.arange(len(which)), marginals.nominal[at]
        case Kind.BOX:
            return _points(int_boxes(marginals.lower[at], marginals.upper[at]), limit)
        case Kind.L1:
            return _points(receiver_boxes(marginals.nominal[at], marginals.radius[which]), limit)
        case Kind.POLYTOPE:
            counts = segment_lengths(marginals.corner_ptr)[which] // size
            listed = marginals.corners[entries(marginals.corner_ptr, which)]
            return owners(starts(counts)), listed.reshape(-1, size)
    raise UnsupportedError(
        f"Marginal {which[0]}, an LpBall with exponent {marginals.exponent[which[0]]:g} has no "
        "finite vertices; use an inner solver that needs only the minimiser or bounds, or an "
        "L1 or L-infinity ball."
    )


def _points(groups: list[tuple[IntArray, Boxes]], limit: int) -> tuple[IntArray, FloatArray]:
    """Return (set, vertices) of groups of boxes, each with the set that it belongs to.

    They are built in pieces that keep the memory in between small.
    """
    pieces = []
    for owner, boxes in groups:
        size = boxes.base.shape[1]
        most = size * math.comb(size - 1, (size - 1) // 2)
        step = max(1, CHUNK // most)
        for start in range(0, len(owner), step):
            part = slice(start, start + step)
            some = Boxes(boxes.base[part], boxes.width[part], boxes.mass[part], boxes.bits)
            box, points = box_points(some, step * limit)
            pieces.append((owner[start + box], points))
    owner, points = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    if np.bincount(owner).max() > limit:
        raise _too_many(points.shape[1], limit)
    if len(groups) > 1:
        order = np.argsort(owner, kind="stable")
        owner, points = owner[order], points[order]
    return owner, points


class Boxes(NamedTuple):
    """N boxes of X entries whose numbers are integers, in units of 2^-bits.

    An entry lies between base and base + width, and the entries exceed their bases by `mass` in
    all. An L1 ball is one box per receiver, see `receiver_boxes`.
    """

    base: AnyArray  # (N, X)
    width: AnyArray  # (N, X) >= 0
    mass: AnyArray  # (N,) 0 <= mass <= sum of widths
    bits: int


def int_boxes(lower: FloatArray, upper: FloatArray) -> list[tuple[IntArray, Boxes]]:
    """Return boxes (N, X) in integers, as (their numbers, boxes) for each size of integers.

    Boxes have to be as `boxes.settled_boxes` leaves them. One with a single member has widths
    of zero.
    """
    groups = []
    for which, bits in _by_bits(np.concatenate([lower, upper], axis=1), lower.shape[1]):
        low, high = to_units(lower[which], bits), to_units(upper[which], bits)
        width, one = high - low, 1 << bits
        mass = one - low.sum(axis=1)
        # rounding may leave more or less than one in a box with one member
        single = (mass <= 0) | (high.sum(axis=1) <= one)
        width[single], mass[single] = 0, 0
        groups.append((which, Boxes(low, width, mass, bits)))
    return groups


def receiver_boxes(nominal: FloatArray, radius: FloatArray) -> list[tuple[IntArray, Boxes]]:
    """Return for L1 balls (N, X) and radii (N,) boxes that have all their vertices.

    Nature moves the mass m = radius / 2 (or all that is elsewhere, if that is less) onto one
    *receiving* outcome i and takes it from the others, so the vertices of the ball are those of

        {q : q_i = nominal_i + m,  0 <= q_j <= nominal_j for j != i,  sum q = sum nominal}

    for every receiver i. All of them are extreme: give i the smallest value and the others
    values above it in the order that makes the removal unique. Different receivers give
    different points, because only the receiver lies above its nominal probability.
    """
    size, groups = nominal.shape[1], []
    reach = np.minimum(radius, 2.0)
    for which, unit_bits in _by_bits(np.column_stack([nominal, reach]), size + 2):
        bits = unit_bits + 1  # so that half of the radius is whole
        centre, half = to_units(nominal[which], bits), to_units(reach[which], unit_bits)
        still = (half == 0) | (size == 1)
        ptr = starts(np.where(still, 1, size))
        ball = owners(ptr)
        row = np.arange(len(ball))
        receiver, fixed = row - ptr[ball], still[ball]
        width = centre[ball]
        width[row, receiver] = 0
        others = width.sum(axis=1)
        whole = (half[ball] >= others) | (reach[which[ball]] == 2.0)
        mass, base = np.where(whole, 0, others - half[ball]), np.zeros_like(width)
        base[row, receiver] = np.where(whole, 1 << bits, centre[ball, receiver] + half[ball])
        base[fixed], width[fixed], mass[fixed] = centre[ball[fixed]], 0, 0
        groups.append((which[ball], Boxes(base, width, mass, bits)))
    return groups


def box_points(boxes: Boxes, limit: int) -> tuple[IntArray, FloatArray]:
    """Return (box, points): the vertices (V, X), box after box, lexicographic within a box.

    Entries at a bound are that bound; a fractional entry is rounded once, and is positive.

    Raises
    ------
    UnsupportedError
        If the boxes have more than `limit` vertices together.
    """
    box, choice, remaining_mass = _choices(boxes.width, boxes.mass, limit)
    units = boxes.base[box] + np.where(choice == UPPER, boxes.width[box], 0)
    row, column = np.nonzero(choice == FRACTION)
    units[row, column] += remaining_mass[row]
    points = to_floats(units, boxes.bits)
    keep = _distinct(boxes, box, choice, remaining_mass, points)
    return box[keep], points[keep]


def _distinct(
    boxes: Boxes, box: IntArray, choice: AnyArray, remaining_mass: AnyArray, points: FloatArray
) -> BoolArray:
    """Return one of each group of vertices that differ by `MERGED` and have equal supports."""
    row, column = np.nonzero(choice == FRACTION)
    near = to_units(np.array([MERGED]), boxes.bits)[0]
    to_lower = remaining_mass[row] <= near
    to_upper = boxes.width[box[row], column] - remaining_mass[row] <= near
    snapped = to_lower | to_upper
    keep = np.ones(len(box), dtype=np.bool_)
    if not snapped.any():
        return keep
    code = choice.copy()
    code[row[snapped], column[snapped]] = np.where(to_lower[snapped], LOWER, UPPER)
    doubt = np.zeros(len(boxes.base), dtype=np.bool_)
    doubt[box[row[snapped]]] = True
    # two vertices with a fraction that is near no bound are different ones
    snapped_only = np.flatnonzero(doubt[box] & ~np.any(code == FRACTION, axis=1))
    flags = np.packbits(
        np.hstack([code[snapped_only] == UPPER, points[snapped_only] > 0.0]), axis=1
    )
    columns = [*flags.T, box[snapped_only]]
    order = np.lexsort(columns)  # stable: of equal vertices the first stays
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.any([c[order[1:]] != c[order[:-1]] for c in columns], axis=0)
    keep[snapped_only] = False
    keep[snapped_only[order[new]]] = True
    return keep


def to_units(values: FloatArray, bits: int) -> AnyArray:
    """Return numbers in [0, 2] as integers in units of 2^-bits, rounded to the nearest one."""
    if bits <= 62:
        units: AnyArray = np.rint(np.ldexp(values, bits)).astype(np.int64)
        return units
    long: AnyArray = np.empty(values.size, dtype=object)
    ratios = map(float.as_integer_ratio, values.ravel().tolist())
    long[:] = [(above << bits) // below for above, below in ratios]
    return long.reshape(values.shape)


def to_floats(units: AnyArray, bits: int) -> FloatArray:
    """Return integers in units of 2^-bits as floats, rounded once; positive ones stay positive."""
    if units.dtype != object:
        return np.ldexp(units.astype(np.float64), -bits)
    one = 1 << bits
    least = math.ulp(0.0)
    floats = [max(int(x) / one, least) if x else 0.0 for x in units.ravel()]
    return np.array(floats, dtype=np.float64).reshape(units.shape)


def _by_bits(numbers: FloatArray, terms: int) -> list[tuple[IntArray, int]]:
    """Group lines (N, C) by the units that their numbers fit: 64-bit integers, or Python's.

    Sums of `terms` numbers fit, too.
    """
    short = 62 - math.ceil(math.log2(terms + 1))
    scaled = np.ldexp(numbers, short)
    fits = np.all(scaled == np.rint(scaled), axis=1)
    groups = [(np.flatnonzero(fits), short)]
    long = np.flatnonzero(~fits)
    if len(long):
        least = float(np.min(numbers[long], where=numbers[long] > 0.0, initial=1.0))
        # Python's integers: sums in units as small as these may not fit into 64 bits
        groups.append((long, max(63, 54 - math.frexp(least)[1])))
    return [(which, bits) for which, bits in groups if len(which)]


def _choices(widths: AnyArray, mass: AnyArray, limit: int) -> tuple[IntArray, AnyArray, AnyArray]:
    """Return (box, choice, mass) of all vertices: choice (V, X) of LOWER, FRACTION, UPPER."""
    boxes, size = widths.shape
    # rest[:, k]: what the entries from k on can still take
    rest = np.zeros((boxes, size + 1), dtype=widths.dtype)
    rest[:, :-1] = np.cumsum(widths[:, ::-1], axis=1)[:, ::-1]
    box = np.arange(boxes)
    remaining_mass = mass
    fraction = np.zeros(boxes, dtype=widths.dtype)
    trail = []
    for k in range(size):
        width = widths[box, k]
        next_mass = np.stack([remaining_mass, remaining_mass, remaining_mass - width], axis=1)
        next_fraction = np.stack([fraction, width, fraction], axis=1)
        open_ = next_fraction > 0
        # with a fractional entry of width f the mass left at the end lies strictly in (0, f)
        low = np.where(open_, 1, 0)
        high = np.where(open_, next_fraction - 1, 0) + rest[box, k + 1][:, None]
        keep = (low <= next_mass) & (next_mass <= high)
        keep[:, FRACTION] &= (fraction == 0) & (width > 0)
        keep[:, UPPER] &= width > 0
        child = np.flatnonzero(keep)
        if len(child) > (limit if k == size - 1 else size + 4 * limit):
            raise _too_many(size, limit)
        parent = child // 3
        trail.append((parent, (child % 3).astype(np.int8)))
        box = box[parent]
        remaining_mass = next_mass.ravel()[child]
        fraction = next_fraction.ravel()[child]
    choice, node = np.empty((len(box), size), dtype=np.int8), np.arange(len(box))
    for k, (parent, chosen) in reversed(list(enumerate(trail))):
        choice[:, k] = chosen[node]
        node = parent[node]
    return box, choice, remaining_mass


def _too_many(size: int, limit: int) -> UnsupportedError:
    return UnsupportedError(
        f"A set with {size} outcomes has more vertices than the limit of {limit}; use an inner "
        "solver that needs none."
    )


def product(points: Sequence[Sequence[Fraction]]) -> Vector:
    """Return the product distribution of independent marginals, in C order."""
    return tuple(math.prod(entries, start=Fraction(1)) for entries in itertools.product(*points))


def box_vertices(low: Vector, high: Vector) -> list[Vector]:
    """Return the vertices of {low <= p <= high, sum p = 1}: all entries but one at a bound."""
    ends = [sorted({l, u}) for l, u in zip(low, high, strict=True)]
    corners = set()
    for k in range(len(low)):
        for rest in itertools.product(*ends[:k], *ends[k + 1 :]):
            free = 1 - sum(rest, Fraction(0))
            if low[k] <= free <= high[k]:
                corners.add((*rest[:k], free, *rest[k:]))
    return sorted(corners)
