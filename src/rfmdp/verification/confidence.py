"""From counts to sets: a learned set must contain all distributions that samples do not rule out.

A bound p of a probability seen x times in n is tested forwards: its tail or its likelihood ratio
is computed, no quantile is searched for. Special functions are good to about `ACCURACY`; so far an
error probability may be exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from rfmdp.ragged import entries, segment, segment_lengths
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import field
from rfmdp.verification.sets import BOX, L1, SINGLETON, Sets

ACCURACY = 1e-7  # relative, of error probabilities
BATCH = 1 << 19  # counts handled at a time
SIZES = 8.0 ** np.arange(7)  # of the priors of the mixture
WEIGHTS = np.array([0.40, 0.16, 0.12, 0.10, 0.08, 0.07, 0.07])

Bounds = tuple[FloatArray, FloatArray]
Rejects = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], BoolArray]
"""Whether x of n rule out all probabilities up to p, which is at most x / n, at error delta."""


class NotChecked(Exception):
    """Something that this checker does not know."""


def clopper_pearson(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test by the exact binomial tail, half of the error on this side."""
    tail = special.betainc(np.maximum(x, 1.0), n - x + 1.0, p)
    return np.asarray((x > 0) & (tail <= 0.5 * delta * (1.0 + ACCURACY)))


