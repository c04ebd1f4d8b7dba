"""Attainable bounds of every entry of a marginal, and its nominal member."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.types import FloatArray, IntArray
from rfmdp.uncertainty.sets import Interval, LpBall, Polytope, Singleton


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
    tight_upper = np.where(loose_high, lower + spare_low, upper)
    tight_lower = np.where(loose_low, upper - spare_high, lower)
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
    """Move one entry by t and spread -t over the others as evenly as they allow.

    The cheapest spread over k others costs t * k**(1/p - 1), so that entry moves by at most
    radius / (1 + k**(1 - p))**(1/p), exact if no other entry leaves [0, 1]; otherwise the
    bounds are outer ones (still valid for every solver that uses them as bounds).
    """
    size, p = uset.size, uset.exponent
    if size == 1:
        return uset.nominal, uset.nominal
    others = size - 1
    if math.isinf(p):
        lower = np.maximum(uset.nominal - uset.radius, 0.0)
        upper = np.minimum(uset.nominal + uset.radius, 1.0)
        return tighten(np.array([0, size]), lower, upper)
    move = uset.radius / (1.0 + others ** (1.0 - p)) ** (1.0 / p)
    lower = np.maximum(uset.nominal - move, 0.0)
    upper = np.minimum(uset.nominal + move, 1.0)
    return tighten(np.array([0, size]), lower, upper)


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
