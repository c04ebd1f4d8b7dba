"""Rows of a model in blocks of the same shape, and bounds of nature's least mean in each.

A mean over a product of sets is linear in each of them. From below, nature may choose one set
after it has seen the outcomes of the others: a larger game, solved set by set (`below`). From
above, any product of members will do (`above`). Where the two leave a doubt, all products of the
vertices of all sets but one are tried, and the last set is left to its own minimiser.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rfmdp.ragged import owners, renumbered, segment_all, segment_any, stable_order
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import ExactRows, Undecided
from rfmdp.verification.linear import (
    TINY,
    UNIT,
    VAGUE,
    Axis,
    Families,
    slack,
    two_sum,
)  # fmt: skip
from rfmdp.verification.products import Products
from rfmdp.verification.reading import BOX, POLYTOPE, SINGLETON, SUBSETS, Model

BATCH = 1 << 18  # numbers handled at a time
KEPT = 1 << 22  # successors of a model whose rows are laid out once


@dataclass(slots=True, eq=False)
class Block:
    """Rows whose sets have the same kinds and sizes, in the same places."""

    rows: IntArray  # (B,)
    ids: IntArray  # (B, n) sets
    shape: tuple[int, ...]
    free: list[int]  # places of sets that are no singletons; the largest last

    @property
    def single(self) -> list[int]:
        """Places of singletons."""
        return [i for i in range(len(self.shape)) if i not in self.free]

    @property
    def turned(self) -> list[Block]:
        """The same with each of the other sets in the last place once."""
        return [replace(self, free=self.free[k:] + self.free[:k]) for k in range(1, len(self.free))]


@dataclass(slots=True, eq=False)
class Batch:
    """Some rows of a block."""

    block: Block
    place: IntArray  # (b,) in the block
    rows: IntArray  # (b,)
    successors: IntArray  # (b, K)
    possible: BoolArray | None  # (b, K) whether some product has them; None: all
    axes: list[Axis]  # their sets

    def take(self, some: IntArray) -> Batch:
        """Return some of them."""
        if len(some) == len(self.rows):
            return self
        axes = [axis.take(some) for axis in self.axes]
        rows, successors = self.rows[some], self.successors[some]
        possible = None if self.possible is None else self.possible[some]
        return Batch(self.block, self.place[some], rows, successors, possible, axes)


class Rows:
    """All rows of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.exact = ExactRows(model.sets)
        self.row_state = owners(model.row_ptr)
        self._batches: dict[tuple[int, int], Batch] = {}
        self.products = Products(self.exact)

    @cached_property
    def families(self) -> Families:
        """The sets, as floats need them."""
        return Families.of(self.model.sets, self.exact)

    @cached_property
    def blocks(self) -> list[Block]:
        """All rows, grouped by the kinds and sizes of their sets."""
        return list(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        """Yield the rows with the same kinds and sizes of sets together."""
        model, families = self.model, self.families
        lengths = np.diff(model.marginal_ptr)
        corners = np.diff(families.corner_ptr)
        described = np.column_stack([families.kind, model.sets.sizes, corners])
        classes, of_set = np.unique(described, axis=0, return_inverse=True)
        of_set = of_set.reshape(-1)
        sign = lengths.copy()
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            own = of_set[model.row_marginals[model.marginal_ptr[rows] + place]]
            sign[rows] = sign[rows] * len(classes) + own
            sign = renumbered(sign)
        order = stable_order(sign)
        for rows in np.split(order, np.flatnonzero(np.diff(sign[order])) + 1):
            if not len(rows):
                continue
            at = model.marginal_ptr[rows][:, None] + np.arange(lengths[rows[0]])
            ids = model.row_marginals[at]
            kinds = families.kind[ids[0]]
            shape = tuple(model.sets.sizes[ids[0]].tolist())
            free = [i for i in range(len(shape)) if kinds[i] != SINGLETON]
            yield Block(rows, ids, shape, sorted(free, key=lambda i: shape[i]))

    def batches(self, asked: BoolArray) -> Iterator[Batch]:
        """Yield the rows that are asked for; those of small models are kept for the next time."""
        for number, block in enumerate(self.blocks if asked.any() else ()):
            places = np.flatnonzero(asked[block.rows])
            step = max(1, BATCH // math.prod(block.shape))
            for first in range(0, len(places), step):
                place = places[first : first + step]
                batch = self._batches.get((number, first))
                if batch is None or not np.array_equal(batch.place, place):
                    batch = self._batch(block, place)
                    if len(self.model.successors) <= KEPT:
                        self._batches[number, first] = batch
                yield batch

    def _batch(self, block: Block, place: IntArray) -> Batch:
        rows, size = block.rows[place], math.prod(block.shape)
        at = self.model.successor_ptr[rows][:, None] + np.arange(size)
        possible = None if self._held.all() else self.possible(rows).reshape(at.shape)
        successors = self.model.successors[at]
        return Batch(block, place, rows, successors, possible, self.axes(block, place))

    def axes(self, block: Block, place: IntArray) -> list[Axis]:
        """Return the sets of some rows of a block."""
        return [self.families.axis(block.ids[place, i]) for i in range(len(block.shape))]

    def bound(self, block: Block, axes: list[Axis], values: FloatArray, side: int) -> FloatArray:
        """Return bounds (b,), on a side, of nature's least mean of values (b, K)."""
        if not len(values):
            return np.empty(0)
        return (self.above if side > 0 else self.below)(block, axes, values)

    def refine(
        self, batch: Batch, some: IntArray, values: FloatArray, least: FloatArray, side: int,
        aim: FloatArray, cut: FloatArray,
    ) -> None:  # fmt: skip
        """Improve bounds (b,), on a side, of some least means until they reach an aim, in place.

        First by sets in other orders, then by products of vertices, of which those with means from
        a cut (b,) on are of no interest.
        """
        better = np.fmin if side > 0 else np.fmax
        for turned in batch.block.turned:
            if not len(some):
                return
            found = self.bound(turned, batch.take(some).axes, values[some], side)
            least[some] = better(least[some], found)
            some = some[~(side * (least[some] - aim[some]) <= 0.0)]
        for which, ids in alike(batch.block, batch.place[some]):
            pick = some[which]
            bounds = self.products.bounds(ids, batch.take(pick).axes, values[pick], cut[pick])
            if bounds is not None:
                least[pick] = better(least[pick], bounds[1 if side > 0 else 0])

    def below(self, block: Block, axes: list[Axis], values: FloatArray) -> FloatArray:
        """Return (b,): no more than nature's least mean of values (b, K)."""
        tensor = values.reshape(len(values), *block.shape)
        left = list(range(len(block.shape)))
        for i in [*block.single[::-1], *block.free[::-1]]:
            tensor = _contract(tensor, 1 + left.index(i), axes[i])
            left.remove(i)
        return tensor.reshape(len(values))

    def above(self, block: Block, axes: list[Axis], values: FloatArray) -> FloatArray:
        """Return (b,): no less than nature's least mean of values (b, K), by some product."""
        tensor = values.reshape(len(values), *block.shape)
        left, off = list(range(len(block.shape))), np.zeros(len(values))
        for i in block.single:
            tensor = _contract(tensor, 1 + left.index(i), axes[i], 1.0)
            left.remove(i)
        if len(block.free) < 2:
            if block.free:
                tensor = axes[block.free[0]].least(tensor.reshape(len(values), 1, -1), 1.0)
            return tensor.reshape(len(values))
        size, moves = np.abs(tensor), (tensor != 0.0).astype(np.float64)
        for n, i in enumerate(block.free[:-1]):
            rest, inner = tensor, list(left)
            for k in reversed(block.free[n + 1 :]):
                rest = _contract(rest, 1 + inner.index(k), axes[k])
                inner.remove(k)
            p, distance = axes[i].point(rest.reshape(len(values), -1))
            place, off = 1 + left.index(i), off + distance
            tensor, size = _weigh(tensor, place, p), _weigh(size, place, p)
            moves = _weigh(moves, place, (p > 0.0).astype(np.float64))
            left.remove(i)
        vague = (size < VAGUE) & (moves > 0.0)
        tensor = tensor + slack(sum(block.shape)) * size + TINY * vague
        tensor = axes[block.free[-1]].least(tensor.reshape(len(values), 1, -1), 1.0)
        largest = np.abs(values).max(axis=1, initial=0.0)
        far = 1.01 * off * largest + TINY * ((off > 0.0) & (largest > 0.0))
        return np.asarray(tensor.reshape(len(values)) + far)

    @cached_property
    def rigid(self) -> BoolArray:
        """Rows (R,) all of whose products have the same successors."""
        return segment_all(self._firm()[self.model.row_marginals], self.model.marginal_ptr)

    def _firm(self) -> BoolArray:
        """Return the sets (M,) all of whose members have the same outcomes."""
        families, sizes = self.families, self.model.sets.sizes
        firm = families.kind == SINGLETON
        if firm.all():
            return np.asarray(firm)
        first = families.ptr[:-1]
        box = families.kind == BOX
        others = np.repeat(np.add.reduceat(families.upper, first), sizes) - families.upper
        empties = (families.lower == 0.0) & (families.upper > 0.0)
        certain = ~np.logical_or.reduceat(empties, first)
        bends = np.logical_or.reduceat(empties & (others > 1.0 + 1e-9), first)
        for j in np.flatnonzero(~firm & ~(box & (certain | bends))):
            own = self.exact[int(j)]
            try:
                firm[j] = own.certain == own.largest(own.everything)
            except Undecided:
                firm[j] = False
        return np.asarray(firm | (box & certain))

    @cached_property
    def _held(self) -> BoolArray:
        """The outcomes (O,) of all sets that some member has, or more."""
        sets, families = self.model.sets, self.families
        held = np.repeat(families.kind != SINGLETON, sets.sizes) | (families.centre > 0.0)
        held &= np.repeat(families.kind != BOX, sets.sizes) | (families.upper > 0.0)
        for j in np.flatnonzero((families.kind == POLYTOPE) | (families.kind == SUBSETS)):
            own = self.exact[int(j)]
            with suppress(Undecided):
                mask = own.largest(own.everything)
                held[sets.ptr[j] : sets.ptr[j + 1]] = [bool(mask >> k & 1) for k in range(own.size)]
        return np.asarray(held)

    def possible(self, rows: IntArray) -> BoolArray:
        """Return for all entries of some rows whether some product has them."""
        return among(self.model, self._held, rows)

    def touch(self, states: BoolArray) -> BoolArray:
        """Return the rows (R,) that can lead to some of the states."""
        hit = states[self.model.successors]
        if not self._held.all():
            hit &= self.possible(np.arange(self.model.rows))
        return segment_any(hit, self.model.successor_ptr)

    def can(self, row: int, allowed: BoolArray | None, hit: BoolArray | None) -> bool:
        """Return whether nature can keep a row within allowed successors (K,) and hit some.

        Without any given, all are allowed, or each is a hit.
        """
        full = np.ones(int(np.diff(self.model.successor_ptr[row : row + 2])[0]), dtype=np.bool_)
        allowed, hit = full if allowed is None else allowed, full if hit is None else hit
        return self.exact.can(self.ids(row), allowed, hit)

    def successors(self, row: int) -> IntArray:
        """Return the successors (K,) of a row."""
        return self.model.successors[slice(*self.model.successor_ptr[row : row + 2])]

    def ids(self, row: int) -> tuple[int, ...]:
        """Return the sets of a row."""
        part = slice(*self.model.marginal_ptr[row : row + 2])
        return tuple(self.model.row_marginals[part].tolist())


def alike(block: Block, place: IntArray) -> list[tuple[IntArray, tuple[int, ...]]]:
    """Return places within `place` of rows with the same sets, and these."""
    if not len(place):
        return []
    kinds, which = np.unique(block.ids[place], axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [(np.flatnonzero(which == i), tuple(ids)) for i, ids in enumerate(kinds.tolist())]


def among(model: Model, held: BoolArray, rows: IntArray) -> BoolArray:
    """Return for all entries of some rows whether all their outcomes are among some (O,)."""
    sets, sizes = model.sets, np.diff(model.successor_ptr)[rows]
    if held.all():
        return np.ones(int(sizes.sum()), dtype=np.bool_)
    number = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found = np.ones(len(number), dtype=np.bool_)
    lengths = np.diff(model.marginal_ptr)[rows]
    for back in range(1, int(lengths.max(initial=0)) + 1):
        has = lengths >= back
        ids = model.row_marginals[model.marginal_ptr[rows[has] + 1] - back]
        each = np.repeat(has, sizes)
        held_by = np.repeat(ids, sizes[has])
        digit = number[each] % sets.sizes[held_by]
        number[each] //= sets.sizes[held_by]
        found[each] &= held[sets.ptr[held_by] + digit]
    return found


def _contract(tensor: FloatArray, place: int, axis: Axis, side: float = -1.0) -> FloatArray:
    """Return the tensor without an axis, nature's least mean along it, rounded to a side."""
    moved = np.moveaxis(tensor, place, -1)
    found = axis.least(moved.reshape(len(tensor), -1, axis.size), side)
    return found.reshape(moved.shape[:-1])


def _weigh(tensor: FloatArray, place: int, p: FloatArray) -> FloatArray:
    """Return the tensor (b, ...) without an axis, averaged with weights (b, X)."""
    moved = np.moveaxis(tensor, place, -1)
    flat = moved.reshape(len(tensor), -1, moved.shape[-1])
    return (flat @ p[:, :, None]).reshape(moved.shape[:-1])


def fold(reduce: np.ufunc, values: FloatArray) -> FloatArray:
    """Return the least or largest of values (b, K), by columns: NumPy is slow along short rows."""
    if values.shape[1] > 16:
        return np.asarray(reduce.reduce(values, axis=1))
    found = values[:, 0].copy()
    for k in range(1, values.shape[1]):
        reduce(found, values[:, k], out=found)
    return found


def differences(
    there: FloatArray, here: FloatArray, reward: FloatArray, discount: float
) -> tuple[FloatArray, FloatArray]:
    """Return reward + discount * there - here, (b, K), and bounds of the error, 0 where exact."""
    lost: FloatArray | float = 0.0
    if discount != 1.0:
        some = there != 0.0
        there = discount * there
        lost = 2.0 * UNIT * np.abs(there) + TINY * some
    first, error = two_sum(there, -here)
    total, more = two_sum(first, reward)
    rest = error + more
    exact = (error == 0.0) & (more == 0.0)
    found = total + rest
    return found, np.where(exact, 0.0, 4.0 * UNIT * (np.abs(found) + np.abs(rest))) + lost
