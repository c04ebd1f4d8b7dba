"""Convex hulls given by points: membership weights and extreme points."""

from __future__ import annotations

import numpy as np

from rfmdp.types import BoolArray, FloatArray

REDUNDANT = 1e-13


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
        return float(np.min(np.max(np.abs(points - p), axis=1)))
    total = weights.sum()
    if total <= 0.0:
        return float(np.min(np.max(np.abs(points - p), axis=1)))
    return float(np.max(np.abs((weights / total) @ points - p)))


def extreme_points(points: FloatArray) -> FloatArray:
    """Return the points that are no convex combination of the others, in their order.

    A point is left out only if a combination within 1e-13 of it was found. In doubt it stays:
    one point too many costs time, one too few would make the set smaller.

    Examples
    --------
    >>> extreme_points(np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    unique = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
    keep = np.ones(len(unique), dtype=np.bool_)
    for v in np.flatnonzero(~_obviously_extreme(unique)):
        keep[v] = False
        if not keep.any() or distance_to_hull(unique[keep], unique[v]) > REDUNDANT:
            keep[v] = True
    return unique[keep]


def _obviously_extreme(points: FloatArray) -> BoolArray:
    """Mark points that are the unique maximiser of some direction tried."""
    marked = np.zeros(len(points), dtype=np.bool_)
    size = points.shape[1]
    random = np.random.default_rng(0).normal(size=(16, size))
    directions = np.vstack([points - points.mean(axis=0), random])
    for direction in directions:
        scores = points @ direction
        best = int(np.argmax(scores))
        rivals = np.delete(scores, best)
        reach = float(np.abs(direction).sum())
        marked[best] |= rivals.size == 0 or scores[best] - rivals.max() > REDUNDANT * reach
    return marked
