"""Arrays that grow in place, as long as there is memory."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.memory import require_memory
from rfmdp.types import AnyArray


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
        wanted = max(need, have + (have >> 1))
        entry = array.itemsize * math.prod(array.shape[1:])
        what = f"A model with more than {have} entries in an array"
        require_memory((2 * wanted - have) * entry, what)
        # realloc: large arrays move their pages, they are not copied
        array.resize((wanted, *array.shape[1:]), refcheck=False)
