"""Flat arrays that grow in place."""

from __future__ import annotations

import numpy as np

from rfmdp.types import AnyArray


class Buffer:
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

    def trim(self) -> AnyArray:
        """Return the array at its size."""
        self.array.resize(self.size, refcheck=False)
        return self.array
