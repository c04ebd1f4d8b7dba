"""The confidence sets of all identifiers as they are now, refreshed only where counts changed."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.bounds import Bounds, BoxBounds, KLBounds, L1Bounds, MixedBounds, SubsetBounds
from rfmdp.learning.confidence import ConfidenceSet, Validity, empirical
from rfmdp.learning.support import Discovery
from rfmdp.sets.bounds import kl_bounds
from rfmdp.sets.exact import normalised
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, FloatArray, IntArray


class SetStore:
    """Sets per identifier, made from counts by a confidence set.

    Sets that are valid at any time are intersected with what was known before, so they are
    nested; sets of a single look are replaced.

    Parameters
    ----------
    confidence, delta
        The set, and the error probability of each event of every identifier, (M,).
    outcome_ptr
        (M + 1,) outcomes of the identifiers.
    floor
        Assumed least probability of every declared outcome; 0 assumes nothing.
    nested
        Whether to intersect; by default if the set is valid at any time.
    first
        For an unknown support: when every outcome was first seen; shared with `Tally`.
    """

    def __init__(
        self,
        confidence: ConfidenceSet | Discovery,
        outcome_ptr: IntArray,
        delta: FloatArray,
        floor: float = 0.0,
        nested: bool | None = None,
        first: IntArray | None = None,
    ) -> None:
        self.confidence, self.ptr, self.delta, self.floor = confidence, outcome_ptr, delta, floor
        self._first = np.zeros(int(outcome_ptr[-1]), np.int64) if first is None else first
        self.nested = confidence.validity is Validity.ANYTIME if nested is None else nested
        sizes = np.diff(outcome_ptr)
        count, entries = len(sizes), int(outcome_ptr[-1])
        self.counts = np.full(entries, -1, dtype=np.int64)
        self.totals = np.zeros(count, dtype=np.int64)
        self.kind = np.full(count, Kind.BOX, dtype=np.int8)
        self.nominal = 1.0 / np.repeat(sizes, sizes)
        self.lower, self.upper = np.zeros(entries), np.ones(entries)
        self.radius = np.full(count, math.nan)
        self.tables: dict[int, FloatArray] = {}
        self._changed: list[IntArray] = []
        self.refresh(np.zeros(entries, dtype=np.int64))

    def refresh(self, counts: IntArray, which: IntArray | None = None) -> int:
        """Bring the sets of the identifiers `which` (default: all) to new counts.

        Identifiers whose counts did not change are left alone. Returns how many were made anew.

        Raises
        ------
        AssumptionAlarm
            If the data contradict an assumption: no distribution is left.
        """
        stale = np.arange(len(self.kind)) if which is None else which
        pointers, entries = self.part(stale)
        if len(stale):
            new = np.logical_or.reduceat(counts[entries] != self.counts[entries], pointers[:-1])
            stale = stale[new]
        if len(stale):
            self._changed.append(stale)
            pointers, entries = self.part(stale)
            self.counts[entries] = counts[entries]
            self.totals[stale] = np.add.reduceat(counts[entries], pointers[:-1])
            self.nominal[entries] = empirical(pointers, counts[entries])
            self._absorb(stale, self._bounds(pointers, entries, self.delta[stale]))
        return len(stale)

    def _bounds(self, pointers: IntArray, entries: IntArray, delta: FloatArray) -> Bounds:
        counts = self.counts[entries]
        if isinstance(self.confidence, Discovery):
            return self.confidence.discovered(pointers, counts, self._first[entries], delta)
        return self.confidence.bounds(pointers, counts, delta)

    def changes(self) -> IntArray:
        """Return the identifiers whose sets changed since the last call."""
        changed = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self._changed]))
        self._changed = []
        return changed

    @property
    def boxes(self) -> bool:
        """Whether all sets are boxes."""
        return bool(np.all(self.kind == Kind.BOX))

    def marginals(self) -> Marginals:
        """Return the sets as marginals of a model."""
        if self.boxes:
            return Marginals.from_boxes(self.ptr, self.lower, self.upper, self.nominal)
        sizes = np.diff(self.ptr)
        kind = np.where(sizes == 1, Kind.SINGLETON, self.kind).astype(np.int8)
        tables = [self.tables.get(j, np.empty(0)) for j in range(len(sizes))]
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        return Marginals(
            outcome_ptr=self.ptr,
            kind=kind,
            nominal=normalised(self.nominal.copy(), self.ptr),
            lower=self.lower.copy(),
            upper=self.upper.copy(),
            radius=self.radius.copy(),
            exponent=np.where(kind == Kind.L1, 1.0, math.nan),
            corner_ptr=np.concatenate([[0], np.cumsum(lengths)]),
            corners=np.concatenate(tables) if tables else np.empty(0),
        )

    def state(self) -> dict[str, AnyArray]:
        """Return what `restore` needs, as arrays."""
        numbers = np.array(sorted(self.tables), dtype=np.int64)
        tables = [self.tables[j] for j in numbers.tolist()]
        return {
            "counts": self.counts, "totals": self.totals,
            "kind": self.kind, "nominal": self.nominal,
            "lower": self.lower, "upper": self.upper, "radius": self.radius,
            "table_of": numbers, "tables": np.concatenate([np.empty(0), *tables]),
        }  # fmt: skip

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from a saved state."""
        for name in ("counts", "totals", "kind", "nominal", "lower", "upper", "radius"):
            setattr(self, name, np.array(state[name]))
        self._changed = [np.arange(len(self.kind))]
        ends = np.cumsum(2 ** np.diff(self.ptr)[state["table_of"]])
        parts = np.split(state["tables"], ends[:-1]) if len(ends) else []
        self.tables = {int(j): p for j, p in zip(state["table_of"], parts, strict=True)}

    def part(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """Return the pointers of some identifiers alone, and where their entries stand."""
        sizes = np.diff(self.ptr)[which]
        pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.arange(pointers[-1]) + np.repeat(self.ptr[which] - pointers[:-1], sizes)
        return pointers, entries

    def _absorb(self, which: IntArray, bounds: Bounds) -> None:
        """Store the sets of some identifiers."""
        if isinstance(bounds, MixedBounds):
            for members, part in zip(bounds.marginals, bounds.parts, strict=True):
                if len(members):
                    self._absorb(which[members], part)
        elif isinstance(bounds, BoxBounds):
            self._absorb_boxes(which, bounds)
        elif self.floor > 0.0:
            raise UnsupportedError(
                f"p_min: a least probability needs boxes; {self.confidence.label} gives other "
                "sets. Use Mixture() or ClopperPearson()."
            )
        elif isinstance(bounds, L1Bounds):
            self._absorb_l1(which, bounds)
        elif isinstance(bounds, KLBounds):
            self._absorb_kl(which, bounds)
        else:
            self._absorb_subsets(which, bounds)

    def _absorb_boxes(self, which: IntArray, bounds: BoxBounds) -> None:
        pointers, entries = self.part(which)
        if self.floor > 0.0:
            several = np.repeat(np.diff(pointers) > 1, np.diff(pointers))
            lower = np.where(several, self.floor, 0.0)
            bounds = bounds.intersect(BoxBounds(pointers, lower, 1.0 - lower))
        if self.nested:
            bounds = bounds.intersect(BoxBounds(pointers, self.lower[entries], self.upper[entries]))
        self.lower[entries], self.upper[entries] = bounds.lower, bounds.upper
        centre = self.nominal[entries]
        inside = (bounds.lower <= centre) & (centre <= bounds.upper)
        inside = np.repeat(np.logical_and.reduceat(inside, pointers[:-1]), np.diff(pointers))
        self.nominal[entries] = np.where(inside, centre, bounds.member())

    def _absorb_l1(self, which: IntArray, bounds: L1Bounds) -> None:
        _, entries = self.part(which)
        half = np.repeat(bounds.radius / 2.0, np.diff(bounds.outcome_ptr))
        self.kind[which], self.radius[which] = Kind.L1, bounds.radius
        self.lower[entries] = np.maximum(bounds.nominal - half, 0.0)
        self.upper[entries] = np.minimum(bounds.nominal + half, 1.0)

    def _absorb_kl(self, which: IntArray, bounds: KLBounds) -> None:
        _, entries = self.part(which)
        self.kind[which], self.radius[which] = Kind.KL, bounds.rho
        radius = np.repeat(bounds.rho, np.diff(bounds.outcome_ptr))
        self.lower[entries], self.upper[entries] = kl_bounds(bounds.nominal, radius)

    def _absorb_subsets(self, which: IntArray, bounds: SubsetBounds) -> None:
        if self.nested and all(int(j) in self.tables for j in which):
            old = np.concatenate([self.tables[int(j)] for j in which])
            bounds = bounds.intersect(SubsetBounds(bounds.outcome_ptr, bounds.mask_ptr, old))
        self.kind[which] = Kind.SUBSETS
        for i, j in enumerate(which.tolist()):
            table = np.array(bounds.table(i))
            part = slice(self.ptr[j], self.ptr[j + 1])
            single = 1 << np.arange(part.stop - part.start)
            self.tables[j] = table
            self.lower[part] = table[single]
            self.upper[part] = 1.0 - table[len(table) - 1 - single]
