"""Confidence sets: objects that turn counts and error probabilities into uncertainty sets.

A confidence set has a `label`, a `validity`, and `assumptions` about the data. `events(outcomes)`
says how many events (M,) marginals use, `sets(outcome_ptr, counts, delta)` returns their sets; one
without samples or without budget is the whole simplex.

`delta[j]` is the error probability of *each* event of marginal `j`, which has `events(sizes)[j]`;
0 leaves it unknown. *Anytime* sets hold at all times together, under any rule of sampling and
stopping. *Fixed sample size, single look* sets hold only if the sample sizes were fixed in advance
and the bounds are read once; the paper's schedule reads them often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.learning import intervals
from rfmdp.ragged import segment_lengths, segment_sum
from rfmdp.record import Assumption
from rfmdp.rounding import EPS
from rfmdp.sets.boxes import tighten
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray, IntArray

DRAWS = Assumption("draws")
SUPPORT = Assumption("support")
FIXED_SIZE = Assumption("fixed-size")


class Validity(Enum):
    """When the promise of a confidence set holds."""

    SINGLE_LOOK = "fixed sample size, single look"
    ANYTIME = "anytime"


class _Boxes:
    """A confidence set made of intervals, one per outcome."""

    interval: Callable[[ArrayLike, ArrayLike, ArrayLike], intervals.Bounds]  # of x times in n

    def events(self, outcomes: IntArray) -> IntArray:
        """Return 0 for one outcome, 1 for two (one mirrored interval), k for k >= 3."""
        return np.where(outcomes <= 2, outcomes - 1, outcomes).astype(np.int64)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return a box per marginal, around the empirical distribution."""
        totals, usable = _totals(outcome_ptr, counts, delta)
        sizes = segment_lengths(outcome_ptr)
        seen = np.repeat(usable, sizes)
        lower = np.repeat(np.where(sizes == 1, 1.0, 0.0), sizes)
        upper = np.ones(len(lower))
        n, error = np.repeat(totals, sizes)[seen], np.repeat(delta, sizes)[seen]
        lower[seen], upper[seen] = self.interval(np.asarray(counts)[seen], n, error)
        kind = np.full(len(sizes), Kind.BOX)
        centre = empirical(outcome_ptr, counts)
        return Marginals.of_kind(outcome_ptr, kind, centre, *tighten(outcome_ptr, lower, upper))


@dataclass(frozen=True, slots=True)
class ClopperPearson(_Boxes):
    """Exact binomial intervals, the paper's choice; see `intervals.clopper_pearson`."""

    label = "Clopper-Pearson"
    validity = Validity.SINGLE_LOOK
    assumptions = (DRAWS, SUPPORT, FIXED_SIZE)
    interval = staticmethod(intervals.clopper_pearson)


@dataclass(frozen=True, slots=True)
class Mixture(_Boxes):
    """The scale-mixture confidence sequence, the default; see `intervals.mixture`."""

    label = "mixture sequence"
    validity = Validity.ANYTIME
    assumptions = (DRAWS, SUPPORT)
    interval = staticmethod(intervals.mixture)


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
        kind = np.full(len(sizes), Kind.L1)
        return Marginals.of_kind(outcome_ptr, kind, centre, lower, upper, radius)


ConfidenceSet: TypeAlias = ClopperPearson | Mixture | Weissman


def empirical(outcome_ptr: IntArray, counts: IntArray) -> FloatArray:
    """Return counts (O,) divided by the totals of marginals; uniform where nothing was seen."""
    sizes = segment_lengths(outcome_ptr)
    totals = np.repeat(segment_sum(np.asarray(counts, dtype=np.float64), outcome_ptr), sizes)
    uniform = 1.0 / np.repeat(sizes, sizes)
    return np.where(totals > 0, counts / np.maximum(totals, 1.0), uniform)


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
    totals = segment_sum(np.asarray(counts, dtype=np.float64), outcome_ptr)
    return totals, (totals > 0) & (np.asarray(delta) > 0) & (sizes > 1)
