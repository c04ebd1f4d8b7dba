"""Marginal uncertainty sets: data checked once, and what other layers may ask of them.

families    what every set is, exactly
marginals   many sets packed into arrays for the kernels
radius      sets around nominal distributions
validate    everything that is wrong with packed sets
bounds, supports, vertices, membership, minimiser
            what other rooms ask: one function each, for one set or for many
exact       sums of floats, decided exactly
rational    sets and products in fractions
boxes, halfspaces, lp_ball
            the geometry behind them
"""

from rfmdp.sets.bounds import bounds
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
    "vertices",
    "vertices_bulk",
]
