"""A model as blocks of rows: contiguous ranges of states, each of which is a model by itself.

The successors of a block are numbered from its own states on: those of other blocks that its rows
lead to (`outside`) come after them. So a solver that has the values of both can take a step in the
block alone, wherever it is. Packed, a successor is its difference to the first one of its row; the
bytes of all numbers are transposed and compressed, which leaves 0.01 to 0.4 bytes per transition.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from rfmdp.memory import available_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, model_sizes
from rfmdp.model.derived import taking
from rfmdp.ragged import segment_lengths, starts
from rfmdp.types import IntArray

# sizes of blocks depend on the model alone, so that results do not depend on who computes them
TRANSITIONS = 1 << 23  # of a block, about
FEWEST, MOST = 4, 1024  # blocks of a model that is worth them
LITTLE = 1 << 16  # transitions that are not
SHARE = 0.4  # of free memory that packed blocks may take before they go to disk

Change = Callable[[FactoredMDP], FactoredMDP]
OF_FRAME = {
    *("states", "variables", "valuations", "initial", "actions", "marginals", "outcome_names"),
    *("labels", "rewards", "formulas", "provenance", "uncertain", "label", "find"),
    *("state_values", "state_name", "marginal_name"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The rows of some states; see the module's docstring."""

    model: FactoredMDP
    outside: IntArray  # (H,) states of other blocks, ascending


class RowSource(Protocol):
    """Rows of a model by ranges of states; it may be sent to those who make blocks of it."""

    def rows_of(self, first: int, last: int) -> FactoredMDP:
        """Return the rows of some states; successors are numbers of the whole model."""

    def whole(self) -> FactoredMDP:
        """Return the model with all its rows, as long as there is memory for them."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockedMDP:
    """A robust factored MDP by its blocks. See the module's docstring.

    `frame` has the states, their labels and variables, and all sets, but no rows; what rewards pay
    is known to the blocks. The sets of a block are changed when it is made.
    """

    frame: FactoredMDP
    source: RowSource
    rows: int
    transitions: int
    blocks: int
    changes: tuple[Change, ...] = ()  # of the sets, one after another
    scheduler: str | None = None  # address of the Dask cluster that solves it; None: this process
    store: BlockStore | None = None  # where packed blocks are kept; None: made when needed

    def __repr__(self) -> str:
        return f"BlockedMDP({', '.join(model_sizes(self))}, {self.blocks} blocks)"

    @property
    def block_ptr(self) -> IntArray:
        """The first state of every block, (B + 1,)."""
        return np.arange(self.blocks + 1) * self.frame.states // self.blocks

    def block(self, number: int) -> Block | PackedBlock:
        """Return a block: packed if it is kept so, else made from the source."""
        if self.store is not None:
            return self.store.read(number)
        first, last = self.block_ptr[number : number + 2].tolist()
        return local(self.source.rows_of(first, last), first, self.states)

    def __getattr__(self, name: str) -> Any:
        """Return what the frame has: states, sets and names, but nothing of rows."""
        if name not in OF_FRAME:
            raise AttributeError(f"A model in blocks has no {name!r}.")
        return getattr(self.frame, name)

    def with_provenance(self, **changes: Any) -> BlockedMDP:
        """Return the same model with other fields of its provenance, if it has one."""
        return replace(self, frame=self.frame.with_provenance(**changes))

    def with_radius(
        self, radius: float, floor: float = 0.0, *, exponent: float = np.inf
    ) -> BlockedMDP:
        """Return the model with balls around its distributions; see `FactoredMDP.with_radius`."""
        return self._changed(methodcaller("with_radius", radius, floor, exponent=exponent))

    def nominal(self) -> BlockedMDP:
        """Return the model with every set replaced by its nominal member."""
        return self._changed(methodcaller("nominal"))

    def _changed(self, change: Change) -> BlockedMDP:
        return replace(self, frame=change(self.frame), changes=(*self.changes, change))

    def written(self) -> FactoredMDP:
        """Return the model with all its rows.

        Raises
        ------
        ResourceError
            If there is no memory for them.
        """
        model = changed(self.source.whole(), self.changes)
        return replace(model, provenance=self.provenance)


def changed(model: FactoredMDP, changes: Sequence[Change]) -> FactoredMDP:
    """Return a model with other sets; what there is to warn of was said about the whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for change in changes:
            model = change(model)
    return model


