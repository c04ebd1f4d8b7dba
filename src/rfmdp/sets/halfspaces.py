"""Vertices of {p in the simplex : matrix @ p <= bound}, by double description.

The simplex starts with its unit vectors. Every half-space keeps the vertices on its side and
adds the points where it cuts an edge between a kept and a lost one. Two vertices share an
edge if no third one is active in all constraints that both are active in; this test is exact
for degenerate polytopes too, so redundant rows, equalities (two rows) and polytopes of lower
dimension need no special care (Fukuda and Prodon, 1996).
"""

from __future__ import annotations

import numpy as np

from rfmdp.errors import ModelError, SolverError, UnsupportedError
from rfmdp.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-12
OUTCOME_LIMIT = 64
ROW_LIMIT = 1000
VERTEX_LIMIT = 4000


def halfspace_vertices(matrix: FloatArray, bound: FloatArray) -> FloatArray:
    """Return the vertices (V, X) of the distributions with `matrix @ p <= bound`.

    Parameters
    ----------
    matrix : (rows, X) array
    bound : (rows,) array

    Raises
    ------
    ModelError
        If shapes do not fit, an entry is not finite, or no distribution satisfies all rows;
        the message then says by how much the best one misses them.
    UnsupportedError
        Beyond 64 outcomes, 1000 rows, or 4000 vertices on the way.

    Examples
    --------
    >>> halfspace_vertices(np.array([[1.0, -1.0]]), np.array([0.0])).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    matrix, bound = _checked(matrix, bound)
    rows, size = matrix.shape
    points = np.eye(size)
    active = np.zeros((size, size + rows), dtype=np.bool_)
    active[:, :size] = points == 0.0
    for row in range(rows):
        scale = float(np.max(np.abs(matrix[row]))) or 1.0
        slack = (bound[row] - points @ matrix[row]) / scale
        points, active = _cut(points, active, slack, size + row)
        if not len(points):
            raise ModelError(_emptiness(matrix, bound))
        if len(points) > VERTEX_LIMIT:
            raise UnsupportedError(
                f"Polytope: half-space {row} leaves more than {VERTEX_LIMIT} vertices; "
                "use fewer half-spaces or outcomes, or an Interval."
            )
    points = _distinct(np.clip(points, 0.0, 1.0))
    return points[np.lexsort(points.T[::-1])]


def _cut(
    points: FloatArray, active: BoolArray, slack: FloatArray, constraint: int
) -> tuple[FloatArray, BoolArray]:
    """Return vertices and active constraints after one half-space."""
    inside, outside = slack > TOLERANCE, slack < -TOLERANCE
    active[~inside & ~outside, constraint] = True
    if not outside.any():
        return points, active
    keep, lost = _edges(active, np.flatnonzero(inside), np.flatnonzero(outside), points.shape[1])
    weight = (slack[keep] / (slack[keep] - slack[lost]))[:, None]
    new_points = (1.0 - weight) * points[keep] + weight * points[lost]
    new_active = active[keep] & active[lost]
    new_active[:, constraint] = True
    return (
        np.concatenate([points[~outside], new_points]),
        np.concatenate([active[~outside], new_active]),
    )


def _edges(
    active: BoolArray, inside: IntArray, outside: IntArray, size: int
) -> tuple[IntArray, IntArray]:
    """Return the ends (kept, lost) of all edges that a half-space cuts."""
    ones = active.astype(np.int32)  # sums of products count, exactly
    # an edge is active in at least X - 2 constraints: few pairs need the full test
    kept, lost = np.nonzero(ones[inside] @ ones[outside].T >= size - 2)
    kept, lost = inside[kept], outside[lost]
    good = np.zeros(len(kept), dtype=np.bool_)
    for start in range(0, len(kept), 1024):
        part = slice(start, start + 1024)
        missing = (ones[kept[part]] * ones[lost[part]]) @ (1.0 - ones.T)
        # both ends miss none of what they share; a third vertex that misses none breaks the edge
        good[part] = np.count_nonzero(missing == 0.0, axis=1) == 2
    return kept[good], lost[good]


def _distinct(points: FloatArray) -> FloatArray:
    """Drop points within the tolerance of an earlier one."""
    kept: list[int] = []
    for v in range(len(points)):
        if not kept or np.abs(points[kept] - points[v]).max(axis=1).min() > TOLERANCE:
            kept.append(v)
    return points[kept]


def _checked(matrix: FloatArray, bound: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows as floats, or raise for a wrong shape, size or entry."""
    matrix = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    bound = np.atleast_1d(np.asarray(bound, dtype=np.float64))
    if matrix.ndim != 2 or bound.ndim != 1 or len(matrix) != len(bound) or matrix.shape[1] == 0:
        raise ModelError(
            "Polytope: half-spaces need a (rows, X) matrix and a (rows,) bound, "
            f"got shapes {matrix.shape} and {bound.shape}."
        )
    if not (np.isfinite(matrix).all() and np.isfinite(bound).all()):
        row = np.flatnonzero(~(np.isfinite(matrix).all(axis=1) & np.isfinite(bound)))[0]
        raise ModelError(f"Polytope: half-spaces must be finite, row {row} is not.")
    if matrix.shape[1] > OUTCOME_LIMIT or len(matrix) > ROW_LIMIT:
        raise UnsupportedError(
            f"Polytope: half-spaces are turned into vertices for at most {OUTCOME_LIMIT} outcomes "
            f"and {ROW_LIMIT} rows, got {matrix.shape[1]} and {len(matrix)}; give the vertices, "
            "or use an Interval."
        )
    return matrix, bound


def _emptiness(matrix: FloatArray, bound: FloatArray) -> str:
    """Say that a polytope is empty and by how much its rows must be violated at least."""
    from scipy.optimize import linprog

    rows, size = matrix.shape
    result = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=np.hstack([matrix, -np.ones((rows, 1))]),
        b_ub=bound,
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[1.0],
    )
    if result.status != 0:
        raise SolverError(f"Polytope: the LP for its emptiness ended with: {result.message}")
    excess = matrix @ result.x[:-1] - bound
    return (
        "Polytope: it is empty, no distribution satisfies all half-spaces; the best one violates "
        f"row {int(np.argmax(excess))} by {result.fun:.6g}."
    )
