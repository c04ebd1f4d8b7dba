"""The confidence sets of all identifiers as they are now, refreshed only where counts changed.

The sets of an identifier at different times may be intersected, because all of them hold together
with the probability that was promised. So an empty intersection is an alarm: the data contradict an
assumption.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rfmdp.errors import AssumptionAlarm, UnsupportedError
from rfmdp.learning.confidence import ConfidenceSet, Validity
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
from rfmdp.rounding import SUM_SLACK, one_minus
from rfmdp.sets.boxes import box_centres, normalised, tighten
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sources.source import informed
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

ARRAYS = ("counts", "totals", "nominal", "lower", "upper", "radius")


class SetStore:
    """Sets per identifier, made from counts by a confidence set.

    Boxes that are valid at any time are intersected with what was known before, so they are
    nested; other sets are replaced.

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
        everything = np.arange(count)
        fresh = self._fresh(everything)
        self._kind = fresh.kind  # boxes all, or none
        self.boxes = bool(np.all(fresh.kind == Kind.BOX))
        anytime = confidence.validity is Validity.ANYTIME
        self._nested = self.boxes and (anytime if nested is None else nested)
        self.radius, self.nominal = fresh.radius.copy(), fresh.nominal.copy()
        self.lower, self.upper = fresh.lower.copy(), fresh.upper.copy()
        self._prior_bounds = self._bounds_before_data(prior)
        self._absorb(everything, fresh)

    def refresh(self, counts: IntArray, which: IntArray | None = None) -> int:
        """Bring the sets of the identifiers `which` (default: all) to new counts.

        Identifiers whose counts did not change are left alone. Returns how many were made anew.
        AssumptionAlarm: no distribution is left in a set, so the data contradict an assumption.
        """
        chosen = np.arange(len(self.totals)) if which is None else which
        pointers, at = self._entries(chosen)
        stale = chosen[segment_any(counts[at] != self.counts[at], pointers)]
        if len(stale):
            pointers, at = self._entries(stale)
            self.counts[at] = counts[at]
            self.totals[stale] = segment_sum(counts[at].astype(np.float64), pointers)
            self._absorb(stale, self._fresh(stale))
        return len(stale)

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
        return {name: getattr(self, name) for name in ARRAYS}

    def _entries(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """Return pointers (N + 1,) of some identifiers (N,) alone, and where their entries are."""
        return starts(segment_lengths(self.ptr)[which]), entries(self.ptr, which)

    def _fresh(self, which: IntArray) -> Marginals:
        """Return the sets of some identifiers, made from their counts and nothing else."""
        pointers, at = self._entries(which)
        return self.confidence.sets(pointers, self.counts[at], self.delta[which])

    def _bounds_before_data(self, prior: Marginals | None) -> tuple[FloatArray, FloatArray]:
        """Return the bounds (O,) that hold before any data."""
        sizes = segment_lengths(self.ptr)
        floors = np.where(sizes > 1, self.floors, 0.0)
        informs = prior is not None and bool(np.any(informed(prior)))
        if not self.boxes and (informs or np.any(floors > 0.0)):
            raise UnsupportedError(
                f"Prior knowledge, or p_min, needs boxes; {self.confidence.label} gives other "
                "sets. Use Mixture() or ClopperPearson()."
            )
        lower = np.repeat(floors, sizes)
        upper = one_minus(lower, 1.0)
        if prior is not None:
            lower, upper = np.maximum(lower, prior.lower), np.minimum(upper, prior.upper)
        return lower, upper

    def _absorb(self, which: IntArray, fresh: Marginals) -> None:
        """Store new sets of some identifiers, narrowed by what else is known of them."""
        pointers, at = self._entries(which)
        lower, upper, nominal = fresh.lower, fresh.upper, fresh.nominal
        if self.boxes:
            lower = np.maximum(lower, self._prior_bounds[0][at])
            upper = np.minimum(upper, self._prior_bounds[1][at])
            if self._nested:
                lower = np.maximum(lower, self.lower[at])
                upper = np.minimum(upper, self.upper[at])
            self._alarm_if(which, empty_boxes(pointers, lower, upper))
            lower, upper = tighten(pointers, lower, upper)
            inside = segment_all((lower <= nominal) & (nominal <= upper), pointers)
            middle = box_centres(pointers, lower, upper)
            nominal = np.where(inside[owners(pointers)], nominal, middle)
        self.radius[which] = fresh.radius
        self.lower[at], self.upper[at], self.nominal[at] = lower, upper, nominal

    def _alarm_if(self, which: IntArray, empty: BoolArray) -> None:
        """Raise with the first of the identifiers `which` (N,) whose set is `empty` (N,)."""
        if np.any(empty):
            first = int(which[int(np.argmax(empty))])
            counts = ", ".join(map(str, self.counts[segment(self.ptr, first)]))
            raise AssumptionAlarm(
                f"Marginal {self._name(first)}, with counts {counts}: its box must contain a "
                f"distribution, found it empty ({int(np.sum(empty))} marginals in all). With "
                "independent draws from fixed distributions this has probability at most beta: "
                "check that the system is stationary, that equal identifiers mean equal "
                "distributions, that sets which the model declares are right, and that no samples "
                "were dropped or counted twice."
            )


def empty_boxes(ptr: IntArray, lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Return which boxes (N,) hold no distribution."""
    empty = segment_any(lower > upper + SUM_SLACK, ptr)
    empty |= segment_sum(lower, ptr) > 1.0 + SUM_SLACK
    return empty | (segment_sum(upper, ptr) < 1.0 - SUM_SLACK)
