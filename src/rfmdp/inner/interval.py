"""Interval arithmetic: the loose product of PRISM and Storm; see `kernels.interval`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.bound import Bound, corners_of, inputs, successor_starts
from rfmdp.inner.layout import Work, interval_scratch, pack_rows
from rfmdp.inner.protocol import InnerStats, Side, relaxation_side
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
        none = corners_of(model, np.empty(0, dtype=np.int64))
        bound = Bound(model, nature, pack_rows(model), none, interval_scratch)
        return PreparedInterval(bound, nature)


class PreparedInterval:
    """`IntervalArithmetic` bound to a model and a direction."""

    def __init__(self, bound: Bound, nature: Direction) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._bound = bound

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the relaxation's side of the wanted rows; the other side is infinite."""
        from rfmdp.kernels.interval import interval_rows

        b = self._bound
        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            interval_rows(b.sets, b.rows, work, rows[chosen], value, b.sign, below, above)

        b.run(rows, part)
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the attaining joint distributions over the successors of `rows`."""
        from rfmdp.kernels.interval import interval_answers

        b = self._bound
        value, rows = inputs(value, rows)
        begin = successor_starts(b.model, rows)
        out = np.empty(begin[-1])

        def part(work: Work, chosen: slice) -> None:
            interval_answers(b.sets, b.rows, work, rows[chosen], value, b.sign, begin[chosen], out)

        b.run(rows, part)
        return out