def block_count(states: int, transitions: int) -> int:
    """Return how many blocks a model of some size has."""
    count = min(max(FEWEST, transitions // TRANSITIONS), MOST) if transitions > LITTLE else 1
    return max(1, min(count, states))


def frame_of(model: FactoredMDP) -> FactoredMDP:
    """Return the states and sets of a model, without its rows."""
    nothing = np.broadcast_to(0.0, (model.states,))
    return taking(
        model, slice(None), np.empty(0, np.int64), np.zeros(model.states), np.empty(0, np.int32),
        rewards={name: Rewards(nothing, np.empty(0)) for name in model.rewards},
        provenance=model.provenance,
    )  # fmt: skip


def local(rows: FactoredMDP, first: int, states: int) -> Block:
    """Return rows whose successors are numbers of all states as a block."""
    last = first + rows.states
    seen = np.zeros(states, dtype=np.bool_)
    seen[rows.successors] = True
    seen[first:last] = False
    outside = np.flatnonzero(seen)
    del seen
    place = np.empty(states, dtype=np.int32)
    place[first:last] = np.arange(rows.states, dtype=np.int32)
    place[outside] = np.arange(rows.states, rows.states + len(outside), dtype=np.int32)
    return Block(replace(rows, successors=place[rows.successors]), outside)


@dataclass(frozen=True, slots=True, eq=False)
class PackedBlock:
    """A block in few bytes."""

    header: bytes
    buffers: tuple[bytes, ...]

    def __sizeof__(self) -> int:
        return len(self.header) + sum(map(len, self.buffers))


class BlockStore:
    """Packed blocks: in memory, and on disk if they are too many."""

    def __init__(self) -> None:
        room = max(1, int(SHARE * available_memory()))
        self._file = SpooledTemporaryFile(max_size=room)  # noqa: SIM115 - it lives as long as this
        finalize(self, self._file.close)
        self._places: list[tuple[int, int]] = []

    def add(self, block: PackedBlock) -> None:
        """Keep one more block."""
        data, begin = pickle.dumps(block), self._file.seek(0, 2)
        self._file.write(data)
        self._places.append((begin, len(data)))

    def read(self, number: int) -> PackedBlock:
        """Return a block."""
        begin, size = self._places[number]
        self._file.seek(begin)
        block: PackedBlock = pickle.loads(self._file.read(size))
        return block

    @property
    def nbytes(self) -> int:
        """How many bytes all blocks take."""
        return sum(size for _, size in self._places)


def pack(block: Block | PackedBlock) -> PackedBlock:
    """Return a block in few bytes."""
    if isinstance(block, PackedBlock):
        return block
    codec = _codec()
    model, outside = block.model, block.outside
    counts = segment_lengths(model.successor_ptr)
    heads = model.successor_ptr[:-1]
    firsts = model.successors[heads]
    differences = model.successors - np.repeat(firsts, counts)
    differences[heads] = np.diff(firsts, prepend=np.int32(0))
    slim = replace(
        model, successors=differences, row_ptr=segment_lengths(model.row_ptr),
        marginal_ptr=segment_lengths(model.marginal_ptr), successor_ptr=counts,
        row_actions=np.empty(0, np.int32), row_factors=np.empty(0, np.int32), variables=(),
        valuations=np.empty((0, 0), np.int32), marginal_names=(), outcome_names=(), formulas={},
        provenance=None, labels={}, initial=np.empty(0, np.int64),
    )  # fmt: skip
    views: list[pickle.PickleBuffer] = []
    content = slim, np.diff(outside, prepend=0)
    header = pickle.dumps(content, protocol=5, buffer_callback=views.append)
    arrays = [np.asarray(memoryview(view)) for view in views]
    coded = (bytes(codec.encode(array)) if array.nbytes else b"" for array in arrays)
    return PackedBlock(header, tuple(coded))


def unpack(block: Block | PackedBlock) -> Block:
    """Return the block that was packed."""
    if isinstance(block, Block):
        return block
    codec = _codec()
    # arrays in bytes are read-only: kernels know those that nobody changes
    buffers = [bytes(codec.decode(data)) if data else b"" for data in block.buffers]
    slim, gaps = pickle.loads(block.header, buffers=buffers)
    pointers = {
        name: starts(getattr(slim, name)) for name in ("row_ptr", "marginal_ptr", "successor_ptr")
    }
    heads = pointers["successor_ptr"][:-1]
    firsts = np.cumsum(slim.successors[heads], dtype=np.int32)
    successors = np.repeat(firsts, slim.successor_ptr)
    successors += slim.successors
    successors[heads] = firsts
    return Block(replace(slim, successors=successors, **pointers), np.cumsum(gaps))


def _codec() -> Any:
    """Return the compression: bytes transposed, then zstd."""
    from numcodecs import Blosc  # takes a while to import

    return Blosc(cname="zstd", clevel=1, shuffle=Blosc.SHUFFLE)
