"""Vertices of marginal sets: built directly, and counted without building them.

Boxes are done by `boxes`. An L1 ball reduces to boxes. Nature moves the mass m = radius / 2
(or all that is elsewhere, if that is less) onto one *receiving* outcome i and takes it from
the others, so the vertices of the ball are those of

    {p : p_i = nominal_i + m,  0 <= p_j <= nominal_j for j != i,  sum p = 1}

for every receiver i. All of them are extreme: give i the smallest value and the others
values above it in the order that makes the removal unique. Different receivers give
different points, because only the receiver lies above its nominal probability.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.sets.bounds import bounds
from rfmdp.sets.boxes import GRID, box_vertices, count_box_vertices, grid_tolerance
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.sets.hull import extreme_points
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import FloatArray, IntArray

VERTEX_LIMIT = 5_000_000
CHUNK = 1 << 18
TRIFLE = 1e-12  # as in `outer.supports`


@singledispatch
def vertices(uset: object) -> FloatArray:
    """Return the extreme points of a set, (V, X), each once.

    Raises
    ------
    UnsupportedError
        For sets without finitely many vertices (Lp balls with 1 < p < inf), and for more than
        `VERTEX_LIMIT` vertices.

    Examples
    --------
    >>> from rfmdp.sets import L1Ball
    >>> vertices(L1Ball([0.5, 0.5], 0.5)).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    raise UnsupportedError(
        f"{type(uset).__name__} has no vertices(); register one or use an inner solver "
        "that needs only bounds()."
    )


@singledispatch
def count_vertices(uset: object) -> int:
    """Return the number of extreme points of a set; boxes and L1 balls build none of them.

    Examples
    --------
    >>> from rfmdp.sets import Interval
    >>> count_vertices(Interval([0.0] * 10, [0.2] * 10))
    252
    """
    return len(vertices(uset))


def supported_vertices(uset: object) -> FloatArray:
    """Return the vertices, with 0 where rounding left a trifle at an outcome that is empty.

    Which outcomes a vertex takes matters to what can happen for ever. Entries that are bounds
    themselves, or that were given as vertices, stay as they are, however small.
    """
    found = vertices(uset)
    if isinstance(uset, Singleton | Polytope):
        return found
    lower, upper = bounds(uset)
    trifle = (found < TRIFLE) & (lower == 0.0) & (found != upper)
    return np.where(trifle, 0.0, found)


@vertices.register
def _(uset: Singleton) -> FloatArray:
    return uset.nominal[None, :].copy()


@vertices.register
def _(uset: Polytope) -> FloatArray:
    return extreme_points(uset.vertices)


@vertices.register
def _(uset: Interval) -> FloatArray:
    lower, upper = bounds(uset)
    return _box_points(lower[None, :], upper[None, :])[1]


@count_vertices.register
def _(uset: Interval) -> int:
    return count_box_vertices(*bounds(uset))


@vertices.register
def _(uset: LpBall) -> FloatArray:
    if uset.exponent == 1.0:
        return _ball_points(uset.nominal[None, :], np.array([uset.radius]))[1]
    _require_finitely_many(uset, "LpBall")
    lower, upper = bounds(uset)
    return _box_points(lower[None, :], upper[None, :])[1]


@count_vertices.register
def _(uset: LpBall) -> int:
    if uset.exponent == 1.0:
        _, lower, upper = _receiver_boxes(uset.nominal[None, :], np.array([uset.radius]))
        return sum(count_box_vertices(lower[i], upper[i]) for i in range(len(lower)))
    _require_finitely_many(uset, "LpBall")
    return count_box_vertices(*bounds(uset))


