"""Ragged arrays: segments of any length, one after the other, and pointers to where they start.

`ptr` has one entry more than there are segments; segment i is `values[ptr[i]:ptr[i + 1]]`, which
is written `values[segment(ptr, i)]`.

>>> ptr = starts([2, 0, 3])
>>> ptr
array([0, 2, 2, 5])
>>> owners(ptr), owner(ptr, 1)
(array([0, 0, 2, 2, 2]), 0)
>>> entries(ptr, np.array([2, 0]))
array([2, 3, 4, 0, 1])
>>> chunks(ptr, 2)
[(0, 2), (2, 3)]
>>> segment_sum(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), ptr)
array([ 3.,  0., 12.])
>>> segment_product(np.array([2, 3, 4, 5, 6]), ptr)
array([  6,   1, 120])
>>> segment_all(np.array([True, False, True, True, True]), ptr)
array([False,  True,  True])
>>> find(np.array([3, 5, 8]), np.array([8, 4, 3]))
array([ 2, -1,  0])
>>> renumbered(np.array([7, 3, 3, 9])), stable_order(np.array([7, 3, 3, 9]))
(array([1, 0, 0, 2]), array([1, 2, 0, 3]))
>>> [places.tolist() for _, places in alike(np.array([7, 3, 5, 7, 3]), np.array([0, 2, 2, 3, 5]))]
[[[2]], [[0, 1], [3, 4]]]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

LARGEST = 1 << 62  # of products: beyond it integers of 64 bits would wrap


def starts(counts: ArrayLike) -> IntArray:
    """Return pointers (N + 1,) to segments of the given lengths (N,)."""
    lengths = np.asarray(counts, dtype=np.int64)
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(out=ptr[1:])
    return ptr


def segment(ptr: IntArray | Int32Array, i: int | np.integer) -> slice:
    """Return the places of segment i."""
    return slice(ptr[i], ptr[i + 1])


def segment_lengths(ptr: IntArray | Int32Array) -> IntArray:
    """Return the lengths (N,) of all segments, which `starts` makes pointers again."""
    lengths: IntArray = ptr[1:] - ptr[:-1]  # a fifth of the time of `np.diff` where they are few
    return lengths


def owners(ptr: IntArray | Int32Array) -> IntArray:
    """Return the number of the segment of every entry."""
    return np.arange(len(ptr) - 1).repeat(segment_lengths(ptr))


def owner(ptr: IntArray, place: int | np.integer) -> int:
    """Return the number of the segment of one entry."""
    return int(np.searchsorted(ptr, place, side="right")) - 1


def entries(ptr: IntArray, chosen: NDArray[Any]) -> IntArray:
    """Return the places of all entries of the chosen segments, in the order of `chosen`."""
    begin = ptr[chosen]
    lengths = ptr[np.asarray(chosen) + 1] - begin
    inside = starts(lengths)
    places: IntArray = np.arange(inside[-1]) + (begin - inside[:-1]).repeat(lengths)
    return places


def chunks(ptr: IntArray, most: int) -> list[tuple[int, int]]:
    """Return ranges of segments with at most `most` entries each, or of one segment."""
    cuts = [0]
    while cuts[-1] < len(ptr) - 1:
        goal = ptr[cuts[-1]] + most
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ptr, goal, "right")) - 1))
    return list(pairwise(cuts))


def segment_sum(values: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the sum of every segment, added from left to right; 0 where it is empty."""
    sums = np.bincount(owners(ptr), weights=values, minlength=len(ptr) - 1)
    return sums.astype(np.float64, copy=False)


def segment_product(values: IntArray, ptr: IntArray) -> IntArray:
    """Return the product of every segment of integers >= 1; `LARGEST` if it is that or more.

    It is exact below 2^53, and rounded beyond.
    """
    lengths = segment_lengths(ptr)
    filled = lengths > 0
    product = np.ones(len(lengths), dtype=np.int64)
    if not filled.any():
        return product
    with np.errstate(over="ignore"):
        rough = np.multiply.reduceat(values[: ptr[-1]].astype(np.float64), ptr[:-1][filled])
    product[filled] = np.minimum(rough, LARGEST)
    return product


def segment_all(holds: BoolArray, ptr: IntArray) -> BoolArray:
    """Return whether all entries of every segment hold; empty ones do."""
    misses = starts(~holds)
    fine: BoolArray = misses[ptr[1:]] == misses[ptr[:-1]]
    return fine


def segment_any(holds: BoolArray, ptr: IntArray) -> BoolArray:
    """Return whether some entry of every segment holds; empty ones do not."""
    hits = starts(holds)
    hit: BoolArray = hits[ptr[1:]] > hits[ptr[:-1]]
    return hit


def find(keys: IntArray, values: IntArray) -> IntArray:
    """Return the places of numbers among ascending keys; -1 where they are none of them."""
    if not len(keys):
        return np.full(len(values), -1)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[at] == values, at, -1)


def renumbered(codes: IntArray) -> IntArray:
    """Return codes that are not negative as numbers 0, 1, ... in their order, without gaps."""
    if codes.max(initial=0) > 4 * len(codes) + 1000:  # too far apart to count
        return np.unique(codes, return_inverse=True)[1]
    number: IntArray = np.cumsum(np.bincount(codes) > 0) - 1
    return number[codes]


def stable_order(codes: IntArray) -> IntArray:
    """Return the order that sorts codes that are not negative, ties as they stand.

    Numbers of up to 16 bits are sorted by their digits, several times as fast.
    """
    return np.argsort(codes.astype(np.min_scalar_type(codes.max(initial=0))), kind="stable")


def alike(codes: IntArray, ptr: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield groups of segments (N,) with the same codes, and the places (N, n) of their entries.

    Codes are not negative; empty segments are left out.
    """
    lengths, most = segment_lengths(ptr), int(codes.max(initial=0)) + 1
    for n in np.unique(lengths[lengths > 0]):
        segments = np.flatnonzero(lengths == n)
        places = ptr[segments][:, None] + np.arange(n)
        code = np.zeros(len(segments), dtype=np.int64)
        for column in codes[places].T:
            # renumber after each column, so that the code never outgrows the number of segments
            code = renumbered(code * most + column)
        order = stable_order(code)
        for members in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
            yield segments[members], places[members]
