"""Coordinate descent for nature from several starts: a restriction with a witness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rfmdp.errors import ModelError
from rfmdp.inner.packing import Answers, PackedModel, branching_weight, pack_rows, prepared_products
from rfmdp.inner.protocol import PreparedRows, restriction_side
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

    name: ClassVar[str] = "alternating"  # as on the command line

    starts: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ModelError(f"Alternating: starts must be >= 1, got {self.starts}.")

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind to a model; every set that has a linear minimiser fits."""
        packed = PackedModel(model, nature, pack_rows(model, branching_weight(model)))

        def solve(value: FloatArray, rows: IntArray, answers: Answers, *bounds: FloatArray) -> None:
            from rfmdp.kernels.products import alternating_rows

            packed.run(alternating_rows, value, rows, self.starts, self.seed, answers, bounds)

        return prepared_products(packed, restriction_side(nature), solve)
