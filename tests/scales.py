"""Random sets with numbers at all scales, and what they are, in integers.

A distribution is a tuple of integers; it stands for these divided by their sum. So nothing is
rounded, and nothing is divided before two numbers are compared. This is the definition of
`docs/soundness.md` once more, in the plainest words, without code of the library.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton

TINY = [5e-324, 1e-310, 1e-300, 1e-200, 1e-100, 1e-40, 2.0**-60, 1e-17, 1e-16, 2e-14, 5e-13, 1e-12]


def units(*vectors):
    """Return vectors of floats as integers, all times one power of two, and that power."""
    ratios = [[float(x).as_integer_ratio() for x in vector] for vector in vectors]
    one = max(below for vector in ratios for _, below in vector)
    return [[above * (one // below) for above, below in vector] for vector in ratios], one


def corners(uset):
    """Return the vertices of a set (perhaps some points more) as tuples of integers."""
    if isinstance(uset, Singleton):
        (point,), _ = units(uset.nominal)
        return {tuple(point)}
    if isinstance(uset, Interval):
        return _box(uset.lower, uset.upper)
    if isinstance(uset, Polytope):
        return {tuple(point) for point in units(*uset.vertices)[0]}
    assert isinstance(uset, LpBall)
    if uset.exponent == np.inf:
        low = np.maximum(uset.nominal - uset.radius, 0.0)
        return _box(low, np.minimum(uset.nominal + uset.radius, 1.0))
    assert uset.exponent == 1.0
    return _l1(uset.nominal, uset.radius)


def _box(lower, upper):
    (low, high), one = units(lower, upper)
    if sum(low) >= one:
        return {tuple(low)}
    if sum(high) <= one:
        return {tuple(high)}
    found = set()
    for k in range(len(low)):
        ends = [{l, u} for l, u in zip(low, high, strict=True)]
        for rest in itertools.product(*ends[:k], *ends[k + 1 :]):
            free = one - sum(rest)
            if low[k] <= free <= high[k]:
                found.add((*rest[:k], free, *rest[k:]))
    return found


def _l1(nominal, radius):
    size = len(nominal)
    if radius >= 2.0:
        return {tuple(int(i == k) for i in range(size)) for k in range(size)}
    (centre, (reach,)), _ = units(nominal, [radius])
    found = set()
    for receiver in range(size):
        others = [k for k in range(size) if k != receiver]
        for order in itertools.permutations(others):
            p = [2 * x for x in centre]
            left = min(reach, sum(p[k] for k in others))
            p[receiver] += left
            for k in order:
                take = min(left, p[k])
                p[k] -= take
                left -= take
            found.add(tuple(p))
    return found


def faces(uset):
    """Return the sets of outcomes on which some member lives; all of them, by definition."""
    size = uset.size
    subsets = [
        frozenset(b) for n in range(1, size + 1) for b in itertools.combinations(range(size), n)
    ]
    if isinstance(uset, LpBall) and 1.0 < uset.exponent < np.inf:
        return {b for b in subsets if _reached(uset, b)}
    supports = [frozenset(i for i, x in enumerate(p) if x > 0) for p in corners(uset)]
    return {b for b in subsets if any(s <= b for s in supports)}


def _reached(uset, kept):
    """Return whether an Lp ball with an integer exponent meets a face, in fractions."""
    power = int(uset.exponent)
    lost = [Fraction(float(x)) for i, x in enumerate(uset.nominal) if i not in kept]
    side = sum((x**power for x in lost), Fraction(0))
    side += sum(lost, Fraction(0)) ** power / Fraction(len(kept)) ** (power - 1)
    return side <= Fraction(uset.radius) ** power


def distribution(rng, size):
    """Return numbers that sum to one, or nearly: grids, general position, tiny and just off."""
    kind = rng.integers(5)
    if kind == 0:
        p = rng.multinomial(16, np.full(size, 1 / size)) / 16
    elif kind == 1:
        p = rng.multinomial(10, np.full(size, 1 / size)) / 10
    elif kind == 2:
        p = rng.dirichlet(np.full(size, rng.choice([0.2, 1.0])))
    else:
        p = rng.choice([0.0, *TINY], size)
        p[rng.integers(size)] = 1.0 if kind == 3 else 0.0
        p[np.argmax(p)] = max(0.0, 1.0 - float(np.sort(p)[:-1].sum()))
    if rng.random() < 0.3:
        p = p * (1.0 + rng.uniform(-9e-10, 9e-10))
    return np.clip(nudged(rng, p), 0.0, 1.0)


def nudged(rng, values):
    """Return values, some of them moved to a neighbour in the last bit or by a tiny number."""
    values = np.array(values, dtype=np.float64)
    for i in np.flatnonzero(rng.random(values.shape) < 0.2):
        if rng.random() < 0.5:
            values[i] = np.nextafter(values[i], rng.choice([0.0, 2.0]))
        else:
            values[i] += rng.choice([-1.0, 1.0]) * rng.choice(TINY)
    return values


def edge(rng, p):
    """Return a radius that is zero, tiny, large, or meets a face of the simplex to the last bit."""
    lost = float(p[rng.random(len(p)) < 0.5].sum())
    radius = rng.choice([0.0, *TINY[:6], 1e-16, lost, 2.0 * lost, rng.uniform(0, 1.5), 2.0, 3.0])
    return float(np.abs(nudged(rng, [radius])[0]))


def random_set(rng, size, smooth=False):
    """Return a set of a random family, with finitely many vertices unless `smooth`."""
    while True:
        try:
            return _draw(rng, size, smooth)
        except ModelError:  # nudged out of what is taken for a set
            continue


def _draw(rng, size, smooth):
    p = distribution(rng, size)
    if smooth:
        return LpBall(p, edge(rng, p), float(rng.choice([2.0, 3.0, 7.0])))
    kind = rng.integers(7)
    if kind == 0:
        return Singleton(p)
    if kind == 1:
        return L1Ball(p, edge(rng, p))
    if kind == 2:
        return LinfBall(p, edge(rng, p))
    if kind == 3:
        points = [p, np.clip(nudged(rng, p), 0, 1), distribution(rng, size)]
        return Polytope(np.array(points)[: rng.integers(1, 4)])
    widths = rng.choice([0.0, 0.0, *TINY, 0.1, 0.125, 0.5, 1.0], (2, size))
    lower = np.clip(nudged(rng, np.where(rng.random(size) < 0.3, 0.0, p - widths[0])), 0, 1)
    upper = np.clip(nudged(rng, np.where(rng.random(size) < 0.3, 1.0, p + widths[1])), 0, 1)
    return Interval(np.minimum(lower, upper), np.maximum(lower, upper))
