"""The plain game behind `verify`: rows with all products of the vertices of their sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.vertices import count_vertices, supported_vertices
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

PRODUCTS = 1 << 24  # products of vertices of one row
BATCH = 1 << 20  # numbers handled at a time
UNDERFLOW = 1e-300  # more than all that floats lose near zero


class Game:
    """A model, who pulls which way (+1 maximises), and what rows pay."""

    def __init__(self, model: FactoredMDP, agent: int, nature: int) -> None:
        self.model, self.agent, self.nature = model, agent, nature
        self.blocks = list(_blocks(model))
        self.row_state = np.repeat(np.arange(model.states), np.diff(model.row_ptr))
        self.reward = np.zeros(model.rows)

    def backup(self, value: AnyArray, discount: float) -> tuple[AnyArray, float]:
        """Return nature's best of every row in extended precision, and a bound of the rounding."""
        q: AnyArray = np.empty(self.model.rows, dtype=np.longdouble)
        unit, worst = float(np.finfo(np.longdouble).eps), 0.0
        for block in self.blocks:
            corners = [c.astype(np.longdouble) for c in block.corners]
            relative = block.missing + 4.0 * unit * block.terms
            for place, successors in block.batches(self.model):
                rows, own = block.rows[place], value[successors]
                base = own[:1]
                each = contract(own - base, corners)
                best = base[0] + (each.max(axis=0) if self.nature > 0 else each.min(axis=0))
                q[rows] = self.reward[rows] + discount * best
                size = np.abs(own).max(initial=0.0) + np.abs(self.reward[rows]).max(initial=0.0)
                worst = max(worst, relative * float(size))
        return q, worst

    def pick(self, q: AnyArray, rule: IntArray | None) -> AnyArray:
        """Return the agent's row of every state: that of a rule, or the best."""
        if rule is not None:
            return q[rule]
        reduce = np.maximum if self.agent > 0 else np.minimum
        return reduce.reduceat(q, self.model.row_ptr[:-1])

    def signs(
        self, bound: AnyArray, side: int, discount: float, asked: BoolArray
    ) -> list[AnyArray]:
        """Return per block (U, B) the sign of the gain of a bound, -side * (T(b) - b), where asked.

        Of the vertices with the same support only one counts: the best if nature helps, else the
        worst.
        """
        worst = np.maximum if self.nature == -side else np.minimum
        found = []
        for block in self.blocks:
            count = math.prod(len(first) for first in block.starts)
            signs = np.zeros((count, len(block.rows)), dtype=np.int8)
            for place, successors in block.batches(self.model, asked):
                rows = block.rows[place]
                signs[:, place] = _gain(self, block, rows, successors, bound, side, discount, worst)
            found.append(signs)
        return found

    def players(self, good: list[BoolArray], side: int, rule: IntArray | None) -> BoolArray:
        """Return the states where good supports are enough: helping need one, opposing all."""
        rows = np.empty(self.model.rows, dtype=np.bool_)
        helps = self.nature == -side
        for block, each in zip(self.blocks, good, strict=True):
            rows[block.rows] = each.any(axis=0) if helps else each.all(axis=0)
        if rule is not None:
            return rows[rule]
        reduce = np.logical_or if self.agent == -side else np.logical_and
        states: BoolArray = reduce.reduceat(rows, self.model.row_ptr[:-1])
        return states

    def gaining(
        self, signs: list[AnyArray], trivial: BoolArray, side: int, rule: IntArray | None
    ) -> BoolArray:
        """Return from where the bound gains or ends: the least X that the helping can force."""
        inside = trivial.copy()
        while True:
            good = [
                (s > 0) | ((s == 0) & block.meets(self.model, inside))
                for s, block in zip(signs, self.blocks, strict=True)
            ]
            more = inside | self.players(good, side, rule)
            if np.array_equal(more, inside):
                return inside
            inside = more

    def sure(self, target: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return where those who minimise reach the target almost surely (nested fixpoint)."""
        outer = np.ones(self.model.states, dtype=np.bool_)
        while True:
            inner = target.copy()
            while True:
                good = [
                    b.stays(self.model, outer) & b.meets(self.model, inner) for b in self.blocks
                ]
                more = inner | self.players(good, 1, rule)
                if np.array_equal(more, inner):
                    break
                inner = more
            if np.array_equal(inner, outer):
                return outer
            outer = inner

    def recurrent(self, fire: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return where those who maximise can be paid for ever with positive probability."""
        won = np.zeros(self.model.states, dtype=np.bool_)
        while True:
            outer = np.ones_like(won)
            while True:
                inner = won.copy()
                while True:
                    good = [
                        b.meets(self.model, won)
                        | (b.stays(self.model, outer)
                           & (b.meets(self.model, inner) | fire[b.rows]))
                        for b in self.blocks
                    ]  # fmt: skip
                    more = inner | self.players(good, -1, rule)
                    if np.array_equal(more, inner):
                        break
                    inner = more
                if np.array_equal(inner, outer):
                    break
                outer = inner
            if np.array_equal(outer, won):
                return won
            won = outer


def contract(tensor: AnyArray, factors: list[Any]) -> AnyArray:
    """Return (V1 * V2 * ..., b): all products of rows of factors (V, X), applied to (K, b)."""
    columns = inner = tensor.shape[1]
    for factor in reversed(factors):
        tensor = factor @ tensor.reshape(-1, factor.shape[1], inner)
        inner *= len(factor)
    return tensor.reshape(-1, columns)


@dataclass(slots=True, eq=False)
class Block:
    """Rows with the same marginals, the vertices of these, and what they take.

    Products of vertices and of supports are numbered in C order, of N and U in all.
    """

    rows: IntArray  # (B,)
    corners: list[FloatArray]  # (V, X) per factor, those with the same support together
    starts: list[IntArray]  # per factor: where the vertices of another support begin
    largest: int  # most entries on the way to all products

    @property
    def terms(self) -> int:
        """How many roundings a gain goes through, at most."""
        return 8 + sum(int(c.shape[1]) + 1 for c in self.corners)

    @property
    def missing(self) -> float:
        """The most by which probabilities, as floats, fail to sum to one."""
        one = np.longdouble(1.0)
        sums = [np.abs(c.sum(axis=1, dtype=np.longdouble) - one).max() for c in self.corners]
        return 2.0 * float(np.prod([one + s for s in sums], initial=one) - one)

    def batches(
        self, model: FactoredMDP, asked: BoolArray | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield places of rows (of those asked) and their successors (K, b), some at a time."""
        places = np.flatnonzero(np.ones(len(self.rows)) if asked is None else asked[self.rows])
        size = math.prod(c.shape[1] for c in self.corners)
        step = max(1, BATCH // self.largest)
        for first in range(0, len(places), step):
            place = places[first : first + step]
            entry = model.successor_ptr[self.rows[place]] + np.arange(size)[:, None]
            yield place, model.successors[entry].astype(np.int64)

    def touches(self, marked: BoolArray) -> BoolArray:
        """Return (U, b): whether a support has some of the successors marked in (K, b)."""
        supports = [
            (c[first] > 0.0).astype(np.float32)
            for c, first in zip(self.corners, self.starts, strict=True)
        ]
        return contract(marked.astype(np.float32), supports) > 0.0

    def meets(self, model: FactoredMDP, states: BoolArray) -> BoolArray:
        """Return (U, B): whether a support has some of the states."""
        parts = [self.touches(states[successors]) for _, successors in self.batches(model)]
        return np.concatenate(parts, axis=1)

    def stays(self, model: FactoredMDP, states: BoolArray) -> BoolArray:
        """Return (U, B): whether a support has these states only."""
        return ~self.meets(model, ~states)

    def reduce(self, worst: np.ufunc, gain: AnyArray) -> AnyArray:
        """Return (U, b): the greatest or least of (N, b) among products of the same support."""
        done, columns = 1, gain.shape[1]
        for corners, first in zip(self.corners, self.starts, strict=True):
            gain = gain.reshape(done, len(corners), -1)
            one = len(first) == 1  # much quicker
            gain = worst.reduce(gain, axis=1) if one else worst.reduceat(gain, first, axis=1)
            done *= len(first)
        return gain.reshape(done, columns)

    def support_of(self, product: IntArray) -> IntArray:
        """Return the number of the support of some products."""
        ids = np.zeros_like(product)
        for first, v in zip(self.starts, self._vertex_of(product), strict=True):
            ids = ids * len(first) + np.searchsorted(first, v, side="right") - 1
        return ids

    def factors_of(self, product: IntArray) -> list[FloatArray]:
        """Return per factor the vertices (C, X) that some products are made of."""
        vertices = self._vertex_of(product)
        return [c[v] for c, v in zip(self.corners, vertices, strict=True)]

    def _vertex_of(self, product: IntArray) -> tuple[IntArray, ...]:
        shape = [len(c) for c in self.corners]
        return np.unravel_index(product, shape) if shape else ()


def _blocks(model: FactoredMDP) -> Iterator[Block]:
    """Group the rows by their marginals."""
    groups: dict[tuple[int, ...], list[int]] = {}
    ids = model.row_marginals.tolist()
    ends = model.marginal_ptr.tolist()
    for row, (first, last) in enumerate(itertools.pairwise(ends)):
        groups.setdefault(tuple(ids[first:last]), []).append(row)
    used = sorted({j for key in groups for j in key})
    counts = {j: count_vertices(model.marginals[j]) for j in used}
    sizes = model.marginals.sizes.tolist()
    known: dict[int, tuple[FloatArray, IntArray]] = {}
    for key, rows in groups.items():
        entries = [
            math.prod(sizes[j] for j in key[:k]) * math.prod(counts[j] for j in key[k:])
            for k in range(len(key) + 1)
        ]
        if max(entries) > PRODUCTS:
            raise UnsupportedError(
                f"verify: {model.row_name(rows[0])} has {max(entries)} products of vertices, at "
                f"most {PRODUCTS} are looked at; verify a smaller model."
            )
        for j in key:
            if j not in known:
                known[j] = _by_support(supported_vertices(model.marginals[j]))
        corners, starts = [known[j][0] for j in key], [known[j][1] for j in key]
        yield Block(np.array(rows, dtype=np.int64), corners, starts, max(entries))


def _by_support(corners: FloatArray) -> tuple[FloatArray, IntArray]:
    """Sort vertices by their support, and say where each support begins."""
    _, support = np.unique(corners > 0.0, axis=0, return_inverse=True)
    support = support.reshape(-1)
    order = np.argsort(support, kind="stable")
    return corners[order], np.flatnonzero(np.diff(support[order], prepend=-1))


def _gain(
    game: Game,
    block: Block,
    rows: IntArray,
    successors: IntArray,
    bound: AnyArray,
    side: int,
    discount: float,
    worst: np.ufunc,
) -> AnyArray:
    """Return the sign (U, b) of -side * sum p (reward + discount * b' - b), decided for sure."""
    here, there = bound[game.row_state[rows]].astype(np.longdouble), bound[successors]
    above, below = np.isposinf(there), np.isneginf(there)
    there = np.where(above | below, 0.0, there).astype(np.longdouble)
    here = np.where(np.isinf(here), 0.0, here)
    step = _Step(game.reward[rows], here, there, discount)
    gain = contract(-side * step.difference.astype(np.float64), block.corners)
    margin = step.margin(np.float64, block.terms)
    best = block.reduce(worst, gain)
    sign = np.sign(best).astype(np.int8)
    unsure = np.abs(best) <= margin
    if unsure.any():
        still = ~block.touches(step.moves)
        sign[still] = 0
        unsure &= ~still
    if unsure.any():
        sign[unsure] = -1 if worst is np.maximum else 1
        columns = np.flatnonzero(unsure.any(axis=0))
        product, place = np.nonzero(np.abs(gain[:, columns]) <= margin[columns])
        support, column = block.support_of(product), columns[place]
        wanted = unsure[support, column]
        product, support, column = product[wanted], support[wanted], column[wanted]
        worst.at(sign, (support, column), -side * step.decide(block, product, column))
    if above.any():
        sign[block.touches(above)] = -side
    if below.any():  # nothing is known there: no gain, whatever else
        sign[block.touches(below)] = -1
    return sign


@dataclass(slots=True, eq=False)
class _Step:
    """What some rows pay, and the numbers here (b,) and there (K, b) that they lead between."""

    reward: FloatArray
    here: AnyArray
    there: AnyArray
    discount: float

    @property
    def difference(self) -> AnyArray:
        return self.reward + (self.there * self.discount - self.here)

    @property
    def moves(self) -> BoolArray:
        """Where the difference is not known to be exactly zero."""
        if self.discount != 1.0:
            return np.logical_or(self.there, np.logical_or(self.here, self.reward))
        lost = self.here - self.there
        other = lost - self.here  # the rounding of `lost`, after Knuth
        rounding = (self.here - (lost - other)) - (self.there + other)
        return np.asarray((lost != self.reward) | (rounding != 0.0), dtype=np.bool_)

    def margin(self, kind: Any, terms: int) -> FloatArray:
        """Return (b,) what rounding can do to a gain."""
        size: AnyArray = np.abs(self.difference).max(axis=0) + 2.0 * np.abs(self.reward)
        if self.discount != 1.0:
            size = size + np.abs(self.there).max(axis=0)
        unit = 4.0 * float(np.finfo(kind).eps)
        return unit * terms * np.asarray(size, dtype=np.float64) + UNDERFLOW

    def decide(self, block: Block, product: IntArray, column: IntArray) -> AnyArray:
        """Return the signs of the gains of some products in some rows: longer floats, fractions."""
        sign = np.empty(len(product), dtype=np.int8)
        margin = self.margin(np.longdouble, block.terms)
        difference = self.difference
        step = max(1, BATCH // len(self.there))
        for first in range(0, len(product), step):
            part = slice(first, first + step)
            own = column[part]
            gain: AnyArray = difference[:, own].T
            for factor in reversed(block.factors_of(product[part])):
                gain = (gain.reshape(len(own), -1, factor.shape[1]) * factor[:, None, :]).sum(
                    axis=2
                )
            gain = gain.reshape(-1)
            sign[part] = np.sign(gain)
            for k in np.flatnonzero(np.abs(gain) <= margin[own]):
                sign[first + k] = self._exactly(block, product[first + k], own[k])
        return sign

    def _exactly(self, block: Block, product: int, column: int) -> int:
        """Return the sign of one gain in fractions."""
        offset = _fraction(self.reward[column]) - _fraction(self.here[column])
        discount = Fraction(self.discount)
        values = [offset + discount * _fraction(x) for x in self.there[:, column]]
        for factor in reversed(block.factors_of(np.array([product]))):
            own = [Fraction(p) for p in factor[0].tolist()]
            values = [
                sum((p * v for p, v in zip(own, values[k : k + len(own)], strict=True)), Fraction())
                for k in range(0, len(values), len(own))
            ]
        return (values[0] > 0) - (values[0] < 0)


def _fraction(number: Any) -> Fraction:
    return Fraction(*number.as_integer_ratio())
