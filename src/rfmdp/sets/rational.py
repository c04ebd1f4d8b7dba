"""Sets and nature's best product in fractions: what they are, with nothing rounded.

Every number is a `Fraction`: a float stands for the dyadic number that it is, and a distribution
for itself divided by its sum (see `families`). Slow and obvious: for thresholds that a value meets
exactly, and as the twin of kernels in tests.

The example of the paper, p in [0.2, 0.6] and q in [0.1, 0.3]:

>>> p, q = [("0.2", "0.4"), ("0.6", "0.8")], [("0.1", "0.7"), ("0.3", "0.9")]
>>> sets = [box_vertices(*[[Fraction(x) for x in end] for end in box]) for box in (p, q)]
>>> str(product_minimum(sets, fractions([0, 3, 1, 2]))[0])
'89/50'
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

Vector: TypeAlias = tuple[Fraction, ...]
Number: TypeAlias = Fraction | float
Vertices: TypeAlias = Sequence[Vector]


def fractions(numbers: Iterable[Number]) -> Vector:
    """Return numbers as fractions, floats as what they stand for."""
    return tuple(Fraction(x) for x in numbers)


def normalised(numbers: Sequence[Fraction]) -> Vector:
    """Return the distribution that some numbers stand for."""
    total = sum(numbers, Fraction(0))
    return tuple(x / total for x in numbers)


def expectation(p: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Return p.v."""
    return sum((x * v for x, v in zip(p, values, strict=True)), Fraction(0))


def product(points: Sequence[Sequence[Fraction]]) -> Vector:
    """Return the product distribution of independent marginals, in C order."""
    return tuple(math.prod(entries, start=Fraction(1)) for entries in itertools.product(*points))


def box_vertices(lower: Sequence[Number], upper: Sequence[Number]) -> list[Vector]:
    """Return the vertices of {lower <= p <= upper, sum p = 1}: all entries but one at a bound.

    Bounds that leave no room, or none at all because of rounding, stand for a distribution.
    """
    low, high = fractions(lower), fractions(upper)
    if sum(low) >= 1 or sum(high) <= 1:
        return [normalised(low if sum(low) >= 1 else high)]
    ends = [sorted({l, u}) for l, u in zip(low, high, strict=True)]
    corners = set()
    for k in range(len(low)):
        for rest in itertools.product(*ends[:k], *ends[k + 1 :]):
            free = 1 - sum(rest, Fraction(0))
            if low[k] <= free <= high[k]:
                corners.add((*rest[:k], free, *rest[k:]))
    return sorted(corners)


def product_minimum(
    sets: Sequence[Vertices], tensor: Sequence[Fraction]
) -> tuple[Fraction, list[Vector]]:
    """Return min { sum A p1 ... pn } over the product of hulls, and attaining vertices.

    Every product of vertices is tried (Theorem 1 of the paper): for each vertex of the first
    set, contract the tensor by it and solve the rest.
    """
    if not sets:
        return tensor[0], []
    first, rest = sets[0], sets[1:]
    best: tuple[Fraction, list[Vector]] | None = None
    for corner in first:
        value, points = product_minimum(rest, contract_first(corner, tensor))
        if best is None or value < best[0]:
            best = value, [corner, *points]
    assert best is not None, "a set has at least one vertex"
    return best


def contract_first(p: Sequence[Fraction], tensor: Sequence[Fraction]) -> list[Fraction]:
    """Return the expectation over the first axis, entry by entry of the others."""
    size = len(tensor) // len(p)
    return [expectation(p, tensor[j::size]) for j in range(size)]
