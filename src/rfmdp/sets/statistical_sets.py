"""Sets of whole marginals that learning makes: KL balls and lower probabilities of all subsets.

Neither has a short list of vertices; both have linear minimisers, so every inner solver that
needs no vertices takes them. Their minima are proven from below (see `kernels.statistical`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import FloatArray, frozen

ROUNDING = 1e-12  # lower probabilities may contradict each other by this much


@dataclass(frozen=True, slots=True, eq=False)
class KLBall:
    """{p : KL(nominal || p) <= radius}; an infinite radius is the whole simplex.

    Examples
    --------
    >>> from rfmdp.sets import bounds
    >>> low, high = bounds(KLBall(np.array([0.5, 0.5]), 0.1))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.287, 0.287], [0.713, 0.713])
    """

    nominal: FloatArray  # (X,)
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "nominal", _distribution(self.nominal))
        object.__setattr__(self, "radius", float(self.radius))
        if not self.radius >= 0.0:
            raise ModelError(f"KLBall: radius must be >= 0, got {self.radius!r}.")

    @property
    def size(self) -> int:
        """Number of outcomes."""
        return len(self.nominal)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetSet:
    """{p : p(A) >= lower[A] for every set A of outcomes}, A as a bitmask; bit i is outcome i.

    The minimiser is exact if `lower` is supermodular, else a lower bound.
    """

    lower: FloatArray  # (2**X,)
    nominal: FloatArray  # (X,) a member

    def __post_init__(self) -> None:
        object.__setattr__(self, "nominal", _distribution(self.nominal))
        table = np.ascontiguousarray(self.lower, dtype=np.float64)
        if table.shape != (2 ** len(self.nominal),):
            raise ModelError(
                f"SubsetSet: {2 ** len(self.nominal)} lower probabilities must be given for "
                f"{len(self.nominal)} outcomes, got shape {table.shape}."
            )
        if not np.all((table >= 0.0) & (table <= 1.0)) or table[0] != 0.0 or table[-1] != 1.0:
            raise ModelError(
                "SubsetSet: lower probabilities must lie in [0, 1], that of the empty set is 0 "
                "and that of all outcomes 1."
            )
        if np.any(table + table[::-1] > 1.0 + ROUNDING):
            raise ModelError("SubsetSet: a set and its complement must not both be that likely.")
        object.__setattr__(self, "lower", frozen(table))

    @property
    def size(self) -> int:
        """Number of outcomes."""
        return len(self.nominal)


def _distribution(nominal: FloatArray) -> FloatArray:
    """Check a distribution by the rules of all sets."""
    from rfmdp.sets.families import Singleton  # which imports this module

    return Singleton(nominal).nominal
