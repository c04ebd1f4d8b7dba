"""From packed codes to consecutive int32 states, by a table over the domain or by hashing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.buffer import grow
from rfmdp.model.codes import Codec
from rfmdp.types import AnyArray, Int32Array, IntArray

DENSE_LIMIT = 1 << 24  # a table of 64 MB, of which only the touched pages exist


class Tensors(NamedTuple):
    """The successor tensors of a block of rows as sums of codes; see `kernels.frontier`."""

    rest: IntArray  # (N,)
    contribution: IntArray  # (N, sum of largest sizes)
    offset: IntArray  # (n + 1,) columns of `contribution` of every move
    size: Int32Array  # (N, n) outcomes per row and move
    total: IntArray  # (N,) successors per row


class Numbering:
    """The states found so far: `known[:count, 0]` holds their codes in the order of discovery."""

    __slots__ = ("codec", "count", "dense", "known", "scratch", "table")

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.dense = codec.domain <= DENSE_LIMIT
        self.count = 0
        self.known: IntArray = np.empty((1024, 1), dtype=np.int64)  # one word each
        self.scratch: IntArray = np.empty((1024, 1), dtype=np.int64)
        size = codec.domain if self.dense else 4096
        self.table: Int32Array = np.zeros(size, dtype=np.int32)

    def enter(self, codes: IntArray) -> IntArray:
        """Give numbers to some codes and return their states (by discovery)."""
        empty = np.empty((len(codes), 0), dtype=np.int64)
        ones = np.ones(len(codes), dtype=np.int64)
        out = np.empty(len(codes), dtype=np.int32)
        offset = np.zeros(1, dtype=np.int64)
        self.successors(Tensors(codes, empty, offset, empty.astype(np.int32), ones), out)
        return out.astype(np.int64)

    def successors(self, block: Tensors, out: AnyArray) -> None:
        """Fill `out` with the successors (by discovery) of all rows; number the new ones."""
        from rfmdp.kernels.frontier import number_successors

        largest = int(block.total.max(initial=1))
        if largest > len(self.scratch):
            self.scratch = np.empty((largest, 1), dtype=np.int64)
        row = at = 0
        while True:
            tables = (self.table, self.known, self.count, self.scratch)
            place = (out[at:], self.codec.domain, self.dense)
            found = number_successors(tuple(block), row, *tables, *place)
            row, self.count, at = int(found[0]), int(found[1]), at + int(found[2])
            if row < 0:
                raise ModelError(
                    f"A row of {len(block.rest)} explored together leaves the variables' ranges "
                    f"(row {-1 - row}); expand() must check its values."
                )
            if row == len(block.rest):
                return
            self._grow(self.count + int(block.total[row]))

    def close(self) -> IntArray:
        """Return all codes by discovery and let go of the table."""
        self.table = np.empty(0, dtype=np.int32)
        return self.known[: self.count, 0]

    def _grow(self, need: int) -> None:
        """Make room for `need` states."""
        if need >= 2**31:
            raise ModelError(f"A model must have fewer than 2^31 states, found {self.count}.")
        grow(self.known, need)
        if not self.dense and 2 * need > len(self.table):
            from rfmdp.kernels.tables import fill_states

            size = 1 << (4 * need - 1).bit_length()
            require_memory(4 * size, f"A model with more than {self.count} states")
            self.table = np.zeros(size, dtype=np.int32)
            fill_states(self.table, self.known, self.count)
