"""Breadth-first exploration by whole frontiers of states; never a Python loop per state.

The Python builder gives `expand`, a function from the codes of a frontier to blocks of rows. (The
PRISM language explores by a machine of its own, `language.explorer`.) A row's successors are sums
of codes: what the deterministic part contributes, plus one contribution per move and outcome. Two
examples, with x and y in 0..9, code = 10 x + y:

- x steps by a marginal with outcomes +1, +2 and y by one with outcomes 0, -1: `rest` is the
  code of the state, the contributions are [10, 20] and [0, -1]: changes of the code.
- the same in absolute terms: `rest` is 0, contributions [10 (x+1), 10 (x+2)] and [y, y-1].

Rows of a block may differ in the sizes of their marginals, and a move may be certain in some
rows (one outcome, no marginal). Codes become int32 states at once, so that a transition costs
four bytes while exploring and four in the finished model. States are numbered in the order of
their valuations: the result depends neither on the order of discovery nor on
how they are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.buffer import Buffer
from rfmdp.model.numbering import StateTable
from rfmdp.model.packing import Packing
from rfmdp.model.skeleton import FoundRows, Skeleton
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, Int32Array, IntArray

CERTAIN = -1  # in place of a marginal's id: the move has one outcome in this row
SLICE = 1 << 16  # states expanded at once: bounds the memory of temporaries


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """N rows of different states, all with moves of the same n factors.

    In row r, move i has `size[r, i]` outcomes, and outcome o adds `contribution[r, offset[i] + o]`
    to the successor's code. `marginal` is the identifier of its distribution, or `CERTAIN` where
    the size is 1.
    """

    source: IntArray  # (N,) index into the frontier
    action: int
    rest: IntArray  # (N,) contribution of all that no move contributes
    factor: Int32Array  # (n,)
    marginal: Int32Array  # (N, n)
    size: Int32Array  # (N, n)
    offset: IntArray  # (n + 1,) columns of `contribution` of every move
    contribution: IntArray  # (N, sum of largest sizes)

    @staticmethod
    def joined(
        source: IntArray, action: int, rest: IntArray, moves: Sequence[BlockMove]
    ) -> RowBlock:
        """Return rows whose moves are given one by one."""
        factor, marginal, size, contribution = zip(*moves, strict=True) if moves else ((),) * 4
        count = len(source)
        return RowBlock(
            source,
            action,
            np.ascontiguousarray(rest, dtype=np.int64),
            np.array(factor, dtype=np.int32),
            _side_by_side(count, marginal, np.int32),
            _side_by_side(count, size, np.int32),
            starts([part.shape[1] for part in contribution]),
            _side_by_side(count, contribution, np.int64),
        )


def _side_by_side(rows: int, parts: Sequence[AnyArray], dtype: type) -> AnyArray:
    return np.column_stack([np.empty((rows, 0), dtype), *parts]).astype(dtype, copy=False)


class Deadlock(Enum):
    """What to do with a reachable state that has no row."""

    LOOP = auto()  # a self-loop, and the label "deadlock"
    ERROR = auto()  # a ModelError that names the state


# a factor, its marginals (N,), its sizes (N,) and contributions (N, largest size)
BlockMove: TypeAlias = tuple[int, AnyArray, AnyArray, IntArray]
Expand = Callable[[IntArray], Iterable[RowBlock]]  # of codes (N,)
Progress = Callable[[int, int], None]  # (states found, transitions built)


def explore(
    packing: Packing,
    initial: IntArray,
    expand: Expand,
    *,
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> Skeleton:
    """Return the reachable states and rows of a model.

    Parameters
    ----------
    packing : how valuations are packed, into one word
    initial : (I,) codes of the initial states
    expand : all rows of the states of a frontier, in blocks; may be a generator
    deadlock : what to do with states that get no row
    progress : called now and then with the number of states and transitions so far

    Raises
    ------
    ModelError
        For a deadlock (if asked), a successor outside the variables' ranges, more than 2^31
        states.
    """
    found = _Found(packing)
    own = RowBlock.joined(np.arange(len(initial)), 0, initial, ())
    start = np.empty(len(initial), dtype=np.int32)
    found.number(own, np.ones(len(initial), dtype=np.int64), start)
    done = 0
    while done < found.count:
        stop = min(found.count, done + SLICE)
        for block in expand(found.states.known[done:stop, 0].copy()):
            found.add(block, done)
        done = stop
        if progress is not None:
            progress(found.count, found.successors.size)
    found.close_deadlocks(deadlock)
    return found.arranged(start)


class _Found:
    """All states and rows so far, in the order of discovery, rows as flat buffers."""

    def __init__(self, packing: Packing) -> None:
        self.packing, self.states, self.count = packing, StateTable(packing), 0
        self.source = Buffer(np.int32)  # per row: its state
        self.action = Buffer(np.int32)
        self.marginals = Buffer(np.int32)  # per row: number of marginals
        self.tensor = Buffer(np.int32)  # per row: number of successors
        self.marginal = Buffer(np.int32)  # per marginal of a row: identifier
        self.factor = Buffer(np.int32)
        self.successors = Buffer(np.int32)

    def add(self, block: RowBlock, first: int) -> None:
        """Append the rows of a block whose frontier starts at state `first`."""
        count = len(block.source)
        if count == 0:
            return
        total = block.size.prod(axis=1, dtype=np.float64)
        if total.max() >= 2**31:
            name = self.packing.name(self.states.known[first + block.source[total.argmax()]])
            raise ModelError(f"State {name}: a row with {total.max():.3g} successors is too large.")
        stored = block.marginal != CERTAIN
        ids = block.marginal[stored]
        self.source.extend(count)[:] = block.source + first
        self.action.extend(count)[:] = block.action
        self.tensor.extend(count)[:] = total
        self.marginals.extend(count)[:] = stored.sum(axis=1)
        self.marginal.extend(len(ids))[:] = ids
        self.factor.extend(len(ids))[:] = np.broadcast_to(block.factor, stored.shape)[stored]
        self.number(block, total.astype(np.int64), self.successors.extend(int(total.sum())))

    def number(self, block: RowBlock, total: IntArray, out: AnyArray) -> None:
        """Fill `out` with the successors of all rows, `total` of each; number the new ones."""
        from rfmdp.kernels.frontier import number_successors

        states, domain = self.states, self.packing.domain
        scratch = np.empty((int(total.max(initial=1)), 1), dtype=np.int64)
        arrays = (block.rest, block.contribution, block.offset, block.size, total)
        row = at = 0
        while row < len(block.rest):
            tables = (states.table, states.known, self.count, scratch)
            found = number_successors(arrays, row, *tables, out[at:], domain, states.dense)
            row, self.count, at = int(found[0]), int(found[1]), at + int(found[2])
            if row < 0:
                raise ModelError(
                    f"A row of {len(block.rest)} explored together leaves the variables' ranges "
                    f"(row {-1 - row}); expand() must check its values."
                )
            if row < len(block.rest):
                states.make_room(self.count, int(total[row]))

    def close_deadlocks(self, policy: Deadlock) -> None:
        """Give a self-loop to every state without rows, or refuse the first one."""
        has_row = np.zeros(self.count, dtype=np.bool_)
        has_row[self.source.array[: self.source.size]] = True
        dead = np.flatnonzero(~has_row)
        if dead.size == 0:
            return
        if policy is Deadlock.ERROR:
            words = self.states.known[dead]
            raise no_action(self.packing.name(words[self.packing.order(words)[0]]), dead.size)
        self.source.extend(dead.size)[:] = dead
        self.action.extend(dead.size)[:] = Skeleton.NO_ACTION
        self.marginals.extend(dead.size)[:] = 0
        self.tensor.extend(dead.size)[:] = 1
        self.successors.extend(dead.size)[:] = dead

    def arranged(self, start: Int32Array) -> Skeleton:
        """Return all that was found, states in the order of their valuations."""
        known = self.states.known[: self.count]
        del self.states  # its table is not needed any more
        buffers = (self.source, self.action, self.marginals, self.tensor)
        parts = (self.marginal, self.factor, self.successors)
        rows = FoundRows(*(buffer.trim() for buffer in (*buffers, *parts)))
        return rows.arranged(self.packing, known, start)


def no_action(state: str, count: int) -> ModelError:
    """Return (not raise) the error of deadlocks that are refused; the first is named."""
    others = f" ({count} such states)" if count > 1 else ""
    return ModelError(
        f"State {state} has no enabled action{others}; every reachable state must have one."
    )
