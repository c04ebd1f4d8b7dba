"""Confidence sets: objects that turn counts and error probabilities into uncertainty sets.

    confidence = Mixture()                                     # or BySize(), ClopperPearson(), ...
    ledger = EqualEvents().ledger(Shares(beta), confidence, ids)  # error probability of every event
    sets = confidence.sets(outcome_ptr, counts, ledger.delta)  # packed, one set per marginal

`delta[j]` is the error probability of *each* event of marginal `j`; the set uses `events(sizes)[j]`
of them (none for one outcome, one for two). `delta[j] = 0` leaves marginal `j` unknown.
Every set says when it is valid. *Anytime* sets hold at all times together, under any rule of
sampling and stopping. *Fixed sample size, single look* sets hold only if the sample sizes were
fixed in advance and the bounds are read once; the paper's schedule reads them often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from rfmdp.errors import ModelError
from rfmdp.learning import intervals
from rfmdp.learning.packed_sets import empirical, joined, packed, pick, with_table
from rfmdp.ragged import segment_lengths, segment_sum, starts
from rfmdp.rounding import EPS
from rfmdp.sets.bounds import kl_bounds
from rfmdp.sets.boxes import tighten
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray, IntArray

DRAWS = "every sample of a marginal is an independent draw from one fixed distribution"
SUPPORT = "the declared outcomes of a marginal are all its possible outcomes"
FIXED_SIZE = "the sample size of every marginal was fixed before sampling; bounds are read once"


class Validity(Enum):
    """When the promise of a confidence set holds."""

    SINGLE_LOOK = "fixed sample size, single look"
    ANYTIME = "anytime"


class ConfidenceSet(Protocol):
    """What every confidence set can say and do."""

    @property
    def label(self) -> str:
        """Name for tables and files."""

    @property
    def validity(self) -> Validity:
        """When the promise holds."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true of the data, in sentences to be printed."""

    def events(self, outcomes: IntArray) -> IntArray:
        """Return how many events (M,) marginals of that many outcomes (M,) use."""

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return the sets of all marginals, from counts (O,) and error per event (M,).

        A marginal without samples or without budget is the whole simplex.
        """


class BernoulliSet(ConfidenceSet, Protocol):
    """A confidence set made of intervals, one per outcome."""

    def interval(
        self, x: ArrayLike, n: ArrayLike, delta: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of probabilities seen x times in n."""


def box_events(outcomes: IntArray) -> IntArray:
    """Return 0 for one outcome, 1 for two (one mirrored interval), k for k >= 3."""
    return np.where(outcomes <= 2, outcomes - 1, outcomes).astype(np.int64)


def whole_events(outcomes: IntArray) -> IntArray:
    """Return 0 for one outcome, else 1: the marginal is treated as a whole."""
    return np.minimum(outcomes - 1, 1).astype(np.int64)


def boxes(
    base: BernoulliSet, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray
) -> Marginals:
    """Return a box per marginal, the interval of every outcome; what sets of intervals are made of.

    A marginal without samples or without budget is the whole simplex.
    """
    totals, usable = _totals(outcome_ptr, counts, delta)
    sizes = segment_lengths(outcome_ptr)
    known = np.repeat(usable, sizes)
    lower = np.repeat(np.where(sizes == 1, 1.0, 0.0), sizes)
    upper = np.ones(len(lower))
    lower[known], upper[known] = base.interval(
        np.asarray(counts)[known],
        np.repeat(totals, sizes)[known],
        np.repeat(delta, sizes)[known],
    )
    lower, upper = tighten(outcome_ptr, lower, upper)
    return packed(outcome_ptr, Kind.BOX, empirical(outcome_ptr, counts), lower, upper)


@dataclass(frozen=True, slots=True)
class ClopperPearson:
    """Exact binomial intervals, the paper's choice; see `intervals.clopper_pearson`."""

    label = "Clopper-Pearson"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)
    interval = staticmethod(intervals.clopper_pearson)
    events = staticmethod(box_events)
    sets = boxes


@dataclass(frozen=True, slots=True)
class Hoeffding:
    """Intervals of one width per sample size; see `intervals.hoeffding`."""

    label = "Hoeffding"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)
    interval = staticmethod(intervals.hoeffding)
    events = staticmethod(box_events)
    sets = boxes


@dataclass(frozen=True, slots=True)
class Mixture:
    """The scale-mixture confidence sequence, the default; see `intervals.mixture`."""

    label = "mixture sequence"
    validity = Validity.ANYTIME
    assumptions = (DRAWS, SUPPORT)
    interval = staticmethod(intervals.mixture)
    events = staticmethod(box_events)
    sets = boxes


