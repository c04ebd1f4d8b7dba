"""Slow, obvious, exact twins of the kernels, in fractions.

The example of the paper, with values for which interval arithmetic answers with the distribution
(0.18, 0.14, 0.24, 0.44), which is no product:

>>> from set_twins import box_corners, fractions
>>> p, q = [("0.2", "0.4"), ("0.6", "0.8")], [("0.1", "0.7"), ("0.3", "0.9")]
>>> sets = [box_corners(*box) for box in (p, q)]
>>> str(interval_arithmetic(sets, range(4), fractions([0, 3, 1, 2])))
'77/50'
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rfmdp.sets.vertices import Vector, product
from set_twins import Vertices, expectation


def bounds(corners: Vertices) -> tuple[Vector, Vector]:
    """Return the least and the largest value of every entry over the hull of some points."""
    columns = list(zip(*corners, strict=True))
    return tuple(map(min, columns)), tuple(map(max, columns))


def minimum(corners: Vertices, values: Sequence[Fraction]) -> tuple[Fraction, Vector]:
    """Return the least expectation over the hull of some points, and the first that attains it."""
    best = min(corners, key=lambda p: expectation(p, values))
    return expectation(best, values), best


def greedy(
    lower: Sequence[Fraction], upper: Sequence[Fraction], values: Sequence[Fraction]
) -> tuple[Fraction, Vector]:
    """Return the least expectation over a box: free mass goes to the lowest values [Givan2000]."""
    p, mass = list(lower), 1 - sum(lower)
    for k in sorted(range(len(values)), key=lambda k: values[k]):
        take = min(mass, upper[k] - lower[k])
        p[k] += take
        mass -= take
    return expectation(p, values), tuple(p)


def sequential(sets: Sequence[Vertices], tensor: Sequence[Fraction]) -> Fraction:
    """Return the relaxation in which nature sees the outcomes of earlier factors.

    The last axis is minimised fibre by fibre, then the one before, and so on.
    """
    values = list(tensor)
    for corners in reversed(sets):
        d = len(corners[0])
        values = [minimum(corners, values[at : at + d])[0] for at in range(0, len(values), d)]
    return values[0]


def interval_arithmetic(
    sets: Sequence[Vertices], successors: Sequence[int], values: Sequence[Fraction]
) -> Fraction:
    """Return the relaxation of PRISM and Storm for one row.

    A joint outcome has the products of its marginals' bounds; outcomes that reach one successor
    add their intervals up, to at most one; then one greedy over the successors.
    """
    ends = [bounds(corners) for corners in sets]
    lower, upper = product([low for low, _ in ends]), product([high for _, high in ends])
    reached = sorted(set(successors))
    joined = [
        [sum((x for x, s in zip(side, successors, strict=True) if s == t), Fraction(0))
         for t in reached]
        for side in (lower, upper)
    ]  # fmt: skip
    capped = [min(x, Fraction(1)) for x in joined[1]]
    return greedy(joined[0], capped, [values[t] for t in reached])[0]
