"""Arrays that grow in place, as long as there is memory, and tables of packed states in them."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.packing import Packing
from rfmdp.types import AnyArray, Int32Array, IntArray


class Buffer:
    """An array of rows, or of single entries, that grows in place."""

    __slots__ = ("array", "size")

    def __init__(self, dtype: type, *columns: int) -> None:
        self.array: AnyArray = np.empty((1024, *columns), dtype=dtype)
        self.size = 0

    def extend(self, count: int) -> AnyArray:
        """Return a view of `count` new entries, valid until the next call."""
        need = self.size + count
        grow(self.array, need)
        view = self.array[self.size : need]
        self.size = need
        return view

    def trim(self) -> AnyArray:
        """Return the array at its size."""
        self.array.resize((self.size, *self.array.shape[1:]), refcheck=False)
        return self.array


def grow(array: AnyArray, need: int) -> None:
    """Make room for so many entries in place, and half as many again.

    Raises
    ------
    ResourceError
        If that, and the copy in which a finished model is put in order, would not fit.
    """
    have = len(array)
    if need > have:
        room = max(need, have + (have >> 1))
        entry = array.itemsize * math.prod(array.shape[1:])
        what = f"A model with more than {have} entries in an array"
        require_memory((2 * room - have) * entry, what)
        # realloc: large arrays move their pages, they are not copied
        array.resize((room, *array.shape[1:]), refcheck=False)


DENSE_LIMIT = 1 << 24  # a table of 64 MB, of which only the touched pages exist
ROOM = 4096  # states at first


class StateTable:
    """States in the order of discovery: packed in `known`; `table` has their numbers plus 1.

    A dense table has a place for every word of the domain, others are hashed (`kernels.tables`).
    Kernels count the states, and stop before there is no room.
    """

    __slots__ = ("dense", "known", "table")

    def __init__(self, packing: Packing) -> None:
        self.dense = packing.domain <= DENSE_LIMIT
        self.known: IntArray = np.empty((ROOM, packing.words), dtype=np.int64)
        size = packing.domain if self.dense else 4 * ROOM
        self.table: Int32Array = np.zeros(size, dtype=np.int32)

    def make_room(self, count: int, more: int) -> None:
        """Make room for more states after the `count` that are known."""
        need = count + more
        if need >= 2**31:
            raise ModelError(f"A model must have fewer than 2^31 states, found {count}.")
        grow(self.known, need)
        if not self.dense and 2 * need > len(self.table):
            from rfmdp.kernels.tables import fill_states

            size = 1 << (4 * need - 1).bit_length()
            require_memory(4 * size, f"A model with more than {count} states")
            self.table = np.zeros(size, dtype=np.int32)
            fill_states(self.table, self.known, count)

    def fill(self, words: IntArray) -> None:
        """Begin with some states (S, W), numbered as they come."""
        from rfmdp.kernels.tables import fill_states

        count = len(words)
        self.known = np.array(words)
        if self.dense:
            self.table[:] = 0
            self.table[words[:, 0]] = np.arange(1, count + 1, dtype=np.int32)
            return
        size = 1 << (4 * count + 4 * ROOM - 1).bit_length()
        require_memory(4 * size, f"A table of {count} states")
        self.table = np.zeros(size, dtype=np.int32)
        fill_states(self.table, self.known, count)
