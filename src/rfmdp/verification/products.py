"""Nature's least mean over the product of a row's sets, for many rows at once.

A mean over a product of sets is linear in each of them. `Batch.bound` chooses one set after the
other: from below nature sees the outcomes of the others before it chooses, which is a larger game;
from above any product of members will do.

Where these two leave a doubt, `by_vertices` goes through the vertices of all sets but one: some
product of vertices has the least mean, and the last set is left to its own minimiser. A node has
fixed vertices of the first sets; it gets all vertices of the next set. Nodes whose bound from below
is no less than a cut cannot matter, and are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.margins import TINY, slack, weighed
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
        """Return some of them, in their order."""
        if len(some) == len(self.rows):
            return self
        possible = None if self.possible is None else self.possible[some]
        axes = [axis.take(some) for axis in self.axes]
        return Batch(self.rows[some], axes, self.successors[some], possible)

    @property
    def free(self) -> list[int]:
        """Places of the sets that are no points, the largest last."""
        free = [i for i, axis in enumerate(self.axes) if axis.kind != SINGLETON]
        return sorted(free, key=lambda i: self.axes[i].size)

    def bound(self, values: FloatArray, side: int, turn: int = 0) -> FloatArray:
        """Return bounds (b,), on a side, of nature's least mean of values (b, K).

        They are infinite, and say nothing, where floats prove nothing. A turn changes the order in
        which sets are chosen.
        """
        tame = self._tame(values)
        if not tame.all():
            best = np.full(len(values), side * np.inf)
            some = np.flatnonzero(tame)
            best[some] = self.take(some).bound(values[some], side, turn)
            return best
        if not len(values):
            return np.empty(0)
        free = self.free[turn:] + self.free[:turn]
        points = [i for i in range(len(self.axes)) if i not in free]
        tensor, axes = _arranged(values, self.axes, free + points)
        if side < 0 or len(free) < 2:
            return _chosen(tensor, axes, side)
        # each set is chosen for what those after it, one by one, make of the values at best
        tensor, axes = _chosen(tensor, axes[len(free) :], side), axes[: len(free)]
        far = np.zeros(len(values))
        for n, axis in enumerate(axes[:-1]):
            p, off = axis.point(_chosen(tensor, axes[n + 1 :], -1))
            far += off
            tensor = _averaged(tensor, p[:, :, None], side, slack(axis.size))[:, 0]
        far = far * np.abs(values).max(axis=1)
        return np.asarray(_chosen(tensor, axes[-1:], side) + 1.01 * far + TINY * (far > 0.0))

    def refine(
        self, some: IntArray, values: FloatArray, least: FloatArray, side: int, aim: FloatArray,
        cut: FloatArray,
    ) -> None:  # fmt: skip
        """Improve bounds (b,), on a side, of some least means that miss an aim, in place.

        Means from a cut (b,) on are of no interest.
        """
        better = np.fmin if side > 0 else np.fmax
        some = some[self._tame(values)[some]]
        for turn in range(1, len(self.free)):
            some = some[~(side * (least[some] - aim[some]) <= 0.0)]
            sharper = self.take(some).bound(values[some], side, turn)
            least[some] = better(least[some], sharper)
        some = some[~(side * (least[some] - aim[some]) <= 0.0)]
        if len(self.free) < 2 or not len(some):
            return
        ids = np.column_stack([axis.ids[some] for axis in self.axes])
        sets, which = np.unique(ids, axis=0, return_inverse=True)
        for i in range(len(sets)):
            pick = some[which.reshape(-1) == i]
            axes = [axis.take(pick[:1]) for axis in self.axes]
            bounds = by_vertices(axes, values[pick], cut[pick])
            if bounds is not None:
                least[pick] = better(least[pick], bounds[1 if side > 0 else 0])

    def _tame(self, values: FloatArray) -> BoolArray:
        """Return where (b,) floats do: values (b, K) whose sums do not overflow, whole weights."""
        faint = np.any([axis.faint for axis in self.axes], axis=0) if self.axes else False
        return np.asarray((np.abs(values) < LARGE).all(axis=1) & ~np.asarray(faint))


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


def _averaged(tensor: FloatArray, points: FloatArray, side: float, error: float) -> FloatArray:
    """Return a tensor (b, X, ...) averaged by points ([b,] X, V), to a side: (b, V, ...)."""
    count, size, *rest = tensor.shape
    flat = tensor.reshape(count, size, math.prod(rest)).swapaxes(1, 2)
    mixed = weighed(flat, points, side, error).swapaxes(1, 2)
    return mixed.reshape(count, points.shape[-1], *rest)


def by_vertices(
    axes: list[Axis], values: FloatArray, cut: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return bounds (b,) of the least mean of values (b, K) over the product of some sets.

    Where no mean is below a cut (b,), that is the lower bound. None if products are too many, or
    weights have too few digits.
    """
    counts = [axis.vertices[0].shape[1] or math.inf for axis in axes]
    places = sorted(range(len(axes)), key=lambda i: counts[i])
    if math.isinf(counts[places[-2]]) or any(axis.faint.any() for axis in axes):
        return None
    tensor, axes = _arranged(values, axes, places)
    products = math.prod(axis.vertices[0].shape[1] for axis in axes[:-1]) * axes[-1].size
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
        best = order[first]
        low[chunk][rows] = bound[best]
        worth = tensor[chunk][rows]
        for axis, at in zip(axes[:-1], paths[best].T, strict=True):
            points, error = axis.vertices
            worth = _averaged(worth, points.T[at][:, :, None], 1, error)[:, 0]
        high[chunk][rows] = _chosen(worth, axes[-1:], 1)
    return low, high


def _leaves(
    tensor: FloatArray, axes: list[Axis], cut: FloatArray
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Return rows, vertices and bounds from below of all products below a cut; None: too many.

    The numbers of a node are no more than the means that they stand for.
    """
    nodes = tensor
    row = np.arange(len(tensor))
    paths = np.empty((len(tensor), len(axes) - 1), dtype=np.int64)
    bound = np.full(len(tensor), -np.inf)
    for depth, axis in enumerate(axes[:-1]):
        points, error = axis.vertices
        count = points.shape[1]
        if nodes[:, 0].size * count > NODES:
            return None
        nodes = _averaged(nodes, points, -1, error).reshape(-1, *nodes.shape[2:])
        row, paths = row.repeat(count), paths.repeat(count, axis=0)
        paths[:, depth] = np.tile(np.arange(count), len(paths) // count)
        bound = _chosen(nodes, axes[depth + 1 :], -1)
        open_ = np.flatnonzero(~(bound >= cut[row]))
        nodes, row, paths, bound = nodes[open_], row[open_], paths[open_], bound[open_]
    return row, paths, bound
