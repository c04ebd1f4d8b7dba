"""What was seen so far: the sufficient statistics of every confidence set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.types import AnyArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts per outcome, identifier and row; the arrays are added to in place.

    `first` is what an outcome's own sequence needs that starts when it is first seen: after
    sample number first[o] of its identifier (from 1; 0: never seen).
    """

    counts: IntArray  # (O,)
    totals: IntArray  # (M,) samples of every identifier
    first: IntArray  # (O,)
    visits: IntArray  # (R,) times a row was taken; empty if nobody asks

    @staticmethod
    def empty(model: FactoredMDP, visits: bool = False) -> Tally:
        """Return zeros for the identifiers of a learning model."""
        outcomes, identifiers = len(model.marginals.nominal), len(model.marginals)
        sizes = (outcomes, identifiers, outcomes, model.rows if visits else 0)
        return Tally(*(np.zeros(size, dtype=np.int64) for size in sizes))

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """All of it, in the order of the kernels."""
        return self.counts, self.totals, self.first, self.visits

    def state(self) -> dict[str, AnyArray]:
        """Return copies that `restore` reads."""
        names = ("counts", "totals", "first", "visits")
        return {name: a.copy() for name, a in zip(names, self.arrays, strict=True)}

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from a saved state."""
        for name in ("counts", "totals", "first", "visits"):
            getattr(self, name)[:] = state[name]
