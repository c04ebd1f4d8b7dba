"""The numbers of packed states, by a table over the domain or by hashing."""

from __future__ import annotations

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.buffer import grow
from rfmdp.model.packing import Packing
from rfmdp.types import Int32Array, IntArray

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
