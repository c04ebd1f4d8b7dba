"""The rows of a model: in batches of the same shape, and which successors they can have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np

from rfmdp.ragged import (
    owners,
    renumbered,
    segment,
    segment_all,
    segment_any,
    segment_lengths,
    segment_sum,
    stable_order,
)
from rfmdp.types import BoolArray, IntArray
from rfmdp.verification.exact import ExactRows, Undecided
from rfmdp.verification.means import RoundedSets
from rfmdp.verification.products import Batch
from rfmdp.verification.reading import Model
from rfmdp.verification.sets import BOX, POLYTOPE, SINGLETON, SUM_OFF

BATCH = 1 << 18  # numbers handled at a time


class Rows:
    """All rows of a model, whose sets are settled here."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sets = model.sets.settled()
        self.exact = ExactRows(self.sets)
        self.state = owners(model.row_ptr)

    @cached_property
    def rounded(self) -> RoundedSets:
        """The sets in floats."""
        return RoundedSets(self.sets, self.exact)

    @cached_property
    def blocks(self) -> list[tuple[IntArray, IntArray]]:
        """Rows (B,) and their sets (B, n), those with sets of the same shape together."""
        model = self.model
        lengths = segment_lengths(self.model.marginal_ptr)
        described = np.column_stack(
            [self.sets.kind, self.sets.sizes, segment_lengths(self.sets.corner_ptr)]
        )
        classes, of_set = np.unique(described, axis=0, return_inverse=True)
        shape = lengths.copy()  # a number per sequence of classes
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            own = of_set.reshape(-1)[model.row_marginals[model.marginal_ptr[rows] + place]]
            shape[rows] = shape[rows] * len(classes) + own
            shape = renumbered(shape)
        order = stable_order(shape)
        blocks = []
        for rows in np.split(order, np.flatnonzero(np.diff(shape[order])) + 1):
            at = model.marginal_ptr[rows][:, None] + np.arange(lengths[rows[0]])
            blocks.append((rows, model.row_marginals[at]))
        return blocks

    def batches(self, chosen: BoolArray) -> Iterator[Batch]:
        """Yield the rows that are asked for."""
        for rows, ids in self.blocks if chosen.any() else ():
            places = np.flatnonzero(chosen[rows])
            size = int(segment_lengths(self.model.successor_ptr)[rows[0]])
            step = max(1, BATCH // size)
            for first in range(0, len(places), step):
                place = places[first : first + step]
                yield self.batch(rows[place], ids[place])

    def batch(self, rows: IntArray, ids: IntArray) -> Batch:
        """Return some rows of a block with their sets."""
        ptr = self.model.successor_ptr
        at = ptr[rows][:, None] + np.arange(ptr[rows[0] + 1] - ptr[rows[0]])
        axes = [self.rounded.axis(place) for place in ids.T]
        return Batch(rows, axes, self.model.successors[at], self.possible[at])

    @cached_property
    def rigid(self) -> BoolArray:
        """Rows (R,) all of whose products have the same successors."""
        return segment_all(self._firm()[self.model.row_marginals], self.model.marginal_ptr)

    def _firm(self) -> BoolArray:
        """Return the sets (M,) all of whose members have the same outcomes."""
        sets, box = self.sets, self.sets.kind == BOX
        empties = (sets.lower == 0.0) & (sets.upper > 0.0)
        others = np.repeat(segment_sum(sets.upper, sets.ptr), sets.sizes) - sets.upper
        firm = (sets.kind == SINGLETON) | (box & ~segment_any(empties, sets.ptr))
        bends = box & segment_any(empties & (others > 1.0 + SUM_OFF), sets.ptr)
        for j in np.flatnonzero(~firm & ~bends):
            with suppress(Undecided):
                firm[j] = self.exact[int(j)].firm
        return np.asarray(firm)

    @cached_property
    def _held(self) -> BoolArray:
        """The outcomes (O,) of all sets that some member has, or more."""
        sets = self.sets
        kind = np.repeat(sets.kind, sets.sizes)
        held = np.where(kind == SINGLETON, sets.nominal > 0.0, (kind != BOX) | (sets.upper > 0.0))
        for j in np.flatnonzero(sets.kind == POLYTOPE):
            set_ = self.exact[int(j)]
            held[segment(sets.ptr, j)] = [set_.possible >> k & 1 for k in range(set_.size)]
        return held

    @cached_property
    def possible(self) -> BoolArray:
        """Which entries (T,) of successors some product has, or more."""
        model, sets, held = self.model, self.sets, self._held
        possible = np.ones(len(model.successors), dtype=np.bool_)
        for rows, ids in self.blocks if not held.all() else ():
            some = np.ones((len(rows), 1), dtype=np.bool_)
            for place in ids.T:
                each = held[sets.ptr[place][:, None] + np.arange(sets.sizes[place[0]])]
                some = (some[:, :, None] & each[:, None]).reshape(len(rows), -1)
            possible[model.successor_ptr[rows][:, None] + np.arange(some.shape[1])] = some
        return possible

    def touch(self, states: BoolArray) -> BoolArray:
        """Return the rows (R,) that can lead to some of the states."""
        hit = states[self.model.successors] & self.possible
        return segment_any(hit, self.model.successor_ptr)

    def can(self, row: int, allowed: BoolArray | None, hit: BoolArray | None) -> bool:
        """Return whether nature can keep a row within allowed successors (K,) and hit some.

        Without any given, all are allowed, or each is a hit.
        """
        full = np.ones(len(self.successors(row)), dtype=np.bool_)
        allowed, hit = full if allowed is None else allowed, full if hit is None else hit
        return self.exact.can(self.ids(row), allowed, hit)

    def successors(self, row: int) -> IntArray:
        """Return the successors (K,) of a row."""
        return self.model.successors[segment(self.model.successor_ptr, row)]

    def ids(self, row: int) -> tuple[int, ...]:
        """Return the sets of a row."""
        return tuple(self.model.row_marginals[segment(self.model.marginal_ptr, row)].tolist())
