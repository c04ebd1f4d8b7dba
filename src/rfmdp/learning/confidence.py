"""Confidence sets: from counts to intervals, to uncertainty sets, and to those of a whole run.

Functions for *intervals* map (x, n, delta), broadcast against each other, to `(lower, upper)`: x
successes in n trials, and the error probability of both sides together. They are mirror images,
upper(x, n) = 1 - lower(n - x, n), so that the two outcomes of a coin are one event. Ends are
rounded outwards.

A *confidence set* has a `label`, a `validity`, and `assumptions` about the data. `events(outcomes)`
says how many events (M,) marginals use, `sets(outcome_ptr, counts, delta)` returns their sets,
where `delta[j]` is the error probability of each event of marginal j. One without samples or
without budget is the whole simplex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rfmdp.errors import AssumptionAlarm, ModelError, UnsupportedError
from rfmdp.kernels.statistical import mixture_lower
from rfmdp.ragged import (
    entries,
    owners,
    segment,
    segment_all,
    segment_any,
    segment_lengths,
    segment_sum,
    starts,
)
from rfmdp.record import Assumption
from rfmdp.rounding import EPS, SUM_SLACK, one_minus
from rfmdp.sets.boxes import box_centres, normalised, tighten
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sources.source import informed
from rfmdp.types import AnyArray, FloatArray, IntArray

Bounds = tuple[FloatArray, FloatArray]
LowerEnd = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # of flat arrays

#: Prior sizes and weights of the mixture sequence: small sizes serve small n, large ones large n.
MIXTURE_SIZES = (1.0, 8.0, 64.0, 512.0, 4096.0, 32768.0, 262144.0)
MIXTURE_WEIGHTS = (0.40, 0.16, 0.12, 0.10, 0.08, 0.07, 0.07)


def clopper_pearson(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return the exact binomial interval [ClopperPearson1934]; fixed sample size, single look.

    lower = B(delta/2; x, n-x+1) and upper = B(1-delta/2; x+1, n-x), quantiles of Beta.
    """
    return _interval(_clopper_pearson_lower, x, n, delta)


