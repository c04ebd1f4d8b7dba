"""Vertices of {p in the simplex : matrix @ p <= bound}, by double description in fractions.

The simplex starts with its unit vectors. Every half-space keeps the vertices on its side and
adds the points where it cuts an edge between a kept and a lost one. Two vertices share an
edge if no third one is active in all constraints that both are active in; this test is exact
for degenerate polytopes too, so redundant rows, equalities (two rows) and polytopes of lower
dimension need no special care (Fukuda and Prodon, 1996).

Floats are rationals: vertices are fractions, and on which side of a half-space one lies is decided
by floats where their error leaves no doubt, else exactly. Nothing is merged. Only the result is
rounded, each number once; what is zero, and only that, remains zero.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.rounding import LOOSENED, UNIT
from rfmdp.types import BoolArray, FloatArray, IntArray

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
        If shapes do not fit, an entry is not finite, or no distribution satisfies all rows.
    UnsupportedError
        Beyond 64 outcomes, 1000 rows, or 4000 vertices on the way.

    Examples
    --------
    >>> halfspace_vertices(np.array([[1.0, -1.0]]), np.array([0.0])).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    matrix, bound = _checked(matrix, bound)
    simplex = _cut_all(matrix, bound)
    if simplex is None:  # decimals that were meant to touch, perhaps
        simplex = _cut_all(matrix, bound + LOOSENED * np.abs(matrix).max(axis=1))
    if simplex is None:
        raise ModelError("Polytope: it is empty, no distribution satisfies all half-spaces.")
    points = np.unique(simplex.points, axis=0)
    return points[np.lexsort(points.T[::-1])]


def _cut_all(matrix: FloatArray, bound: FloatArray) -> CutSimplex | None:
    """Return the simplex cut by all rows; None if nothing is left."""
    simplex = CutSimplex(matrix.shape[1])
    for row in range(len(matrix)):
        simplex.cut(matrix[row], float(bound[row]))
        if not len(simplex.points):
            return None
        if len(simplex.points) > VERTEX_LIMIT:
            raise UnsupportedError(
                f"Polytope: half-space {row} leaves more than {VERTEX_LIMIT} vertices; "
                "use fewer half-spaces or outcomes, or an Interval."
            )
    return simplex


class CutSimplex:
    """The distributions of some outcomes and what half-spaces leave of them, by vertices.

    `points` (V, X) are the vertices, each number rounded once.
    """

    def __init__(self, size: int) -> None:
        self._exact = [[Fraction(int(i == k)) for i in range(size)] for k in range(size)]
        self._active: BoolArray = ~np.eye(size, dtype=np.bool_)
        self.points = _rounded(self._exact)

    def cut(self, normal: FloatArray, bound: float) -> None:
        """Keep {p : normal.p <= bound}."""
        row = [Fraction(x) for x in normal.tolist()]
        limit = Fraction(bound)
        sides = self._sides(normal, bound, row, limit)
        self._active = np.concatenate([self._active, (sides == 0)[:, None]], axis=1)
        if not (sides < 0).any():
            return
        inside, outside = np.flatnonzero(sides > 0), np.flatnonzero(sides < 0)
        keep, lost = _edges(self._active, inside, outside, self.points.shape[1])
        slack = {i: _slack(self._exact[i], row, limit) for i in {*keep.tolist(), *lost.tolist()}}
        new = [
            _between(self._exact[i], self._exact[k], slack[i] / (slack[i] - slack[k]))
            for i, k in zip(keep.tolist(), lost.tolist(), strict=True)
        ]
        active = self._active[keep] & self._active[lost]
        active[:, -1] = True
        left = np.flatnonzero(sides >= 0)
        self._exact = [self._exact[i] for i in left.tolist()] + new
        self._active = np.concatenate([self._active[left], active])
        self.points = np.concatenate([self.points[left], _rounded(new, self.points.shape[1])])

    def _sides(
        self, normal: FloatArray, bound: float, row: list[Fraction], limit: Fraction
    ) -> IntArray:
        """Return the signs (V,) of bound - normal.p."""
        with np.errstate(all="ignore"):
            slack = bound - self.points @ normal
            size = abs(bound) + self.points @ np.abs(normal)
            error = (len(row) + 6.0) * UNIT * size + 1e-300
        sides = np.sign(slack).astype(np.int64)
        for i in np.flatnonzero(~(np.abs(slack) > error)):  # NaN is a doubt, too
            exact = _slack(self._exact[i], row, limit)
            sides[i] = (exact > 0) - (exact < 0)
        return sides


def _slack(point: list[Fraction], row: list[Fraction], limit: Fraction) -> Fraction:
    return limit - sum((x * a for x, a in zip(point, row, strict=True) if a), Fraction(0))


def _between(kept: list[Fraction], lost: list[Fraction], share: Fraction) -> list[Fraction]:
    return [x + share * (y - x) for x, y in zip(kept, lost, strict=True)]


def _rounded(points: list[list[Fraction]], size: int = 0) -> FloatArray:
    """Return fractions as floats (V, X); what is positive remains so."""
    rounded = [[max(float(x), 5e-324) if x > 0 else 0.0 for x in point] for point in points]
    return np.array(rounded).reshape(len(points), -1 if points else size)


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
        batch = slice(start, start + 1024)
        missing = (ones[kept[batch]] * ones[lost[batch]]) @ (1.0 - ones.T)
        # both ends miss none of what they share; a third vertex that misses none breaks the edge
        good[batch] = np.count_nonzero(missing == 0.0, axis=1) == 2
    return kept[good], lost[good]


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
