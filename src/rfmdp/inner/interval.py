"""Interval arithmetic: the loose product of PRISM and Storm; see `kernels.interval`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.bound import Bound, corners_of, successor_starts
from rfmdp.inner.layout import pack_rows
from rfmdp.inner.protocol import InnerStats, Side, relaxation_side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class IntervalArithmetic:
    """Relaxation: joint probabilities between the products of the marginals' bounds.

    Only attainable bounds are read, so every set fits; one that is not a box is replaced by its
    enclosing box.
    """

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "interval"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInterval:
        """Bind to a model."""
        none = corners_of(model, np.empty(0, dtype=np.int64))
        return PreparedInterval(Bound(model, nature, pack_rows(model), none), nature)


class PreparedInterval:
    """`IntervalArithmetic` bound to a model and a direction."""

    def __init__(self, bound: Bound, nature: Direction) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._bound = bound
        size = int(np.max(np.diff(bound.model.successor_ptr), initial=1))
        threads = bound.threads
        self._work = (
            *(np.zeros((threads, size + 8)) for _ in range(3)),
            np.zeros((threads, size + 128 + 8), dtype=np.int64),
            bound.work[-1],
        )

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the relaxation's side of the wanted rows; the other side is infinite."""
        from rfmdp.kernels.interval import interval_rows

        b = self._bound
        interval_rows(b.sets, b.rows, self._work, rows, value, b.sign, below, above)
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the attaining joint distributions over the successors of `rows`."""
        from rfmdp.kernels.interval import interval_answers

        b = self._bound
        begin = successor_starts(b.model, rows)
        out = np.empty(begin[-1])
        interval_answers(b.sets, b.rows, self._work, rows, value, b.sign, begin, out)
        return out
