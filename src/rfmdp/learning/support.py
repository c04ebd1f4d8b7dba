"""What may be assumed about outcomes that were never seen.

- `DeclaredSupport()`: the model lists all outcomes (the paper); an observation outside is an
  error that voids the guarantee.
- `DomainSupport()`: nothing. Seen outcomes get a confidence sequence each, started after their
  first appearance; all unseen ones together get the missing-mass bound, and lead to the worst
  that can happen (see `rfmdp.learning.unseen`).
- `FloorSupport(p_min)`: every positive probability of a marginal is at least p_min (products of n
  of them p_min^n). After enough samples without a new outcome the support is complete.

- `SparseSupport(p_min)`: the model lists all outcomes, a whole domain say, of which few may happen.
  Bounds are those of the two before; nothing leads anywhere else.

`Discovery` joins one of the latter three with intervals into a confidence set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import DRAWS, SUPPORT, BernoulliSet, Validity
from rfmdp.learning.packed_sets import empirical, packed
from rfmdp.ragged import owners, segment_sum
from rfmdp.sets.bounds import tighten
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
CERTAIN = "moves that the model declares as certain are certain"


@dataclass(frozen=True, slots=True)
class DeclaredSupport:
    """The declared outcomes are all outcomes."""

    assumptions = (SUPPORT,)


@dataclass(frozen=True, slots=True)
class DomainSupport:
    """Outcomes that were never seen are possible, whatever their number."""

    assumptions = (DRAWS, CERTAIN)

    def missing_mass(
        self, distinct: ArrayLike, since: ArrayLike, delta: ArrayLike, floors: ArrayLike
    ) -> FloatArray:
        """Return the upper bound of the unseen mass; see `missing_mass`."""
        return missing_mass(distinct, since, delta)


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
        floor = (
            f"every possible outcome of a marginal has probability at least p_min = {self.p_min}"
        )
        return (DRAWS, CERTAIN, floor)

    def missing_mass(
        self, distinct: ArrayLike, since: ArrayLike, delta: ArrayLike, floors: ArrayLike
    ) -> FloatArray:
        """Return the upper bound of the unseen mass: 0 once the support is complete.

        Completeness fails with the same events as the bound of the mass, so it costs nothing.
        """
        open_mass = missing_mass(distinct, since, delta)
        return np.where(complete(distinct, since, delta, floors), 0.0, open_mass)


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
        return (SUPPORT, *FloorSupport(self.p_min).assumptions)

    def missing_mass(
        self, distinct: ArrayLike, since: ArrayLike, delta: ArrayLike, floors: ArrayLike
    ) -> FloatArray:
        """Return the upper bound of the unseen mass, 0 once a floor says so."""
        if self.p_min == 0.0:
            return missing_mass(distinct, since, delta)
        return FloorSupport(self.p_min).missing_mass(distinct, since, delta, floors)


def samples_needed(distinct: ArrayLike, delta: ArrayLike, floors: ArrayLike) -> FloatArray:
    """Return how many samples without a new outcome complete a support with such floors.

    ln(1/delta_r) / -ln(1 - floor), rounded upwards, delta_r = delta / (r (r+1)).
    """
    level = np.log(discovery_delta(delta, distinct))
    samples = level / np.log1p(-np.asarray(floors)) * (1.0 + 8.0 * _EPS)
    return np.asarray(np.ceil(samples))


def complete(
    distinct: ArrayLike, since: ArrayLike, delta: ArrayLike, floors: ArrayLike
) -> BoolArray:
    """Return which supports are complete: unseen outcomes are impossible (error <= delta)."""
    seen = np.asarray(distinct) >= 1
    needed = samples_needed(np.maximum(distinct, 1), delta, floors)
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


Support: TypeAlias = DeclaredSupport | DomainSupport | FloorSupport | SparseSupport


@dataclass(frozen=True, slots=True)
class Discovery:
    """Boxes of identifiers with outcomes that may never happen.

    Unless the model lists all outcomes, the last one stands for those that it does not list.

    One event per identifier: half of its error probability bounds what was never seen, half is
    for the intervals of the outcomes that were.
    """

    base: BernoulliSet
    support: DomainSupport | FloorSupport | SparseSupport

    def __post_init__(self) -> None:
        if not hasattr(self.base, "interval"):
            raise ModelError(
                f"Unknown support: needs intervals per outcome, found {self.base.label}; "
                "use Mixture()."
            )
        require_anytime(self.base)

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
        mass = self.support.missing_mass(distinct, since, spend, floors)
        unseen = np.where(delta > 0.0, mass, 1.0)
        lower, upper = np.zeros(len(counts)), unseen[owner]
        seen = np.flatnonzero((counts > 0) & (delta[owner] > 0.0))
        upper[seen] = 1.0
        lower[seen] = floors[owner[seen]]
        later = samples[owner[seen]] - first[seen]
        rank = _ranks(owner[seen], first[seen])
        some = later > 0
        at, j = seen[some], owner[seen[some]]
        low, high = seen_intervals(self.base, rank[some], counts[at] - 1, later[some], spend[j])
        lower[at], upper[at] = np.maximum(low, floors[j]), high
        lower, upper = tighten(outcome_ptr, lower, upper)
        return packed(outcome_ptr, Kind.BOX, empirical(outcome_ptr, counts), lower, upper)


def _ranks(owner: IntArray, first: IntArray) -> IntArray:
    """Return 1 for the first discovery of every owner, 2 for the next, and so on."""
    order = np.lexsort((first, owner))
    sorted_owner = owner[order]
    new = np.flatnonzero(np.diff(sorted_owner, prepend=-1))
    begin = np.repeat(new, np.diff(new, append=len(owner)))
    ranks = np.empty(len(owner), dtype=np.int64)
    ranks[order] = np.arange(len(owner)) - begin + 1
    return ranks


def require_anytime(base: BernoulliSet) -> None:
    """Raise ModelError unless a set may start at a random time."""
    if base.validity is not Validity.ANYTIME:
        raise ModelError(
            f"Unknown support: the start of an outcome's sequence is random, so its set must be "
            f"anytime valid, found {base.label} ({base.validity.value}); use Mixture()."
        )


def seen_intervals(
    base: BernoulliSet, rank: ArrayLike, x: ArrayLike, n: ArrayLike, delta: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of outcomes that were seen, anytime valid.

    The `rank`-th discovered outcome gets delta / (rank (rank + 1)): the cost does not depend on
    the size of the domain.

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
    require_anytime(base)
    return base.interval(x, n, discovery_delta(delta, rank))