def mixture(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return the scale-mixture confidence sequence at n; anytime valid, two-sided in one delta.

    C_n = {p : ln M_n(p) < ln(1/delta)} with M_n(p) the mixture over m, with weights w_m, of
        B(kappa_m p + x, kappa_m (1-p) + n-x) / B(kappa_m p, kappa_m (1-p)) / (p^x (1-p)^(n-x)).
    M_n(p) is a martingale of mean 1 under p, so by Ville's inequality p leaves C_n at some n with
    probability at most delta. ln M_n is convex in p, hence C_n is an interval.

    The lower end is 0 up to x = 1, whatever n: the priors move with p, and one success fits any
    small p. At x = 0 the upper end is below Clopper-Pearson's, which spends half of delta there.
    x may be a sum of observations in [0, 1] with mean p (then M_n is a supermartingale).
    """
    return _interval(_mixture_lower, x, n, delta)


def _interval(lower_end: LowerEnd, x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return both ends by mirroring, each distinct (x, n, delta) computed once."""
    arrays = [np.asarray(a, dtype=np.float64) for a in (x, n, delta)]
    successes, trials, error = np.broadcast_arrays(*arrays)
    right = (successes >= 0) & (successes <= trials) & np.isfinite(trials)
    right &= (error > 0) & (error < 1)
    if not np.all(right):
        first = int(np.argmin(right))
        raise ModelError(
            "Counts and error probability: 0 <= x <= n and 0 < delta < 1 must hold, found "
            f"x={successes.flat[first]:g}, n={trials.flat[first]:g}, delta={error.flat[first]:g}."
        )
    size = trials.size
    columns = np.stack([
        np.concatenate([successes.ravel(), (trials - successes).ravel()]),
        np.concatenate([trials.ravel()] * 2),
        np.concatenate([error.ravel()] * 2),
    ])  # fmt: skip
    different, inverse = np.unique(columns, axis=1, return_inverse=True)
    lower = np.zeros(different.shape[1])
    seen = different[1] > 0
    lower[seen] = lower_end(*np.ascontiguousarray(different[:, seen]))
    ends = lower[inverse.reshape(-1)]
    # one ulp upwards, so that rounding keeps the mirrored end an outer bound
    upper = np.minimum(np.nextafter(1.0 - ends[size:], 2.0), 1.0)
    return ends[:size].reshape(trials.shape), upper.reshape(trials.shape)


def _clopper_pearson_lower(x: FloatArray, n: FloatArray, delta: FloatArray) -> FloatArray:
    """Return a p with I_p(x, n-x+1) <= delta/2, nearly equal; 0 where x = 0.

    The inverse is only a guess: it is verified by the forward function and moved outwards, in
    doubling steps, until the inequality holds.
    """
    lower = np.zeros(len(n))
    rows = np.flatnonzero(x > 0)
    a, b = x[rows], (n - x)[rows] + 1.0
    # room for the forward function's own error, which grows with its exponents
    target = 0.5 * delta[rows] * (1.0 - 1e-12 - np.minimum(2.0 * EPS * (a + b), 0.5))
    p = special.betaincinv(a, b, target)
    p = np.where(np.isfinite(p), p, a / (a + b))
    step = 2.0 * EPS
    open_rows = np.flatnonzero(special.betainc(a, b, p) > target)
    while len(open_rows):
        p[open_rows] *= max(1.0 - step, 0.0)
        step *= 2.0
        excess = special.betainc(a[open_rows], b[open_rows], p[open_rows]) > target[open_rows]
        open_rows = open_rows[excess]
    lower[rows] = p
    return lower


def _mixture_lower(x: FloatArray, n: FloatArray, delta: FloatArray) -> FloatArray:
    sizes = np.array(MIXTURE_SIZES)
    lower = np.empty(len(n))
    # one ulp on the threshold pays for the rounding of the logarithm
    threshold = -np.log(delta) * (1.0 + 2.0 * EPS)
    mixture_lower(x, n, threshold, sizes, np.log(MIXTURE_WEIGHTS), np.empty(len(sizes)), lower)
    return lower


def least_mean(values: FloatArray, counts: IntArray, delta: float) -> float:
    """Return a lower bound of the mean of some values over the starts that were sampled.

    For all q within bounds l, u that sum to 1, and every number c,
        sum q v  >=  c + sum min(l (v - c), u (v - c)),
    with equality at the least mean if c is the value at which the mass of 1 is used up. Rounding
    is subtracted.

    values, counts : (I,) of the initial states, and episodes that began in each
    delta : error probability of each interval
    """
    lower, upper = mixture(counts, counts.sum(), delta)
    values, lower, upper = (a[upper > 0.0] for a in (values, lower, upper))
    if np.min(values) == -math.inf or np.min(values) == math.inf:
        return float(np.min(values))
    values = np.minimum(values, np.max(values[np.isfinite(values)]))  # less than infinite
    order = np.argsort(values, kind="stable")
    mass = 1.0 - float(lower.sum())
    used = np.cumsum((upper - lower)[order])
    c = float(values[order[min(int(np.searchsorted(used, mass)), len(order) - 1)]])
    terms = np.minimum(lower * (values - c), upper * (values - c))
    size = abs(c) + math.fsum(np.abs(terms)) + float(np.max(np.abs(values)))
    return max(c + math.fsum(terms) - 8.0 * EPS * size, float(np.min(values)))


DRAWS = Assumption("draws")
SUPPORT = Assumption("support")
FIXED_SIZE = Assumption("fixed-size")


class Validity(Enum):
    """When the promise of a confidence set holds."""

    SINGLE_LOOK = "fixed sample size, single look"  # sizes fixed in advance, bounds read once
    ANYTIME = "anytime"  # at all times together, under any rule of sampling and stopping


class _Boxes:
    """A confidence set made of intervals, one per outcome."""

    interval: Callable[[ArrayLike, ArrayLike, ArrayLike], Bounds]  # of x times in n

    def events(self, outcomes: IntArray) -> IntArray:
        """Return 0 for one outcome, 1 for two (one mirrored interval), k for k >= 3."""
        return np.where(outcomes <= 2, outcomes - 1, outcomes).astype(np.int64)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return a box per marginal, around the empirical distribution."""
        sizes, totals, centre = empirical(outcome_ptr, counts)
        seen = np.repeat((totals > 0) & (delta > 0) & (sizes > 1), sizes)
        lower = np.repeat(np.where(sizes == 1, 1.0, 0.0), sizes)
        upper = np.ones(len(lower))
        n, error = np.repeat(totals, sizes)[seen], np.repeat(delta, sizes)[seen]
        lower[seen], upper[seen] = self.interval(np.asarray(counts)[seen], n, error)
        kind = np.full(len(sizes), Kind.BOX)
        return Marginals.of_kind(outcome_ptr, kind, centre, *tighten(outcome_ptr, lower, upper))


@dataclass(frozen=True, slots=True)
class ClopperPearson(_Boxes):
    """Exact binomial intervals, the paper's choice; see `clopper_pearson`."""

    label = "Clopper-Pearson"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)
    interval = staticmethod(clopper_pearson)


