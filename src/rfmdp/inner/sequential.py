"""Sequential contraction: recursive O-maximisation, the first step of `Exact` alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rfmdp.inner.packing import PackedModel, branching_weight, pack_rows
from rfmdp.inner.protocol import PreparedInner, Side, leave_open, relaxation_side, successor_starts
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

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model; every set that has a linear minimiser fits."""
        from rfmdp.kernels.products import sequential_answers, sequential_rows

        weight = branching_weight(model)
        packed = [PackedModel(model, nature, pack_rows(model, w)) for w in (weight, -weight)]
        proves = relaxation_side(nature)

        def bounds_of(value: FloatArray, rows: IntArray) -> FloatArray:
            """Return what both orders prove of the rows, (2, N)."""
            proven = []
            for order in packed:
                bounds = np.empty(model.rows), np.empty(model.rows)
                order.run(sequential_rows, value, rows, bounds)
                proven.append(bounds[0 if Side.BELOW in proves else 1][rows])
            return np.array(proven)

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            leave_open(proves, rows, below, above)
            if Side.BELOW in proves:
                below[rows] = bounds_of(value, rows).max(axis=0)
            else:
                above[rows] = bounds_of(value, rows).min(axis=0)

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            begin = successor_starts(model, rows)
            out = np.empty(begin[-1])
            best = np.argmax(-nature.sign * bounds_of(value, rows), axis=0)  # the first if equal
            for number, order in enumerate(packed):
                mine = np.flatnonzero(best == number)
                order.run(sequential_answers, value, rows[mine], begin[mine], out)
            return out

        return PreparedInner(proves, backup, respond)
