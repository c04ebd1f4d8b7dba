"""Interval arithmetic: the loose product of PRISM and Storm; see `kernels.products`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rfmdp.inner.packing import PackedModel, interval_scratch
from rfmdp.inner.protocol import PreparedRows, relaxation_side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class IntervalArithmetic:
    """Relaxation: joint probabilities between the products of the marginals' bounds.

    Only bounds are read, so every set fits; one that is not a box is replaced by its enclosing
    box. Bounds that a PRISM text states are taken as they are, as PRISM does.
    """

    name: ClassVar[str] = "interval"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind to a model."""
        from rfmdp.kernels.products import interval_answers, interval_rows

        model = model.with_marginals(model.marginals.as_stated())
        packed = PackedModel(model, nature, memory=interval_scratch)

        def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
            packed.run(interval_rows, value, rows, bounds)

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            return packed.joint(interval_answers, value, rows)

        return PreparedRows(relaxation_side(nature), backup, respond)
