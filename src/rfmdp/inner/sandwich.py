"""Two inner solvers as one: a relaxation proves one side, a restriction the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.protocol import Inner, InnerStats, PreparedInner, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Sandwich:
    """Join a relaxation with a restriction, so that both sides are proven."""

    relaxation: Inner
    restriction: Inner

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return f"{self.relaxation.name}+{self.restriction.name}"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedSandwich:
        """Bind both; raise `UnsupportedError` if together they do not prove both sides."""
        parts = (self.relaxation.prepare(model, nature), self.restriction.prepare(model, nature))
        if parts[0].proves | parts[1].proves != Side.BOTH:
            raise UnsupportedError(
                f"Sandwich: {self.relaxation.name} and {self.restriction.name} prove the same "
                "side; join a relaxation (such as McCormick) with a restriction (Alternating)."
            )
        return PreparedSandwich(*parts)


class PreparedSandwich:
    """`Sandwich` bound to a model and a direction."""

    proves = Side.BOTH

    def __init__(self, relaxation: PreparedInner, restriction: PreparedInner) -> None:
        self._relaxation, self._restriction = relaxation, restriction

    @property
    def stats(self) -> InnerStats:
        """What the relaxation did; the restriction solves the same rows."""
        return self._relaxation.stats

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill both sides, each with the better of the two proofs."""
        low, high = np.empty_like(below), np.empty_like(above)
        self._relaxation.backup(value, rows, below, above)
        self._restriction.backup(value, rows, low, high)
        below[rows] = np.maximum(below[rows], low[rows])
        above[rows] = np.minimum(above[rows], high[rows])

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the restriction's answer, which is a member of the product set."""
        return self._restriction.respond(value, rows)
