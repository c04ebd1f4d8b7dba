"""Arrays and fields of a file, each looked at before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rfmdp.errors import FileError
from rfmdp.record import texts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

LARGEST_REWARD = 1e100  # in size


def need(holds: object, text: str) -> None:
    """Raise `FileError` unless something holds; the text says which field must be how."""
    if not holds:
        raise FileError(text)


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
        array = self._get(name, "f", 1, size).astype(np.float64, copy=False)
        need(not plain or np.isfinite(array).all(), f"{name}: must hold finite numbers")
        return array

    def payments(self, name: str, size: int) -> FloatArray:
        """Return rewards whose sums over any number of steps are far from the largest float."""
        paid = self.floats(name, size)
        need((np.abs(paid) <= LARGEST_REWARD).all(), f"{name}: must be at most {LARGEST_REWARD:g}")
        return paid

    def values(self, name: str, size: int) -> FloatArray:
        """Return numbers, perhaps infinite ones."""
        array = self.floats(name, size, plain=False)
        need(not np.isnan(array).any(), f"{name}: must hold numbers")
        return array

    def integers(
        self, name: str, size: int | None = None, end: int | None = None, ndim: int = 1
    ) -> IntArray:
        """Return integers, within 0..end - 1 if an end is given, so many along the last axis."""
        raw = self._get(name, "iu", ndim, size)
        array = raw.astype(np.int64, copy=False)
        need(raw.dtype != np.uint64 or (array >= 0).all(), f"{name}: is out of range")
        inside = end is None or not array.size or (array.min() >= 0 and array.max() < end)
        need(inside, f"{name}: must be within 0..{(end or 0) - 1}")
        return array

    def pointers(self, name: str, end: int, size: int | None = None) -> IntArray:
        """Return pointers that start at 0, never fall and stop at the end."""
        array = self.integers(name, size)
        fine = len(array) and array[0] == 0 and array[-1] == end
        need(fine and (array[1:] >= array[:-1]).all(), f"{name}: must rise from 0 to {end}")
        return array

    def booleans(self, name: str, size: int) -> BoolArray:
        """Return a set of states."""
        return self._get(name, "b", 1, size)

    def _get(self, name: str, kinds: str, ndim: int, size: int | None) -> AnyArray:
        full = self.prefix + name
        need(full in self.arrays, f"{full}: is missing")
        array = np.asarray(self.arrays[full])
        need(array.dtype.kind in kinds, f"{full}: must not hold {array.dtype}")
        need(array.ndim == ndim, f"{full}: must have {ndim} axes, has {array.ndim}")
        need(size is None or array.shape[-1] == size, f"{name}: must have {size} entries")
        return array


def field(header: object, name: str, *types: type) -> Any:
    """Return a field of a JSON object, which must be of one of the types; a bool is no int."""
    if not isinstance(header, Mapping):
        raise FileError(f"{name}: must stand in an object")
    need(name in header, f"{name}: is missing")
    content = header[name]
    words = " or ".join(each.__name__ for each in types)
    need(type(content) in types, f"{name}: must be of the type {words}")
    need(type(content) is not int or abs(content) < 2**63, f"{name}: is out of range")
    return content


def number(header: object, name: str) -> float:
    """Return a number, perhaps an infinite one or none, which JSON writes as words."""
    content = field(header, name, int, float, str)
    if isinstance(content, str):
        need(content in ("inf", "-inf", "nan"), f"{name}: must be a number")
    return float(content)


def names(header: Mapping[str, Any], name: str) -> list[str]:
    """Return different names."""
    words = texts(header, name)
    need(len(set(words)) == len(words), f"{name}: must be different names")
    return words


def is_number(value: object) -> bool:
    """Return whether a field is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def variables(header: Mapping[str, Any]) -> list[tuple[str, int, int, bool]]:
    """Return variables of different names: name, least and largest value, whether it is boolean."""
    listed = []
    for each in field(header, "variables", list):
        low, high = (field(each, end, int) for end in ("low", "high"))
        need(low <= high, "variables: must have a range")
        listed.append((field(each, "name", str), low, high, field(each, "boolean", bool)))
    need(len({name for name, *_ in listed}) == len(listed), "variables: must have different names")
    return listed
