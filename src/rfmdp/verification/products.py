"""Nature's least mean over the product of a row's sets, for many rows at once.

A mean over a product of sets is linear in each of them. `Batch.bound` chooses one set after the
other: from below nature sees the outcomes of the others before it chooses, which is a larger game;
from above any product of members will do. The two differ, less with the sets in another order.

Where that leaves a doubt, `by_vertices` goes through the vertices of all sets but one: some product
of vertices has the least mean, and the last set is left to its own minimiser. A node has fixed
vertices of the first sets; it gets all vertices of the next set. Nodes whose bound from below is no
less than a cut cannot matter, and are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.margins import TINY, VAGUE, slack
from rfmdp.verification.means import Axis
from rfmdp.verification.sets import SINGLETON

LARGE = 2.0**990  # from here on sums of numbers may overflow; fractions may still tell
LISTED = 1 << 20  # numbers of products of vertices, of all rows at a time
NODES = 1 << 22  # numbers of the nodes of one level


@dataclass(eq=False)
class Batch:
    """Some rows whose sets have the same kinds and sizes, in the same places."""

    rows: IntArray  # (b,)
    axes: list[Axis]  # their sets, place by place
    successors: IntArray  # (b, K)
    possible: BoolArray | None  # (b, K) whether some product has them; None: all

    def take(self, some: IntArray) -> Batch:
        """Return some of them."""
        if len(some) == len(self.rows):
            return self
        possible = None if self.possible is None else self.possible[some]
        axes = [axis.take(some) for axis in self.axes]
        return Batch(self.rows[some], axes, self.successors[some], possible)

    @property
    def ids(self) -> IntArray:
        """Their sets, (b, n)."""
        return np.array([axis.ids for axis in self.axes], dtype=np.int64).T

    @property
    def orders(self) -> list[list[int]]:
        """Places of the sets that are no points: the largest last, then each of the others."""
        free = [i for i, axis in enumerate(self.axes) if axis.kind != SINGLETON]
        free.sort(key=lambda i: self.axes[i].size)
        return [free[k:] + free[:k] for k in range(max(len(free), 1))]

    def bound(self, values: FloatArray, side: int, order: list[int] | None = None) -> FloatArray:
        """Return bounds (b,), on a side, of nature's least mean of values (b, K).

        They are infinite, and say nothing, where a value is large or no number.
        """
        tame = _tame(values)
        if not tame.all():
            best = np.full(len(values), side * np.inf)
            some = np.flatnonzero(tame)
            best[some] = self.take(some).bound(values[some], side, order)
            return best
        if not len(values):
            return np.empty(0)
        order = self.orders[0] if order is None else order
        free = len(order)
        points = [i for i in range(len(self.axes)) if i not in order]
        tensor, axes = _arranged(values, self.axes, order + points)
        if side < 0 or free < 2:
            return _chosen(tensor, axes, side)
        return _attained(_chosen(tensor, axes[free:], side), axes[:free])

    def refine(
        self, some: IntArray, values: FloatArray, least: FloatArray, side: int, aim: FloatArray,
        cut: FloatArray,
    ) -> None:  # fmt: skip
        """Improve bounds (b,), on a side, of some least means until they reach an aim, in place.

        First by sets in other orders, then by products of vertices, of which those with means from
        a cut (b,) on are of no interest.
        """
        better = np.fmin if side > 0 else np.fmax
        some = some[_tame(values[some])]
        for order in self.orders[1:]:
            sharper = self.take(some).bound(values[some], side, order)
            least[some] = better(least[some], sharper)
            some = some[~(side * (least[some] - aim[some]) <= 0.0)]
        if not len(some):
            return
        _, first, which = np.unique(
            self.take(some).ids, axis=0, return_index=True, return_inverse=True
        )
        for i, alike in enumerate(first):
            pick = some[which.reshape(-1) == i]
            axes = [axis.take(some[[alike]]) for axis in self.axes]
            bounds = by_vertices(axes, values[pick], cut[pick])
            if bounds is not None:
                least[pick] = better(least[pick], bounds[1 if side > 0 else 0])


def _tame(values: FloatArray) -> BoolArray:
    """Return where (b,) values (b, K) are numbers whose sums are far from the largest float."""
    return np.asarray((np.abs(values) < LARGE).all(axis=1))


def _arranged(
    values: FloatArray, axes: list[Axis], places: list[int]
) -> tuple[FloatArray, list[Axis]]:
    """Return values (b, K) with an axis for every set, and these, in an order of places."""
    tensor = values.reshape(len(values), *(axis.size for axis in axes))
    return tensor.transpose(0, *(1 + i for i in places)), [axes[i] for i in places]


def _chosen(tensor: FloatArray, axes: list[Axis], side: int) -> FloatArray:
    """Return a tensor (b, ...) without its last axes: least means along them, from the last on."""
    for axis in reversed(axes):
        lines = tensor.reshape(len(axis.ids), -1, axis.size)
        tensor = axis.least(lines, side).reshape(tensor.shape[:-1])
    return tensor


def _attained(tensor: FloatArray, axes: list[Axis]) -> FloatArray:
    """Return (b,): no less than nature's least mean of a tensor, by a product of members.

    Each is chosen for what the sets after it, one by one, make of the values at best.
    """
    rest = tensor
    points = []
    off = np.zeros(len(tensor))
    for n, axis in enumerate(axes[:-1]):
        p, distance = axis.point(_chosen(rest, axes[n + 1 :], -1))
        rest = _weigh(rest, p)
        off = off + distance
        points.append(p)
    return _reached(tensor, points, axes[-1], slack(sum(tensor.shape[1:])), off)


def _reached(
    tensor: FloatArray, points: list[FloatArray], last: Axis, error: float, off: FloatArray
) -> FloatArray:
    """Return (b,): no less than the least mean by points (b, X) of all sets but the last.

    Means by points have a relative error; members are at most so far off (b,) the points, all of
    them together, in L1.
    """
    largest = _largest(tensor)
    size = np.abs(tensor)
    moves = (tensor != 0.0).astype(np.float64)
    for p in points:
        tensor, size = _weigh(tensor, p), _weigh(size, p)
        moves = _weigh(moves, (p > 0.0).astype(np.float64))
    tensor = tensor + error * size + TINY * ((size < VAGUE) & (moves > 0.0))
    far = 1.01 * off * largest + TINY * ((off > 0.0) & (largest > 0.0))
    return _chosen(tensor, [last], 1) + far


def _weigh(tensor: FloatArray, p: FloatArray) -> FloatArray:
    """Return a tensor (b, X, ...) averaged with weights (b, X)."""
    flat = tensor.reshape(*p.shape, -1)
    return (p[:, None, :] @ flat).reshape(len(p), *tensor.shape[2:])


def _largest(tensor: FloatArray) -> FloatArray:
    """Return the largest sizes (b,) of the numbers of a tensor (b, ...)."""
    return np.asarray(np.abs(tensor).reshape(len(tensor), -1).max(axis=1))


def by_vertices(
    axes: list[Axis], values: FloatArray, cut: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return bounds (b,) of the least mean of values (b, K) over the product of some sets.

    Where no mean is below a cut (b,), that is the lower bound. None if products are too many, or
    weights have too few digits.
    """
    counts = [len(axis.vertices[0]) or math.inf for axis in axes]
    places = sorted(range(len(axes)), key=lambda i: counts[i])
    if math.isinf(counts[places[-2]]) or any(axis.faint.any() for axis in axes):
        return None
    tensor, axes = _arranged(values, axes, places)
    vertices = [axis.vertices[0] for axis in axes[:-1]]
    error = sum(axis.vertices[1] for axis in axes[:-1])
    products = math.prod(map(len, vertices)) * axes[-1].size
    step = max(1, LISTED // max(values.shape[1], products))
    low = cut.copy()
    high = np.full(len(cut), np.inf)
    for chunk in (slice(i, i + step) for i in range(0, len(cut), step)):
        leaves = _leaves(tensor[chunk], axes, cut[chunk])
        if leaves is None:
            return None
        row, paths, bound = leaves
        order = np.lexsort((bound, row))
        rows, first = np.unique(row[order], return_index=True)
        if len(rows):
            best = order[first]
            low[chunk][rows] = bound[best]
            points = [corners[at] for corners, at in zip(vertices, paths[best].T, strict=True)]
            there = np.zeros(len(rows))  # points are vertices, nothing is off
            high[chunk][rows] = _reached(tensor[chunk][rows], points, axes[-1], error, there)
    return low, high


def _leaves(
    tensor: FloatArray, axes: list[Axis], cut: FloatArray
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Return rows, vertices and bounds from below of all products below a cut; None: too many.

    The numbers of a node are no more than the means that they stand for.
    """
    nodes = tensor
    row = np.arange(len(tensor))
    paths = np.empty((len(tensor), 0), dtype=np.int64)
    for depth, axis in enumerate(axes[:-1]):
        left, count = axes[depth + 1 :], len(axis.vertices[0])
        if nodes[:, 0].size * count > NODES:
            return None
        children = np.tile(np.arange(count), len(nodes))
        paths = np.column_stack([paths.repeat(count, axis=0), children])
        nodes = _averaged(nodes, *axis.vertices)
        row = row.repeat(count)
        bound = _chosen(nodes, left, -1)
        open_ = np.flatnonzero(~(bound >= cut[row]))
        nodes, row, paths, bound = nodes[open_], row[open_], paths[open_], bound[open_]
        if not len(open_):
            break
    return row, paths, bound


def _averaged(nodes: FloatArray, corners: FloatArray, error: float) -> FloatArray:
    """Return nodes (N, X, ...) averaged by every vertex (V, X), or less, (N * V, ...)."""

    def spread(nodes: FloatArray, points: FloatArray) -> FloatArray:
        mixed = np.moveaxis(np.tensordot(nodes, points, ([1], [1])), -1, 1)
        return mixed.reshape(-1, *mixed.shape[2:])

    size = spread(np.abs(nodes), corners)
    lost = error * size
    if (size < VAGUE).any():
        moves = spread((nodes != 0.0).astype(np.float64), (corners > 0.0).astype(np.float64))
        lost += TINY * ((size < VAGUE) & (moves > 0.0))
    return spread(nodes, corners) - lost
