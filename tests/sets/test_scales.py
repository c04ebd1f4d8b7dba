"""Sets with numbers at all scales: supports, vertices and minimisers against integers."""

from fractions import Fraction

import numpy as np
import pytest

from rfmdp.rounding import TERM, UNIT
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.supports import supports
from rfmdp.sets.vertices import vertices_bulk
from scales import corners, faces, random_set
from set_twins import minimise, packed_vertices as vertices

from .strategies import listed, listed_minimal

SEEDS = [*range(10), *(pytest.param(k, marks=pytest.mark.slow) for k in range(10, 20))]
COUNT = 40


def drawn(seed, smooth=False):
    """Return random sets and a generator."""
    rng = np.random.default_rng([seed, smooth])
    return rng, [random_set(rng, int(rng.integers(1, 5)), smooth) for _ in range(COUNT)]


def minimal(sets):
    return {a for a in sets if not any(b < a for b in sets)}


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_supports_are_exact(seed, smooth):
    """Both families, and what is possible, are those of the definition."""
    _, sets = drawn(seed, smooth)
    found = supports(Marginals.from_sets(sets))
    for j, uset in enumerate(sets):
        feasible = faces(uset)
        if not smooth:
            exact = {frozenset(i for i, x in enumerate(p) if x > 0) for p in corners(uset)}
            assert set(map(frozenset, listed(found, j))) <= _unions(exact)
        assert set(map(frozenset, listed_minimal(found, j))) == minimal(feasible), uset
        taken = frozenset().union(*listed(found, j))
        start, end = found.support_ptr[j], found.support_ptr[j + 1]
        assert found.flexible[j] == (end - start > 1 or len(minimal(feasible)) > 1)
        for outcome in taken:
            containing = [b for b in map(frozenset, listed(found, j)) if outcome in b]
            assert containing, "every possible outcome has a support"


def _unions(sets):
    """Return all unions of some sets."""
    found = set(sets)
    while True:
        more = found | {a | b for a in found for b in found}
        if more == found:
            return found
        found = more


@pytest.mark.parametrize("seed", SEEDS)
def test_vertices_are_exact(seed):
    """Every exact vertex has one of ours with its support, a few units of roundoff away."""
    _, sets = drawn(seed)
    ptr, flat = vertices_bulk(Marginals.from_sets(sets), np.arange(len(sets)))
    for j, uset in enumerate(sets):
        listed = vertices(uset)
        packed = flat[ptr[j] : ptr[j + 1]].reshape(-1, uset.size)
        assert np.array_equal(np.unique(packed, axis=0), np.unique(listed, axis=0))
        exact = [[Fraction(x, sum(p)) for x in p] for p in corners(uset)]
        ours = [[Fraction(x) for x in p] for p in listed.tolist()]
        for p in exact:
            assert any(_same(p, q) for q in ours), uset
        hull = {frozenset(i for i, x in enumerate(p) if x > 0) for p in exact}
        for q in ours:
            assert frozenset(i for i, x in enumerate(q) if x > 0) in hull, uset


def _same(p, q):
    """Return whether two points have one support and differ by rounding and merging only."""
    near = 10 * Fraction(UNIT)
    return all((x > 0) == (y > 0) and abs(x - y) <= near for x, y in zip(p, q, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_minima_are_those_of_the_exact_vertices(seed):
    """The oracle's value is within the margin of a backup, whatever the scale of the values."""
    rng, sets = drawn(seed)
    for uset in sets:
        scale = 10.0 ** rng.uniform(-300, 300)
        values = scale * rng.choice([-1.0, 0.0, 0.5, 1.0, 1.0 + 2.0**-52, rng.random()], uset.size)
        value, _ = minimise(uset, values - values[0])
        exact = [Fraction(float(v - values[0])) for v in values]
        least = min(
            sum(x * v for x, v in zip(p, exact, strict=True)) / sum(p) for p in corners(uset)
        )
        span = max(exact) - min(exact)
        margin = Fraction(TERM) * span + Fraction(2) ** -1074  # products may be subnormal
        assert abs(Fraction(value) - least) <= uset.size * margin
