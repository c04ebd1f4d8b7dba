"""Sequential contraction: recursive O-maximisation, the first step of `Exact` alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rfmdp.inner.bound import Bound, branching_weight, corners_of, inputs, successor_starts
from rfmdp.inner.layout import Work, pack_rows
from rfmdp.inner.protocol import InnerStats, Side, relaxation_side
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

    orders: Orders = Orders.BOTH

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "sequential"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedSequential:
        """Bind to a model; every set that has a linear minimiser fits."""
        none = corners_of(model, np.empty(0, dtype=np.int64))
        weight = branching_weight(model)
        weights = [weight, -weight] if self.orders is Orders.BOTH else [weight]
        bounds = [Bound(model, nature, pack_rows(model, w), none) for w in weights]
        return PreparedSequential(bounds, nature)


class PreparedSequential:
    """`Sequential` bound to a model and a direction."""

    def __init__(self, bounds: list[Bound], nature: Direction) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._bounds = bounds

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the relaxation's side of the wanted rows; the other side is infinite."""
        self._run(self._bounds[0], value, rows, below, above)
        for bound in self._bounds[1:]:
            low, high = np.empty_like(below), np.empty_like(above)
            self._run(bound, value, rows, low, high)
            below[rows] = np.maximum(below[rows], low[rows])
            above[rows] = np.minimum(above[rows], high[rows])
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return nature's answer in the order with the better bound, row by row."""
        begin = successor_starts(self._bounds[0].model, rows)
        out = np.empty(begin[-1])
        best = self._best_order(value, rows)
        for number, bound in enumerate(self._bounds):
            mine = np.flatnonzero(best == number)
            self._answer(bound, value, rows[mine], begin[mine], out)
        return out

    def _best_order(self, value: FloatArray, rows: IntArray) -> IntArray:
        """Return which of the orders proves most in every row; the first if they agree."""
        if len(self._bounds) == 1:
            return np.zeros(len(rows), dtype=np.int64)
        proven = []
        for bound in self._bounds:
            low, high = np.empty(bound.model.rows), np.empty(bound.model.rows)
            self._run(bound, value, rows, low, high)
            proven.append(low[rows] if Side.BELOW in self.proves else -high[rows])
        best: IntArray = np.argmax(proven, axis=0)
        return best

    def _run(
        self, b: Bound, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        from rfmdp.kernels.plain import sequential_rows

        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            sequential_rows(b.sets, b.rows, work, rows[chosen], value, b.sign, below, above)

        b.run(rows, part)

    def _answer(
        self, b: Bound, value: FloatArray, rows: IntArray, begin: IntArray, out: FloatArray
    ) -> None:
        from rfmdp.kernels.plain import sequential_answers

        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            sequential_answers(
                b.sets, b.rows, work, rows[chosen], value, b.sign, begin[chosen], out
            )

        b.run(rows, part)
