"""Breadth-first exploration by whole frontiers of states; never a Python loop per state.

A front end (the Python builder, the PRISM language) gives `expand`, a function from a frontier
to blocks of rows. A row's successors are sums of codes: what the deterministic part contributes,
plus one contribution per move and outcome. Two examples, with x and y in 0..9, code = 10 x + y:

- x steps by a marginal with outcomes +1, +2 and y by one with outcomes 0, -1: `rest` is the
  code of the state, the contributions are [10, 20] and [0, -1]: changes of the code.
- the same in absolute terms: `rest` is 0, contributions [10 (x+1), 10 (x+2)] and [y, y-1].

Rows of a block may differ in the sizes of their marginals, and a move may be certain in some
rows (one outcome, no marginal). Codes become int32 states at once, so that a transition costs
four bytes while exploring and four in the finished model. States are numbered in the order of
their valuations: the result depends neither on the order of discovery nor on the lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.codes import Codec
from rfmdp.model.numbering import Lookup, Numbering, Tensors
from rfmdp.model.skeleton import Skeleton
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray

CERTAIN = -1  # in place of a marginal's id: the move has one outcome in this row
SLICE = 1 << 16  # states expanded at once: bounds the memory of temporaries
DEEP = 100  # frontiers of a model that is no shallow one
NARROW = 16  # states of a frontier, on average, whose cost is that of a call
WORTH = 50  # states that are expanded at once in the time of a narrow frontier


class Frontier(NamedTuple):
    """The states to expand."""

    valuations: IntArray  # (N, vars), columns contiguous
    codes: IntArray  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class BlockMove:
    """How one factor moves in the rows of a block.

    In row `r` it has `size[r]` outcomes, outcome `o` adds `contribution[r, o]` to the successor's
    code. `marginal` is the identifier of its distribution, or `CERTAIN` where the size is 1.
    """

    factor: int
    marginal: int | AnyArray  # (N,)
    size: int | AnyArray  # (N,)
    contribution: IntArray  # (N, largest size)


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Rows of many states at once, all with moves of the same factors."""

    source: IntArray  # (N,) index into the frontier
    action: int | AnyArray  # (N,) or the same for all
    rest: IntArray  # (N,) contribution of all that no move contributes
    moves: Sequence[BlockMove] = field(default=())


class Deadlock(Enum):
    """What to do with a reachable state that has no row."""

    LOOP = auto()  # a self-loop, and the label "deadlock"
    ERROR = auto()  # a ModelError that names the state


Expand = Callable[[Frontier], Iterable[RowBlock]]
Harmless = Callable[[Frontier], bool]
Progress = Callable[[int, int], None]  # (states found, transitions built)


def explore(
    codec: Codec,
    initial: IntArray,
    expand: Expand,
    *,
    deadlock: Deadlock = Deadlock.LOOP,
    lookup: Lookup = Lookup.AUTO,
    progress: Progress | None = None,
    harmless: Harmless | None = None,
) -> Skeleton:
    """Return the reachable states and rows of a model.

    A narrow and deep model (a counter, say) costs a call per state. If its domain is small, all
    of it is expanded at once, and what is not reachable is dropped.

    Parameters
    ----------
    codec : how valuations are packed
    initial : (I,) codes of the initial states
    expand : all rows of the states of a frontier, in blocks; may be a generator
    deadlock : what to do with states that get no row
    lookup : how codes become states; the result is the same
    progress : called now and then with the number of states and transitions so far
    harmless : says whether states can be expanded although they may not be reachable

    Raises
    ------
    ModelError
        For a deadlock (if asked), a successor outside the variables' ranges, more than 2^31
        states.
    """
    numbering = Numbering(codec, lookup)
    start = numbering.enter(np.asarray(initial, dtype=np.int64))
    rows = _Rows()
    done = frontiers = 0
    whole = False
    while done < numbering.count:
        stop = min(numbering.count, done + SLICE)
        codes = numbering.known[done:stop].copy()
        for block in expand(Frontier(codec.unpack(codes), codes)):
            rows.add(block, done, codes, numbering)
        done, frontiers = stop, frontiers + 1
        if progress is not None:
            progress(numbering.count, rows.successors.size)
        narrow = frontiers >= DEEP and done < NARROW * frontiers and done < numbering.count
        if harmless is not None and narrow and codec.domain <= WORTH * frontiers:
            everything = np.arange(codec.domain)
            whole = harmless(Frontier(codec.unpack(everything), everything))
            harmless = None
            if whole:
                numbering.enter(everything)
    if whole:
        start = _prune(rows, numbering, start)
    rows.close_deadlocks(codec, numbering, deadlock)
    return _assemble(codec, rows, numbering, start)


