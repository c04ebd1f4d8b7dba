"""States as words of bits: every variable has a field, so there is no limit to their number.

The first variable is most significant and words are not negative, so that words sort as
valuations do. A change of variables is a change of words that can be added, as fields in their
ranges neither borrow nor carry.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import Variable, state_text
from rfmdp.types import AnyArray, Int32Array, IntArray

WORD = 62  # bits


class Packing:
    """The fields of some variables.

    Examples
    --------
    >>> packing = Packing([Variable("x", 1, 3), Variable("up", 0, 1, boolean=True)])
    >>> packing.pack(np.array([[1, 0], [3, 1]])).tolist()
    [[0], [5]]
    >>> packing.unpack(np.array([[5]])).tolist()
    [[3, 1]]
    """

    __slots__ = ("bits", "fields", "variables", "words")

    def __init__(self, variables: Iterable[Variable]) -> None:
        self.variables = with_ranges(variables)
        fields, word, free = [], 0, WORD
        for v in self.variables:
            bits = (v.high - v.low).bit_length()
            if bits > free:
                word, free = word + 1, WORD
            free -= bits
            fields.append((v.low, (1 << bits) - 1, free, word))
        self.words = word + 1
        self.bits = WORD * (word + 1) - free  # of a whole state
        # (vars, 4): lowest value, mask, shift, word; those of the last word end at bit 0
        self.fields = np.array(fields, dtype=np.int64).reshape(len(fields), 4)
        self.fields[self.fields[:, 3] == word, 2] -= free

    def pack(self, valuations: AnyArray) -> IntArray:
        """Return the words (N, words) of valuations (N, vars) that lie within the ranges."""
        words = np.zeros((len(valuations), self.words), dtype=np.int64)
        for i, (low, _, shift, word) in enumerate(self.fields):
            words[:, word] += (valuations[:, i].astype(np.int64) - low) << shift
        return words

    def unpack(self, words: IntArray) -> Int32Array:
        """Return the valuations (N, vars) of words (N, words)."""
        valuations = np.empty((len(words), len(self.variables)), dtype=np.int32)
        for i, (low, mask, shift, word) in enumerate(self.fields):
            valuations[:, i] = low + ((words[:, word] >> shift) & mask)
        return valuations

    def order(self, words: IntArray) -> IntArray:
        """Return the order (N,) of words by valuation."""
        if self.words == 1:
            return np.argsort(words[:, 0])
        return np.lexsort(words.T[::-1])

    def name(self, words: IntArray) -> str:
        """Return one state (words,) as `(x=1, y=0)` for messages."""
        return state_text((v.name for v in self.variables), self.unpack(words[None])[0])


def with_ranges(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return variables whose ranges are not empty and lie within 32 bits; others are refused."""
    found = tuple(variables)
    for v in found:
        if v.low > v.high:
            raise ModelError(f"Variable {v.name}: the range {v.low}..{v.high} is empty.")
        if not -(2**31) <= v.low <= v.high < 2**31:
            raise ModelError(
                f"Variable {v.name}: the range {v.low}..{v.high} must lie within 32 bits."
            )
    return found
