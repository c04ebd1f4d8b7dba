"""Attainable bounds of every entry of a marginal."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.sets.boxes import settled_boxes, tighten
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
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