class _Buffer:
    """A flat array that grows in place."""

    __slots__ = ("array", "size")

    def __init__(self, dtype: type) -> None:
        self.array: AnyArray = np.empty(1024, dtype=dtype)
        self.size = 0

    def extend(self, count: int) -> AnyArray:
        """Return a view of `count` new entries, valid until the next call."""
        need = self.size + count
        if need > len(self.array):
            # realloc: large arrays move their pages, they are not copied
            self.array.resize(max(need, len(self.array) + (len(self.array) >> 1)), refcheck=False)
        view = self.array[self.size : need]
        self.size = need
        return view

    def fill(self, values: AnyArray) -> None:
        """Replace all entries."""
        self.array, self.size = values, len(values)

    def trim(self) -> AnyArray:
        """Return the array at its size."""
        self.array.resize(self.size, refcheck=False)
        return self.array


class _Rows:
    """All rows so far, in the order of discovery, as flat buffers."""

    __slots__ = ("action", "factor", "marginal", "marginals", "source", "successors", "tensor")

    def __init__(self) -> None:
        self.source = _Buffer(np.int32)  # per row: its state, by discovery
        self.action = _Buffer(np.int32)
        self.marginals = _Buffer(np.int32)  # per row: number of marginals
        self.tensor = _Buffer(np.int32)  # per row: number of successors
        self.marginal = _Buffer(np.int32)  # per marginal of a row: identifier
        self.factor = _Buffer(np.int32)
        self.successors = _Buffer(np.int32)  # by discovery

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

    def close_deadlocks(self, codec: Codec, numbering: Numbering, policy: Deadlock) -> None:
        """Give a self-loop to every state without rows, or refuse the first one."""
        has_row = np.zeros(numbering.count, dtype=np.bool_)
        has_row[self.source.array[: self.source.size]] = True
        dead = np.flatnonzero(~has_row)
        if dead.size == 0:
            return
        if policy is Deadlock.ERROR:
            code = int(numbering.known[dead].min())
            others = f" ({dead.size} such states)" if dead.size > 1 else ""
            raise ModelError(
                f"State {codec.name(code)} has no enabled action{others}; "
                f"every reachable state must have one."
            )
        self.source.extend(dead.size)[:] = dead
        self.action.extend(dead.size)[:] = Skeleton.NO_ACTION
        self.marginals.extend(dead.size)[:] = 0
        self.tensor.extend(dead.size)[:] = 1
        self.successors.extend(dead.size)[:] = dead


def _prune(rows: _Rows, numbering: Numbering, start: IntArray) -> IntArray:
    """Drop what cannot be reached from some states; return their new numbers."""
    tensor, source = rows.tensor.trim(), rows.source.trim()
    reached = reachable(np.repeat(source, tensor), rows.successors.trim(), numbering.count, start)
    number = (np.cumsum(reached) - 1).astype(np.int32)
    keep = reached[source]
    of_marginals, of_successors = (np.repeat(keep, n.trim()) for n in (rows.marginals, rows.tensor))
    rows.source.fill(number[source[keep]])
    rows.successors.fill(number[rows.successors.array[of_successors]])
    for buffer, kept in (
        (rows.action, keep),
        (rows.marginals, keep),
        (rows.tensor, keep),
        (rows.marginal, of_marginals),
        (rows.factor, of_marginals),
    ):
        buffer.fill(buffer.trim()[kept])
    numbering.keep(reached)
    return number[start].astype(np.int64)


