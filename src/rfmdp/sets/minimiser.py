"""The oracle: the least expectation over a marginal set, plain and readable.

Kernels have fast twins of these. Nature maximising is the same with signs flipped:
max v = -min(-v).
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.sets.bounds import bounds
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.sets.lp_ball import minimise_lp_ball
from rfmdp.types import FloatArray


def minimise(uset: object, values: ArrayLike) -> tuple[float, FloatArray]:
    """Return (value, p): the least expectation of `values` over a set, and where it is taken.

    `p` is a member. `value` is `p @ values`, except for Lp balls with 1 < p < inf, where it is
    a dual bound: at most the true minimum, up to rounding of a few ulps of the span of
    `values`, and `p @ values` is at least the true minimum.

    Parameters
    ----------
    uset : uncertainty set with X outcomes
    values : (X,) array
        Finite values of the outcomes.

    Raises
    ------
    ModelError
        If `values` is no finite vector of the set's size.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> value, p = minimise(Interval([0.25, 0.25], [0.75, 0.75]), [1.0, 3.0])
    >>> value, p.tolist()
    (1.5, [0.75, 0.25])
    """
    size = getattr(uset, "size", None)
    vector = np.asarray(values, dtype=np.float64)
    if size is not None and (vector.shape != (size,) or not np.isfinite(vector).all()):
        raise ModelError(
            f"{type(uset).__name__}: needs {size} finite values, got {vector.tolist()}."
        )
    return _minimise(uset, vector)


@singledispatch
def _minimise(uset: object, values: FloatArray) -> tuple[float, FloatArray]:
    """Minimise over one family."""
    raise UnsupportedError(f"{type(uset).__name__} has no minimise(); register one.")


@_minimise.register
def _(uset: Singleton, values: FloatArray) -> tuple[float, FloatArray]:
    return float(uset.nominal @ values), uset.nominal


@_minimise.register
def _(uset: Interval, values: FloatArray) -> tuple[float, FloatArray]:
    return _greedy_box(uset.lower, uset.upper, values)


@_minimise.register
def _(uset: Polytope, values: FloatArray) -> tuple[float, FloatArray]:
    p = uset.vertices[int(np.argmin(uset.vertices @ values))]
    return float(p @ values), p


@_minimise.register
def _(uset: LpBall, values: FloatArray) -> tuple[float, FloatArray]:
    if uset.exponent == 1.0:
        return _greedy_l1(uset.nominal, uset.radius, values)
    if math.isinf(uset.exponent):
        return _greedy_box(*bounds(uset), values)
    return minimise_lp_ball(uset, values)


def _greedy_box(
    lower: FloatArray, upper: FloatArray, values: FloatArray
) -> tuple[float, FloatArray]:
    """Start at the lower bounds and give the free mass to the smallest values first."""
    p = lower.copy()
    mass = 1.0 - float(lower.sum())
    for k in np.argsort(values, kind="stable"):
        take = min(max(mass, 0.0), float(upper[k] - lower[k]))
        p[k] = upper[k] if take == upper[k] - lower[k] else lower[k] + take
        mass -= take
    return float(p @ values), p


def _greedy_l1(nominal: FloatArray, radius: float, values: FloatArray) -> tuple[float, FloatArray]:
    """Move radius / 2 of the mass from the largest values onto the smallest one."""
    p = nominal.copy()
    receiver = int(np.argmin(values))
    mass = min(radius / 2.0, 1.0 - float(nominal[receiver]))
    p[receiver] += mass
    for k in np.argsort(-values, kind="stable"):
        if k != receiver:
            take = min(mass, float(p[k]))
            p[k] -= take
            mass -= take
    return float(p @ values), p
