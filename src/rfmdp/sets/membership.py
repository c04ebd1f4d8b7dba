"""Whether a distribution is a member of a marginal set."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.sets.lp_ball import p_norm
from rfmdp.types import FloatArray


def contains(uset: object, p: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Return whether `p` is a member of `uset`.

    The entries of `p` must sum to one as those of the sets do, within 1e-9. `tolerance` is
    allowed in every bound, in the radius of a ball, and in every entry of the convex
    combination that a polytope needs.

    Raises
    ------
    ModelError
        If `p` is no vector of the set's size.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> contains(Interval([0.2, 0.4], [0.6, 0.8]), [0.5, 0.5])
    True
    """
    size = getattr(uset, "size", None)
    point = np.asarray(p, dtype=np.float64)
    if size is not None and point.shape != (size,):
        raise ModelError(
            f"{type(uset).__name__}: a member has {size} outcomes, got shape {point.shape}."
        )
    if not np.all(point >= -tolerance) or not abs(float(point.sum()) - 1.0) <= SUM_TOLERANCE:
        return False
    return _holds(uset, point, tolerance)


@singledispatch
def _holds(uset: object, p: FloatArray, tolerance: float) -> bool:
    """Check what the family asks of a distribution."""
    raise UnsupportedError(f"{type(uset).__name__} has no contains(); register one.")


@_holds.register
def _(uset: Singleton, p: FloatArray, tolerance: float) -> bool:
    return bool(np.all(np.abs(p - uset.nominal) <= tolerance))


@_holds.register
def _(uset: Interval, p: FloatArray, tolerance: float) -> bool:
    return bool(np.all((uset.lower - tolerance <= p) & (p <= uset.upper + tolerance)))


@_holds.register
def _(uset: LpBall, p: FloatArray, tolerance: float) -> bool:
    return p_norm(p - uset.nominal, uset.exponent) <= uset.radius + tolerance


@_holds.register
def _(uset: Polytope, p: FloatArray, tolerance: float) -> bool:
    return distance_to_hull(uset.vertices, p) <= tolerance


def distance_to_hull(points: FloatArray, p: FloatArray) -> float:
    """Return an upper bound of the largest entry of |p - q| for the best q in the hull.

    The weights come from non-negative least squares and are normalised; the distance is that
    of the combination they really give, so a small result is a proof of membership.

    Parameters
    ----------
    points : (V, X) array
        Points whose convex hull is meant.
    p : (X,) array
        The point to test.
    """
    from scipy.optimize import nnls

    system = np.vstack([points.T, np.ones(len(points))])
    try:
        weights, _ = nnls(system, np.append(p, 1.0), maxiter=30 * (len(points) + len(p)))
    except RuntimeError:  # no convergence: nothing is proven
        weights = np.zeros(len(points))
    total = weights.sum()
    if total <= 0.0:
        return float(np.min(np.max(np.abs(points - p), axis=1)))
    return float(np.max(np.abs((weights / total) @ points - p)))
