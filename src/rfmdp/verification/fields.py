"""Arrays and fields of a file, each looked at before anything is done with it.

Nothing is believed: pointers are followed only after they are known to stay inside, and every
number has to be one. `Fault` names the first field that is not as it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray


class Fault(Exception):
    """A field that is not as it must be; the text says which and what was found."""


def need(holds: object, text: str) -> None:
    """Raise `Fault` unless something holds."""
    if not holds:
        raise Fault(text)


class Fields:
    """Arrays by name, converted and checked as they are asked for."""

    def __init__(self, arrays: Mapping[str, AnyArray], prefix: str = "") -> None:
        self.arrays, self.prefix = arrays, prefix

    def within(self, prefix: str) -> Fields:
        """Return the arrays whose names go on with a prefix."""
        return Fields(self.arrays, self.prefix + prefix)

    def has(self, name: str) -> bool:
        """Return whether there is such an array."""
        return self.prefix + name in self.arrays

    def floats(self, name: str, size: int | None = None, plain: bool = True) -> FloatArray:
        """Return numbers; plain ones are finite."""
        found = self._get(name, "f", 1, size).astype(np.float64, copy=False)
        need(not plain or np.isfinite(found).all(), f"{name}: must hold finite numbers")
        return found

    def values(self, name: str, size: int) -> FloatArray:
        """Return numbers, perhaps infinite ones."""
        found = self.floats(name, size, plain=False)
        need(not np.isnan(found).any(), f"{name}: must hold numbers")
        return found

    def integers(
        self, name: str, size: int | None = None, end: int | None = None, ndim: int = 1
    ) -> IntArray:
        """Return integers, within 0..end - 1 if an end is given, so many along the last axis."""
        raw = self._get(name, "iu", ndim, size)
        found = raw.astype(np.int64, copy=False)
        need(raw.dtype != np.uint64 or (found >= 0).all(), f"{name}: is out of range")
        inside = end is None or not found.size or (found.min() >= 0 and found.max() < end)
        need(inside, f"{name}: must be within 0..{(end or 0) - 1}")
        return found

    def pointers(self, name: str, end: int, size: int | None = None) -> IntArray:
        """Return pointers that start at 0, never fall and stop at the end."""
        found = self.integers(name, size)
        fine = len(found) and found[0] == 0 and found[-1] == end
        need(fine and (found[1:] >= found[:-1]).all(), f"{name}: must rise from 0 to {end}")
        return found

    def booleans(self, name: str, size: int) -> BoolArray:
        """Return a set of states."""
        return self._get(name, "b", 1, size)

    def _get(self, name: str, kinds: str, ndim: int, size: int | None) -> AnyArray:
        full = self.prefix + name
        need(full in self.arrays, f"{full}: is missing")
        found = np.asarray(self.arrays[full])
        need(found.dtype.kind in kinds, f"{full}: must not hold {found.dtype}")
        need(found.ndim == ndim, f"{full}: must have {ndim} axes, has {found.ndim}")
        need(size is None or found.shape[-1] == size, f"{name}: must have {size} entries")
        return found


def names(header: Mapping[str, Any], field: str) -> list[str]:
    """Return different names."""
    found = header.get(field)
    fine = isinstance(found, list) and all(isinstance(name, str) for name in found)
    need(fine and len(set(found or ())) == len(found or ()), f"{field}: must be different names")
    return list(found or ())


def is_number(value: object) -> bool:
    """Return whether a field is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
