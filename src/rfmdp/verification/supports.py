"""Outcomes that were never seen, of those that a model lists: what is known of them.

With a sparse support, half of the error probability of an identifier bounds the mass of all that
it has not shown, anew after every discovery; half is for the outcomes that were seen, each with a
sequence of its own that starts after its first appearance. The r-th discovery gets 1 / (r (r + 1))
of either half.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rfmdp.ragged import entries, owners, starts
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.confidence import (
    ACCURACY,
    Bounds,
    Confidence,
    Trials,
    batches,
    boxes,
    boxes_hold,
    counted,
    kind_of,
)
from rfmdp.verification.fields import is_number, need
from rfmdp.verification.sets import Sets

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
