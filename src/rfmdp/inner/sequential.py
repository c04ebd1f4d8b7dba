"""Sequential contraction: recursive O-maximisation, the first step of `Exact` alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from rfmdp.inner.packed_model import PackedModel
from rfmdp.inner.packing import branching_weight, corners_of, pack_rows
from rfmdp.inner.protocol import InnerStats, Side, relaxation_side, successor_starts
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


class Orders(Enum):
    """In which orders the factors are contracted."""

    ONE = 1  # the factor with the most vertices first: the cheapest
    BOTH = 2  # also the reverse, and the better bound of the two


@dataclass(frozen=True, slots=True)
class Sequential:
    """Relaxation: nature may answer each factor after seeing the outcomes of earlier ones."""

    name: ClassVar[str] = "sequential"  # as on the command line

    orders: Orders = Orders.BOTH

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedSequential:
        """Bind to a model; every set that has a linear minimiser fits."""
        weight = branching_weight(model)
        weights = [weight, -weight] if self.orders is Orders.BOTH else [weight]
        corners = corners_of(model)
        orders = [PackedModel(model, nature, pack_rows(model, w), corners) for w in weights]
        return PreparedSequential(orders, nature)


class PreparedSequential:
    """`Sequential` bound to a model and a direction."""

    def __init__(self, orders: list[PackedModel], nature: Direction) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._orders = orders

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the relaxation's side of the wanted rows; the other side is infinite."""
        from rfmdp.kernels.sequential import sequential_rows

        self._orders[0].run(sequential_rows, value, rows, (below, above))
        for packed in self._orders[1:]:
            low, high = np.empty_like(below), np.empty_like(above)
            packed.run(sequential_rows, value, rows, (low, high))
            below[rows] = np.maximum(below[rows], low[rows])
            above[rows] = np.minimum(above[rows], high[rows])
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return nature's answer in the order with the better bound, row by row."""
        from rfmdp.kernels.sequential import sequential_answers

        begin = successor_starts(self._orders[0].model, rows)
        out = np.empty(begin[-1])
        best = self._best_order(value, rows)
        for number, packed in enumerate(self._orders):
            mine = np.flatnonzero(best == number)
            packed.run(sequential_answers, value, rows[mine], begin[mine], out)
        return out

    def _best_order(self, value: FloatArray, rows: IntArray) -> IntArray:
        """Return which of the orders proves most in every row; the first if they agree."""
        from rfmdp.kernels.sequential import sequential_rows

        if len(self._orders) == 1:
            return np.zeros(len(rows), dtype=np.int64)
        proven = []
        for packed in self._orders:
            low, high = np.empty(packed.model.rows), np.empty(packed.model.rows)
            packed.run(sequential_rows, value, rows, (low, high))
            proven.append(low[rows] if Side.BELOW in self.proves else -high[rows])
        best: IntArray = np.argmax(proven, axis=0)
        return best