@dataclass(frozen=True, slots=True)
class KrichevskyTrofimov:
    """The Beta(1/2, 1/2) mixture sequence; see `intervals.krichevsky_trofimov`."""

    label = "Krichevsky-Trofimov sequence"
    validity = Validity.ANYTIME
    assumptions = (DRAWS, SUPPORT)
    interval = staticmethod(intervals.krichevsky_trofimov)
    events = staticmethod(box_events)
    sets = boxes


@dataclass(frozen=True, slots=True)
class GridClopperPearson:
    """Clopper-Pearson at grid sizes only; see `intervals.grid_clopper_pearson`."""

    ratio: float = 1.1
    largest: int | None = 2**24  # largest sample size of any marginal; None: open-ended

    validity = Validity.ANYTIME
    events = staticmethod(box_events)
    sets = boxes

    @property
    def label(self) -> str:
        """Name with the grid."""
        limit = "open-ended" if self.largest is None else f"up to {self.largest}"
        return f"grid Clopper-Pearson ({self.ratio:g}, {limit})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The declared largest sample size is an assumption too."""
        if self.largest is None:
            return (DRAWS, SUPPORT)
        return (DRAWS, SUPPORT, f"no marginal is sampled more than {self.largest} times")

    def interval(
        self, x: ArrayLike, n: ArrayLike, delta: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of probabilities seen x times in n."""
        return intervals.grid_clopper_pearson(x, n, delta, ratio=self.ratio, largest=self.largest)


@dataclass(frozen=True, slots=True)
class Weissman:
    """L1 balls [WeissmanEtAl2003]: radius = sqrt(2 (ln(2^k - 2) - ln delta) / n), at most 2."""

    label = "Weissman L1"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)
    events = staticmethod(whole_events)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return an L1 ball per marginal, around the empirical distribution."""
        totals, usable = _totals(outcome_ptr, counts, delta)
        sizes = segment_lengths(outcome_ptr)
        radius = np.where(sizes == 1, 0.0, 2.0)
        k = sizes[usable].astype(np.float64)
        # ln(2^k - 2) without overflow for large k
        vertices = k * np.log(2.0) + np.log1p(-(2.0 ** (1.0 - k)))
        wide = np.sqrt(2.0 * (vertices - np.log(delta[usable])) / totals[usable])
        radius[usable] = np.minimum(wide * (1.0 + 8.0 * EPS), 2.0)
        centre = empirical(outcome_ptr, counts)
        half = np.repeat(radius / 2.0, sizes)
        lower, upper = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        return packed(outcome_ptr, Kind.L1, centre, lower, upper, radius)


@dataclass(frozen=True, slots=True)
class KLDirichlet:
    """KL balls of the Dirichlet(1/2) mixture: anytime valid, one event per marginal.

    {P : KL(Phat || P) <= rho_n}, n rho_n = ln(1/delta) - lnG(k/2) + lnG(n + k/2)
    - sum_i (lnG(x_i + 1/2) - lnG(1/2)) + sum_i x_i ln(x_i / n): the likelihood ratio of the
    mixture to P is a martingale under P, so P leaves the ball at some n with probability <= delta.
    """

    label = "KL-Dirichlet"
    validity = Validity.ANYTIME
    assumptions = (DRAWS, SUPPORT)
    events = staticmethod(whole_events)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return a KL ball per marginal; rho is rounded upwards."""
        totals, usable = _totals(outcome_ptr, counts, delta)
        sizes = segment_lengths(outcome_ptr)
        x = np.asarray(counts, dtype=np.float64)
        visits = np.repeat(np.maximum(totals, 1.0), sizes)
        logs = np.where(x > 0, x * np.log(np.maximum(x, 1.0) / visits), 0.0)
        terms = logs - gammaln(x + 0.5) + gammaln(0.5)
        n = totals[usable]
        k = sizes[usable].astype(np.float64)
        evidence = -np.log(delta[usable]) - gammaln(k / 2) + gammaln(n + k / 2)
        rounding = 8.0 * EPS * (np.abs(evidence) + (n + k) * np.log(n + k + 2.0))
        rho = np.where(sizes == 1, 0.0, np.inf)
        rho[usable] = (evidence + segment_sum(terms, outcome_ptr)[usable] + rounding) / n
        centre = empirical(outcome_ptr, counts)
        lower, upper = kl_bounds(centre, np.repeat(rho, sizes))
        return packed(outcome_ptr, Kind.KL, centre, lower, upper, rho)


@dataclass(frozen=True, slots=True)
class AllSubsets:
    """P(A) >= l(x(A), n) for every set A of outcomes, by the intervals of `base`.

    2^(k-1) - 1 events: a set and its complement share one interval. For three outcomes this is
    the box of `base`; for more it is smaller than the box, at most `most_outcomes` of them.
    """

    base: BernoulliSet
    most_outcomes: int = 10

    @property
    def label(self) -> str:
        """Name with that of the base."""
        return f"all subsets, {self.base.label}"

    @property
    def validity(self) -> Validity:
        """That of the base."""
        return self.base.validity

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.assumptions

    def events(self, outcomes: IntArray) -> IntArray:
        """Return 2^(k-1) - 1."""
        self._check(outcomes)
        return 2 ** (np.asarray(outcomes, dtype=np.int64) - 1) - 1

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return the lower probabilities of every set of outcomes, by bitmask, per marginal."""
        totals, usable = _totals(outcome_ptr, counts, delta)
        sizes = segment_lengths(outcome_ptr)
        self._check(sizes)
        mask_ptr = starts(2**sizes)
        lower = np.zeros(int(mask_ptr[-1]))
        lower[mask_ptr[1:] - 1] = 1.0
        for k in np.unique(sizes[usable]):
            rows = np.flatnonzero(usable & (sizes == k))
            # masks without the last outcome: one of every complementary pair
            masks = np.arange(1, 2 ** (k - 1))
            bits = (masks[:, None] >> np.arange(k)) & 1
            x = np.asarray(counts)[outcome_ptr[rows, None] + np.arange(k)] @ bits.T
            low, high = self.base.interval(x, totals[rows, None], delta[rows, None])
            lower[mask_ptr[rows, None] + masks] = low
            lower[mask_ptr[rows + 1, None] - 1 - masks] = np.maximum(1.0 - high, 0.0)
        centre = empirical(outcome_ptr, counts)
        sets = packed(
            outcome_ptr, Kind.SUBSETS, centre, np.zeros(len(centre)), np.ones(len(centre))
        )
        return with_table(replace(sets, corner_ptr=mask_ptr), lower)

    def _check(self, outcomes: IntArray) -> None:
        largest = int(np.max(outcomes, initial=0))
        if largest > self.most_outcomes:
            raise ModelError(
                f"AllSubsets: marginals must have at most {self.most_outcomes} outcomes, found "
                f"{largest} ({2 ** (largest - 1) - 1} events); use KLDirichlet."
            )


@dataclass(frozen=True, slots=True)
class BySize:
    """One set for small marginals, another from `large_from` outcomes on.

    Boxes waste samples on marginals of many outcomes, whole-marginal sets on those of few; the
    default is what needed the fewest samples in comparisons.
    """

    small: ConfidenceSet = Mixture()
    large: ConfidenceSet = KLDirichlet()
    large_from: int = 4

    @property
    def label(self) -> str:
        """Name with both parts."""
        return f"{self.small.label}, from {self.large_from} outcomes {self.large.label}"

    @property
    def validity(self) -> Validity:
        """Anytime only if both parts are."""
        parts = (self.small.validity, self.large.validity)
        return Validity.SINGLE_LOOK if Validity.SINGLE_LOOK in parts else Validity.ANYTIME

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of both parts, each once."""
        return tuple(dict.fromkeys((*self.small.assumptions, *self.large.assumptions)))

    def events(self, outcomes: IntArray) -> IntArray:
        """Return the events of the part that a marginal belongs to."""
        outcomes = np.asarray(outcomes, dtype=np.int64)
        large = outcomes >= self.large_from
        events = np.zeros(len(outcomes), dtype=np.int64)
        events[~large] = self.small.events(outcomes[~large])
        events[large] = self.large.events(outcomes[large])
        return events

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return the sets of both parts, each for its own marginals."""
        _totals(outcome_ptr, counts, delta)
        sizes = segment_lengths(outcome_ptr)
        large = sizes >= self.large_from
        parts, chosen = [], []
        for family, which in ((self.small, ~large), (self.large, large)):
            own = np.asarray(counts)[np.repeat(which, sizes)]
            parts.append(family.sets(starts(sizes[which]), own, delta[which]))
            chosen.append(np.flatnonzero(which))
        return pick(joined(parts), np.argsort(np.concatenate(chosen)))


def _totals(
    outcome_ptr: IntArray, counts: IntArray, delta: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return samples of every marginal, and which of them have samples, budget and two outcomes."""
    marginals = len(outcome_ptr) - 1
    if len(counts) != outcome_ptr[-1] or len(delta) != marginals:
        raise ModelError(
            f"Confidence set: {outcome_ptr[-1]} counts and {marginals} deltas must be given, "
            f"found {len(counts)} and {len(delta)}."
        )
    sizes = segment_lengths(outcome_ptr)
    if np.any(sizes < 1):
        j = int(np.argmax(sizes < 1))
        raise ModelError(f"Marginal {j}: must have at least one outcome, found none.")
    totals = segment_sum(np.asarray(counts, dtype=np.float64), outcome_ptr)
    return totals, (totals > 0) & (np.asarray(delta) > 0) & (sizes > 1)
