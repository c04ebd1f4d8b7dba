"""Slow, obvious, exact twins of the kernels, in fractions; for tests and documentation.

Every number is a `Fraction`: a float stands for the dyadic number that it is, and nothing is
rounded. All functions minimise; nature maximising is `-f(sets, -values)`. Probabilities of a
model sum to one up to rounding only, so an expectation is taken relative to the first value,
as the kernels do: v[0] + sum_k p[k] (v[k] - v[0]).

The example of the paper, p in [0.2, 0.6] and q in [0.1, 0.3], with values for which interval
arithmetic answers with the distribution (0.18, 0.14, 0.24, 0.44), which is no product:

>>> p, q = [("0.2", "0.4"), ("0.6", "0.8")], [("0.1", "0.7"), ("0.3", "0.9")]
>>> sets = [box_vertices(*[[Fraction(x) for x in end] for end in box]) for box in (p, q)]
>>> values = fractions([0, 3, 1, 2])
>>> str(interval_arithmetic(sets, range(4), values)), str(product_minimum(sets, values)[0])
('77/50', '89/50')
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from rfmdp.errors import UnsupportedError
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton

Vector: TypeAlias = tuple[Fraction, ...]
Number: TypeAlias = Fraction | float
Vertices: TypeAlias = Sequence[Vector]


def fractions(numbers: Iterable[Number]) -> Vector:
    """Return numbers as fractions, floats as what they stand for."""
    return tuple(Fraction(x) for x in numbers)


def expectation(p: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Return v[0] + sum p (v - v[0]), which is p.v if p sums to one."""
    first = values[0]
    terms = (x * (v - first) for x, v in zip(p, values, strict=True))
    return first + sum(terms, Fraction(0))


def product(points: Sequence[Sequence[Fraction]]) -> Vector:
    """Return the product distribution of independent marginals, in C order."""
    return tuple(math.prod(entries, start=Fraction(1)) for entries in itertools.product(*points))


def box_vertices(lower: Sequence[Number], upper: Sequence[Number]) -> list[Vector]:
    """Return the vertices of {lower <= p <= upper, sum p = 1}: all entries but one at a bound.

    If rounding made the box empty, the nearest point in the direction of all entries is returned.
    """
    low, high = fractions(lower), fractions(upper)
    ends = [sorted({l, u}) for l, u in zip(low, high, strict=True)]
    found = set()
    for k in range(len(low)):
        for rest in itertools.product(*ends[:k], *ends[k + 1 :]):
            free = 1 - sum(rest, Fraction(0))
            if low[k] <= free <= high[k]:
                found.add((*rest[:k], free, *rest[k:]))
    return sorted(found) or [low if sum(low) > 1 else high]


def box_bounds(lower: Sequence[Number], upper: Sequence[Number]) -> tuple[Vector, Vector]:
    """Return the bounds of a box that its members attain."""
    corners = box_vertices(lower, upper)
    columns = list(zip(*corners, strict=True))
    return tuple(map(min, columns)), tuple(map(max, columns))


def l1_vertices(nominal: Sequence[Number], radius: Number) -> list[Vector]:
    """Return points among which are all vertices of {p : sum |p - nominal| <= radius}.

    One entry receives radius / 2, as far as there is room; the others give it, in every order.
    """
    centre, move = fractions(nominal), Fraction(radius) / 2
    found = {centre}
    for receiver in range(len(centre)):
        others = [k for k in range(len(centre)) if k != receiver]
        for order in itertools.permutations(others):
            p, left = list(centre), min(move, sum((centre[k] for k in others), Fraction(0)))
            p[receiver] += left
            for k in order:
                take = min(left, p[k])
                p[k] -= take
                left -= take
            found.add(tuple(p))
    return sorted(found)


def vertices(uset: object) -> Vertices:
    """Return the vertices of a set, exactly; `UnsupportedError` if it has infinitely many."""
    if isinstance(uset, Singleton):
        return [fractions(uset.nominal.tolist())]
    if isinstance(uset, Interval):
        return box_vertices(uset.lower.tolist(), uset.upper.tolist())
    if isinstance(uset, Polytope):
        return [fractions(corner) for corner in uset.vertices.tolist()]
    if isinstance(uset, LpBall) and uset.exponent == 1.0:
        return l1_vertices(uset.nominal.tolist(), uset.radius)
    if isinstance(uset, LpBall) and math.isinf(uset.exponent):
        centre, radius = fractions(uset.nominal.tolist()), Fraction(uset.radius)
        return box_vertices(
            [max(x - radius, Fraction(0)) for x in centre],
            [min(x + radius, Fraction(1)) for x in centre],
        )
    raise UnsupportedError(f"{uset!r} has no exact vertices.")


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


def coordinate_descent(
    sets: Sequence[Vertices], tensor: Sequence[Fraction], points: Sequence[Vector]
) -> tuple[Fraction, list[Vector]]:
    """Improve one marginal at a time until none improves: a product that no single move betters."""
    found = list(points)
    best = expectation(product(found), tensor)
    quiet = 0
    for k in itertools.cycle(range(len(sets))):
        if quiet == len(sets):
            break
        value, corner = minimum(sets[k], _slices(found, k, tensor))
        quiet += 1
        if value < best:
            best, found[k], quiet = value, corner, 0
    return best, found


def _slices(points: Sequence[Vector], keep: int, tensor: Sequence[Fraction]) -> list[Fraction]:
    """Return the expectation of every slice of axis `keep`, the other marginals given."""
    outcomes = range(len(points[keep]))
    at = [
        [*points[:keep], tuple(Fraction(int(i == k)) for i in outcomes), *points[keep + 1 :]]
        for k in outcomes
    ]
    return [expectation(product(choice), tensor) for choice in at]
