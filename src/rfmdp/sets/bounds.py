"""Attainable bounds of every entry of a marginal, and its nominal member."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.sets.lp_ball import lp_ball_bounds
from rfmdp.types import FloatArray, IntArray


def tighten(
    outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Make box bounds attainable: l_i >= 1 - sum of the other u, and u_i likewise.

    One pass is enough: afterwards every bound is the entry of some member.
    """
    lower = np.asarray(lower, dtype=np.float64)
    upper = np.asarray(upper, dtype=np.float64)
    if len(outcome_ptr) <= 1:
        return lower, upper
    sizes = np.diff(outcome_ptr)
    spare_low = np.repeat(1.0 - np.add.reduceat(lower, outcome_ptr[:-1]), sizes)
    spare_high = np.repeat(np.add.reduceat(upper, outcome_ptr[:-1]) - 1.0, sizes)
    # an ulp of slack must not move a bound: widths below it are kept as given
    spare_low = np.maximum(spare_low, 0.0)
    spare_high = np.maximum(spare_high, 0.0)
    loose_high = upper - lower > spare_low + 1e-15
    loose_low = upper - lower > spare_high + 1e-15
    # rounding must not push an attainable bound out of [0, 1] either
    tight_upper = np.where(loose_high, np.minimum(lower + spare_low, 1.0), upper)
    tight_lower = np.where(loose_low, np.maximum(upper - spare_high, 0.0), lower)
    return np.minimum(tight_lower, tight_upper), tight_upper


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
