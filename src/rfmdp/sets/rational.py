"""Boxes and products in fractions: what they are, with nothing rounded.

Every number is a `Fraction`: a float stands for the dyadic number that it is, and a distribution
for itself divided by its sum (see `families`). Slow and obvious: for thresholds that a value meets
exactly, where nature's best product is the best of all products of vertices (Theorem 1 of the
paper), and as the twin of kernels in tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

Vector: TypeAlias = tuple[Fraction, ...]
Number: TypeAlias = Fraction | float


def fractions(numbers: Iterable[Number]) -> Vector:
    """Return numbers as fractions, floats as what they stand for."""
    return tuple(Fraction(x) for x in numbers)


def normalised(numbers: Sequence[Fraction]) -> Vector:
    """Return the distribution that some numbers stand for."""
    total = sum(numbers, Fraction(0))
    return tuple(x / total for x in numbers)


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
