"""The inner problem: nature's choice in one row, by several methods with one contract."""

from rfmdp.inner.alternating import Alternating
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.mccormick import Backend, McCormick
from rfmdp.inner.mccormick_lp import Variant
from rfmdp.inner.protocol import Inner, InnerStats, PreparedInner, Side
from rfmdp.inner.radius_sum import Composition, RadiusSum
from rfmdp.inner.sandwich import Sandwich
from rfmdp.inner.screened import Screened
from rfmdp.inner.sequential import Orders, Sequential
from rfmdp.inner.vertices import VertexEnumeration

__all__ = [
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
