"""Sets that nature keeps to: boxes for some marginals of rows, each inside of the set there.

On the side of her guarantee nature may do without some of her members. What is proven of the model
with the smaller sets then holds of the model, too. That every box is inside is decided in
fractions, by its bounds or by its vertices.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from rfmdp.ragged import segment, segment_sum, starts
from rfmdp.types import FloatArray, IntArray
from rfmdp.verification.exact import ExactSet, Undecided
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.reading import Model
from rfmdp.verification.sets import BOX, L1, LP, SUM_OFF, Sets


def restricted(model: Model, fields: Fields) -> Model:
    """Return the model with the boxes of a file in place of some sets.

    Raises
    ------
    Fault
        If a box is not inside of the set in whose place it is.
    Undecided
        If these means do not tell.
    """
    places = fields.integers("places", end=len(model.row_marginals))
    need((np.diff(places) > 0).all(), "restriction: places must rise")
    replaced = model.row_marginals[places]
    sizes = model.sets.sizes[replaced]
    ptr = starts(sizes)
    lower, upper = (fields.floats(name, int(ptr[-1])) for name in ("lower", "upper"))
    fits = ((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all()
    need(fits, "restriction: must have bounds lower <= upper in [0, 1]")
    low, high = (segment_sum(side, ptr) - 1.0 for side in (lower, upper))
    need((low <= SUM_OFF).all() and (high >= -SUM_OFF).all(), "restriction: has an empty box")
    sets = _joined(model.sets, ptr, lower, upper)
    settled = sets.settled()
    outer: dict[int, ExactSet] = {}
    proven: set[tuple[int, bytes, bytes]] = set()
    for k, j in enumerate(replaced.tolist()):
        at = segment(ptr, k)
        box = j, lower[at].tobytes(), upper[at].tobytes()
        if box not in proven:
            outer.setdefault(j, ExactSet(settled, j))
            inner = ExactSet(settled, len(model.sets.kind) + k)
            need(_inside(inner, outer[j]), f"restriction: box {k} is not inside of its set")
            proven.add(box)
    taken: IntArray = model.row_marginals.copy()
    taken[places] = len(model.sets.kind) + np.arange(len(places))
    return replace(model, row_marginals=taken, sets=sets)


def _joined(sets: Sets, ptr: IntArray, lower: FloatArray, upper: FloatArray) -> Sets:
    """Return the sets, and some boxes after them."""
    count = len(ptr) - 1
    nothing = np.full(count, np.nan)
    return Sets(
        np.append(sets.ptr, sets.ptr[-1] + ptr[1:]), np.append(sets.kind, np.full(count, BOX)),
        np.append(sets.nominal, upper), np.append(sets.lower, lower), np.append(sets.upper, upper),
        np.append(sets.radius, nothing), np.append(sets.exponent, nothing),
        np.append(sets.corner_ptr, np.full(count, sets.corner_ptr[-1])), sets.corners,
    )  # fmt: skip


def _inside(inner: ExactSet, outer: ExactSet) -> bool:
    """Return whether a box or a point has members of a set only."""
    if inner.kind == BOX:
        bounds = zip(inner.lower, inner.upper, outer.lower, outer.upper, strict=True)
        if outer.kind == BOX and all(a <= low and high <= b for low, high, a, b in bounds):
            return True
    if not inner.vertices:
        raise Undecided
    return all(_has(outer, vertex) for vertex in inner.vertices)


def _has(uset: ExactSet, point: list[Fraction]) -> bool:
    """Return whether a set has a point; of polytopes only their corners are known."""
    if uset.kind == BOX:
        bounds = zip(uset.lower, point, uset.upper, strict=True)
        return all(low <= x <= high for low, x, high in bounds)
    if uset.kind not in (L1, LP):
        return point in uset.corners
    moved = [abs(x - c) for x, c in zip(point, uset.centre, strict=True)]
    if uset.exponent != int(uset.exponent) or uset.exponent > 64:
        raise Undecided
    power = int(uset.exponent)
    return sum(x**power for x in moved) <= uset.radius**power