def box_vertices_bulk(marginals: Marginals, which: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of many boxes (kinds BOX and SINGLETON) in two arrays.

    Parameters
    ----------
    marginals : Marginals
        The packed sets.
    which : (N,) array
        Identifiers of the marginals wanted, in the order wanted.

    Returns
    -------
    vertex_ptr : (N + 1,) array
        Vertices of `which[k]` are the entries `vertex_ptr[k] : vertex_ptr[k + 1]` of
        `vertices_flat`, in C order of their (V, X) array.
    vertices_flat : array
        All entries.

    Raises
    ------
    UnsupportedError
        If a marginal is of another kind; `vertices_bulk` takes them all.
    """
    which = np.asarray(which, dtype=np.int64)
    other = ~np.isin(marginals.kind[which], [Kind.BOX, Kind.SINGLETON])
    if other.any():
        j = int(which[np.flatnonzero(other)[0]])
        raise UnsupportedError(
            f"Marginal {j} is a {type(marginals[j]).__name__}, not a box; use vertices_bulk."
        )
    return vertices_bulk(marginals, which)


def vertices_bulk(marginals: Marginals, which: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of many marginals of any kind, laid out as by `box_vertices_bulk`.

    Sets of one kind and size are treated together, without a Python loop over marginals;
    only polytopes are taken one by one. KL balls and subset sets get no vertices.
    """
    which = np.asarray(which, dtype=np.int64)
    sizes, kinds = marginals.sizes[which], marginals.kind[which]
    parts: list[tuple[IntArray, FloatArray]] = []
    for kind, size in sorted({(int(k), int(x)) for k, x in zip(kinds, sizes, strict=True)}):
        place = np.flatnonzero((kinds == kind) & (sizes == size))
        item, points = _same_kind(marginals, which[place], Kind(kind), size)
        parts.append((place[item], points))
    counts = np.zeros(len(which), dtype=np.int64)
    for place, _ in parts:
        np.add.at(counts, place, 1)
    vertex_ptr = np.concatenate([[0], np.cumsum(counts * sizes)])
    flat = np.empty(vertex_ptr[-1])
    for place, points in parts:
        # rank of a vertex within its marginal: places ascend within a part
        rank = np.arange(len(place)) - np.searchsorted(place, place)
        start = vertex_ptr[place] + rank * points.shape[1]
        flat[start[:, None] + np.arange(points.shape[1])] = points
    return vertex_ptr, flat


def _same_kind(
    marginals: Marginals, which: IntArray, kind: Kind, size: int
) -> tuple[IntArray, FloatArray]:
    """Return (position in `which`, points) for marginals of one kind and size."""
    entries = marginals.outcome_ptr[which][:, None] + np.arange(size)
    if kind is Kind.SINGLETON:
        return np.arange(len(which)), marginals.nominal[entries]
    if kind is Kind.BOX:
        return _box_points(marginals.lower[entries], marginals.upper[entries])
    if kind is Kind.L1:
        return _ball_points(marginals.nominal[entries], marginals.radius[which])
    if kind in (Kind.KL, Kind.SUBSETS):  # not listed: solvers use their minimisers instead
        return np.empty(0, dtype=np.int64), np.empty((0, size))
    if kind is Kind.LP:
        uset = marginals[int(which[0])]
        _require_finitely_many(uset, f"Marginal {which[0]}, an LpBall")
    points = [vertices(marginals[int(j)]) for j in which]
    item = np.repeat(np.arange(len(which)), [len(part) for part in points])
    return item, np.concatenate(points)


def _box_points(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of N boxes in pieces that keep the memory in between small."""
    size = lower.shape[1]
    most = size * math.comb(size - 1, (size - 1) // 2)
    if most > VERTEX_LIMIT:
        _check_limit(lower, upper)
    step = max(1, CHUNK // most)
    parts = [
        (box + start, points)
        for start in range(0, len(lower), step)
        for box, points in [box_vertices(lower[start : start + step], upper[start : start + step])]
    ]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([b for b, _ in parts]), np.concatenate([p for _, p in parts])


def _check_limit(lower: FloatArray, upper: FloatArray) -> None:
    """Raise `UnsupportedError` if one of the boxes has too many vertices to build."""
    for low, high in zip(lower, upper, strict=True):
        count = count_box_vertices(low, high)
        if count > VERTEX_LIMIT:
            raise UnsupportedError(
                f"A set with {len(low)} outcomes has {count} vertices, at most {VERTEX_LIMIT} "
                "are built; use an inner solver that needs no vertices."
            )


def _ball_points(nominal: FloatArray, radius: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of N L1 balls of equal size."""
    ball, lower, upper = _receiver_boxes(nominal, radius)
    box, points = _box_points(lower, upper)
    return ball[box], points


def _receiver_boxes(
    nominal: FloatArray, radius: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return (ball, lower, upper): for every ball and receiver the box of the docstring."""
    balls, size = nominal.shape
    moved = radius / 2.0
    # a move within rounding leaves only the nominal: one degenerate box, not one per receiver
    still = (moved * GRID <= 2 * grid_tolerance(size)) | (size == 1)
    ball, receiver = np.nonzero(np.broadcast_to(~still[:, None], (balls, size)))
    ball = np.concatenate([ball, np.flatnonzero(still)])
    upper = nominal[ball]
    lower = np.zeros_like(upper)
    row = np.arange(len(receiver))
    lower[row, receiver] = np.minimum(nominal[ball[row], receiver] + moved[ball[row]], 1.0)
    upper[row, receiver] = lower[row, receiver]
    lower[len(receiver) :] = upper[len(receiver) :]
    order = np.argsort(ball, kind="stable")
    return ball[order], lower[order], upper[order]


def _require_finitely_many(uset: object, where: str) -> None:
    """Raise `UnsupportedError` for an Lp ball with 1 < p < inf."""
    if isinstance(uset, LpBall) and 1.0 < uset.exponent < math.inf:
        raise UnsupportedError(
            f"{where} with exponent {uset.exponent:g} has no finite vertices; use an inner solver "
            "that needs only the minimiser or bounds, or an L1 or L-infinity ball."
        )
