"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

`sets` holds the families, `marginals` packs many sets into arrays for the kernels,
`bounds`, `vertices` and `membership` are the capabilities (one function, one registration
per family).
"""

from rfmdp.uncertainty.bounds import bounds, nominal
from rfmdp.uncertainty.marginals import Kind, Marginals
from rfmdp.uncertainty.membership import contains
from rfmdp.uncertainty.sets import (
    Interval,
    L1Ball,
    LinfBall,
    LpBall,
    Polytope,
    Singleton,
    UncertaintySet,
)
from rfmdp.uncertainty.vertices import count_vertices, vertices

__all__ = [
    "Interval",
    "Kind",
    "L1Ball",
    "LinfBall",
    "LpBall",
    "Marginals",
    "Polytope",
    "Singleton",
    "UncertaintySet",
    "bounds",
    "contains",
    "count_vertices",
    "nominal",
    "vertices",
]