@dataclass(frozen=True, slots=True)
class Mixture(_Boxes):
    """The scale-mixture confidence sequence, the default; see `mixture`."""

    label = "mixture sequence"
    validity = Validity.ANYTIME
    assumptions = (DRAWS, SUPPORT)
    interval = staticmethod(mixture)


@dataclass(frozen=True, slots=True)
class Weissman:
    """L1 balls [WeissmanEtAl2003]: radius = sqrt(2 (ln(2^k - 2) - ln delta) / n), at most 2."""

    label = "Weissman L1"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)

    def events(self, outcomes: IntArray) -> IntArray:
        """Return 0 for one outcome, else 1: the marginal is treated as a whole."""
        return np.minimum(outcomes - 1, 1).astype(np.int64)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return an L1 ball per marginal, around the empirical distribution."""
        sizes, totals, centre = empirical(outcome_ptr, counts)
        usable = (totals > 0) & (delta > 0) & (sizes > 1)
        radius = np.where(sizes == 1, 0.0, 2.0)
        k = sizes[usable].astype(np.float64)
        # ln(2^k - 2) without overflow for large k
        vertices = k * np.log(2.0) + np.log1p(-(2.0 ** (1.0 - k)))
        wide = np.sqrt(2.0 * (vertices - np.log(delta[usable])) / totals[usable])
        radius[usable] = np.minimum(wide * (1.0 + 8.0 * EPS), 2.0)
        half = np.repeat(radius / 2.0, sizes)
        lower, upper = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        kind = np.full(len(sizes), Kind.L1)
        return Marginals.of_kind(outcome_ptr, kind, centre, lower, upper, radius)


ConfidenceSet: TypeAlias = ClopperPearson | Mixture | Weissman


def empirical(ptr: IntArray, counts: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return sizes and samples (M,) of marginals, and shares (O,); without samples uniform ones."""
    sizes = segment_lengths(ptr)
    totals = segment_sum(np.asarray(counts, dtype=np.float64), ptr)
    n = np.repeat(totals, sizes)
    shares = np.where(n > 0, counts / np.maximum(n, 1.0), 1.0 / np.repeat(sizes, sizes))
    return sizes, totals, shares


