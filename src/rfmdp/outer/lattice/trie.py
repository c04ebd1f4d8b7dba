"""The tables by which `kernels.contraction` walks a lattice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from rfmdp.kernels.contraction import BITS, COUNT, KNOWN, MOVE, OTHER, PICK, TO, TWO
from rfmdp.model.lattice import FORBIDDEN, Factor, LatticeMDP
from rfmdp.model.lattice_order import postponed
from rfmdp.ragged import segment, starts
from rfmdp.sets.marginals import Kind
from rfmdp.types import AnyArray, BoolArray, IntArray

SMALL = 64  # states of the last factors, up to which operations are listed instead of walked
LARGE = 1 << 18  # states of a model that is worth the making of longer lists
LEAF = -1  # in place of a move
_NONE = np.iinfo(np.int64).max  # the number of no move


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


@dataclass(slots=True)
class MoveList:
    """Moves without repetitions: those with equal sets are one, whoever makes them."""

    model: LatticeMDP
    _sets: dict[tuple[bytes, ...], int] = field(default_factory=dict)  # to the first such marginal
    _numbers: dict[tuple[int, int, tuple[int, ...]], int] = field(default_factory=dict)

    def number(self, move: int) -> int:
        """Return the number of a move of the model; certain ones are -1 - target."""
        targets, marginal = self._parts(move)
        return -1 - targets[0] if marginal < 0 else self._add(marginal, targets)

    def picked(self, move: int, width: int) -> int:
        """Return the number of the move that only picks where a move of the model leads to."""
        return self._numbers.setdefault((PICK, width, self._parts(move)[0]), len(self._numbers))

    def finished(self, move: int) -> int:
        """Return the number of the move that contracts what was picked of a move of the model."""
        targets, marginal = self._parts(move)
        return -1 if marginal < 0 else self._add(marginal, tuple(range(len(targets))))

    def _parts(self, move: int) -> tuple[tuple[int, ...], int]:
        moves = self.model.moves
        targets = moves.targets[segment(moves.target_ptr, move)]
        return tuple(targets.tolist()), int(moves.marginal[move])

    def _add(self, marginal: int, targets: tuple[int, ...]) -> int:
        marginals = self.model.marginals
        outcomes = segment(marginals.outcome_ptr, marginal)
        corners = segment(marginals.corner_ptr, marginal)
        kind = marginals.kind[marginal]
        arrays = [kind, marginals.radius[marginal], marginals.corners[corners]]
        arrays += [each[outcomes] for each in (marginals.lower, marginals.upper, marginals.nominal)]
        marginal = self._sets.setdefault(tuple(each.tobytes() for each in arrays), marginal)
        two = kind == Kind.BOX and len(targets) == 2
        way = KNOWN if kind == Kind.SINGLETON else TWO if two else OTHER
        return self._numbers.setdefault((way, marginal, targets), len(self._numbers))

    def merged(self) -> tuple[IntArray, ...]:
        """Return all moves that have a number; see the kernel."""
        return (
            np.array([way for way, _, _ in self._numbers], dtype=np.int64),
            starts([len(targets) for _, _, targets in self._numbers]),
            np.array([x for _, _, targets in self._numbers for x in targets], dtype=np.int64),
            np.array([marginal for _, marginal, _ in self._numbers], dtype=np.int64),
        )


def restricted(trie: Trie, branches: IntArray) -> Trie:
    """Return the trie of some branches of the first depth."""
    if not len(trie.code_first):  # no depth is walked
        return trie
    actions = trie.entry_actions.copy()
    first = slice(trie.entry_ptr[0], trie.entry_ptr[1])
    actions[first] *= np.isin(trie.entry_branch[first], branches)
    return trie._replace(entry_actions=actions)


def parted(trie: Trie, parts: int) -> list[Trie]:
    """Return tries that share the branches of the first depth out, so their states differ."""
    if parts == 1 or not len(trie.code_first):
        return [trie]
    first = slice(trie.entry_ptr[0], trie.entry_ptr[1])
    branches = np.unique(trie.entry_branch[first][trie.entry_actions[first] != 0])
    count = max(min(parts, len(branches)), 1)
    return [restricted(trie, branches[k::count]) for k in range(count)]


@dataclass(frozen=True, slots=True)
class _Depth:
    """What a depth decides: variables decided before that it reads (its code), and fresh ones."""

    size: int  # of what it contracts
    known: list[int]
    fresh: list[int]
    weights: dict[int, int]  # of known variables in the code
    moves: AnyArray  # (codes, branches, actions)


class TrieMaker:
    """Makes the tables of a model.

    Depths are walked as long as many states are left of the later factors. What follows
    is a list of operations for every combination of decided variables that it reads.
    """

    def __init__(self, model: LatticeMDP) -> None:
        self.model = model
        listed = MoveList(model)
        width = postponed(model)
        decided: set[int] = set()
        self.depths: list[_Depth] = []
        for d, (factor, size) in enumerate(zip(model.factors, model.sizes, strict=True)):
            number: Callable[[int], int] = listed.number
            if width and d == 0:
                number = partial(listed.picked, width=width)
            self.depths.append(self._depth(factor, size, decided, number))
            decided |= set(factor.reads)
        if width:
            self.depths.append(self._depth(model.factors[0], width, decided, listed.finished))
        self.moves = listed.merged()
        sizes = [depth.size for depth in self.depths]
        self.later = np.cumprod([1, *sizes[::-1]])[::-1]  # states of depths d, d + 1, ...
        self.branches = [self._branches(depth.fresh) for depth in self.depths]
        small = SMALL if model.states < LARGE else 4 * SMALL
        self.bottom = max(int(np.argmax(self.later <= small)), 1 if width else 0)
        before = {c for depth in self.depths[: self.bottom] for c in depth.fresh}
        self.below = sorted(
            {c for depth in self.depths[self.bottom :] for c in depth.known if c in before}
        )  # decided variables that programs read
        self.slots = self.room = self.ends = 0
        self._entries: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def _depth(
        self, factor: Factor, size: int, decided: set[int], number: Callable[[int], int]
    ) -> _Depth:
        model = self.model
        known = [c for c in factor.reads if c in decided]
        fresh = [c for c in factor.reads if c not in decided]
        shape = [model.radix(c) for c in factor.reads]
        codes = int(np.prod([model.radix(c) for c in known], dtype=np.int64))
        used, place = np.unique(factor.moves, return_inverse=True)
        numbers = [_NONE if move == FORBIDDEN else number(move) for move in used.tolist()]
        merged = np.array(numbers, dtype=np.int64)[place].reshape(factor.moves.shape)
        axes = [factor.reads.index(c) for c in [*known, *fresh]]
        table = merged.reshape(*shape, -1).transpose(*axes, len(shape))
        moves = table.reshape(codes, -1, factor.moves.shape[1])
        return _Depth(size, known, fresh, self._weights(known), moves)

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
        walked = self.depths[: self.bottom]
        inner = np.append(self.later[1 : self.bottom + 1], self.later[self.bottom])
        begins = np.concatenate([[0], starts(inner[:-1])])[: self.bottom + 1]
        readers = [*(depth.weights for depth in walked), self._weights(self.below)]
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
            for fresh, offset in self.branches[d]:
                offsets.append(offset)
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

    def branches_of(self, local: BoolArray) -> IntArray:
        """Return the branches of the first depth in which its factor is in some local states."""
        depth, columns = self.depths[0], self.model.factors[0].columns
        digits = [self._digits(depth.fresh)[:, depth.fresh.index(c)] for c in columns]
        radix = [self.model.radix(c) for c in columns]
        return np.flatnonzero(local[np.ravel_multi_index(digits, radix)])

    def _branches(self, fresh: list[int]) -> list[tuple[dict[int, int], int]]:
        """Return the fresh values of all branches of a depth, and what they add to a state."""
        digits = self._digits(fresh)
        offsets = (digits @ self.model.strides[fresh]).tolist()
        values = [dict(zip(fresh, row, strict=True)) for row in digits.tolist()]
        return list(zip(values, offsets, strict=True))

    def program(self, classes: IntArray) -> tuple[IntArray, ...]:
        """Return the operations of every code, see the kernel; values that are alike share them.

        classes : (C,) bits of actions that pay alike
        """
        digits = self._digits(self.below)
        alike = np.zeros(len(digits), dtype=np.int64)
        for k, column in enumerate(self.below):
            least = self._alike(column)
            alike = alike * len(least) + least[digits[:, k]]
        _, some, which = np.unique(alike, return_index=True, return_inverse=True)
        ops: list[list[int]] = []
        pointers = [0]
        ends: list[IntArray] = []
        self.room = int(self.later[self.bottom :].sum())
        for values in digits[some].tolist():
            decided = dict(zip(self.below, values, strict=True))
            slots = self._write(ops, self.bottom, decided, 0, 0, -1, 0, 1)
            self.slots = max(self.slots, slots)
            leaves = [op for op in ops[pointers[-1] :] if op[MOVE] == LEAF]
            offsets, places = np.unique([op[TO] for op in leaves], return_inverse=True)
            for op, place in zip(leaves, places.tolist(), strict=True):
                op[COUNT] = place
            ends.append(offsets.astype(np.int64))
            pointers.append(len(ops))
        self.ends = max(map(len, ends))
        ptr, ends_ptr = np.array(pointers), starts([len(offsets) for offsets in ends])
        table = np.array(ops, dtype=np.int64).reshape(-1, 8)
        groups = self._groups(np.concatenate([table[:, BITS], classes]))
        return (
            ptr[:-1][which], ptr[1:][which], table, groups,
            ends_ptr[:-1][which], ends_ptr[1:][which], np.concatenate(ends),
        )  # fmt: skip

    def _write(
        self, ops: list[list[int]], d: int, values: dict[int, int], at: int, state: int, able: int,
        parent: int, slots: int,
    ) -> int:  # fmt: skip
        """Write what is left from depth d on, given decided variables and the array at `at`.

        Arrays of a depth have their place below all others. Returns how many slots there are then.
        """
        if d == len(self.depths):
            ops.append([able, len(ops) + 1, LEAF, at, state, 0, parent, 0])
            return slots
        depth = self.depths[d]
        code = sum(values[c] * w for c, w in depth.weights.items())
        count = int(self.later[d + 1])
        to = int(self.later[self.bottom : d + 1].sum())  # after the arrays of earlier depths
        made, slot_made = None, 0
        opened: list[list[int]] = []
        if (d, code) not in self._entries:
            self._entries[d, code] = _grouped(depth.moves[code])
        for move, branch, bits in self._entries[d, code]:
            if not able & bits:
                continue
            source, slot = at - (1 + move) * count, parent
            if move >= 0:
                source = to
                if made != move:
                    for op in opened:
                        op[1] = len(ops)
                    made, slot_made, slots = move, slots, slots + 1
                    opened = [[0, 0, move, at, to, count, parent, slot_made]]
                    ops.append(opened[0])
                opened[0][0] |= able & bits
                slot = slot_made
            elif opened:
                opened[0][1] = len(ops)
                opened = []
            fresh, offset = self.branches[d][branch]
            slots = self._write(
                ops, d + 1, values | fresh, source, state + offset, able & bits, slot, slots
            )
        for op in opened:
            op[1] = len(ops)
        return slots

    def _groups(self, bits: IntArray) -> IntArray:
        """Return actions that are in the same sets of actions, as bits (G,)."""
        actions = np.arange(len(self.model.actions))
        member = (np.unique(bits)[:, None] >> actions) & 1
        _, group = np.unique(member, axis=1, return_inverse=True)
        groups = np.zeros(int(group.max()) + 1, dtype=np.int64)
        np.bitwise_or.at(groups, group.reshape(-1), np.int64(1) << actions)
        return groups

    def _alike(self, column: int) -> IntArray:
        """Return for every value of a variable the least one by which programs do the same."""
        least = np.zeros(self.model.radix(column), dtype=np.int64)
        seen: dict[bytes, int] = {}
        for value in range(len(least)):
            look = b""
            for depth in self.depths[self.bottom :]:
                if column in depth.known:
                    shape = [self.model.radix(c) for c in depth.known]
                    table = depth.moves.reshape(*shape, -1)
                    look += table.take(value, axis=depth.known.index(column)).tobytes()
            least[value] = seen.setdefault(look, value)
        return least


def _grouped(table: AnyArray) -> list[tuple[int, int, int]]:
    """Return (move, branch, bits of actions) of one code, sorted by move."""
    groups: dict[tuple[int, int], int] = {}
    for branch, row in enumerate(table.tolist()):
        for action, move in enumerate(row):
            if move != _NONE:
                groups[move, branch] = groups.get((move, branch), 0) | 1 << action
    return sorted((move, branch, bits) for (move, branch), bits in groups.items())
