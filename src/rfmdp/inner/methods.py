"""The inner solvers by name, as on the command line and in records: `METHODS` is the one table.

    METHODS["interval"]().prepare(model, MIN)

A solver is imported, with its kernels, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner


def _exact() -> Inner:
    from rfmdp.inner.exact import Exact

    return Exact()


def _vertices() -> Inner:
    from rfmdp.inner.vertices import VertexEnumeration

    return VertexEnumeration()


def _interval() -> Inner:
    from rfmdp.inner.interval import IntervalArithmetic

    return IntervalArithmetic()


def _mccormick(variant: str) -> Inner:
    from rfmdp.inner.mccormick import McCormick, Variant

    return McCormick(Variant[variant])


def _sequential() -> Inner:
    from rfmdp.inner.sequential import Sequential

    return Sequential()


def _radius_sum(composition: str) -> Inner:
    from rfmdp.inner.radius_sum import Composition, RadiusSum

    return RadiusSum(Composition[composition])


def _alternating() -> Inner:
    from rfmdp.inner.alternating import Alternating

    return Alternating()


METHODS: Mapping[str, Callable[[], Inner]] = MappingProxyType(
    {
        "exact": _exact,
        "vertices": _vertices,
        "interval": _interval,
        "mccormick": partial(_mccormick, "MARGINALISED"),
        "mccormick:simplex": partial(_mccormick, "SIMPLEX"),
        "mccormick:printed": partial(_mccormick, "PRINTED"),
        "sequential": _sequential,
        "radius-sum": partial(_radius_sum, "COUPLED"),
        "radius-sum:plain": partial(_radius_sum, "SUM"),
        "alternating": _alternating,
    }
)
