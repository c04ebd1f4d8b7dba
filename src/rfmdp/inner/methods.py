"""The inner solvers by name, as on the command line and in records: `METHODS` is the one table.

METHODS["interval"]().prepare(model, MIN)

A solver is imported, with its kernels, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner


def _make(module: str, solver: str, variant: str | None = None) -> Inner:
    """Return a solver of a module of this folder, with its default settings or a variant."""
    methods = import_module(f"rfmdp.inner.{module}")
    settings = () if variant is None else (methods.Variant[variant],)
    inner: Inner = getattr(methods, solver)(*settings)
    return inner


METHODS: Mapping[str, Callable[[], Inner]] = MappingProxyType(
    {
        "exact": partial(_make, "exact", "Exact"),
        "vertices": partial(_make, "vertices", "VertexEnumeration"),
        "interval": partial(_make, "interval", "IntervalArithmetic"),
        "mccormick": partial(_make, "mccormick", "McCormick"),
        "mccormick:simplex": partial(_make, "mccormick", "McCormick", "SIMPLEX"),
        "mccormick:printed": partial(_make, "mccormick", "McCormick", "PRINTED"),
        "sequential": partial(_make, "sequential", "Sequential"),
        "radius-sum": partial(_make, "radius_sum", "RadiusSum"),
    }
)
