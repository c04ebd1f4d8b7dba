"""Nature's least mean over the product of a row's sets, for many rows at once.

A mean over a product of sets is linear in each of them. `Batch.bound` chooses one set after the
other: from below nature sees the outcomes of the others before it chooses, which is a larger game;
from above any product of members will do. The two differ, less with the sets in another order.

Where that leaves a doubt, `Products` goes through the vertices of all sets but one: some product of
vertices has the least mean, and the last set is left to its own minimiser. A few products are
listed, for many rows at once. Of many, one set after the other is branched over, and what cannot
matter is cut. A node has fixed vertices of the first sets. Its bound is the one from below. A node
whose bound reaches the target needs no more than that; the others get all vertices of the next set.
Vertices that differ in their last digits only, as those of boxes of equal numbers do, count as one,
at a price. So do nodes that differ by the order of outcomes only, where the sets that are left do
not tell these apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import ExactRows, Undecided
from rfmdp.verification.margins import FAINT, NORMAL, TINY, UNIT, VAGUE, slack
from rfmdp.verification.means import Axis, RoundedSets
from rfmdp.verification.sets import BOX, SINGLETON

Bounds = tuple[FloatArray, FloatArray]

LISTED = 1 << 22  # products of vertices of one row that are listed, times outcomes of the last set
NUMBERS = 1 << 20  # of products that are listed at a time
NODES = 1 << 22  # numbers of the nodes of one level
DIGITS = 48  # bits of vertices that are told apart


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
        """Return bounds (b,), on a side, of nature's least mean of values (b, K)."""
        if not len(values):
            return np.empty(0)
        own = _Tensor(values.reshape(len(values), *(axis.size for axis in self.axes)), self.axes)
        order = self.orders[0] if order is None else order
        for i in reversed(range(len(self.axes))):
            if i not in order:
                own.choose(i, side)
        if side < 0 or len(order) < 2:
            for i in reversed(order):
                own.choose(i, side)
            return own.values.reshape(len(values))
        return own.attained(order)


class _Tensor:
    """Values (b, ...) with an axis for every set that is not chosen yet."""

    def __init__(self, values: FloatArray, axes: list[Axis]) -> None:
        self.values, self.axes, self.left = values, axes, list(range(len(axes)))

    def choose(self, i: int, side: float) -> None:
        """Take nature's least mean along the axis of a set, rounded to a side."""
        moved = np.moveaxis(self.values, self._pop(i), -1)
        lines = moved.reshape(len(moved), -1, self.axes[i].size)
        self.values = self.axes[i].least(lines, side).reshape(moved.shape[:-1])

    def attained(self, order: list[int]) -> FloatArray:
        """Return (b,): no less than nature's least mean, by a product of members.

        Each is chosen for what the sets after it, one by one, make of the values at best.
        """
        largest = np.abs(self.values).reshape(len(self.values), -1).max(axis=1)
        size, moves = np.abs(self.values), (self.values != 0.0).astype(np.float64)
        off = np.zeros(len(self.values))
        for n, i in enumerate(order[:-1]):
            rest = _Tensor(self.values, self.axes)
            rest.left = list(self.left)
            for k in reversed(order[n + 1 :]):
                rest.choose(k, -1.0)
            p, distance = self.axes[i].point(rest.values.reshape(len(off), -1))
            place, off = self._pop(i), off + distance
            self.values, size = _weigh(self.values, place, p), _weigh(size, place, p)
            moves = _weigh(moves, place, (p > 0.0).astype(np.float64))
        vague = (size < VAGUE) & (moves > 0.0)
        terms = sum(axis.size for axis in self.axes)
        self.values = self.values + slack(terms) * size + TINY * vague
        self.choose(order[-1], 1.0)
        far = 1.01 * off * largest + TINY * ((off > 0.0) & (largest > 0.0))
        return np.asarray(self.values + far)

    def _pop(self, i: int) -> int:
        """Return where the axis of a set is, which is then gone."""
        place = 1 + self.left.index(i)
        self.left.remove(i)
        return place


def _weigh(tensor: FloatArray, place: int, p: FloatArray) -> FloatArray:
    """Return the tensor (b, ...) without an axis, averaged with weights (b, X)."""
    moved = np.moveaxis(tensor, place, -1)
    flat = moved.reshape(len(tensor), -1, moved.shape[-1])
    return (flat @ p[:, :, None]).reshape(moved.shape[:-1])


