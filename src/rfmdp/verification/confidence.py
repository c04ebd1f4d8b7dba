"""From counts to sets: a learned set must contain all distributions that samples do not rule out.

A bound p of a probability seen x times in n is tested forwards: its tail or its likelihood ratio
is computed, no quantile is searched for. Special functions are good to about `ACCURACY`; so far an
error probability may be exceeded.

Of outcomes that were never seen the model expects the worst. With an unknown support, half of the
error probability of an identifier bounds the mass of all that it has not shown, anew after every
discovery; half is for the outcomes that were seen, each with a sequence of its own that starts
after its first appearance. The r-th discovery gets 1 / (r (r + 1)) of either half. Outcomes that
the model does not list are the last one of every identifier, and lead to the last state, where
nothing can be worse for the agent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from rfmdp.ragged import entries, owners, segment_all, segment_lengths, starts
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import field, is_number, need
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
    box = boxes(sets)
    for size in np.unique(sets.sizes[~fine]).tolist():
        for ids in batches(sets, np.flatnonzero(box & (sets.sizes == size)), len(looks)):
            seen, total = counted(sets, looks, ids)
            n = np.where(np.repeat(delta[ids], size) > 0.0, total, 0.0)
            trials = Trials(seen, n, np.repeat(delta[ids], size), confidence.rejects())
            fine[ids] = boxes_hold(sets, ids, trials, prior)
        for j in np.flatnonzero(~box & (sets.sizes == size)):
            fine[j] = _ball_holds(sets, int(j), looks, float(delta[j]), confidence)
    return np.asarray(fine)


def boxes(sets: Sets) -> BoolArray:
    """Return which sets are given by their bounds alone; some may be points."""
    plain = np.isnan(sets.exponent) & (segment_lengths(sets.corner_ptr) == 0)
    return np.asarray(plain & ((sets.kind == BOX) | (sets.kind == SINGLETON)))


def batches(sets: Sets, ids: IntArray, looks: int) -> list[IntArray]:
    """Return some sets in parts, so that all looks at a part fit into little memory."""
    ends = np.cumsum(sets.sizes[ids]) * max(looks, 1) // BATCH
    return np.split(ids, np.flatnonzero(np.diff(ends)) + 1) if len(ids) else []


def counted(sets: Sets, looks: IntArray, ids: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what looks saw of the outcomes (N,) of some sets, and the samples of their sets."""
    ptr = starts(sets.sizes[ids])
    seen = looks[:, entries(sets.ptr, ids)].astype(np.float64)
    return seen, np.repeat(np.add.reduceat(seen, ptr[:-1], axis=1), segment_lengths(ptr), axis=1)


def boxes_hold(sets: Sets, ids: IntArray, trials: Trials, prior: Bounds) -> BoolArray:
    """Return whether bounds of sets are known, or of some look, or follow from those of others.

    Trials are of the outcomes (N,) of these sets, one after the other.
    """
    ptr = starts(sets.sizes[ids])
    at = entries(sets.ptr, ids)
    lower, upper, misses = sets.lower[at], sets.upper[at], trials.misses
    least, most = prior[0][at], prior[1][at]
    low = trials.below(lower) | (lower <= least)
    high = misses.below(1.0 - upper) | (upper >= most)
    open_ = np.flatnonzero(~segment_all(low & high, ptr))
    some = entries(ptr, open_)
    # only what looks prove, or is assumed, may serve as a reason
    least[some] = np.maximum(trials.take(some).least(), np.where(low, lower, least)[some])
    most[some] = np.minimum(1.0 - misses.take(some).least(), np.where(high, upper, most)[some])
    for i in open_:
        entries_of = range(ptr[i], ptr[i + 1])
        for k in entries_of:
            low[k] |= math.fsum([lower[k], -1.0, *(most[o] for o in entries_of if o != k)]) <= 0.0
            high[k] |= math.fsum([upper[k], -1.0, *(least[o] for o in entries_of if o != k)]) >= 0.0
    return segment_all(low & high, ptr)


def _ball_holds(sets: Sets, j: int, looks: IntArray, delta: float, base: Confidence) -> bool:
    """Return the same of a set that is no box."""
    outcomes = slice(sets.ptr[j], sets.ptr[j + 1])
    kind = int(sets.kind[j])
    seen = looks[:, outcomes].astype(np.float64)
    seen = seen[seen.sum(axis=1) > 0] if delta > 0.0 else seen[:0]
    last = seen[-1] if len(seen) else None
    if last is not None and not np.array_equal(last, looks[-1, outcomes]):
        return False
    if kind == L1 and base.kind == "weissman":
        return _l1_holds(sets.nominal[outcomes], float(sets.radius[j]), last, delta)
    if kind == SINGLETON:
        return False
    raise NotChecked(f"a set of kind {kind} by {base.kind}")


def _centred(nominal: FloatArray, counts: FloatArray) -> bool:
    return bool(np.abs(nominal - counts / counts.sum()).max() <= 1e-14)


def _l1_holds(nominal: FloatArray, radius: float, counts: FloatArray | None, delta: float) -> bool:
    if radius >= 2.0 or counts is None:
        return radius >= 2.0
    k = len(nominal)
    n = counts.sum()
    vertices = k * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - k)))
    needed = math.sqrt(2.0 * (vertices - math.log(delta * (1.0 + ACCURACY))) / n)
    return _centred(nominal, counts) and radius >= needed


