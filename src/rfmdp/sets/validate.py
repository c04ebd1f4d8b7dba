"""Everything that is wrong with packed sets: what constructors check of one set, for many at once.

Packed sets come from constructors, which check, but also from files and from callers who fill the
arrays themselves. A number that no constructor would let through gives bounds that are false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rfmdp.ragged import segment, segment_lengths
from rfmdp.rounding import SUM_OFF, SUM_TOLERANCE
from rfmdp.sets.boxes import Problem, box_problems, first_outcomes, range_problems, tighten
from rfmdp.sets.exact import excess
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.questions import bounds
from rfmdp.types import FloatArray

TYPES = {
    "outcome_ptr": np.int64,
    "kind": np.int8,
    "corner_ptr": np.int64,
}  # all others are float64


def problems(sets: Marginals) -> list[Problem]:
    """Return what is wrong with the numbers of packed sets whose arrays fit each other.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from rfmdp.sets.families import Interval
    >>> sets = Marginals.from_sets([Interval([0.2, 0.4], [0.6, 0.8])])
    >>> problems(sets)
    []
    >>> problems(replace(sets, upper=np.array([0.6, 7.0])))
    [(0, 'upper bounds must lie in [0, 1], outcome 1 has 7.0.')]
    """
    return [*_numbers(sets), *_balls(sets), *_corners(sets)]


def layout_problems(sets: Marginals) -> list[Problem]:
    """Return what is wrong with types, shapes, pointers and kinds of packed sets."""
    return list(_layout(sets))


def with_own_bounds(sets: Marginals) -> Marginals:
    """Return sets that have no problems, with their attainable bounds computed again.

    A file may state any bounds. Constructors compute those of a ball and make those of a box
    attainable; sets that come from constructors therefore stay as they are.
    """
    lower, upper = tighten(sets.outcome_ptr, sets.lower, sets.upper)
    box = np.repeat(sets.kind == Kind.BOX, sets.sizes)
    lower, upper = np.where(box, lower, sets.lower), np.where(box, upper, sets.upper)
    for j in np.flatnonzero((sets.kind != Kind.SINGLETON) & ~np.isnan(sets.exponent)):
        outcomes = segment(sets.outcome_ptr, j)
        lower[outcomes], upper[outcomes] = bounds(sets[int(j)])
    return replace(sets, lower=lower, upper=upper)


def _layout(sets: Marginals) -> Iterator[Problem]:
    count, outcomes, corners = sets.kind.size, sets.nominal.size, sets.corners.size
    shapes: dict[str, tuple[int, ...]] = {
        "outcome_ptr": (count + 1,),
        "kind": (count,),
        "nominal": (outcomes,),
        "lower": (outcomes,),
        "upper": (outcomes,),
        "radius": (count,),
        "exponent": (count,),
        "corner_ptr": (count + 1,),
        "corners": (corners,),
    }
    if sets.stated is not None:
        shapes["stated"] = (2, outcomes)
    whole = True
    for name, shape in shapes.items():
        array = getattr(sets, name)
        dtype = TYPES.get(name, np.float64)
        if array.shape != shape or array.dtype != dtype:
            whole = False
            kind = np.dtype(dtype).name
            value = f"got {array.dtype} of the shape {array.shape}"
            yield -1, f"{name} must be {kind} of the shape {shape}, {value}."
    if not whole:
        return
    for name, least, end in (("outcome_ptr", 1, outcomes), ("corner_ptr", 0, corners)):
        pointers = getattr(sets, name)
        falls = np.flatnonzero((pointers[1:] < pointers[:-1]) | (segment_lengths(pointers) < least))
        if pointers[0] != 0 or pointers[-1] != end or falls.size:
            where = int(falls[0]) if falls.size else -1
            yield where, f"{name} must rise from 0 to {end}, by at least {least}."
    listed = np.isin(sets.kind, list(Kind))
    for j in np.flatnonzero(~listed):
        yield int(j), f"its kind must be within 0..{max(Kind)}, got {sets.kind[j]}."


def _numbers(sets: Marginals) -> Iterator[Problem]:
    """Yield what is wrong with bounds and nominal members."""
    ptr, lower, upper, centre = sets.outcome_ptr, sets.lower, sets.upper, sets.nominal
    if sets.stated is not None:
        yield from range_problems(ptr, "stated lower bounds", sets.stated[0])
        yield from range_problems(ptr, "stated upper bounds", sets.stated[1])
    below, above, off = (excess(values, ptr) for values in (lower, upper, centre))
    # no bound rests on the nominal member of a box or of a polytope
    free = np.isin(sets.kind, [Kind.BOX, Kind.POLYTOPE]) & np.isnan(sets.exponent)
    off_one = np.abs(off) > np.where(free, SUM_TOLERANCE, SUM_OFF)
    wrong_sums = below > SUM_OFF, above < -SUM_OFF, off_one
    yield from box_problems(ptr, lower, upper, centre, wrong_sums)
    single = np.repeat(sets.kind == Kind.SINGLETON, sets.sizes)
    yield from first_outcomes(
        ptr,
        single & ((lower != centre) | (upper != centre)),
        lambda at, i: f"a known distribution must be its own bounds, outcome {i} has others.",
    )


def _balls(sets: Marginals) -> Iterator[Problem]:
    """Yield what is wrong with radii and exponents."""
    kind, radius, exponent = sets.kind, sets.radius, sets.exponent
    for family, holds, what in (
        (Kind.L1, exponent == 1.0, "the exponent of an L1 ball must be 1"),
        (Kind.LP, (exponent > 1.0) & np.isfinite(exponent), "the exponent must be > 1 and finite"),
        (Kind.BOX, np.isnan(exponent) | (exponent == np.inf), "a box must have no exponent"),
    ):
        for j in np.flatnonzero((kind == family) & ~holds):
            yield int(j), f"{what}, got {exponent[j]}."
    ball = np.isin(kind, [Kind.L1, Kind.LP]) | ~np.isnan(exponent)
    for j in np.flatnonzero(ball & ~((radius >= 0.0) & np.isfinite(radius))):
        yield int(j), f"its radius must be >= 0, got {radius[j]}."


def _corners(sets: Marginals) -> Iterator[Problem]:
    """Yield what is wrong with vertices of polytopes."""
    for j in np.flatnonzero(sets.kind == Kind.POLYTOPE):
        corners = sets.corners[segment(sets.corner_ptr, j)]
        outcomes = segment(sets.outcome_ptr, j)
        lower, upper = sets.lower[outcomes], sets.upper[outcomes]
        fault = _polytope(corners, len(lower), lower, upper)
        if fault:
            yield int(j), fault


def _polytope(corners: FloatArray, size: int, lower: FloatArray, upper: FloatArray) -> str:
    """Return what is wrong with the vertices of a polytope, or nothing."""
    if len(corners) == 0 or len(corners) % size:
        return f"vertices must have {size} entries each, got {len(corners)} in all."
    vertices = corners.reshape(-1, size)
    if not np.all((vertices >= 0.0) & (vertices <= 1.0)):
        return "vertices must have entries in [0, 1]."
    ptr = np.arange(0, len(corners) + 1, size)
    if np.any(np.abs(excess(corners, ptr)) > SUM_OFF):
        return "the entries of every vertex must sum to 1."
    if np.any(vertices.min(axis=0) != lower) or np.any(vertices.max(axis=0) != upper):
        return "bounds must be those of the vertices."
    return ""