def reachable(source: AnyArray, target: AnyArray, count: int, start: IntArray) -> BoolArray:
    """Return which of some states can be reached from a few by moves from source to target."""
    from scipy.sparse import csr_array  # seldom needed, and slow to import
    from scipy.sparse.csgraph import breadth_first_order

    # one more state leads to all those to start from
    heads = np.concatenate([source, np.full(len(start), count)])
    tails = np.concatenate([target, start])
    ones = np.ones(len(heads), dtype=np.int8)
    graph = csr_array((ones, (heads, tails)), shape=(count + 1, count + 1))
    reached = np.zeros(count + 1, dtype=np.bool_)
    reached[breadth_first_order(graph, count, return_predecessors=False)] = True
    return reached[:count]


def _tensors(block: RowBlock, codec: Codec, codes: IntArray) -> Tensors:
    """Lay the moves of a block side by side for the kernels."""
    count, moves = len(block.source), block.moves
    widths = [move.contribution.shape[1] for move in moves]
    offset = np.zeros(len(moves) + 1, dtype=np.int64)
    np.cumsum(widths, out=offset[1:])
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


def _assemble(codec: Codec, rows: _Rows, numbering: Numbering, start: IntArray) -> Skeleton:
    """Sort states by valuation and rows by state; the buffers are used up."""
    from rfmdp.kernels import frontier as kernels

    codes = numbering.close()
    order = np.argsort(codes)
    rank = np.empty(len(codes), dtype=np.int32)
    rank[order] = np.arange(len(codes), dtype=np.int32)
    valuations = np.ascontiguousarray(codec.unpack(codes[order]).astype(np.int32))
    source = rows.source.trim()
    row_ptr = _pointers(np.bincount(rank[source], minlength=len(codes)))
    position = np.empty(len(source), dtype=np.int32 if len(source) < 2**31 else np.int64)
    kernels.place_rows(source, rank, row_ptr[:-1].copy(), position)

    def moved(values: AnyArray, lengths: Int32Array, pointers: IntArray) -> Int32Array:
        out = np.empty(len(values), dtype=np.int32)
        kernels.move_segments(lengths, position, pointers, values, out)
        return out

    lengths, tensor = rows.marginals.trim(), rows.tensor.trim()
    marginal_ptr = _pointers(_placed(lengths, position))
    successor_ptr = _pointers(_placed(tensor, position))
    successors = np.empty(rows.successors.size, dtype=np.int32)
    kernels.move_successors(
        tensor, position, successor_ptr, rows.successors.trim(), rank, successors
    )
    return Skeleton(
        variables=codec.variables,
        valuations=valuations,
        initial=np.unique(rank[start]).astype(np.int64),
        row_ptr=row_ptr,
        row_actions=_placed(rows.action.trim(), position),
        marginal_ptr=marginal_ptr,
        row_marginals=moved(rows.marginal.trim(), lengths, marginal_ptr),
        row_factors=moved(rows.factor.trim(), lengths, marginal_ptr),
        successor_ptr=successor_ptr,
        successors=successors,
    )


def _placed(values: Int32Array, position: AnyArray) -> Int32Array:
    out = np.empty_like(values)
    out[position] = values
    return out


def _pointers(lengths: AnyArray) -> IntArray:
    pointers = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=pointers[1:])
    return pointers


__all__ = [
    "CERTAIN",
    "BlockMove",
    "Deadlock",
    "Expand",
    "Frontier",
    "Lookup",
    "Progress",
    "RowBlock",
    "explore",
]
