"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

`sets` holds the families, `marginals` packs many sets into arrays for the kernels,
`bounds`, `vertices`, `membership` and `minimiser` are the capabilities (one function, one
registration per family). `boxes`, `hull`, `halfspaces` and `lp_ball` hold the geometry.
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
from rfmdp.sets.vertices import box_vertices_bulk, count_vertices, vertices, vertices_bulk

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
    "box_vertices_bulk",
    "contains",
    "count_vertices",
    "minimise",
    "nominal",
    "vertices",
    "vertices_bulk",
]
