"""Vertices of marginal sets.

Which outcomes a vertex takes is exact, its numbers are rounded once (see `boxes`, which has the
geometry of boxes and L1 balls). Vertices of polytopes are those that were given.
"""

from __future__ import annotations

import math

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.ragged import segment, starts
from rfmdp.sets.box_vertices import Boxes, box_points, int_boxes, receiver_boxes
from rfmdp.sets.families import UncertaintySet
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import FloatArray, IntArray

VERTEX_LIMIT = 1 << 18  # of one set
CHUNK = 1 << 18


def vertices(uset: UncertaintySet) -> FloatArray:
    """Return points (V, X) whose hull is the set, each once, with exact supports.

    They are the extreme points, merged where rounding cannot tell them apart; of a polytope, all
    points that were given.

    Raises
    ------
    UnsupportedError
        For sets without finitely many vertices (Lp balls with 1 < p < inf), and for more than
        `VERTEX_LIMIT` vertices.

    Examples
    --------
    >>> from rfmdp.sets.families import L1Ball
    >>> vertices(L1Ball([0.5, 0.5], 0.5)).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    _, flat = vertices_bulk(Marginals.from_sets([uset]), np.array([0]))
    return flat.reshape(-1, uset.size)


def vertices_bulk(
    marginals: Marginals, which: IntArray, limit: int = VERTEX_LIMIT
) -> tuple[IntArray, FloatArray]:
    """Return the vertices of many marginals of any kind in two arrays.

    Sets of one kind and size are treated together, without a Python loop over marginals;
    only polytopes are taken one by one.

    Parameters
    ----------
    marginals : Marginals
        The packed sets.
    which : (N,) array
        Identifiers of the marginals wanted, in the order wanted.
    limit : int
        Vertices that one of them may have.

    Returns
    -------
    vertex_ptr : (N + 1,) array
        Vertices of `which[k]` are the entries `vertex_ptr[k] : vertex_ptr[k + 1]` of `flat`, in
        C order of their (V, X) array.
    flat : array
        All entries.

    Raises
    ------
    UnsupportedError
        For sets without finitely many vertices, or with more than `limit`.
    """
    which = np.asarray(which, dtype=np.int64)
    sizes, kinds = marginals.sizes[which], marginals.kind[which]
    parts: list[tuple[IntArray, FloatArray]] = []
    for kind, size in sorted({(int(k), int(x)) for k, x in zip(kinds, sizes, strict=True)}):
        place = np.flatnonzero((kinds == kind) & (sizes == size))
        item, points = _same_kind(marginals, which[place], Kind(kind), size, limit)
        parts.append((place[item], points))
    counts = np.zeros(len(which), dtype=np.int64)
    for place, _ in parts:
        np.add.at(counts, place, 1)
    vertex_ptr = starts(counts * sizes)
    flat = np.empty(vertex_ptr[-1])
    for place, points in parts:
        # rank of a vertex within its marginal: places ascend within a part
        rank = np.arange(len(place)) - np.searchsorted(place, place)
        start = vertex_ptr[place] + rank * points.shape[1]
        flat[start[:, None] + np.arange(points.shape[1])] = points
    return vertex_ptr, flat


def _same_kind(
    marginals: Marginals, which: IntArray, kind: Kind, size: int, limit: int
) -> tuple[IntArray, FloatArray]:
    """Return (position in `which`, points) for marginals of one kind and size."""
    if kind is Kind.SINGLETON:
        return np.arange(len(which)), marginals.nominal[_table(marginals, which, size)]
    if kind is not Kind.POLYTOPE:
        return _points(_boxes(marginals, which, kind, size), limit)
    listed = [marginals.corners[segment(marginals.corner_ptr, j)] for j in which]
    points = [np.unique(corners.reshape(-1, size), axis=0) for corners in listed]
    item = np.repeat(np.arange(len(which)), [len(group) for group in points])
    return item, np.concatenate(points)


def _boxes(
    marginals: Marginals, which: IntArray, kind: Kind, size: int
) -> list[tuple[IntArray, Boxes]]:
    """Return the boxes that have the vertices of boxes or balls of one kind and size."""
    if kind is Kind.LP:
        raise UnsupportedError(
            f"Marginal {which[0]}, an LpBall with exponent {marginals.exponent[which[0]]:g} has no "
            "finite vertices; use an inner solver that needs only the minimiser or bounds, or an "
            "L1 or L-infinity ball."
        )
    at = _table(marginals, which, size)
    if kind is Kind.L1:
        return receiver_boxes(marginals.nominal[at], marginals.radius[which])
    return int_boxes(marginals.lower[at], marginals.upper[at])


def _table(marginals: Marginals, which: IntArray, size: int) -> IntArray:
    """Return the places of the outcomes (N, X) of marginals of one size."""
    places: IntArray = marginals.outcome_ptr[which][:, None] + np.arange(size)
    return places


def _points(groups: list[tuple[IntArray, Boxes]], limit: int) -> tuple[IntArray, FloatArray]:
    """Return (set, vertices) of groups of boxes, each with the set that it belongs to.

    They are built in pieces that keep the memory in between small.
    """
    parts = []
    for owner, boxes in groups:
        size = boxes.lower.shape[1]
        most = size * math.comb(size - 1, (size - 1) // 2)
        step = max(1, CHUNK // most)
        for start in range(0, len(owner), step):
            box, points = box_points(boxes.part(slice(start, start + step)), step * limit)
            parts.append((owner[start + box], points))
    owner, points = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if np.bincount(owner).max() > limit:
        raise UnsupportedError(
            f"A set with {points.shape[1]} outcomes has more vertices than the limit of {limit}; "
            "use an inner solver that needs none."
        )
    if len(groups) > 1:
        order = np.argsort(owner, kind="stable")
        owner, points = owner[order], points[order]
    return owner, points
