"""Records: the plain form in which objects are saved. A type joins by registering `to_record`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, TypeAlias

from rfmdp.errors import UnsupportedError
from rfmdp.types import AnyArray

Record: TypeAlias = tuple[str, dict[str, Any], dict[str, AnyArray]]  # kind, header, arrays


@singledispatch
def to_record(obj: object) -> Record:
    """Return (kind, header, arrays) of an object; the header must be JSON, arrays not objects."""
    raise UnsupportedError(
        f"save: cannot write a {type(obj).__name__}; these can be written: "
        + ", ".join(sorted(t.__name__ for t in to_record.registry if t is not object))
        + "."
    )
