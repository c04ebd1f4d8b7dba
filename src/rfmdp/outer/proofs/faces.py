"""Rows in which nature can empty outcomes, vertex by vertex.

Whether nature stays somewhere for ever is a question of supports, and no margin for rounding
answers it: a product that stays must count as staying exactly. So the few rows for which it
matters are listed with all products of vertices, split into those that stay among some states and
those that leave. An optimum over products is one over vertices, also where a value is infinite.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import entries, owners, segment, segment_all, segment_lengths, starts
from rfmdp.rounding import expectation_margin
from rfmdp.sets.vertices import vertices_bulk
from rfmdp.types import BoolArray, FloatArray, IntArray

BUDGET = 1 << 22  # entries of all listed products together


class VertexProducts(NamedTuple):
    """Products of vertices over the successors of a row, and which of these they take."""

    probability: FloatArray  # (N, K)
    taken: BoolArray  # (N, K)


NOTHING = VertexProducts(np.empty((0, 0)), np.empty((0, 0), dtype=np.bool_))


class Faces:
    """All vertex products of the rows that fit the budget; the others are not in `rows`."""

    def __init__(self, model: FactoredMDP, rows: IntArray) -> None:
        blocks: dict[tuple[int, ...], VertexProducts] = {}
        corners: dict[int, FloatArray | None] = {}
        parts: list[VertexProducts] = []
        kept: list[int] = []
        left = BUDGET
        for row in rows:
            ids = tuple(model.row_marginals[segment(model.marginal_ptr, row)].tolist())
            if ids not in blocks:
                blocks[ids] = _products(model, ids, left, corners)
            left -= blocks[ids].probability.size
            if left < 0:
                break
            if blocks[ids].probability.size:
                kept.append(int(row))
                parts.append(blocks[ids])
        self.rows = np.array(kept, dtype=np.int64)  # (N,) ascending if given so
        self.vertex_ptr = starts([len(p.taken) for p in parts])  # (N + 1,) vertices of every row
        self.owner = owners(self.vertex_ptr)  # (V,) row of every vertex
        chosen = self.rows[self.owner]
        self.entry_ptr = starts(segment_lengths(model.successor_ptr)[chosen])  # (V + 1,)
        self.successor = model.successors[entries(model.successor_ptr, chosen)].astype(np.int64)
        listed = [*parts, NOTHING]
        self.probability = np.concatenate([p.probability.ravel() for p in listed])
        # of the factors and not of their product, which may be too small for a float
        self.taken = np.concatenate([p.taken.ravel() for p in listed])

    def __len__(self) -> int:
        return len(self.rows)

    def staying(self, label: IntArray, home: IntArray) -> BoolArray:
        """Return the vertices (V,) that move only to states whose label is that of their row."""
        homes = np.repeat(home[self.owner], segment_lengths(self.entry_ptr))
        return segment_all(~self.taken | (label[self.successor] == homes), self.entry_ptr)

    def expectations(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected value of every vertex and a bound of its rounding, (V,) each."""
        if not len(self.rows):
            return np.empty(0), np.empty(0)
        first = self.entry_ptr[:-1]
        given = np.where(self.taken, value[self.successor], np.nan)
        high, low = np.fmax.reduceat(given, first), np.fmin.reduceat(given, first)
        sizes = segment_lengths(self.entry_ptr)
        change = np.where(self.taken, given - np.repeat(low, sizes), 0.0)
        mean = low + np.add.reduceat(self.probability * change, first)
        return np.clip(mean, low, high), expectation_margin(sizes, low, high)

    def best(self, q: FloatArray, chosen: BoolArray, sign: float) -> tuple[FloatArray, IntArray]:
        """Return the best number q (V,) of the chosen vertices of every row (N,), and that vertex.

        The best is the largest if `sign` is +1. A row without chosen vertices has -sign * inf and
        vertex -1.
        """
        if not len(self.rows):
            return np.empty(0), np.empty(0, dtype=np.int64)
        given = np.where(chosen, q, -sign * np.inf)
        reduce = np.maximum if sign > 0.0 else np.minimum
        result: FloatArray = reduce.reduceat(given, self.vertex_ptr[:-1])
        hit = chosen & (given == result[self.owner])
        place = np.where(hit, np.arange(len(hit)), len(hit))
        first = np.minimum.reduceat(place, self.vertex_ptr[:-1])
        return result, np.where(first < len(hit), first, -1)

    def distribution(self, vertex: int) -> FloatArray:
        """Return the joint distribution (K,) of a vertex over the successors of its row."""
        return self.probability[segment(self.entry_ptr, vertex)]


def _products(
    model: FactoredMDP, ids: tuple[int, ...], left: int, corners: dict[int, FloatArray | None]
) -> VertexProducts:
    """Return all vertex products (N, K) of some marginals; none if they are too many.

    `corners` has the vertices of marginals that were met before, None for those without.
    """
    for j in ids:
        if j not in corners:
            corners[j] = _vertices(model, j, left)
    points = [result for j in ids if (result := corners[j]) is not None]
    if len(points) < len(ids) or math.prod(p.size for p in points) > left:
        return NOTHING
    joint: FloatArray = np.ones((1, 1))
    taken: BoolArray = np.ones((1, 1), dtype=np.bool_)
    for factor in points:
        width = joint.shape[1] * factor.shape[1]
        # products and outcomes both in C order
        joint = (joint[:, None, :, None] * factor[None, :, None, :]).reshape(-1, width)
        taken = (taken[:, None, :, None] & (factor > 0.0)[None, :, None, :]).reshape(-1, width)
    return VertexProducts(joint, taken)


def _vertices(model: FactoredMDP, marginal: int, left: int) -> FloatArray | None:
    """Return the vertices (V, X) of a marginal; None if it has none, or too many."""
    size = int(model.marginals.sizes[marginal])
    try:
        points = vertices_bulk(model.marginals, np.array([marginal]), max(left // size, 1))[1]
        return points.reshape(-1, size)
    except UnsupportedError:
        return None
