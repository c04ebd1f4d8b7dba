"""The inner problem: nature's choice in one row, by several methods with one contract.

`METHODS` is the one table of their names, as on the command line and in records:

    METHODS["interval"].prepare(model, MIN)
"""

from collections.abc import Mapping
from types import MappingProxyType

from rfmdp.inner.alternating import Alternating
from rfmdp.inner.combined import Sandwich, Screened
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.mccormick import Backend, McCormick, Variant
from rfmdp.inner.protocol import Inner, InnerStats, PreparedInner, Side
from rfmdp.inner.radius_sum import Composition, RadiusSum
from rfmdp.inner.sequential import Orders, Sequential
from rfmdp.inner.vertices import VertexEnumeration

METHODS: Mapping[str, Inner] = MappingProxyType(
    {
        "exact": Exact(),
        "vertices": VertexEnumeration(),
        "interval": IntervalArithmetic(),
        "mccormick": McCormick(),
        "mccormick:simplex": McCormick(Variant.SIMPLEX),
        "mccormick:printed": McCormick(Variant.PRINTED),
        "sequential": Sequential(),
        "radius-sum": RadiusSum(),
        "radius-sum:plain": RadiusSum(Composition.SUM),
        "alternating": Alternating(),
    }
)

__all__ = [
    "METHODS",
    "Alternating",
    "Backend",
    "Composition",
    "Exact",
    "Inner",
    "InnerStats",
    "IntervalArithmetic",
    "McCormick",
    "Orders",
    "PreparedInner",
    "RadiusSum",
    "Sandwich",
    "Screened",
    "Sequential",
    "Side",
    "Variant",
    "VertexEnumeration",
]
