"""The inner problem: nature's choice in one row, by several methods with one contract.

`METHODS` are all of them by name; one is imported, with what it needs, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner


def _make(module: str, solver: str, variant: str | None = None) -> Inner:
    """Return a solver of a module of this folder, with its default settings or a variant."""
    methods = import_module(f"rfmdp.inner.{module}")
    settings = () if variant is None else (methods.Variant[variant],)
    inner: Inner = getattr(methods, solver)(*settings)
    return inner


METHODS: Mapping[str, Callable[[], Inner]] = {
    "exact": partial(_make, "solvers", "Exact"),
    "vertices": partial(_make, "solvers", "VertexEnumeration"),
    "interval": partial(_make, "solvers", "IntervalArithmetic"),
    "mccormick": partial(_make, "mccormick", "McCormick"),
    "mccormick:simplex": partial(_make, "mccormick", "McCormick", "SIMPLEX"),
    "mccormick:printed": partial(_make, "mccormick", "McCormick", "PRINTED"),
    "sequential": partial(_make, "solvers", "Sequential"),
    "radius-sum": partial(_make, "solvers", "RadiusSum"),
}
