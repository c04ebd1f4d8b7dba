"""Numbers that models are made from, as callers give them: checked, and in our types.

Whether they fit each other is left to `validate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
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


def rows(states: Sequence[Sequence[Any]]) -> Iterator[tuple[IntArray, IntArray, str]]:
    """Give marginals, successors and action of all rows of lists of rows."""
    for s, state_rows in enumerate(_listed("from_rows", states, "given a list per state")):
        for number, row in enumerate(_listed(f"State {s}", state_rows, "a list of rows")):
            where = f"State {s}, row {number}"
            if not isinstance(row, Sequence) or len(row) not in (2, 3):
                raise ModelError(
                    f"{where}: must be (marginals, successors) or (marginals, successors, action), "
                    f"got {row!r}."
                )
            action = row[2] if len(row) == 3 else f"a{number}"
            if not isinstance(action, str):
                raise ModelError(f"{where}: the action must be a name, got {action!r}.")
            place = f"{where}, marginals"
            marginals = integers(place, _listed(place, row[0], "a list"))
            yield marginals, integers(f"{where}, successors", row[1]), action


def _listed(where: str, values: Any, what: str) -> Any:
    if not isinstance(values, Sequence | np.ndarray):
        raise ModelError(f"{where}: must be {what}, got {values!r}.")
    return values


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
