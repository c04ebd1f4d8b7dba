"""Sequential contraction: recursive O-maximisation, the first step of `Exact` alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rfmdp.inner.packing import PackedModel, branching_weight, pack_rows
from rfmdp.inner.protocol import (
    Backup,
    PreparedRows,
    Side,
    better_of,
    relaxation_side,
    successor_starts,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Sequential:
    """Relaxation: nature may answer each factor after seeing the outcomes of earlier ones.

    Factors are contracted in two orders, that with the most vertices first or last; the better
    bound counts.
    """

    name: ClassVar[str] = "sequential"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind to a model; every set that has a linear minimiser fits."""
        weight = branching_weight(model)
        packed = [PackedModel(model, nature, pack_rows(model, w)) for w in (weight, -weight)]
        backups = [_backup(order) for order in packed]
        proves = relaxation_side(nature)

        def best_order(value: FloatArray, rows: IntArray) -> IntArray:
            """Return which of the orders proves most in every row; the first if they agree."""
            proven = []
            for backup in backups:
                low, high = np.empty(model.rows), np.empty(model.rows)
                backup(value, rows, low, high)
                proven.append(low[rows] if Side.BELOW in proves else -high[rows])
            best: IntArray = np.argmax(proven, axis=0)
            return best

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            from rfmdp.kernels.products import sequential_answers

            begin = successor_starts(model, rows)
            out = np.empty(begin[-1])
            best = best_order(value, rows)
            for number, order in enumerate(packed):
                mine = np.flatnonzero(best == number)
                order.run(sequential_answers, value, rows[mine], begin[mine], out)
            return out

        return PreparedRows(proves, better_of(backups), respond)


def _backup(packed: PackedModel) -> Backup:
    """Return the backup of one order: the relaxation's side, infinities on the other."""

    def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
        from rfmdp.kernels.products import sequential_rows

        packed.run(sequential_rows, value, rows, bounds)

    return backup
