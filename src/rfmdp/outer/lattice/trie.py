"""The tables by which `kernels.contraction` walks a lattice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rfmdp.kernels.contraction import BOX, KNOWN, TWO
from rfmdp.model.lattice import FORBIDDEN, LatticeMDP
from rfmdp.ragged import segment, starts
from rfmdp.sets.marginals import Kind
from rfmdp.types import AnyArray, IntArray

SMALL = 32  # states of the last factors, below which operations are listed instead of walked
LEAF = -1  # in place of a move


class MergedMoves(NamedTuple):
    """Moves with equal sets are one, whoever makes them."""

    kind: IntArray  # (moves,) KNOWN, TWO or BOX
    target_ptr: IntArray
    targets: IntArray
    begin: IntArray  # (moves,) first outcome among those of all sets


class Trie(NamedTuple):
    """The depths that are walked; see the kernel."""

    inner: IntArray  # (D + 1,) states of all later factors together
    begins: IntArray  # (D + 1,) where the array of each depth begins in the work space
    entry_ptr: IntArray  # (codes of all depths + 1,)
    code_first: IntArray  # (D,)
    entry_move: IntArray
    entry_branch: IntArray
    entry_actions: IntArray
    offset: IntArray  # (branches of all depths,)
    change_ptr: IntArray
    change_depth: IntArray
    change_by: IntArray


class Program(NamedTuple):
    """The operations below the depths that are walked, by their code."""

    op_ptr: IntArray  # (codes + 1,)
    ops: IntArray  # (N, 8)


def merged_moves(model: LatticeMDP) -> tuple[MergedMoves, IntArray]:
    """Return moves without repetitions, and the number of each; certain ones are -1 - target."""
    marginals, moves = model.marginals, model.moves
    sets: dict[bytes, int] = {}  # to the first marginal with these bounds
    numbers: dict[tuple[int, bytes], int] = {}
    number = np.empty(len(moves.marginal), dtype=np.int64)
    for k, marginal in enumerate(moves.marginal):
        targets = moves.targets[segment(moves.target_ptr, k)]
        if marginal < 0:
            number[k] = -1 - targets[0]
            continue
        outcomes = segment(marginals.outcome_ptr, marginal)
        bounds = marginals.lower[outcomes].tobytes() + marginals.upper[outcomes].tobytes()
        same = sets.setdefault(bounds, int(marginal))
        number[k] = numbers.setdefault((same, targets.tobytes()), len(numbers))
    lists = [np.frombuffer(targets, dtype=np.int64) for _, targets in numbers]
    joined = np.concatenate([np.empty(0, np.int64), *lists])
    chosen = np.array([same for same, _ in numbers], dtype=np.int64)
    sizes = np.array([len(entry) for entry in lists], dtype=np.int64)
    known = marginals.kind[chosen] == Kind.SINGLETON
    kind = np.where(known, KNOWN, np.where(sizes == 2, TWO, BOX)).astype(np.int64)
    return MergedMoves(kind, starts(sizes), joined, marginals.outcome_ptr[chosen]), number


def parted(trie: Trie, parts: int) -> list[Trie]:
    """Return tries that share the branches of the first depth out, so their states differ."""
    if not len(trie.code_first):  # no depth is walked
        return [trie]
    first = slice(trie.entry_ptr[0], trie.entry_ptr[1])
    branch = trie.entry_branch[first]
    tries = []
    for k in range(min(parts, int(branch.max()) + 1)):
        actions = trie.entry_actions.copy()
        actions[first] = np.where(branch % parts == k, actions[first], 0)
        tries.append(trie._replace(entry_actions=actions))
    return tries


@dataclass(frozen=True, slots=True)
class _Depth:
    """What a depth decides: variables decided before that it reads (its code), and fresh ones."""

    known: list[int]
    fresh: list[int]
    weights: dict[int, int]  # of known variables in the code
    moves: AnyArray  # (codes, branches, actions)


class TrieMaker:
    """Makes the tables of a model.

    Depths are walked as long as more than SMALL states are left of the later factors. What follows
    is a list of operations for every combination of decided variables that it reads.
    """

    def __init__(self, model: LatticeMDP, number: IntArray) -> None:
        self.model = model
        later = np.cumprod([1, *model.sizes[::-1]])[::-1]  # states of factors d, d + 1, ...
        self.later = later
        self.bottom = int(np.argmax(later <= SMALL))
        decided: set[int] = set()
        self.depths: list[_Depth] = []
        below: set[int] = set()
        for d, factor in enumerate(model.factors):
            if d >= self.bottom:
                below |= set(factor.reads) & self._decided_before(self.bottom)
            self.depths.append(self._depth(d, decided, number))
            decided |= set(factor.reads)
        self.below = sorted(below)  # decided variables that programs read
        self.slots = self.room = 0

    def _decided_before(self, depth: int) -> set[int]:
        return {c for factor in self.model.factors[:depth] for c in factor.reads}

    def _depth(self, d: int, decided: set[int], number: IntArray) -> _Depth:
        model, factor = self.model, self.model.factors[d]
        known = [c for c in factor.reads if c in decided]
        fresh = [c for c in factor.reads if c not in decided]
        shape = [model.radix(c) for c in factor.reads]
        codes = int(np.prod([model.radix(c) for c in known], dtype=np.int64))
        merged = np.where(factor.moves == FORBIDDEN, _NONE, number[factor.moves])
        axes = [factor.reads.index(c) for c in [*known, *fresh]]
        table = merged.reshape(*shape, -1).transpose(*axes, len(shape))
        moves = table.reshape(codes, len(merged) // codes, merged.shape[1])
        return _Depth(known, fresh, self._weights(known), moves)

    def _weights(self, columns: list[int]) -> dict[int, int]:
        """Return what each variable counts in a number of C order."""
        weights, weight = {}, 1
        for column in reversed(columns):
            weights[column] = weight
            weight *= self.model.radix(column)
        return weights

    def _digits(self, columns: list[int]) -> IntArray:
        """Return all values of some variables less their least ones, (N, columns), in C order."""
        radix = [self.model.radix(c) for c in columns]
        count = int(np.prod(radix, dtype=np.int64))
        return np.indices(radix).reshape(len(radix), count).T.astype(np.int64)

    def trie(self) -> Trie:
        """Return the depths that are walked."""
        model, walked = self.model, self.depths[: self.bottom]
        inner = self.later[1 : self.bottom + 1]
        inner = np.append(inner, self.later[self.bottom])
        begins = np.concatenate([[0], self.later[0] + starts(inner[:-1])[:-1]])[: self.bottom + 1]
        readers = [
            *(depth.weights for depth in self.depths[: self.bottom]),
            self._weights(self.below),
        ]
        counts: list[int] = []
        entries: list[tuple[int, int, int]] = []
        code_first: list[int] = []
        offsets: list[int] = []
        changes: list[list[tuple[int, int]]] = []
        for d, depth in enumerate(walked):
            code_first.append(len(counts))
            for table in depth.moves:
                groups = [(m, len(offsets) + b, bits) for m, b, bits in _grouped(table)]
                counts.append(len(groups))
                entries += groups
            digits = self._digits(depth.fresh)
            offsets += (digits @ model.strides[depth.fresh]).tolist()
            for values in digits.tolist():
                fresh = dict(zip(depth.fresh, values, strict=True))
                changes.append(
                    [
                        (later, by)
                        for later in range(d + 1, self.bottom + 1)
                        if (by := sum(x * readers[later].get(c, 0) for c, x in fresh.items()))
                    ]
                )
        moves, branches, actions = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
        pairs = np.array([pair for some in changes for pair in some], dtype=np.int64).reshape(-1, 2)
        return Trie(
            inner, begins, starts(counts), np.array(code_first, dtype=np.int64),
            moves, branches, actions, np.array(offsets, dtype=np.int64),
            starts([len(some) for some in changes]), pairs[:, 0].copy(), pairs[:, 1].copy(),
        )  # fmt: skip

    def program(self) -> Program:
        """Return the operations of every code."""
        lists = []
        first = 0
        for values in self._digits(self.below).tolist():
            ops: list[list[int]] = []
            writer = _Writer(self, ops)
            writer.write(self.bottom, dict(zip(self.below, values, strict=True)), 0, 0, -1, 0)
            for op in ops:
                op[1] += first  # where to go on
            first += len(ops)
            self.slots, self.room = (
                max(self.slots, writer.slots),
                int(self.later[self.bottom :].sum()),
            )
            lists.append(ops)
        return Program(
            starts([len(ops) for ops in lists]),
            np.array([op for ops in lists for op in ops], dtype=np.int64).reshape(-1, 8),
        )


_NONE = np.iinfo(np.int64).max  # the number of no move


@dataclass(slots=True)
class _Writer:
    """Writes the operations of one code; arrays of a depth have their place below all others."""

    maker: TrieMaker
    ops: list[list[int]]
    slots: int = field(default=1)

    def write(
        self, d: int, values: dict[int, int], at: int, state: int, able: int, parent: int
    ) -> None:
        """Write what is left from depth d on, given decided variables and the array at `at`."""
        maker, model = self.maker, self.maker.model
        if d == len(model.factors):
            self.ops.append([able, len(self.ops) + 1, LEAF, at, state, 0, parent, 0])
            return
        depth = maker.depths[d]
        code = sum(values[c] * w for c, w in depth.weights.items())
        count = int(maker.later[d + 1])
        to = int(maker.later[maker.bottom : d + 1].sum())  # after the arrays of earlier depths
        digits = maker._digits(depth.fresh)
        made = None
        opened: list[list[int]] = []
        for move, branch, bits in _grouped(depth.moves[code]):
            if not able & bits:
                continue
            source, slot = at - (1 + move) * count, parent
            if move >= 0:
                source = to
                if made != move:
                    for op in opened:
                        op[1] = len(self.ops)
                    made, slot_made = move, self.slots
                    self.slots += 1
                    opened = [[0, 0, move, at, to, count, parent, slot_made]]
                    self.ops.append(opened[0])
                opened[0][0] |= able & bits
                slot = slot_made
            elif opened:
                opened[0][1] = len(self.ops)
                opened = []
            row = digits[branch]
            fresh = dict(zip(depth.fresh, row.tolist(), strict=True))
            offset = int(row @ model.strides[depth.fresh])
            self.write(d + 1, values | fresh, source, state + offset, able & bits, slot)
        for op in opened:
            op[1] = len(self.ops)


def _grouped(table: AnyArray) -> list[tuple[int, int, int]]:
    """Return (move, branch, bits of actions) of one code, sorted by move."""
    groups: dict[tuple[int, int], int] = {}
    for branch, row in enumerate(table.tolist()):
        for action, move in enumerate(row):
            if move != _NONE:
                groups[move, branch] = groups.get((move, branch), 0) | 1 << action
    return sorted((move, branch, bits) for (move, branch), bits in groups.items())
