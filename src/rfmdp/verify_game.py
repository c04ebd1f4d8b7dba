"""The plain game behind `verify`: rows with all products of the vertices of their sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.uncertainty.vertices import count_vertices, supported_vertices

PRODUCTS = 1 << 24  # entries of all vertex products of one row
BATCH = 1 << 22  # entries handled at a time
KINDS: tuple[Any, ...] = (np.float64, np.longdouble)


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
            for rows, successors in block.batches(self.model):
                own = value[successors]
                base = own[:, :1]
                each = (own - base) @ block.product.T.astype(np.longdouble)
                best = base[:, 0] + (each.max(axis=1) if self.nature > 0 else each.min(axis=1))
                q[rows] = self.reward[rows] + discount * best
                size = np.abs(own).max(initial=0.0) + np.abs(self.reward[rows]).max(initial=0.0)
                relative = block.missing + 4.0 * unit * (block.product.shape[1] + 4)
                worst = max(worst, relative * float(size))
        return q, worst

    def pick(self, q: AnyArray, rule: IntArray | None) -> AnyArray:
        """Return the agent's row of every state: that of a rule, or the best."""
        if rule is not None:
            return q[rule]
        reduce = np.maximum if self.agent > 0 else np.minimum
        return reduce.reduceat(q, self.model.row_ptr[:-1])

    def signs(self, bound: FloatArray, side: int, discount: float) -> list[AnyArray]:
        """Return per block and vertex the sign of the gain of a bound: -side * (T(b) - b)."""
        found = []
        for block in self.blocks:
            parts = [
                _gain(self, block, rows, successors, bound, side, discount)
                for rows, successors in block.batches(self.model)
            ]
            found.append(np.concatenate(parts))
        return found

    def players(self, good: list[BoolArray], side: int, rule: IntArray | None) -> BoolArray:
        """Return the states where good vertices are enough: helping need one, opposing all."""
        rows = np.empty(self.model.rows, dtype=np.bool_)
        helps = self.nature == -side
        for block, each in zip(self.blocks, good, strict=True):
            rows[block.rows] = each.any(axis=1) if helps else each.all(axis=1)
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
                           & (b.meets(self.model, inner) | fire[b.rows][:, None]))
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


@dataclass(slots=True, eq=False)
class Block:
    """Rows with the same marginals, and the products of all vertices of these."""

    rows: IntArray  # (B,)
    product: FloatArray  # (N, K)

    @property
    def missing(self) -> float:
        """The most by which probabilities, as floats, fail to sum to one."""
        sums = self.product.sum(axis=1, dtype=np.longdouble)
        return 2.0 * float(np.abs(sums - 1.0).max(initial=0.0))

    def batches(self, model: FactoredMDP) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield rows and their successors (b, K), some at a time."""
        size = self.product.shape[1]
        step = max(1, BATCH // max(self.product.size, 1))
        for first in range(0, len(self.rows), step):
            rows = self.rows[first : first + step]
            place = model.successor_ptr[rows][:, None] + np.arange(size)
            yield rows, model.successors[place].astype(np.int64)

    def meets(self, model: FactoredMDP, states: BoolArray) -> BoolArray:
        """Return (B, N): whether a vertex moves to some of the states."""
        support = (self.product > 0.0).astype(np.float32).T
        parts = [states[s].astype(np.float32) @ support > 0.0 for _, s in self.batches(model)]
        return np.concatenate(parts)

    def stays(self, model: FactoredMDP, states: BoolArray) -> BoolArray:
        """Return (B, N): whether a vertex moves to these states only."""
        return ~self.meets(model, ~states)


def _blocks(model: FactoredMDP) -> Iterator[Block]:
    """Group the rows by their marginals."""
    groups: dict[tuple[int, ...], list[int]] = {}
    ids = model.row_marginals.tolist()
    ends = model.marginal_ptr.tolist()
    for row, (first, last) in enumerate(itertools.pairwise(ends)):
        groups.setdefault(tuple(ids[first:last]), []).append(row)
    corners: dict[int, FloatArray] = {}
    for key, rows in groups.items():
        sizes = [count_vertices(model.marginals[j]) * int(model.marginals.sizes[j]) for j in key]
        if float(np.prod(np.array(sizes, dtype=np.float64))) > PRODUCTS:
            raise UnsupportedError(
                f"verify: {model.row_name(rows[0])} has more than {PRODUCTS} entries of vertex "
                "products; verify a smaller model."
            )
        product = np.ones((1, 1))
        for j in key:
            if j not in corners:
                corners[j] = supported_vertices(model.marginals[j])
            product = np.einsum("ab,cd->acbd", product, corners[j]).reshape(
                len(product) * len(corners[j]), -1
            )
        yield Block(np.array(rows, dtype=np.int64), product)


def _gain(
    game: Game,
    block: Block,
    rows: IntArray,
    successors: IntArray,
    bound: FloatArray,
    side: int,
    discount: float,
) -> AnyArray:
    """Return the sign (b, N) of -side * (reward + sum p (discount * b' - b)), decided for sure."""
    here, there = bound[game.row_state[rows]], bound[successors]
    reward = game.reward[rows]
    infinite = np.isinf(there)
    there = np.where(infinite, 0.0, there)
    here = np.where(np.isinf(here), 0.0, here)
    sign = np.full((len(rows), len(block.product)), 2, dtype=np.int8)
    for kind in KINDS:
        difference: AnyArray = there.astype(kind) * discount - here.astype(kind)[:, None]
        gain = reward.astype(kind)[:, None] + difference @ block.product.T.astype(kind)
        unit = float(np.finfo(kind).eps)
        size: AnyArray = np.abs(difference).max(axis=1).astype(np.float64) + np.abs(reward)
        if discount != 1.0:
            size = size + np.abs(there).max(axis=1)
        margin: AnyArray = size * (4.0 * unit * (block.product.shape[1] + 8))
        sure = np.abs(gain) > margin[:, None]
        sign[sure] = np.sign(-side * gain[sure]).astype(np.int8)
        sign[np.broadcast_to((size == 0.0)[:, None], sign.shape)] = 0
        if not (sign == 2).any():
            break
    for i, v in zip(*np.nonzero(sign == 2), strict=True):
        total = Fraction(float(reward[i]))
        for p, x in zip(block.product[v].tolist(), there[i].tolist(), strict=True):
            if p > 0.0:
                total += Fraction(p) * (Fraction(discount) * Fraction(x) - Fraction(here[i]))
        sign[i, v] = -side * ((total > 0) - (total < 0))
    if infinite.any():
        meets = infinite.astype(np.float32) @ (block.product > 0.0).astype(np.float32).T > 0.0
        sign[meets] = -side
    return sign
