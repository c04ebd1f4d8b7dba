"""Random sets, and slow exact twins in fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from rfmdp.ragged import segment
from rfmdp.sets.families import Interval, L1Ball, LinfBall, Polytope, Singleton

GRAIN = 16  # probabilities k / 16 are floats: what integers say of them holds exactly


@st.composite
def grains(draw, least=1, most=5):
    """Integers >= 0 that sum to GRAIN: a distribution with many ties and zeros."""
    size = draw(st.integers(least, most))
    cuts = sorted(draw(st.lists(st.integers(0, GRAIN), min_size=size - 1, max_size=size - 1)))
    return np.diff([0, *cuts, GRAIN])


@st.composite
def grain_boxes(draw, most=5):
    """Integer bounds (lower, upper) of a non-empty box; degenerate ones are common."""
    p = draw(grains(most=most))
    down = draw(st.lists(st.integers(0, 8), min_size=len(p), max_size=len(p)))
    up = draw(st.lists(st.integers(0, 8), min_size=len(p), max_size=len(p)))
    return np.maximum(p - down, 0), np.minimum(p + up, GRAIN)


@st.composite
def float_boxes(draw, most=5):
    """Bounds in general position around a random distribution."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p = rng.dirichlet(np.ones(draw(st.integers(1, most))))
    width = rng.uniform(0.0, 0.4, size=(2, len(p)))
    return Interval(np.maximum(p - width[0], 0.0), np.minimum(p + width[1], 1.0), p)


def boxes():
    """Draw intervals on the grid and in general position."""
    on_grid = grain_boxes().map(lambda box: Interval(box[0] / GRAIN, box[1] / GRAIN))
    return st.one_of(on_grid, float_boxes())


@st.composite
def balls(draw, family=L1Ball):
    """L1 or L-infinity balls, with zero entries and radii beyond the simplex."""
    p = draw(grains()) / GRAIN
    radius = draw(st.one_of(st.integers(0, 45).map(lambda k: k / GRAIN), st.floats(0.0, 2.5)))
    return family(p, radius)


def polytopes():
    """Hulls of points on the grid: repeated and redundant ones are common."""
    return (
        st.integers(1, 4)
        .flatmap(lambda k: st.lists(grains(least=k, most=k), min_size=1, max_size=6))
        .map(lambda points: Polytope(np.array(points) / GRAIN))
    )


def finite_sets():
    """Draw all families with finitely many vertices."""
    points = grains().map(lambda p: Singleton(p / GRAIN))
    return st.one_of(points, boxes(), balls(), balls(LinfBall), polytopes())


def exact_box_vertices(lower, upper, total=GRAIN):
    """Return the vertices of an integer box by trying every choice: a set of tuples."""
    found = set()
    for k in range(len(lower)):
        ends = [(l, u) for i, (l, u) in enumerate(zip(lower, upper, strict=True)) if i != k]
        for rest in itertools.product(*ends):
            free = total - sum(rest)
            if lower[k] <= free <= upper[k]:
                found.add((*map(int, rest[:k]), int(free), *map(int, rest[k:])))
    return found


def exact_polytope_vertices(matrix, bound):
    """Return the vertices of {p in simplex, matrix p <= bound} by all bases, in fractions."""
    size = len(matrix[0])
    rows = [[Fraction(int(i == k)) * -1 for i in range(size)] for k in range(size)]
    rows += [[Fraction(a) for a in row] for row in matrix]
    limits = [Fraction(0)] * size + [Fraction(b) for b in bound]
    found = set()
    for chosen in itertools.combinations(range(len(rows)), size - 1):
        system = [[Fraction(1)] * size + [Fraction(1)]]
        system += [[*rows[c], limits[c]] for c in chosen]
        p = _solve(system)
        if p and all(
            sum(a * x for a, x in zip(row, p, strict=True)) <= limit
            for row, limit in zip(rows, limits, strict=True)
        ):
            found.add(tuple(p))
    return found


def _solve(system):
    """Solve a square system [A | b] of fractions; None if it is singular."""
    size = len(system)
    for k in range(size):
        pivot = next((i for i in range(k, size) if system[i][k] != 0), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [x / system[k][k] for x in system[k]]
        for i in range(size):
            if i != k and system[i][k] != 0:
                factor = system[i][k]
                system[i] = [x - factor * y for x, y in zip(system[i], system[k], strict=True)]
    return [row[-1] for row in system]


def as_grains(points, grain=GRAIN):
    """Return points as a set of integer tuples, after checking that they lie on the grid."""
    scaled = np.asarray(points) * grain
    assert np.allclose(scaled, np.rint(scaled), atol=1e-9)
    tuples = [tuple(int(x) for x in row) for row in np.rint(scaled)]
    assert len(set(tuples)) == len(tuples), "a vertex appears twice"
    return set(tuples)


def listed(found, j):
    """Return all supports of marginal j, the minimal ones first."""
    places = range(found.support_ptr[j], found.support_ptr[j + 1])
    return [tuple(found.members[segment(found.member_ptr, b)].tolist()) for b in places]


def listed_minimal(found, j):
    """Return the minimal supports of marginal j."""
    return listed(found, j)[: found.minimal_end[j] - found.support_ptr[j]]