FIELDS = {"declared": (), "sparse": ("p_min",)}


class Support:
    """What the settings of a run say about outcomes that were never seen."""

    def __init__(self, settings: Mapping[str, Any], p_min: float, base: Confidence) -> None:
        self.kind = kind_of(settings, "support", FIELDS)
        need(
            set(settings) == {"kind", *FIELDS[self.kind]}, f"support: {self.kind} has other fields"
        )
        self.declared = self.kind == "declared"
        self.floor = p_min if self.declared else settings.get("p_min", 0.0)
        need(is_number(p_min) and is_number(self.floor), "p_min: must be a number")
        need(self.declared or p_min == 0.0, "p_min: needs the declared support")
        need(0.0 <= self.floor < 1.0, "p_min: must lie in [0, 1)")
        need(self.declared or not base.single, "support: needs intervals that hold at any time")

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        """What must be stated."""
        words: list[dict[str, Any]] = [{"kind": "support"}]
        if not self.declared and self.floor > 0.0:
            words.append({"kind": "certain"})
        if self.floor > 0.0:
            kind = "declared-floor" if self.declared else "possible-floor"
            words.append({"kind": kind, "p_min": self.floor})
        return words

    def events(self, base: Confidence, size: int) -> int:
        """Return how many events an identifier of a size needs."""
        return base.events(size) if self.declared else 1


def discovered(
    sets: Sets, looks: IntArray, first: IntArray, delta: FloatArray, floors: FloatArray,
    base: Confidence, prior: Bounds,
) -> BoolArray:  # fmt: skip
    """Return which boxes (M,) have all distributions that no look rules out.

    Outcome o appeared first in sample first[o] of its identifier, from 1; 0: never. If it has at
    least a floor (M,) or nothing, then it has that once it was seen.
    """
    need(_fits(sets, first, looks), "first: must be when outcomes were first seen")
    fine = boxes(sets)
    least = prior[0].copy()
    most = prior[1].copy()
    for ids in batches(sets, np.flatnonzero(fine), len(looks)):
        at = entries(sets.ptr, ids)
        owner = owners(starts(sets.sizes[ids]))
        seen, total = counted(sets, looks, ids)
        there, new, spent = seen > 0.0, first[at], 0.5 * delta[ids][owner]
        ever = there.any(axis=0)
        least[at] = np.where(ever, np.maximum(least[at], floors[ids][owner]), least[at])
        order = np.lexsort((np.where(ever, new, np.iinfo(np.int64).max), owner))
        rank = np.empty(len(at))
        rank[order] = 1.0 + np.arange(len(at)) - starts(sets.sizes[ids])[owner[order]]
        n = np.where(there & (spent > 0.0), total - new, 0.0)
        x = np.where(there & (spent > 0.0), seen - 1.0, 0.0)
        trials = Trials(x, n, spent / (rank * (rank + 1.0)), base.rejects())
        mass = _missing(there, np.where(there, new, 0), total, spent, floors[ids], owner)
        most[at] = np.minimum(most[at], np.where(there, 1.0, mass).min(axis=0, initial=1.0))
        fine[ids] = boxes_hold(sets, ids, trials, (least, most))
    return fine


def _fits(sets: Sets, first: IntArray, looks: IntArray) -> bool:
    """Return whether some sequence of samples has these first appearances and these looks."""
    if not len(looks):
        return not first.any()
    owner = owners(sets.ptr)
    counts = looks[-1]
    total = np.add.reduceat(looks, sets.ptr[:-1], axis=1)[:, owner]
    there = (first > 0) & (first <= total)
    if not np.array_equal(there, looks > 0) or not np.array_equal(first > 0, counts > 0):
        return False
    if (there & (looks - 1 > total - first)).any():
        return False
    order = np.lexsort((first, owner))
    order = order[first[order] > 0]
    earlier = np.cumsum(counts[order]) - counts[order]  # samples of what was discovered before
    new = np.diff(owner[order], prepend=-1) != 0
    before = earlier - np.maximum.accumulate(np.where(new, earlier, 0))
    later = np.diff(first[order], prepend=0) > 0
    fits = (later | new) & (before >= first[order] - 1) & (~new | (first[order] == 1))
    return bool(fits.all())


def _missing(
    there: BoolArray, new: IntArray, total: FloatArray, spent: FloatArray, floors: FloatArray,
    owner: IntArray,
) -> FloatArray:  # fmt: skip
    """Return what all unseen outcomes of a set have at most, look by look, for each of them.

    They have no more than U unless m samples without a discovery had a chance (1 - U)^m below
    delta_r. If each of them has at least a floor, or nothing, then nothing once that rules it out.
    """
    ptr = starts(np.bincount(owner))
    rank = np.add.reduceat(there, ptr[:-1], axis=1, dtype=np.float64)[:, owner]
    wait = total - np.maximum.reduceat(new, ptr[:-1], axis=1)[:, owner]
    usable = (rank > 0.0) & (spent > 0.0)
    share = np.where(usable, spent * (1.0 + ACCURACY) / np.maximum(rank * (rank + 1.0), 1.0), 0.5)
    level = np.log(share)
    floor = floors[owner]
    mass = np.where(wait > 0.0, -np.expm1(level / np.maximum(wait, 1.0)), 1.0)
    mass = np.where((floor > 0.0) & (wait * np.log1p(-floor) <= level), 0.0, mass)
    return np.where(usable, mass, 1.0)
