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

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.buffer import Buffer
from rfmdp.model.codes import Codec
from rfmdp.model.numbering import Numbering, Tensors
from rfmdp.model.skeleton import FoundRows, Skeleton
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, IntArray

CERTAIN = -1  # in place of a marginal's id: the move has one outcome in this row
SLICE = 1 << 16  # states expanded at once: bounds the memory of temporaries


@dataclass(frozen=True, slots=True, eq=False)
class BlockMove:
    """How one factor moves in the rows of a block.

    In row `r` it has `size[r]` outcomes, outcome `o` adds `contribution[r, o]` to the successor's
    code. `marginal` is the identifier of its distribution, or `CERTAIN` where the size is 1.
    """

    factor: int
    marginal: AnyArray  # (N,)
    size: AnyArray  # (N,)
    contribution: IntArray  # (N, largest size)


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Rows of many states at once, all with moves of the same factors."""

    source: IntArray  # (N,) index into the frontier
    action: int
    rest: IntArray  # (N,) contribution of all that no move contributes
    moves: Sequence[BlockMove]


class Deadlock(Enum):
    """What to do with a reachable state that has no row."""

    LOOP = auto()  # a self-loop, and the label "deadlock"
    ERROR = auto()  # a ModelError that names the state


Expand = Callable[[IntArray], Iterable[RowBlock]]  # of codes (N,)
Progress = Callable[[int, int], None]  # (states found, transitions built)


def explore(
    codec: Codec,
    initial: IntArray,
    expand: Expand,
    *,
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> Skeleton:
    """Return the reachable states and rows of a model.

    Parameters
    ----------
    codec : how valuations are packed
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
    numbering = Numbering(codec)
    start = numbering.enter(np.asarray(initial, dtype=np.int64))
    rows = _Rows()
    done = 0
    while done < numbering.count:
        stop = min(numbering.count, done + SLICE)
        codes = numbering.known[done:stop, 0].copy()
        for block in expand(codes):
            rows.add(block, done, codes, numbering)
        done = stop
        if progress is not None:
            progress(numbering.count, rows.successors.size)
    rows.close_deadlocks(codec, numbering, deadlock)
    codes = numbering.close()
    order = np.argsort(codes)
    return rows.found().arranged(codec.variables, codec.unpack(codes[order]), order, start)


class _Rows:
    """All rows so far, in the order of discovery, as flat buffers."""

    __slots__ = ("action", "factor", "marginal", "marginals", "source", "successors", "tensor")

    def __init__(self) -> None:
        self.source = Buffer(np.int32)  # per row: its state, by discovery
        self.action = Buffer(np.int32)
        self.marginals = Buffer(np.int32)  # per row: number of marginals
        self.tensor = Buffer(np.int32)  # per row: number of successors
        self.marginal = Buffer(np.int32)  # per marginal of a row: identifier
        self.factor = Buffer(np.int32)
        self.successors = Buffer(np.int32)  # by discovery

    def add(self, block: RowBlock, first: int, codes: IntArray, numbering: Numbering) -> None:
        """Append the rows of a block whose frontier starts at state `first`."""
        count = len(block.source)
        if count == 0:
            return
        tensors = _tensors(block, numbering.codec, codes)
        self.source.extend(count)[:] = block.source + first
        self.action.extend(count)[:] = block.action
        self.tensor.extend(count)[:] = tensors.total
        ids = np.empty((count, len(block.moves)), dtype=np.int32)
        for i, move in enumerate(block.moves):
            ids[:, i] = move.marginal
        stored = ids != CERTAIN
        self.marginals.extend(count)[:] = stored.sum(axis=1)
        ids = ids[stored]
        self.marginal.extend(len(ids))[:] = ids
        factors = np.array([move.factor for move in block.moves], dtype=np.int32)
        self.factor.extend(len(ids))[:] = np.broadcast_to(factors, stored.shape)[stored]
        numbering.successors(tensors, self.successors.extend(int(tensors.total.sum())))

    def found(self) -> FoundRows:
        """Return all rows; the buffers are used up."""
        buffers = (self.source, self.action, self.marginals, self.tensor)
        parts = (self.marginal, self.factor, self.successors)
        return FoundRows(*(buffer.trim() for buffer in (*buffers, *parts)))

    def close_deadlocks(self, codec: Codec, numbering: Numbering, policy: Deadlock) -> None:
        """Give a self-loop to every state without rows, or refuse the first one."""
        has_row = np.zeros(numbering.count, dtype=np.bool_)
        has_row[self.source.array[: self.source.size]] = True
        dead = np.flatnonzero(~has_row)
        if dead.size == 0:
            return
        if policy is Deadlock.ERROR:
            raise no_action(codec.name(int(numbering.known[dead, 0].min())), dead.size)
        self.source.extend(dead.size)[:] = dead
        self.action.extend(dead.size)[:] = Skeleton.NO_ACTION
        self.marginals.extend(dead.size)[:] = 0
        self.tensor.extend(dead.size)[:] = 1
        self.successors.extend(dead.size)[:] = dead


def no_action(state: str, count: int) -> ModelError:
    """Return (not raise) the error of deadlocks that are refused; the first is named."""
    others = f" ({count} such states)" if count > 1 else ""
    return ModelError(
        f"State {state} has no enabled action{others}; every reachable state must have one."
    )


def _tensors(block: RowBlock, codec: Codec, codes: IntArray) -> Tensors:
    """Lay the moves of a block side by side for the kernels."""
    count, moves = len(block.source), block.moves
    widths = [move.contribution.shape[1] for move in moves]
    offset = starts(widths)
    contribution = np.empty((count, int(offset[-1])), dtype=np.int64)
    size = np.empty((count, len(moves)), dtype=np.int32)
    for i, move in enumerate(moves):
        contribution[:, offset[i] : offset[i + 1]] = move.contribution
        size[:, i] = move.size
    total = size.prod(axis=1, dtype=np.float64)
    if total.max() >= 2**31:
        code = int(codes[block.source[int(total.argmax())]])
        raise ModelError(
            f"State {codec.name(code)}: a row with {total.max():.3g} successors is too large."
        )
    return Tensors(
        np.ascontiguousarray(block.rest, dtype=np.int64),
        contribution,
        offset,
        size,
        total.astype(np.int64),
    )
