"""Numbers that models are made from, as callers give them: checked, and in our types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.validate import product_text
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
) -> tuple[IntArray, IntArray]:
    """Return the marginals and successors of a row; raise if their number is wrong."""
    last = len(sizes) - 1
    if not isinstance(marginals, Sequence | np.ndarray):
        raise ModelError(f"{where}, marginals: must be a list, got {marginals!r}.")
    ids = integers(f"{where}, marginals", marginals)
    for j in ids.tolist():
        if not 0 <= j <= last:
            raise ModelError(f"{where}: marginals must be within 0..{last}, got {j}.")
    shape = [sizes[j] for j in ids.tolist()]
    targets = integers(f"{where}, successors", successors)
    if len(targets) != math.prod(shape):
        raise ModelError(
            f"{where}: the tensor must have {product_text(shape)} successors, has {len(targets)}."
        )
    return ids, targets


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
