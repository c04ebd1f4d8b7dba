"""Bounds of nature's least mean over the product of a row's sets, for many rows at once.

A mean over a product of sets is linear in each of them. From below, nature may choose one set
after it has seen the outcomes of the others: a larger game, solved set by set. From above, any
product of members will do. In how far the two differ hangs on the order of the sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.margins import TINY, VAGUE, slack
from rfmdp.verification.means import Axis
from rfmdp.verification.sets import SINGLETON


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