class SetStore:
    """The sets of all identifiers as they are now, made anew only where counts changed.

    Boxes that are valid at any time hold together, so they are intersected with what was known
    before; an empty intersection is an alarm. Other sets are replaced.

    delta, floors : (M,) error probability of each event, and assumed least probability of outcomes
    nested : whether to intersect boxes; by default if the set is valid at any time
    prior : what is known before any data: every set is intersected with its box
    name : what an alarm calls an identifier
    """

    def __init__(
        self,
        confidence: ConfidenceSet,
        outcome_ptr: IntArray,
        delta: FloatArray,
        floors: FloatArray | None = None,
        nested: bool | None = None,
        prior: Marginals | None = None,
        name: Callable[[int], str] = str,
    ) -> None:
        self.confidence, self.ptr, self.delta, self._name = confidence, outcome_ptr, delta, name
        count, size = len(outcome_ptr) - 1, int(outcome_ptr[-1])
        self.floors = np.zeros(count) if floors is None else floors
        self.counts = np.zeros(size, dtype=np.int64)
        self.totals = np.zeros(count, dtype=np.int64)
        self._kind = confidence.sets(outcome_ptr, self.counts, delta).kind  # boxes all, or none
        self.boxes = bool(np.all(self._kind == Kind.BOX))
        anytime = confidence.validity is Validity.ANYTIME
        self._nested = self.boxes and (anytime if nested is None else nested)
        self.radius, self.nominal = np.zeros(count), np.zeros(size)
        self.lower, self.upper = np.zeros(size), np.ones(size)
        sizes = segment_lengths(outcome_ptr)
        least = np.where(sizes > 1, self.floors, 0.0)
        informs = prior is not None and np.any(informed(prior))
        if not self.boxes and (informs or np.any(least > 0.0)):
            raise UnsupportedError(
                f"Prior knowledge, or p_min, needs boxes; {confidence.label} gives other sets. "
                "Use Mixture() or ClopperPearson()."
            )
        low = np.repeat(least, sizes)
        self._known = low, one_minus(low, 1.0)  # bounds (O,) that hold before any data
        if prior is not None:
            high = np.minimum(self._known[1], prior.upper)
            self._known = np.maximum(low, prior.lower), high
        self._make(np.arange(count))

    def refresh(self, counts: IntArray, which: IntArray | None = None) -> None:
        """Bring the sets of the identifiers `which` (default: all) to new counts.

        AssumptionAlarm: no distribution is left in a set.
        """
        stale = np.flatnonzero(segment_any(counts != self.counts, self.ptr))
        if which is not None:
            stale = np.intersect1d(stale, which, assume_unique=True)
        if len(stale):
            at = entries(self.ptr, stale)
            self.counts[at] = counts[at]
            self._make(stale)

    def marginals(self) -> Marginals:
        """Return the sets as marginals of a model."""
        if self.boxes:
            return Marginals.from_boxes(self.ptr, self.lower, self.upper, self.nominal)
        single = segment_lengths(self.ptr) == 1
        return Marginals.of_kind(
            self.ptr,
            np.where(single, Kind.SINGLETON, self._kind),
            normalised(self.nominal.copy(), self.ptr),
            self.lower.copy(),
            self.upper.copy(),
            self.radius.copy(),
        )

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """What a saved run keeps."""
        names = ("counts", "totals", "nominal", "lower", "upper", "radius")
        return {name: getattr(self, name) for name in names}

    def _make(self, which: IntArray) -> None:
        """Make the sets of some identifiers from their counts and what else is known of them."""
        pointers, at = starts(segment_lengths(self.ptr)[which]), entries(self.ptr, which)
        fresh = self.confidence.sets(pointers, self.counts[at], self.delta[which])
        lower, upper, nominal = fresh.lower, fresh.upper, fresh.nominal
        if self.boxes:
            lower = np.maximum(lower, self._known[0][at])
            upper = np.minimum(upper, self._known[1][at])
            if self._nested:
                lower = np.maximum(lower, self.lower[at])
                upper = np.minimum(upper, self.upper[at])
            empty = segment_any(lower > upper + SUM_SLACK, pointers)
            empty |= segment_sum(lower, pointers) > 1.0 + SUM_SLACK
            empty |= segment_sum(upper, pointers) < 1.0 - SUM_SLACK
            if np.any(empty):
                first = int(which[int(np.argmax(empty))])
                counts = ", ".join(map(str, self.counts[segment(self.ptr, first)]))
                raise AssumptionAlarm(
                    f"Marginal {self._name(first)}, with counts {counts}: its box must contain a "
                    f"distribution, found it empty ({int(np.sum(empty))} marginals in all). With "
                    "independent draws from fixed distributions this has probability at most beta: "
                    "check that the system is stationary, that equal identifiers mean equal "
                    "distributions, that sets which the model declares are right, and that no "
                    "samples were dropped or counted twice."
                )
            lower, upper = tighten(pointers, lower, upper)
            inside = segment_all((lower <= nominal) & (nominal <= upper), pointers)
            middle = box_centres(pointers, lower, upper)
            nominal = np.where(inside[owners(pointers)], nominal, middle)
        self.totals[which] = segment_sum(self.counts[at].astype(np.float64), pointers)
        self.radius[which] = fresh.radius
        self.lower[at], self.upper[at], self.nominal[at] = lower, upper, nominal
