"""Numbers that models are made from, as callers give them: checked, and in our types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.validate import product_text
from rfmdp.ragged import owner, segment_lengths, segment_product, starts
from rfmdp.sets.families import AnySet
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, IntArray


def sets(marginals: Marginals | Iterable[AnySet]) -> Marginals:
    """Return packed sets."""
    if not isinstance(marginals, Iterable):
        raise ModelError(f"marginals: must be a list of uncertainty sets, got {marginals!r}.")
    return marginals if isinstance(marginals, Marginals) else Marginals.from_sets(marginals)


def by_name(what: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels or rewards with their names."""
    if not isinstance(named, Mapping):
        raise ModelError(f"{what}: must be given by name, {{name: ...}}, got {named!r}.")
    for name in named:
        if not isinstance(name, str):
            raise ModelError(f"{what}: names must be text, got {name!r}.")
    return dict(named)


def rows(states: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Any, Any, str]]:
    """Give place, marginals, successors and action of all rows of lists of rows."""
    if not isinstance(states, Sequence):
        raise ModelError(f"from_rows: must be given a list per state, got {states!r}.")
    for s, listed in enumerate(states):
        if not isinstance(listed, Sequence):
            raise ModelError(f"State {s}: must be a list of rows, got {listed!r}.")
        for number, row in enumerate(listed):
            where = f"State {s}, row {number}"
            if not isinstance(row, Sequence) or len(row) not in (2, 3):
                raise ModelError(
                    f"{where}: must be (marginals, successors) or (marginals, successors, action), "
                    f"got {row!r}."
                )
            action = row[2] if len(row) == 3 else f"a{number}"
            if not isinstance(action, str):
                raise ModelError(f"{where}: the action must be a name, got {action!r}.")
            yield where, row[0], row[1], action


def tensor(
    sizes: Sequence[int], where: str, marginals: Sequence[int], successors: ArrayLike
) -> IntArray:
    """Return the successors (K,) of a row; raise if their number is wrong."""
    last = len(sizes) - 1
    if not isinstance(marginals, Sequence | np.ndarray):
        raise ModelError(f"{where}, marginals: must be a list, got {marginals!r}.")
    for j in integers(f"{where}, marginals", marginals).tolist():
        if not 0 <= j <= last:
            raise ModelError(f"{where}: marginals must be within 0..{last}, got {j}.")
    shape = [sizes[j] for j in marginals]
    targets = integers(f"{where}, successors", successors)
    if len(targets) != math.prod(shape):
        raise ModelError(
            f"{where}: the tensor must have {product_text(shape)} successors, has {len(targets)}."
        )
    return targets


def numbers_of_rows(row_ptr: IntArray, rows: int) -> IntArray:
    """Return the numbers (R,) of rows within their states, from 0."""
    lengths = np.maximum(segment_lengths(row_ptr), 0)
    if len(row_ptr) == 0 or lengths.sum() != rows:
        return np.zeros(rows, dtype=np.int64)
    return np.arange(rows) - np.repeat(row_ptr[:-1], lengths)


def ragged(
    rows: Sequence[Sequence[int]] | tuple[IntArray, IntArray],
) -> tuple[IntArray, IntArray]:
    """Return (pointers (R + 1,), values) of a list per row; such a pair may be given, too."""
    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[0], np.ndarray):
        return integers("marginal_ptr", rows[0]), integers("row_marginals", rows[1])
    lists: list[Any] = list(rows)
    flat = [j for row in lists for j in row]
    return starts([len(row) for row in lists]), integers("row_marginals", flat)


def successor_pointers(
    marginals: Marginals, pointers: IntArray, ids: IntArray, entries: int
) -> IntArray:
    """Return where every tensor starts, (R + 1,): the products of the sizes, added up."""
    rises = len(pointers) > 0 and pointers[0] == 0 and pointers[-1] == len(ids)
    if not rises or np.any(pointers[1:] < pointers[:-1]):
        raise ModelError(
            f"row_marginals: pointers must rise from 0 to {len(ids)}, got "
            f"{pointers.tolist()!s:.60}."
        )
    wrong = np.flatnonzero((ids < 0) | (ids >= len(marginals)))
    if wrong.size:
        row = owner(pointers, wrong[0])
        raise ModelError(
            f"Row {row}: marginals must be within 0..{len(marginals) - 1}, got {ids[wrong[0]]}."
        )
    size = segment_product(marginals.sizes[ids], pointers)
    ptr = starts(size)
    needed = float(np.sum(size, dtype=np.float64))  # integers could wrap
    if needed > 2.0 * entries or ptr[-1] != entries:
        shown = f"{needed:.3g}" if needed > 2.0 * entries else ptr[-1]
        raise ModelError(
            f"successors: the tensors of all rows need {shown} entries, got {entries}."
        )
    return ptr


def integers(name: str, values: ArrayLike) -> IntArray:
    """Return integers of 64 bits (N,)."""
    try:
        array: AnyArray = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise ModelError(f"{name}: must be integers, got {values!r}.") from None
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ModelError(f"{name}: must be integers, got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.int64).ravel()


def narrow(name: str, values: AnyArray) -> AnyArray:
    """Return integers as int32; raise ModelError if one does not fit."""
    if values.size and (values.min() < -(2**31) or values.max() >= 2**31):
        raise ModelError(f"{name}: must fit 32 bits, the largest is {values.max()}.")
    return np.ascontiguousarray(values, dtype=np.int32)