def mixture(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test whether a mixture of priors around p has 1 / delta times the likelihood of p."""
    q = 1.0 - p
    likelihood = x * np.log(p) + (n - x) * np.log(q)
    size, weight = SIZES[:, None], WEIGHTS[:, None]
    after = special.betaln(size * p + x, size * q + n - x)
    terms = np.log(weight) + after - special.betaln(size * p, size * q)
    ratio = np.logaddexp.reduce(terms, axis=0) - likelihood
    return np.asarray(ratio >= -np.log(delta) - _noise(n))


def _noise(n: FloatArray) -> FloatArray:
    """Return what logarithms of likelihoods of n samples may be off."""
    return np.asarray(ACCURACY + 1e-14 * n)


class Confidence:
    """A confidence set, as the settings of a run name it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.kind = kind_of(settings, "confidence", ("clopper-pearson", "mixture", "weissman"))
        self.single = self.kind != "mixture"

    def events(self, size: int) -> int:
        """Return how many events a set of a size needs."""
        return min(size - 1, 1) if self.kind == "weissman" or size <= 2 else size

    def rejects(self) -> Rejects:
        """Return the test of a set of intervals."""
        if self.kind == "weissman":
            raise NotChecked("confidence set weissman for boxes")
        return clopper_pearson if self.kind == "clopper-pearson" else mixture


def kind_of(settings: Mapping[str, Any], name: str, kinds: Collection[str]) -> str:
    """Return the kind of a setting, which must be one of those that this checker knows."""
    kind = str(field(settings, "kind", str))
    if kind not in kinds:
        raise NotChecked(f"{name} {kind!r:.40}")
    return kind


@dataclass(slots=True, eq=False)
class Trials:
    """How often each of N things was seen (x) in so many samples (n), look by look."""

    x: FloatArray  # (looks, N)
    n: FloatArray  # (looks, N)
    delta: FloatArray  # (N,) error probabilities
    rejects: Rejects

    @property
    def misses(self) -> Trials:
        """The same of the opposites."""
        return Trials(self.n - self.x, self.n, self.delta, self.rejects)

    def take(self, some: IntArray) -> Trials:
        """Return some of them."""
        return Trials(self.x[:, some], self.n[:, some], self.delta[some], self.rejects)

    def below(self, p: FloatArray) -> BoolArray:
        """Return which lower bounds p (N,) some look proves."""
        proven = p <= 0.0
        for looks in (slice(-1, None), slice(None, -1)):  # the last one proves most of them
            x, n = self.x[looks], self.n[looks]
            look, at = np.nonzero(~proven & (n > 0.0) & (p < x / np.maximum(n, 1.0)))
            rejected = self.rejects(p[at], x[look, at], n[look, at], self.delta[at])
            proven[at[rejected]] = True
        return np.asarray(proven)

    def least(self) -> FloatArray:
        """Return nearly the largest lower bounds (N,) that some look proves."""
        low = np.zeros(self.x.shape[1])
        high = (self.x / np.maximum(self.n, 1.0)).max(axis=0, initial=0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            proven = self.below(middle)
            low, high = np.where(proven, middle, low), np.where(proven, high, middle)
        return low


def sets_hold(
    sets: Sets, looks: IntArray, delta: FloatArray, confidence: Confidence, prior: Bounds
) -> BoolArray:
    """Return which sets (M,) have all distributions within known bounds that no look rules out."""
    fine = sets.sizes == 1
    plain = np.isnan(sets.exponent) & (segment_lengths(sets.corner_ptr) == 0)
    box = plain & ((sets.kind == BOX) | (sets.kind == SINGLETON))  # given by their bounds alone
    for size in np.unique(sets.sizes[~fine]).tolist():
        alike = np.flatnonzero(box & (sets.sizes == size))
        step = max(1, BATCH // (size * max(len(looks), 1)))
        for ids in (alike[i : i + step] for i in range(0, len(alike), step)):
            at = entries(sets.ptr, ids)
            seen = looks[:, at].astype(np.float64)
            spent = np.repeat(delta[ids], size)
            samples = np.repeat(seen.reshape(len(looks), len(ids), size).sum(axis=2), size, axis=1)
            trials = Trials(seen, samples * (spent > 0.0), spent, confidence.rejects())
            bounds = sets.lower[at], sets.upper[at]
            fine[ids] = _boxes_hold(bounds, trials, (prior[0][at], prior[1][at]), size)
        for j in np.flatnonzero(~box & (sets.sizes == size)):
            fine[j] = _ball_holds(sets, int(j), looks, float(delta[j]), confidence)
    return np.asarray(fine)


def _boxes_hold(bounds: Bounds, trials: Trials, prior: Bounds, size: int) -> BoolArray:
    """Return whether bounds of boxes are assumed, or of some look, or follow from those of others.

    All are of outcomes (N,), so many per box.
    """
    (lower, upper), (least, most), misses = bounds, prior, trials.misses
    low = trials.below(lower) | (lower <= least)
    high = misses.below(1.0 - upper) | (upper >= most)
    open_ = np.flatnonzero(~(low & high).reshape(-1, size).all(axis=1))
    some = (open_[:, None] * size + np.arange(size)).ravel()
    # only what looks prove, or is assumed, may serve as a reason
    least[some] = np.maximum(trials.take(some).least(), np.where(low, lower, least)[some])
    most[some] = np.minimum(1.0 - misses.take(some).least(), np.where(high, upper, most)[some])
    for k in some:
        first = k - k % size
        others = [o for o in range(first, first + size) if o != k]
        low[k] |= math.fsum([lower[k], -1.0, *most[others]]) <= 0.0
        high[k] |= math.fsum([upper[k], -1.0, *least[others]]) >= 0.0
    return np.asarray((low & high).reshape(-1, size).all(axis=1))


def _ball_holds(sets: Sets, j: int, looks: IntArray, delta: float, base: Confidence) -> bool:
    """Return the same of a set that is no box: around the frequencies, as Weissman's bound says."""
    if sets.kind[j] == SINGLETON:
        return False
    if sets.kind[j] != L1 or base.kind != "weissman":
        raise NotChecked(f"a set of kind {sets.kind[j]} by {base.kind}")
    nominal, radius = sets.nominal[segment(sets.ptr, j)], float(sets.radius[j])
    counts = looks[-1:, segment(sets.ptr, j)].sum(axis=0)
    n = int(counts.sum())
    if radius >= 2.0 or not n or delta <= 0.0:
        return radius >= 2.0
    k = len(nominal)
    vertices = k * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - k)))
    needed = math.sqrt(2.0 * (vertices - math.log(delta * (1.0 + ACCURACY))) / n)
    return bool(np.abs(nominal - counts / n).max() <= 1e-14) and radius >= needed