class Products:
    """Products of sets; what was found is kept."""

    def __init__(self, exact: ExactRows, rounded: RoundedSets) -> None:
        self.exact, self.rounded = exact, rounded
        self._matrices: dict[int, FloatArray] = {}
        self._known: dict[tuple[tuple[int, ...], bytes], tuple[float, float, float]] = {}

    def refine(
        self, batch: Batch, some: IntArray, values: FloatArray, least: FloatArray, side: int,
        aim: FloatArray, cut: FloatArray,
    ) -> None:  # fmt: skip
        """Improve bounds (b,), on a side, of some least means until they reach an aim, in place.

        First by sets in other orders, then by products of vertices, of which those with means from
        a cut (b,) on are of no interest.
        """
        better = np.fmin if side > 0 else np.fmax
        for order in batch.orders[1:]:
            found = batch.take(some).bound(values[some], side, order)
            least[some] = better(least[some], found)
            some = some[~(side * (least[some] - aim[some]) <= 0.0)]
        if not len(some):
            return
        kinds, which = np.unique(batch.take(some).ids, axis=0, return_inverse=True)
        for i, ids in enumerate(kinds.tolist()):
            pick = some[which.reshape(-1) == i]
            bounds = self.bounds(tuple(ids), values[pick], cut[pick])
            if bounds is not None:
                least[pick] = better(least[pick], bounds[1 if side > 0 else 0])

    def bounds(self, ids: tuple[int, ...], values: FloatArray, target: FloatArray) -> Bounds | None:
        """Return bounds (b,) of the least mean of values (b, K); None if products are too many.

        Lower bounds above a target (b,) may be cut there.
        """
        try:
            order, matrices = self._vertices(ids)
        except Undecided:
            return None
        axes = [self.rounded.axis(np.array([j])) for j in ids]
        sizes = [axis.size for axis in axes]
        tensor = values.reshape(-1, *sizes).transpose(0, *(1 + i for i in order))
        axes = [axes[i] for i in order]
        largest = max(math.prod(sizes), math.prod(map(len, matrices)) * axes[-1].size)
        if largest > LISTED:
            return self._branched(ids, tensor, matrices, axes, target)
        step = max(1, NUMBERS // largest)
        parts = [tensor[i : i + step] for i in range(0, len(tensor), step)]
        low, high = zip(*(_listed(part, matrices, axes[-1]) for part in parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def _vertices(self, ids: tuple[int, ...]) -> tuple[list[int], list[FloatArray]]:
        """Return the places of sets, that with the most vertices last, and vertices of others."""
        for j in ids:
            if j not in self._matrices:
                try:
                    self._matrices[j] = self.exact[j].matrix()
                except Undecided:
                    self._matrices[j] = np.empty((0, 0))
        counts = [len(self._matrices[j]) or math.inf for j in ids]
        order = sorted(range(len(ids)), key=lambda i: counts[i])
        if len(order) > 1 and math.isinf(counts[order[-2]]):
            raise Undecided
        return order, [self._matrices[ids[i]] for i in order[:-1]]

    def _branched(
        self, ids: tuple[int, ...], tensor: FloatArray, matrices: list[FloatArray],
        axes: list[Axis], target: FloatArray,
    ) -> Bounds | None:  # fmt: skip
        """Return bounds (b,) of the least mean of a tensor (b, ...), from below cut at a target.

        None if there are too many nodes, or numbers too small.
        """
        low, high = target.copy(), np.full(len(tensor), np.inf)
        matrices = [_merged(matrix) for matrix in matrices]
        weight = [float(matrix[matrix > 0.0].min()) for matrix in matrices]
        for i, own in enumerate(tensor):
            # two values only, as of an event: all of them are the same problem, scaled
            top = float(own.flat[np.argmax(np.abs(own))])
            scale = abs(top) if ((own == 0.0) | (own == top)).all() else 1.0
            own, cut = own / scale, float(target[i]) / scale
            key, least = (ids, own.tobytes()), np.abs(own[own != 0.0]).min(initial=np.inf)
            found = self._known.get(key)
            if found is None or (found[0] >= found[2] and found[0] < cut - 2.0**-44 * abs(cut)):
                if min(weight) < NORMAL or least * math.prod(weight) < VAGUE:
                    return None
                searched = _least(own, matrices, axes, cut)
                if searched is None:
                    return None
                self._known[key] = found = (*searched, cut)
            low[i] = min(scale * (found[0] - 2.0 * UNIT * abs(found[0])), target[i])
            high[i] = scale * (found[1] + 2.0 * UNIT * abs(found[1]))
        return low, high


def _listed(tensor: FloatArray, matrices: list[FloatArray], last: Axis) -> Bounds:
    """Return bounds (b,) of the least mean of a tensor (b, ...) by all products of vertices."""

    def mixed(tensor: FloatArray, matrices: list[FloatArray]) -> FloatArray:
        """Average the tensor by the lines of matrices: (b, products, X)."""
        for matrix in matrices:
            tensor = np.tensordot(tensor, matrix, ([1], [1]))
        return tensor.reshape(len(tensor), last.size, -1).transpose(0, 2, 1)

    terms = sum(tensor.shape[1:])
    means, size = mixed(tensor, matrices), mixed(np.abs(tensor), matrices)
    error = slack(terms) * size
    if (size < VAGUE).any():
        held = [(matrix > 0.0).astype(np.float64) for matrix in matrices]
        moves = mixed((tensor != 0.0).astype(np.float64), held)
        error += TINY * ((size < VAGUE) & (moves > 0.0))
    if any(((matrix > 0.0) & (matrix < NORMAL)).any() for matrix in matrices):
        error += terms * FAINT * np.abs(tensor).reshape(len(tensor), -1).max(axis=1)[:, None, None]
    low, high = (
        last.least((means + side * error).reshape(1, -1, last.size), side) for side in (-1.0, 1.0)
    )
    return low.reshape(len(tensor), -1).min(axis=1), high.reshape(len(tensor), -1).min(axis=1)


def _least(
    tensor: FloatArray, matrices: list[FloatArray], axes: list[Axis], target: float
) -> tuple[float, float] | None:
    """Return bounds of the least mean of a tensor, from below at most the target.

    The numbers of a node are no more than the means that they stand for.
    """
    one_sign = bool((tensor >= 0.0).all() or (tensor <= 0.0).all())
    nodes, paths, bound = tensor[None], np.empty((1, 0), dtype=np.int64), np.empty(0)
    for depth, matrix in enumerate(matrices):
        if nodes[:, 0].size * len(matrix) > NODES:
            return None
        children = np.tile(np.arange(len(matrix)), len(nodes))
        paths = np.column_stack([paths.repeat(len(matrix), axis=0), children])
        means = _spread(nodes, matrix)
        mass = np.abs(means) if one_sign else _spread(np.abs(nodes), matrix) + TINY
        nodes, left = means - _error(matrix) * mass, axes[depth + 1 :]
        if len(left) > 1:
            nodes, first = _without_twins(nodes, left)
            paths = paths[first]
        bound = nodes
        for axis in reversed(left):
            bound = axis.least(bound.reshape(1, -1, axis.size)).reshape(bound.shape[:-1])
        open_ = ~(bound >= target)
        nodes, paths, bound = nodes[open_], paths[open_], bound[open_]
    if not len(bound):
        return target, np.inf
    best = int(np.argmin(bound))
    mean, mass, error = tensor, np.abs(tensor), 0.0
    for matrix, vertex in zip(matrices, paths[best], strict=True):
        mean, mass = (np.tensordot(matrix[vertex], each, (0, 0)) for each in (mean, mass))
        error += _error(matrix)
    reached = axes[-1].least((mean + error * mass)[None, None], 1.0)
    return float(bound[best]), float(reached[0, 0])


def _error(matrix: FloatArray) -> float:
    """Return the relative error of means by the lines of a matrix (V, X), merged ones included."""
    return slack(matrix.shape[1]) + 2.0 ** (1 - DIGITS)


def _without_twins(nodes: FloatArray, axes: list[Axis]) -> tuple[FloatArray, IntArray]:
    """Return nodes (N, X, ...) that stand for all of some, and which of these they are.

    Numbers that differ in their last digits only become the least of them. Then two nodes are
    twins if one becomes the other by changing the order of outcomes that have the same bounds in
    a box: such a change leaves the box as it is, so the two have the same least mean. Outcomes are
    put in an order by the sums of random codes of their numbers; if that puts twins in different
    orders, both stay.
    """
    levels, place = np.unique(nodes, return_inverse=True)
    new = np.append(True, np.diff(levels) > 2.0 ** (1 - DIGITS) * np.abs(levels[1:]))
    lowest, place = levels[new], (np.cumsum(new) - 1)[place].reshape(nodes.shape)
    codes = np.random.default_rng(0).integers(1 << 40, size=len(lowest))[place]
    ordered = place
    for k, axis in enumerate(axes, start=1):
        sums = codes.sum(axis=tuple(i for i in range(1, codes.ndim) if i != k))
        kind = np.arange(axis.size)
        if axis.kind == BOX:
            ends = np.concatenate(axis.ends).T
            kind = np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1)
        order = np.lexsort((sums, np.broadcast_to(kind, sums.shape)))
        shape = [len(nodes), *(axis.size if i == k else 1 for i in range(1, codes.ndim))]
        ordered = np.take_along_axis(ordered, order.reshape(shape), axis=k)
    first = np.unique(ordered.reshape(len(nodes), -1), axis=0, return_index=True)[1]
    return lowest[place[first]], first


def _spread(nodes: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return nodes (N, X, ...) averaged by every line of a matrix (V, X), (N * V, ...)."""
    mixed = np.moveaxis(np.tensordot(nodes, matrix, ([1], [1])), -1, 1)
    return mixed.reshape(-1, *mixed.shape[2:])


def _merged(matrix: FloatArray) -> FloatArray:
    """Return vertices (V, X) with their last digits rounded, each once."""
    mantissa, exponent = np.frexp(matrix)
    return np.unique(np.ldexp(np.rint(np.ldexp(mantissa, DIGITS)), exponent - DIGITS), axis=0)
