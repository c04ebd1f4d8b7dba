"""Attainable bounds of every entry of a marginal, and its nominal member."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.rounding import UNIT
from rfmdp.sets.exact import without_excess
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.sets.lp_ball import lp_ball_bounds
from rfmdp.types import FloatArray, IntArray

ATTAINED = 8.0 * UNIT  # bounds this close to attainable ones are kept


def tighten(
    outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Make box bounds attainable: l_i >= 1 - sum of the other u, and u_i likewise.

    One pass is enough. Bounds are rounded outwards, so that the set stays the same to the last
    bit; a bound that would move by no more than rounding stays as it is given.
    """
    lower = np.asarray(lower, dtype=np.float64)
    upper = np.asarray(upper, dtype=np.float64)
    if len(outcome_ptr) <= 1:
        return lower, upper
    tight_upper = without_excess(lower, lower, outcome_ptr, 1.0)
    tight_lower = without_excess(upper, upper, outcome_ptr, -1.0)
    return (
        np.where(tight_lower > lower + ATTAINED, tight_lower, lower),
        np.where(tight_upper < upper - ATTAINED, tight_upper, upper),
    )


@singledispatch
def bounds(uset: object) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper), the attainable bounds of every entry."""
    raise UnsupportedError(f"{type(uset).__name__} has no bounds(); register one.")


@bounds.register
def _(uset: Singleton) -> tuple[FloatArray, FloatArray]:
    return uset.nominal, uset.nominal


@bounds.register
def _(uset: Interval) -> tuple[FloatArray, FloatArray]:
    return tighten(np.array([0, uset.size]), uset.lower, uset.upper)


@bounds.register
def _(uset: Polytope) -> tuple[FloatArray, FloatArray]:
    return uset.vertices.min(axis=0), uset.vertices.max(axis=0)


@bounds.register
def _(uset: LpBall) -> tuple[FloatArray, FloatArray]:
    if math.isinf(uset.exponent):
        lower = np.maximum(uset.nominal - uset.radius, 0.0)
        upper = np.minimum(uset.nominal + uset.radius, 1.0)
        return tighten(np.array([0, uset.size]), lower, upper)
    return lp_ball_bounds(uset)


@singledispatch
def nominal(uset: object) -> FloatArray:
    """Return the distinguished member of a set: its centre, or the mean of its vertices."""
    raise UnsupportedError(f"{type(uset).__name__} has no nominal(); register one.")


@nominal.register(Singleton)
@nominal.register(Interval)
@nominal.register(LpBall)
def _(uset: Singleton | Interval | LpBall) -> FloatArray:
    return uset.nominal


@nominal.register
def _(uset: Polytope) -> FloatArray:
    mean: FloatArray = uset.vertices.mean(axis=0)
    return mean
