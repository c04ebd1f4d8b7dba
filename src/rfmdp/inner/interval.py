"""Interval arithmetic: the loose product of PRISM and Storm; see `kernels.interval`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.packed_model import PackedModel
from rfmdp.inner.packing import corners_of, interval_scratch, pack_rows
from rfmdp.inner.protocol import InnerStats, Side, relaxation_side, successor_starts
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class IntervalArithmetic:
    """Relaxation: joint probabilities between the products of the marginals' bounds.

    Only bounds are read, so every set fits; one that is not a box is replaced by its enclosing
    box. Bounds that a PRISM text states are taken as they are, as PRISM does.
    """

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "interval"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInterval:
        """Bind to a model."""
        model = model.with_marginals(model.marginals.as_stated())
        packed = PackedModel(model, nature, pack_rows(model), corners_of(model), interval_scratch)
        return PreparedInterval(packed, nature)


class PreparedInterval:
    """`IntervalArithmetic` bound to a model and a direction."""

    def __init__(self, packed: PackedModel, nature: Direction) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._packed = packed

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the relaxation's side of the wanted rows; the other side is infinite."""
        from rfmdp.kernels.interval import interval_rows

        self._packed.run(interval_rows, value, rows, (below, above))
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the attaining joint distributions over the successors of `rows`."""
        from rfmdp.kernels.interval import interval_answers

        begin = successor_starts(self._packed.model, rows)
        out = np.empty(begin[-1])
        self._packed.run(interval_answers, value, rows, begin, out)
        return out
