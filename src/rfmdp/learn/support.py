"""What may be assumed about outcomes that were never seen.

- `DeclaredSupport()`: the model lists all outcomes (the paper); an observation outside is an
  error that voids the guarantee.
- `DomainSupport()`: only the domain of the factor is known. Seen outcomes get a confidence
  sequence each, started after their first appearance; all unseen ones together get the
  missing-mass bound, and nature puts that mass on the worst value of the domain.
- `FloorSupport(p_min)`: every positive probability is at least p_min. After enough samples
  without a new outcome the support is complete.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.learn.confidence import DRAWS, SUPPORT, BernoulliSet, Validity
from rfmdp.types import BoolArray, FloatArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class DeclaredSupport:
    """The declared outcomes are all outcomes."""

    assumptions = (SUPPORT,)

    def check(self, marginal: str, observed: str, declared: tuple[str, ...]) -> None:
        """Raise ModelError if an observation lies outside the declared outcomes."""
        if observed not in declared:
            raise ModelError(
                f"Marginal {marginal}: every observation must be one of its declared outcomes "
                f"({', '.join(declared)}), found {observed}. Guarantees given so far are void: "
                "declare the outcome, or learn with DomainSupport()."
            )


@dataclass(frozen=True, slots=True)
class DomainSupport:
    """Any value of the factor's domain may be an outcome."""

    assumptions = (DRAWS, "every outcome lies in the declared domain of its factor")

    def missing_mass(self, distinct: ArrayLike, since: ArrayLike, delta: ArrayLike) -> FloatArray:
        """Return the upper bound of the unseen mass; see `missing_mass`."""
        return missing_mass(distinct, since, delta)

    def seen(
        self, base: BernoulliSet, rank: ArrayLike, x: ArrayLike, n: ArrayLike, delta: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the seen outcomes, anytime valid.

        The `rank`-th discovered outcome gets delta / (rank (rank + 1)): the cost does not
        depend on the size of the domain.

        Parameters
        ----------
        base : BernoulliSet
            An anytime-valid one.
        rank : array_like
            1 for the outcome of the first sample, 2 for the next new one, and so on.
        x, n : array_like
            Counts of the outcome and of all samples, *after* its first appearance.
        delta : array_like
            Error probability of all seen outcomes of the marginal together.
        """
        if base.validity is not Validity.ANYTIME:
            raise ModelError(
                f"DomainSupport: the start of an outcome's sequence is random, so its set must "
                f"be anytime valid, found {base.label} ({base.validity.value}); use Mixture()."
            )
        return base.interval(x, n, discovery_delta(delta, rank))


@dataclass(frozen=True, slots=True)
class FloorSupport:
    """Every probability is 0 or at least p_min."""

    p_min: float

    def __post_init__(self) -> None:
        if not 0.0 < self.p_min < 1.0:
            raise ModelError(f"FloorSupport: p_min must lie in (0, 1), found {self.p_min}.")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The floor is the user's claim, not the data's."""
        return (DRAWS, f"every possible outcome has probability at least p_min = {self.p_min:g}")

    def samples_needed(self, distinct: ArrayLike, delta: ArrayLike) -> FloatArray:
        """Return how many samples without a new outcome complete the support.

        ln(1/delta_r) / -ln(1 - p_min), rounded upwards, delta_r = delta / (r (r+1)).
        """
        level = np.log(discovery_delta(delta, distinct))
        samples = level / math.log1p(-self.p_min) * (1.0 + 8.0 * _EPS)
        return np.asarray(np.ceil(samples))

    def complete(self, distinct: ArrayLike, since: ArrayLike, delta: ArrayLike) -> BoolArray:
        """Tell which supports are complete: unseen outcomes are impossible (error <= delta)."""
        seen = np.asarray(distinct) >= 1
        needed = self.samples_needed(np.maximum(distinct, 1), delta)
        return np.asarray(seen & (np.asarray(since) >= needed))


def missing_mass(distinct: ArrayLike, since: ArrayLike, delta: ArrayLike) -> FloatArray:
    """Return 1 - delta_r**(1/m), an upper bound of the probability of all unseen outcomes.

    r = `distinct` outcomes seen, m = `since` samples since the last new one,
    delta_r = delta / (r (r+1)). Valid at all times together: at the r-th discovery the missing
    mass U is fixed, and the bound fails only if the wait for the next new outcome exceeds the
    first m with (1 - U)^m < delta_r, which has a probability below delta_r; these sum to delta.

    Examples
    --------
    >>> print(f"{missing_mass(3, 1000, 1e-7):.10f}")
    0.0184310345
    """
    ranks, waits, level = np.broadcast_arrays(distinct, since, delta)
    seen = (ranks >= 1) & (waits >= 1)
    logs = np.log(discovery_delta(level, np.maximum(ranks, 1)))
    bound = -np.expm1(logs / np.maximum(waits, 1)) * (1.0 + 4.0 * _EPS)
    return np.where(seen, np.minimum(bound, 1.0), 1.0)


def discovery_delta(delta: ArrayLike, rank: ArrayLike) -> FloatArray:
    """Return delta / (r (r+1)) for the r-th discovery; all together cost delta."""
    ranks = np.asarray(rank, dtype=np.float64)
    if np.any(ranks < 1):
        raise ModelError("Discovery: ranks start at 1; an outcome never seen has none.")
    return np.asarray(np.asarray(delta, dtype=np.float64) / (ranks * (ranks + 1.0)))
