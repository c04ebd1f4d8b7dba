"""States as words: a valuation of bounded variables packed by mixed radix.

word = sum_i (x_i - low_i) * stride_i, the first variable most significant, so that words sort as
valuations do, and changes of variables are changes of words that can be added. What does not fit
into one word of 62 bits goes on in the next, so there is no limit to the number of variables.

States that are met are kept in arrays that grow in place, as long as there is memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import Variable, state_text
from rfmdp.types import AnyArray, Int32Array, IntArray

LARGEST = 2**62  # values of a word
DENSE_LIMIT = 1 << 24  # a table of 64 MB, of which only the touched pages exist
ROOM = 4096  # states at first


class Packing:
    """The packing of valuations of some variables.

    `in_bits` gives every variable a field of whole bits, which a shift and a mask take out.

    Examples
    --------
    >>> packing = Packing([Variable("x", 1, 3), Variable("up", 0, 1, boolean=True)])
    >>> packing.domain
    6
    >>> packing.pack(np.array([[1, 0], [3, 1]])).tolist()
    [[0], [5]]
    >>> packing.unpack(np.array([[5]])).tolist()
    [[3, 1]]
    """

    __slots__ = ("domain", "low", "radix", "stride", "variables", "word", "words")

    def __init__(self, variables: Iterable[Variable], *, in_bits: bool = False) -> None:
        self.variables = tuple(variables)
        for v in self.variables:
            if not -(2**31) <= v.low <= v.high < 2**31:
                raise ModelError(
                    f"Variable {v.name}: the range {v.low}..{v.high} must not be empty, and lie "
                    "within 32 bits."
                )
        radix = [v.high - v.low + 1 for v in self.variables]
        if in_bits:
            radix = [1 << (values - 1).bit_length() for values in radix]
        words: list[list[int]] = [[]]
        for values in radix:
            if math.prod(words[-1]) * values > LARGEST:
                words.append([])
            words[-1].append(values)
        strides = [math.prod(word[k + 1 :]) for word in words for k in range(len(word))]
        self.domain = math.prod(radix)
        self.words = len(words)
        self.low = np.array([v.low for v in self.variables], dtype=np.int64)
        self.radix = np.array(radix, dtype=np.int64)
        self.stride = np.array(strides, dtype=np.int64)
        self.word = np.repeat(np.arange(len(words)), [len(word) for word in words])

    def require_one_word(self) -> None:
        """Raise ModelError if states need several words."""
        if self.words > 1:
            pairs = zip(self.variables, self.radix, strict=True)
            sizes = ", ".join(f"{v.name} {values}" for v, values in pairs)
            raise ModelError(
                f"The product of the variables' ranges must be at most 2^62, got {self.domain:.3g} "
                f"({sizes}). Give the largest ones tighter bounds."
            )

    def pack(self, valuations: AnyArray) -> IntArray:
        """Return the words (N, words) of valuations (N, vars) that lie within the ranges."""
        words = np.zeros((len(valuations), self.words), dtype=np.int64)
        for i, word in enumerate(self.word):
            words[:, word] += (valuations[:, i].astype(np.int64) - self.low[i]) * self.stride[i]
        return words

    def unpack(self, words: IntArray) -> Int32Array:
        """Return the valuations (N, vars) of words (N, words)."""
        valuations = np.empty((len(words), len(self.variables)), dtype=np.int32)
        rest = words.copy()
        for i, word in enumerate(self.word):
            digit = rest[:, word] // self.stride[i]
            rest[:, word] -= digit * self.stride[i]
            valuations[:, i] = digit + self.low[i]
        return valuations

    def order(self, words: IntArray) -> IntArray:
        """Return the order (N,) of words by valuation."""
        if self.words == 1:
            return np.argsort(words[:, 0])
        return np.lexsort(words.T[::-1])

    def name(self, words: AnyArray) -> str:
        """Return one state (words,) as `(x=1, y=0)` for messages."""
        return state_text((v.name for v in self.variables), self.unpack(words[None])[0])


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


class StateTable:
    """States in the order of discovery: in `packed`; `table` has their numbers plus 1.

    A dense table has a place for every word of the domain, others are hashed (`kernels.explorer`).
    Kernels count the states, and stop before there is no room.
    """

    __slots__ = ("dense", "packed", "table")

    def __init__(self, packing: Packing) -> None:
        self.dense = packing.domain <= DENSE_LIMIT
        self.packed: IntArray = np.empty((ROOM, packing.words), dtype=np.int64)
        size = packing.domain if self.dense else 4 * ROOM
        self.table: Int32Array = np.zeros(size, dtype=np.int32)

    def make_room(self, count: int, more: int) -> None:
        """Make room for more states after the `count` that are known."""
        need = count + more
        if need >= 2**31:
            raise ModelError(f"A model must have fewer than 2^31 states, found {count}.")
        grow(self.packed, need)
        if not self.dense and 2 * need > len(self.table):
            self._hash(count, 4 * need)

    def fill(self, words: IntArray) -> None:
        """Begin with some states (S, W), numbered as they come."""
        count = len(words)
        self.packed = np.array(words)
        if self.dense:
            self.table = np.zeros(len(self.table), dtype=np.int32)  # [:] = 0 touches all pages
            self.table[words[:, 0]] = np.arange(1, count + 1, dtype=np.int32)
        else:
            self._hash(count, 4 * (count + ROOM))

    def _hash(self, count: int, room: int) -> None:
        """Enter the first states into a table with at least so much room."""
        from rfmdp.kernels.explorer import enter_states

        size = 1 << (room - 1).bit_length()
        require_memory(4 * size, f"A model with more than {count} states")
        self.table = np.zeros(size, dtype=np.int32)
        known, numbers = self.packed[:count], np.empty(count, dtype=np.int32)
        enter_states(self.table, self.packed, 0, False, known, numbers)
