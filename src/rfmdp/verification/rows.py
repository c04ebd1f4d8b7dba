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

import numpy as np

from rfmdp.ragged import renumbered, stable_order
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.branching import Branching
from rfmdp.verification.exact import ExactRows, Undecided
from rfmdp.verification.linear import (
    FAINT,
    NORMAL,
    TINY,
    UNIT,
    VAGUE,
    Axis,
    Families,
    slack,
    two_sum,
)  # fmt: skip
from rfmdp.verification.reading import BOX, POLYTOPE, SINGLETON, SUBSETS, Model

BATCH = 1 << 18  # numbers handled at a time
KEPT = 1 << 22  # successors of a model whose rows are laid out once
PRODUCTS = 1 << 22  # products of vertices of one row, times outcomes of the last set


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
    possible: BoolArray  # (b, K) whether some product has them
    axes: list[Axis]  # their sets

    def take(self, some: IntArray) -> Batch:
        """Return some of them."""
        if len(some) == len(self.rows):
            return self
        axes = [axis.take(some) for axis in self.axes]
        rows, successors = self.rows[some], self.successors[some]
        return Batch(self.block, self.place[some], rows, successors, self.possible[some], axes)


class Rows:
    """All rows of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.exact = ExactRows(model.sets)
        self.families = Families.of(model.sets, self.exact)
        self.row_state = np.repeat(np.arange(model.states), np.diff(model.row_ptr))
        self.blocks = list(self._blocks())
        self._batches: dict[tuple[int, int], Batch] = {}
        self._branching = Branching()
        self._matrices: dict[int, FloatArray] = {}
        self._rigid: BoolArray | None = None
        self._held = self._possible_outcomes()

    def _blocks(self) -> Iterator[Block]:
        """Group the rows by the kinds and sizes of their sets."""
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
        for number, block in enumerate(self.blocks):
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
        possible = self.possible(rows).reshape(at.shape)
        successors = self.model.successors[at]
        return Batch(block, place, rows, successors, possible, self.axes(block, place))

    def axes(self, block: Block, place: IntArray) -> list[Axis]:
        """Return the sets of some rows of a block."""
        return [self.families.axis(block.ids[place, i]) for i in range(len(block.shape))]

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

    def products(
        self, ids: tuple[int, ...], axes: list[Axis], values: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return bounds (b,) of the least mean by products of vertices; None if these are many.

        Lower bounds above a target (b,) may be cut there.
        """
        try:
            order, matrices = self._listed(ids)
        except Undecided:
            return None
        sizes = [axis.size for axis in axes]
        count = math.prod(len(m) for m in matrices) * sizes[order[-1]]
        largest = max(math.prod(sizes), count)
        if largest > PRODUCTS:
            return self._branching.bounds(ids, (order, matrices), axes, values, target)
        low, high = np.empty(len(values)), np.empty(len(values))
        step = max(1, BATCH * 4 // largest)
        for first in range(0, len(values), step):
            some = slice(first, first + step)
            tensor = values[some].reshape(-1, *sizes).transpose(0, *(1 + i for i in order))
            flat = (len(tensor), sizes[order[-1]], -1)
            size = _mixed(np.abs(tensor), matrices).reshape(flat).transpose(0, 2, 1)
            error = slack(sum(sizes)) * size
            if (size < VAGUE).any():
                held = [(matrix > 0.0).astype(np.float64) for matrix in matrices]
                moves = _mixed((tensor != 0.0).astype(np.float64), held)
                error += TINY * ((size < VAGUE) & (moves.reshape(flat).transpose(0, 2, 1) > 0.0))
            if any(((matrix > 0.0) & (matrix < NORMAL)).any() for matrix in matrices):
                largest = np.abs(values[some]).max(axis=1)
                error += sum(sizes) * FAINT * largest[:, None, None]
            tensor = _mixed(tensor, matrices).reshape(flat).transpose(0, 2, 1)
            last = axes[order[-1]].take(np.arange(len(values))[some])
            low[some] = last.least(tensor - error).min(axis=1)
            high[some] = last.least(tensor + error, 1.0).min(axis=1)
        return low, high

    def _listed(self, ids: tuple[int, ...]) -> tuple[list[int], list[FloatArray]]:
        """Return the places of sets, that with the most vertices last, and vertices of others."""
        counts: list[float] = []
        for j in ids:
            if j not in self._matrices:
                try:
                    self._matrices[j] = self.exact[j].matrix()
                except Undecided:
                    self._matrices[j] = np.empty((0, 0))
            counts.append(len(self._matrices[j]) or np.inf)
        order = sorted(range(len(ids)), key=lambda i: counts[i])
        if len(order) > 1 and np.isinf(counts[order[-2]]):
            raise Undecided
        return order, [self._matrices[ids[i]] for i in order[:-1]]

    @property
    def rigid(self) -> BoolArray:
        """Rows (R,) all of whose products have the same successors."""
        if self._rigid is None:
            loose = np.concatenate([[0], np.cumsum(~self._firm()[self.model.row_marginals])])
            ptr = self.model.marginal_ptr
            self._rigid = loose[ptr[1:]] == loose[ptr[:-1]]
        return self._rigid

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

    def _possible_outcomes(self) -> BoolArray:
        """Return the outcomes (O,) of all sets that some member has, or more."""
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

    def can(self, row: int, allowed: BoolArray, hit: BoolArray) -> bool:
        """Return whether nature can keep a row within allowed successors and hit some; (K,)."""
        return self.exact.can(self.ids(row), allowed, hit)

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


def _mixed(tensor: FloatArray, matrices: list[FloatArray]) -> FloatArray:
    """Return the tensor (b, ...) averaged by the lines of matrices, leading axes first."""
    for matrix in matrices:
        tensor = np.tensordot(tensor, matrix, ([1], [1]))
    return tensor


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
