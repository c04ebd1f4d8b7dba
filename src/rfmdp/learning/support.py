"""What may be assumed about outcomes that were never seen.

- `DeclaredSupport()`: the model lists all outcomes, as in the paper. Another observation is an
  error that voids the guarantee.
- `SparseSupport(p_min)`: the model lists all outcomes, perhaps a whole domain, but few of them
  happen. Every seen outcome gets a confidence sequence that starts after its first appearance. All
  unseen ones together get the missing-mass bound. With `p_min`, every positive probability of a
  marginal is at least that (products of n of them p_min^n), so the support is complete after enough
  samples without a new outcome.

`DiscoveredOutcomes` makes confidence sets of intervals and the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import DRAWS, SUPPORT, BernoulliSet, Validity, boxes_of
from rfmdp.ragged import owners, segment_sum
from rfmdp.record import Assumption
from rfmdp.rounding import EPS
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, IntArray

CERTAIN = Assumption("certain")


@dataclass(frozen=True, slots=True)
class DeclaredSupport:
    """The declared outcomes are all outcomes."""

    assumptions = (SUPPORT,)


@dataclass(frozen=True, slots=True)
class SparseSupport:
    """All outcomes are listed, and few of them may happen; with p_min: none is less probable."""

    p_min: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.p_min < 1.0:
            raise ModelError(f"SparseSupport: p_min must lie in [0, 1), found {self.p_min}.")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The list is complete, and a floor holds for what is possible."""
        if self.p_min == 0.0:
            return (DRAWS, SUPPORT)
        return (SUPPORT, DRAWS, CERTAIN, Assumption("possible-floor", p_min=self.p_min))


def missing_mass(
    distinct: ArrayLike, since: ArrayLike, delta: ArrayLike, floors: ArrayLike = 0.0
) -> FloatArray:
    """Return 1 - delta_r**(1/m), an upper bound of the probability of all unseen outcomes.

    r = `distinct` outcomes seen, m = `since` samples since the last new one,
    delta_r = delta / (r (r+1)). Valid at all times together: at the r-th discovery the missing
    mass U is fixed, and the bound fails only if the wait for the next new outcome exceeds the
    first m with (1 - U)^m < delta_r, which has a probability below delta_r; these sum to delta.

    Where every possible outcome has a probability of at least `floors`, a smaller missing mass is
    none: the bound is 0 once it is below the floor, after `samples_needed`. That fails with the
    same events, so it costs nothing.

    Examples
    --------
    >>> print(f"{missing_mass(3, 1000, 1e-7):.10f}")
    0.0184310345
    """
    ranks, waits, level, least = np.broadcast_arrays(distinct, since, delta, floors)
    rank = np.maximum(ranks, 1)
    logs = np.log(discovery_delta(level, rank))
    bound = -np.expm1(logs / np.maximum(waits, 1)) * (1.0 + 4.0 * EPS)
    bound = np.where(waits >= samples_needed(rank, level, least), 0.0, np.minimum(bound, 1.0))
    return np.where((ranks >= 1) & (waits >= 1), bound, 1.0)


def samples_needed(distinct: ArrayLike, delta: ArrayLike, floors: ArrayLike) -> FloatArray:
    """Return how many samples without a new outcome complete a support with such floors.

    ln(1/delta_r) / -ln(1 - floor), rounded upwards, delta_r = delta / (r (r+1)); infinite for
    floors of 0.
    """
    level = np.log(discovery_delta(delta, distinct))
    least = np.asarray(floors, dtype=np.float64)
    samples = level / np.log1p(-np.where(least > 0.0, least, 0.5)) * (1.0 + 8.0 * EPS)
    return np.where(least > 0.0, np.ceil(samples), np.inf)


def discovery_delta(delta: ArrayLike, rank: ArrayLike) -> FloatArray:
    """Return delta / (r (r+1)) for the r-th discovery; all together cost delta."""
    ranks = np.asarray(rank, dtype=np.float64)
    if np.any(ranks < 1):
        raise ModelError("Discovery: ranks start at 1; an outcome never seen has none.")
    return np.asarray(np.asarray(delta, dtype=np.float64) / (ranks * (ranks + 1.0)))


Support: TypeAlias = DeclaredSupport | SparseSupport


@dataclass(frozen=True, slots=True)
class DiscoveredOutcomes:
    """Boxes of identifiers with outcomes that may never happen.

    One event per identifier: half of its error probability bounds what was never seen, half is
    for the intervals of the outcomes that were.
    """

    base: BernoulliSet
    support: SparseSupport

    def __post_init__(self) -> None:
        if not hasattr(self.base, "interval"):
            raise ModelError(
                f"Unknown support: needs intervals per outcome, found {self.base.label}; "
                "use Mixture()."
            )
        if self.base.validity is not Validity.ANYTIME:
            raise ModelError(
                f"Unknown support: the start of an outcome's sequence is random, so its set must "
                f"be anytime valid, found {self.base.label} ({self.base.validity.value}); use "
                "Mixture()."
            )

    @property
    def label(self) -> str:
        """Name with that of the base."""
        return f"{self.base.label}, unknown support"

    @property
    def validity(self) -> Validity:
        """That of the base: anytime."""
        return self.base.validity

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the base and of the support; declared outcomes need not be all."""
        rest = tuple(line for line in self.base.assumptions if line != SUPPORT)
        return tuple(dict.fromkeys((*rest, *self.support.assumptions)))

    def events(self, outcomes: IntArray) -> IntArray:
        """Return 1 each."""
        return np.ones(len(outcomes), dtype=np.int64)

    def discovered(
        self,
        outcome_ptr: IntArray,
        counts: IntArray,
        first: IntArray,
        delta: FloatArray,
        floors: FloatArray,
    ) -> Marginals:
        """Return the boxes, from counts, times of discovery (`Tally.first`) and floors (M,)."""
        owner = owners(outcome_ptr)
        samples = segment_sum(counts.astype(np.float64), outcome_ptr).astype(np.int64)
        distinct = segment_sum((counts > 0).astype(np.float64), outcome_ptr).astype(np.int64)
        last = np.zeros(len(samples), dtype=np.int64)
        np.maximum.at(last, owner, first)
        since = samples - last
        spend = np.where(delta > 0.0, delta, 0.5) / 2.0
        mass = missing_mass(distinct, since, spend, floors)
        unseen = np.where(delta > 0.0, mass, 1.0)
        lower = np.zeros(len(counts))
        upper = unseen[owner]
        seen = np.flatnonzero((counts > 0) & (delta[owner] > 0.0))
        upper[seen] = 1.0
        lower[seen] = floors[owner[seen]]
        later = samples[owner[seen]] - first[seen]
        rank = _ranks(owner[seen], first[seen])
        some = later > 0
        at, j = seen[some], owner[seen[some]]
        # the cost of an outcome depends on its rank, not on the size of the domain
        share = discovery_delta(spend[j], rank[some])
        low, high = self.base.interval(counts[at] - 1, later[some], share)
        lower[at] = np.maximum(low, floors[j])
        upper[at] = high
        return boxes_of(outcome_ptr, counts, lower, upper)


def _ranks(owner: IntArray, first: IntArray) -> IntArray:
    """Return 1 for the first discovery of every owner, 2 for the next, and so on."""
    order = np.lexsort((first, owner))
    sorted_owner = owner[order]
    new = np.flatnonzero(np.diff(sorted_owner, prepend=-1))
    begin = np.repeat(new, np.diff(new, append=len(owner)))
    ranks = np.empty(len(owner), dtype=np.int64)
    ranks[order] = np.arange(len(owner)) - begin + 1
    return ranks
