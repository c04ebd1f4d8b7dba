"""What other layers ask of one set: attainable bounds, membership, the least expectation.

One function each, with a branch per family. Kernels have fast twins of the least expectation.
Nature maximising is the same with signs flipped: max v = -min(-v).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets import rational
from rfmdp.sets.boxes import settled_boxes, tighten
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton, UncertaintySet
from rfmdp.sets.lp_ball import lp_ball_bounds, minimise_lp_ball, p_norm
from rfmdp.types import FloatArray


def bounds(uset: UncertaintySet) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper), the attainable bounds of every entry, (X,) each."""
    _require_family(uset)
    if isinstance(uset, Singleton):
        return uset.nominal, uset.nominal
    if isinstance(uset, Polytope):
        return uset.vertices.min(axis=0), uset.vertices.max(axis=0)
    ends = np.array([0, uset.size])
    if isinstance(uset, Interval):
        return tighten(ends, uset.lower, uset.upper)
    if not math.isinf(uset.exponent):
        return lp_ball_bounds(uset)
    lower = np.maximum(uset.nominal - uset.radius, 0.0)
    upper = np.minimum(uset.nominal + uset.radius, 1.0)
    return tighten(ends, *settled_boxes(ends, lower, upper, uset.nominal)[:2])


def contains(uset: UncertaintySet, p: ArrayLike, tolerance: float = 1e-12) -> bool:
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
    _require_family(uset)
    point = np.asarray(p, dtype=np.float64)
    if point.shape != (uset.size,):
        raise ModelError(
            f"{type(uset).__name__}: a member has {uset.size} outcomes, got shape {point.shape}."
        )
    if not np.all(point >= -tolerance) or not abs(float(point.sum()) - 1.0) <= SUM_TOLERANCE:
        return False
    return _holds(uset, point, tolerance)


def _holds(uset: UncertaintySet, p: FloatArray, tolerance: float) -> bool:
    """Check what the family asks of a distribution."""
    if isinstance(uset, Singleton):
        return bool(np.all(np.abs(p - uset.nominal) <= tolerance))
    if isinstance(uset, Interval):
        return bool(np.all((uset.lower - tolerance <= p) & (p <= uset.upper + tolerance)))
    if isinstance(uset, Polytope):
        return distance_to_hull(uset.vertices, p) <= tolerance
    return p_norm(p - uset.nominal, uset.exponent) <= uset.radius + tolerance


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


def minimise(uset: UncertaintySet, values: ArrayLike) -> tuple[float, FloatArray]:
    """Return (value, p): the least expectation of `values` over a set, and where it is taken.

    Both are computed in fractions and rounded once, except for Lp balls with 1 < p < inf: there
    `value` is a dual bound, at most the true minimum, up to rounding of a few ulps of the span of
    `values`, `p` is a member, and `p @ values` is at least the true minimum.

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
    _require_family(uset)
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (uset.size,) or not np.isfinite(vector).all():
        raise ModelError(
            f"{type(uset).__name__}: needs {uset.size} finite values, got {vector.tolist()}."
        )
    if isinstance(uset, LpBall) and 1.0 < uset.exponent < math.inf:
        return minimise_lp_ball(uset, vector)
    value, member = rational.minimum(uset, [Fraction(x) for x in vector.tolist()])
    return float(value), np.array([float(x) for x in member])


def _require_family(uset: object) -> None:
    """Raise UnsupportedError for what is none of the families."""
    if not isinstance(uset, UncertaintySet):
        raise UnsupportedError(f"{type(uset).__name__} has no answer of its own; ask its to_set().")
