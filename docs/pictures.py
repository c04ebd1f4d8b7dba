"""Draw the pictures of docs/exact.md: `python docs/pictures.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rfmdp as rf
from rfmdp.inner.protocol import Inner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction
from rfmdp.ragged import segment_lengths
from rfmdp.types import FloatArray

HERE = Path(__file__).parent
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # [OkabeIto2008]
TETRAHEDRON = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # four outcomes


def main() -> None:
    """Draw all pictures into the folder of the page."""
    for name, axes in explanations().items():
        axes.figure.savefig(HERE / "pictures" / f"{name}.png", dpi=90)


def explanations() -> dict[str, Any]:
    """Return the pictures by the names of their files."""
    first, second = rf.Interval([0.2, 0.3], [0.7, 0.8]), rf.Interval([0.3, 0.2], [0.8, 0.7])
    aircraft = rf.domain("aircraft", instance="learning").with_radius(0.05)
    solution = rf.solve(aircraft, rf.domain_spec("aircraft"))
    methods = [rf.Sequential(), rf.IntervalArithmetic()]
    return {
        "product-set": product_set(first, second),
        "product-surface": product_surface(first, second),
        "gaps": gap_histogram(aircraft, solution.value, methods),
    }


def product_set(first: rf.Interval, second: rf.Interval) -> Any:
    """Draw the product of two binary sets and its relaxations; return the axes.

    The plane shows the probabilities that both factors take their first outcome, and that both
    take their second one. The product itself is not convex; interval arithmetic and McCormick
    enlarge it, McCormick less.
    """
    both, _, _, neither = np.moveaxis(joint_distributions(first, second, 25), -1, 0)
    axes = new_axes()
    outlines = {
        "interval arithmetic": _interval_outline(first, second),
        "McCormick": _mccormick_outline(first, second),
    }
    for colour, (name, outline) in zip(COLOURS[1:], outlines.items(), strict=False):
        axes.fill(*outline.T, color=colour, alpha=0.25, label=name)
        axes.plot(*np.vstack([outline, outline[:1]]).T, color=colour)
    axes.plot(both, neither, color=COLOURS[0], linewidth=0.6)
    axes.plot(both.T, neither.T, color=COLOURS[0], linewidth=0.6)
    axes.plot([], [], color=COLOURS[0], label="exact product")
    axes.set(xlabel="both take the first outcome", ylabel="both take the second outcome")
    axes.legend()
    return axes


def product_surface(first: rf.Interval, second: rf.Interval) -> Any:
    """Draw the product of two binary sets among all joint distributions; return the axes.

    All distributions are a tetrahedron, the independent ones a curved sheet in it; dashed are the
    straight ways between opposite corners of the product, which leave the sheet: it is not convex.
    """
    from matplotlib.figure import Figure

    axes = Figure(figsize=(5.4, 5.0), layout="constrained").add_subplot(projection="3d")
    for i, j in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        axes.plot(*TETRAHEDRON[[i, j]].T, color="0.7", linewidth=1.0)
    for corner, name in zip(TETRAHEDRON, ("1, 1", "1, 2", "2, 1", "2, 2"), strict=True):
        axes.text(*(1.12 * corner), name, ha="center")
    sheet = joint_distributions(first, second, 25) @ TETRAHEDRON
    axes.plot_surface(*np.moveaxis(sheet, -1, 0), color=COLOURS[0], alpha=0.6)
    for one, other in ((sheet[0, 0], sheet[-1, -1]), (sheet[0, -1], sheet[-1, 0])):
        axes.plot(*np.array([one, other]).T, color=COLOURS[1], linestyle="--")
    axes.set_axis_off()
    axes.set_box_aspect((1.0, 1.0, 1.0))
    return axes


def joint_distributions(first: rf.Interval, second: rf.Interval, steps: int) -> FloatArray:
    """Return products (steps, steps, 4) of members of two binary sets, from end to end."""
    ends = (_ends(first), _ends(second))
    pairs = [np.stack([x, 1.0 - x], axis=1) for x in (np.linspace(a, b, steps) for a, b in ends)]
    joint: FloatArray = np.einsum("ia,jb->ijab", *pairs).reshape(steps, steps, 4)
    return joint


def _ends(uset: rf.Interval) -> FloatArray:
    """Return the least and the largest probability of the first of two outcomes."""
    return np.array([max(uset.lower[0], 1.0 - uset.upper[1]),
                     min(uset.upper[0], 1.0 - uset.lower[1])])  # fmt: skip


def _interval_outline(first: rf.Interval, second: rf.Interval) -> FloatArray:
    """Return the corners of the projected product intervals, in order."""
    low, high = (np.multiply.outer(a, b).ravel() for a, b in (
        (first.lower, second.lower), (first.upper, second.upper)))  # fmt: skip
    # keep what the two outcomes in between can fill up to one
    least, most = low[1] + low[2], high[1] + high[2]
    box = np.array([[low[0], low[3]], [high[0], low[3]], [high[0], high[3]], [low[0], high[3]]])
    return _cut(_cut(box, np.array([1.0, 1.0]), 1.0 - least), np.array([-1.0, -1.0]), most - 1.0)


def _cut(outline: FloatArray, normal: FloatArray, bound: float) -> FloatArray:
    """Return the part of a convex outline (N, 2) with `normal . x <= bound`."""
    kept = []
    for here, after in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        a, b = normal @ here - bound, normal @ after - bound
        if a <= 0.0:
            kept.append(here)
        if a * b < 0.0:
            kept.append(here + (after - here) * a / (a - b))
    return np.array(kept).reshape(-1, 2)


def _mccormick_outline(first: rf.Interval, second: rf.Interval) -> FloatArray:
    """Return the convex hull of the four corners of the product: McCormick is exact on two bits."""
    from scipy.spatial import ConvexHull, QhullError

    points = joint_distributions(first, second, 2).reshape(4, 4)[:, [0, 3]]
    try:
        order = np.asarray(ConvexHull(points).vertices)
    except QhullError:  # a line or a point
        order = np.arange(len(points))
    corners: FloatArray = points[order]
    return corners


def gap_histogram(
    model: FactoredMDP,
    value: FloatArray,
    inners: Sequence[Inner],
    nature: Direction = MIN,
) -> Any:
    """Draw how far each method is from the exact value of every row; return the axes.

    Gaps are relative to the span of the row's values; rows that are exact count as 1e-16.

    Parameters
    ----------
    value : (S,)
        Of the states, a solution's for instance.
    """
    rows = np.flatnonzero(segment_lengths(model.marginal_ptr) > 0)
    exact = _middle(rf.Exact(), model, nature, value, rows)
    highest = np.maximum.reduceat(value[model.successors], model.successor_ptr[:-1])[rows]
    lowest = np.minimum.reduceat(value[model.successors], model.successor_ptr[:-1])[rows]
    span = np.maximum(highest - lowest, 1e-300)
    axes = new_axes()
    edges = np.logspace(-16, 0, 33)
    for k, inner in enumerate(inners):
        gap = np.abs(_middle(inner, model, nature, value, rows) - exact) / span
        axes.hist(
            np.clip(gap, 1.1e-16, 1.0), bins=edges, histtype="step", color=COLOURS[k % 6],
            linewidth=1.5, label=inner.name,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="gap of a row, of its span", ylabel="rows")
    axes.legend()
    return axes


def _middle(
    inner: Inner, model: FactoredMDP, nature: Direction, value: FloatArray, rows: Any
) -> FloatArray:
    """Return the proven number of every row, the middle where both sides are."""
    below, above = np.full((2, model.rows), np.nan)
    inner.prepare(model, nature).backup(value, rows, below, above)
    low, high = below[rows], above[rows]
    both = np.isfinite(low) & np.isfinite(high)
    middle: FloatArray = np.where(np.isfinite(low), low, high)
    middle[both] = (low[both] + high[both]) / 2.0
    return middle


def new_axes() -> Any:
    """Return the axes of a new figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6.4, 4.2), layout="constrained").subplots()


if __name__ == "__main__":
    main()
