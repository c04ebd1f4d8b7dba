"""Attainable bounds of every entry of a marginal."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.rounding import UNIT
from rfmdp.sets.boxes import settled_boxes, tighten
from rfmdp.sets.families import Interval, KLBall, LpBall, Polytope, Singleton, SubsetSet
from rfmdp.sets.lp_ball import lp_ball_bounds
from rfmdp.types import FloatArray


@singledispatch
def bounds(uset: object) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper), the attainable bounds of every entry, (X,) each."""
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
        ends = np.array([0, uset.size])
        return tighten(ends, *settled_boxes(ends, lower, upper, uset.nominal)[:2])
    return lp_ball_bounds(uset)


@bounds.register
def _(uset: KLBall) -> tuple[FloatArray, FloatArray]:
    return kl_bounds(uset.nominal, np.full(uset.size, uset.radius))


@bounds.register
def _(uset: SubsetSet) -> tuple[FloatArray, FloatArray]:
    single = 1 << np.arange(uset.size)
    return uset.lower[single], 1.0 - uset.lower[2**uset.size - 1 - single]


def kl_bounds(centre: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return attainable bounds of entries: {q : kl(centre_i, q) <= radius}, from outside.

    kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)): the rest of the mass is scaled alike. Both
    arrays have one entry per outcome. The lower bound of an outcome of positive probability is 0
    only where no float is as small.

    Examples
    --------
    >>> low, high = kl_bounds(np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.9048], [0.0952, 1.0])
    """
    beyond = np.nextafter(1.0 - _kl_lower(1.0 - centre, radius), 2.0)
    unseen = np.nextafter(-np.expm1(-radius), 2.0)  # exact where it is tiny
    upper = np.minimum(np.where(centre == 0.0, unseen, beyond), 1.0)
    still = radius == 0.0
    return np.where(still, centre, _kl_lower(centre, radius)), np.where(still, centre, upper)


def _kl_lower(p: FloatArray, radius: FloatArray) -> FloatArray:
    """Return at most the smallest q <= p with kl(p, q) <= radius, by bisection of ln q."""
    rest = 1.0 - p
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_p, log_rest = np.log(p), np.log(rest)
        entropy = -p * log_p - np.where(rest > 0.0, rest * log_rest, 0.0)
        # where even exp(-800) may be too large, the answer is the 0 that it is as a float
        outside = np.maximum(-(radius + entropy) / p - 1e-9, -800.0)
        inside = log_p
        for _ in range(70):
            log_q = 0.5 * (outside + inside)
            away = np.log1p(-np.exp(log_q))
            kl = p * (log_p - log_q) + np.where(rest > 0.0, rest * (log_rest - away), 0.0)
            size = p * (np.abs(log_p) + np.abs(log_q))
            size += np.where(rest > 0.0, rest * (np.abs(log_rest) + np.abs(away)), 0.0)
            far = kl - 8.0 * UNIT * size > radius  # so it certainly is
            outside, inside = np.where(far, log_q, outside), np.where(far, inside, log_q)
        found = np.exp(outside) * (1.0 - 4.0 * UNIT * (1.0 + np.abs(outside)))
    return np.where(np.isinf(radius) | (p == 0.0), 0.0, np.clip(found, 0.0, p))
