"""Coordinate descent for nature from several starts: a restriction with a witness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.bound import Bound, RowSolver, branching_weight, corners_of, inputs
from rfmdp.inner.layout import Work, pack_rows
from rfmdp.inner.protocol import InnerStats, Side, restriction_side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Alternating:
    """Restriction: fix all marginals but one, give that one to its minimiser, repeat.

    Parameters
    ----------
    starts
        Products to start from: the sequential answer, then random members.
    seed
        Of the random members; the result does not depend on the number of threads.
    """

    starts: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ModelError(f"Alternating: starts must be >= 1, got {self.starts}.")

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "alternating"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedAlternating:
        """Bind to a model; every set that has a linear minimiser fits."""
        none = corners_of(model, np.empty(0, dtype=np.int64))
        bound = Bound(model, nature, pack_rows(model, branching_weight(model)), none)
        return PreparedAlternating(self, bound, nature)


class PreparedAlternating(RowSolver):
    """`Alternating` bound to a model and a direction."""

    def __init__(self, settings: Alternating, bound: Bound, nature: Direction) -> None:
        self.proves: Side = restriction_side(nature)
        self.stats = InnerStats()
        self._settings = settings
        self._bound = bound

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the restriction's side of the wanted rows; the other side is infinite."""
        self._run(value, rows, np.empty(0, np.int64), np.empty(0), below, above)
        self.stats.rows += len(rows)

    def _run(
        self,
        value: FloatArray,
        rows: IntArray,
        where: IntArray,
        answer: FloatArray,
        below: FloatArray,
        above: FloatArray,
    ) -> None:
        from rfmdp.kernels.plain import alternating_rows

        b, settings = self._bound, self._settings
        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            alternating_rows(
                b.sets, b.rows, work, rows[chosen], value, b.sign, settings.starts, settings.seed,
                where[chosen], answer, below, above,
            )  # fmt: skip

        b.run(rows, part)
