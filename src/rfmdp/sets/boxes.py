"""Vertices of boxes within the simplex, {lower <= p <= upper, sum p = 1}.

A vertex has every entry at a bound except at most one, the *fractional* entry. So it is a
set U of entries at their upper bound, of total width w(U), where the mass to give out,
R = 1 - sum(lower), is either used up (w(U) = R), or leaves a rest that is strictly less than
the width of one further entry.

Coordinate after coordinate, all partial choices that can still be completed are extended at
once. Every partial choice kept is the beginning of some vertex of the box in which its
fractional entry is free again, so at most X * V of them exist per coordinate (X outcomes, V
vertices): no scan of 2^X candidates.

Widths are compared on an integer grid of 2^-48, with a tolerance for the rounding of the
inputs: 0.1 + 0.2 + 0.7 uses up the mass exactly. Building and counting therefore agree, and
no vertex appears twice. The points themselves are made of the bounds as given.
"""

from __future__ import annotations

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.types import AnyArray, FloatArray, IntArray

GRID = 2.0**48
SUMS_LIMIT = 1 << 22
LOWER, FRACTION, UPPER = 0, 1, 2


def grid_tolerance(size: int) -> int:
    """Return the rounding, in grid units, that a sum of `size` widths may carry."""
    return size + 2


def box_vertices(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of N boxes of equal size, box after box.

    Parameters
    ----------
    lower, upper : (N, X) arrays
        Non-empty boxes, as checked by `sets.check_box`.

    Returns
    -------
    box : (V,) array
        The box that a vertex belongs to, ascending.
    points : (V, X) array
        The vertices, in lexicographic order within a box; their entries sum to one up to
        rounding and respect the bounds.

    Examples
    --------
    >>> box_vertices(np.array([[0.0, 0.25]]), np.array([[0.5, 1.0]]))[1].tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    widths, mass = _on_grid(lower, upper)
    box, choice = _choices(widths, mass)
    points = np.where(choice == UPPER, upper[box], lower[box])
    row, column = np.nonzero(choice == FRACTION)
    points[row, column] += 1.0 - points[row].sum(axis=1)
    _settle(points, lower[box], upper[box])
    return box, points


def count_box_vertices(lower: FloatArray, upper: FloatArray) -> int:
    """Return how many vertices one box (X,) has, without building them.

    Pairs of subset sums of the two halves of the entries are counted per fractional entry:
    O(X 2^(X/2)) in general, and far less if widths repeat, because equal sums are merged.

    Examples
    --------
    >>> count_box_vertices(np.zeros(10), np.full(10, 0.2))
    252
    """
    grid_widths, grid_mass = _on_grid(lower[None, :], upper[None, :])
    widths, mass = np.sort(grid_widths[0][grid_widths[0] > 0]), int(grid_mass[0])
    slack = grid_tolerance(len(lower))
    total = _count_subsets(widths, mass - slack, mass + slack)
    for width, repeats in zip(*np.unique(widths, return_counts=True), strict=True):
        others = np.delete(widths, np.searchsorted(widths, width))
        low, high = mass - int(width) + slack + 1, mass - slack - 1
        total += int(repeats) * _count_subsets(others, low, high)
    return total


def _on_grid(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, IntArray]:
    """Return widths (N, X) and mass (N,) in grid units; widths within rounding become 0."""
    widths = np.rint((upper - lower) * GRID).astype(np.int64)
    # twice the tolerance, so that an entry at either bound can never both use up the mass
    widths[widths <= 2 * grid_tolerance(lower.shape[1])] = 0
    mass = np.rint((1.0 - lower.sum(axis=1)) * GRID).astype(np.int64)
    return widths, np.clip(mass, 0, widths.sum(axis=1))


def _choices(widths: IntArray, mass: IntArray) -> tuple[IntArray, AnyArray]:
    """Return (box, choice) of all vertices: choice (V, X) of LOWER, FRACTION, UPPER."""
    boxes, size = widths.shape
    slack = grid_tolerance(size)
    # rest[:, k]: what the entries from k on can still take
    rest = np.zeros((boxes, size + 1), dtype=np.int64)
    rest[:, :-1] = np.cumsum(widths[:, ::-1], axis=1)[:, ::-1]
    box, left, fraction = np.arange(boxes), mass, np.zeros(boxes, dtype=np.int64)
    trail = []
    for k in range(size):
        width = widths[box, k]
        next_left = np.stack([left, left, left - width], axis=1)
        next_fraction = np.stack([fraction, width, fraction], axis=1)
        open_ = next_fraction > 0
        # with a fractional entry of width f the mass left at the end lies strictly in (0, f)
        low = np.where(open_, slack + 1, -slack)
        high = np.where(open_, next_fraction - slack - 1, slack) + rest[box, k + 1][:, None]
        keep = (low <= next_left) & (next_left <= high)
        keep[:, FRACTION] &= (fraction == 0) & (width > 0)
        keep[:, UPPER] &= width > 0
        child = np.flatnonzero(keep)
        parent = child // 3
        trail.append((parent, (child % 3).astype(np.int8)))
        box, left, fraction = box[parent], next_left.ravel()[child], next_fraction.ravel()[child]
    return box, _walk_back(trail, len(box))


def _walk_back(trail: list[tuple[IntArray, AnyArray]], count: int) -> AnyArray:
    """Follow the parents of the last level's nodes and collect their choices."""
    choice = np.empty((count, len(trail)), dtype=np.int8)
    node = np.arange(count)
    for k in range(len(trail) - 1, -1, -1):
        parent, chosen = trail[k]
        choice[:, k] = chosen[node]
        node = parent[node]
    return choice


def _settle(points: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    """Give what the tolerance of the grid left over to entries with room, in place."""
    np.clip(points, lower, upper, out=points)
    left = 1.0 - points.sum(axis=1)
    left[np.abs(left) <= points.shape[1] * np.finfo(np.float64).eps] = 0.0
    if not left.any():
        return
    for k in range(points.shape[1]):
        moved = np.clip(points[:, k] + left, lower[:, k], upper[:, k])
        left -= moved - points[:, k]
        points[:, k] = moved


def _count_subsets(widths: IntArray, low: int, high: int) -> int:
    """Count the subsets of sorted widths whose sum lies in [low, high]."""
    if low > high or high < 0:
        return 0
    half = len(widths) // 2
    sums, counts = _subset_sums(widths[:half], high, len(widths))
    other_sums, other_counts = _subset_sums(widths[half:], high, len(widths))
    running = np.concatenate([np.zeros(1, other_counts.dtype), np.cumsum(other_counts)])
    first = np.searchsorted(other_sums, low - sums, side="left")
    last = np.searchsorted(other_sums, high - sums, side="right")
    return int((counts * (running[last] - running[first])).sum())


def _subset_sums(widths: IntArray, cap: int, entries: int) -> tuple[IntArray, AnyArray]:
    """Return the distinct subset sums up to `cap`, ascending, and how often each occurs."""
    sums = np.zeros(1, dtype=np.int64)
    counts: AnyArray = np.ones(1, dtype=np.int64 if entries <= 60 else object)
    for width in widths:
        both = np.concatenate([sums, sums[sums <= cap - width] + width])
        counts = np.concatenate([counts, counts[sums <= cap - width]])
        order = np.argsort(both, kind="stable")
        both = both[order]
        starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
        sums, counts = both[starts], np.add.reduceat(counts[order], starts)
        if len(sums) > SUMS_LIMIT:
            raise UnsupportedError(
                f"The vertices of a box with {entries} outcomes of different widths are too many "
                "to count; use an inner solver that needs no vertices."
            )
    return sums, counts
