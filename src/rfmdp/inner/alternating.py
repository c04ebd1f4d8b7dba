"""Coordinate descent for nature from several starts: a restriction with a witness."""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.errors import ModelError
from rfmdp.inner.packed_model import NO_ANSWERS, Answers, PackedModel
from rfmdp.inner.packing import branching_weight, corners_of, pack_rows
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
        layout = pack_rows(model, branching_weight(model))
        packed = PackedModel(model, nature, layout, corners_of(model))
        return PreparedAlternating(self, packed, nature)


class PreparedAlternating:
    """`Alternating` bound to a model and a direction."""

    def __init__(self, settings: Alternating, packed: PackedModel, nature: Direction) -> None:
        self.proves: Side = restriction_side(nature)
        self.stats = InnerStats()
        self._settings = settings
        self._packed = packed

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the restriction's side of the wanted rows; the other side is infinite."""
        self._solve(value, rows, NO_ANSWERS, below, above)
        self.stats.rows += len(rows)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the best products found over the successors of `rows`, concatenated."""
        return self._packed.respond(self._solve, value, rows)

    def _solve(
        self,
        value: FloatArray,
        rows: IntArray,
        answers: Answers,
        below: FloatArray,
        above: FloatArray,
    ) -> None:
        from rfmdp.kernels.alternating import alternating_rows

        starts, seed = self._settings.starts, self._settings.seed
        self._packed.run(alternating_rows, value, rows, starts, seed, answers, (below, above))
