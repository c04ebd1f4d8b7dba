"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

`families` says what every set is, exactly, and `marginals` packs many sets into arrays for the
kernels (`radius`: around nominal ones). The capabilities are `bounds`, `supports`, `vertices`,
`membership` and `minimiser`: one function each, by family or in bulk. `exact` has the sums of
floats that decide, `boxes`, `halfspaces` and `lp_ball` the geometry.
"""

from rfmdp.sets.bounds import bounds, nominal
from rfmdp.sets.families import (
    Interval,
    KLBall,
    L1Ball,
    LinfBall,
    LpBall,
    Polytope,
    Singleton,
    SubsetSet,
    UncertaintySet,
)
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.membership import contains
from rfmdp.sets.minimiser import minimise
from rfmdp.sets.vertices import count_vertices, vertices, vertices_bulk

__all__ = [
    "Interval",
    "KLBall",
    "Kind",
    "L1Ball",
    "LinfBall",
    "LpBall",
    "Marginals",
    "Polytope",
    "Singleton",
    "SubsetSet",
    "UncertaintySet",
    "bounds",
    "contains",
    "count_vertices",
    "minimise",
    "nominal",
    "vertices",
    "vertices_bulk",
]
