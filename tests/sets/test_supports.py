import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half
from outer.games import random_set, support_members
from rfmdp.errors import UnsupportedError
from rfmdp.kernels import graph as kernels
from rfmdp.sets import supports as kinds
from rfmdp.sets.families import Interval, L1Ball, LpBall, Polytope, Singleton
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.supports import digits, supports

from .strategies import listed, listed_minimal


def families(uset):
    """Return (minimal, all) supports as sets of frozensets, each listed once."""
    found = supports(Marginals.from_sets([uset]))
    everything = [frozenset(b) for b in listed(found, 0)]
    assert len(set(everything)) == len(everything)
    return {frozenset(b) for b in listed_minimal(found, 0)}, set(everything)


def minimal(sets):
    return {a for a in sets if not any(b < a for b in sets)}


def wanted(attainable, size):
    """Return both families from all attainable supports."""
    everything = set()
    for o in range(size):
        everything |= minimal({b for b in attainable if o in b})
    return minimal(attainable), everything


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_families_are_those_of_the_vertices(seed, size):
    """Both families follow from the supports of all mixtures of vertices."""
    uset = random_set(np.random.default_rng(seed), size)
    attainable = {frozenset(np.flatnonzero(p > 0).tolist()) for p in support_members(uset)}
    assert families(uset) == wanted(attainable, size)


def projection_distance(point, face, exponent, rng):
    """Return the smallest distance to distributions on `face`, found by random descent."""
    best = np.zeros(len(point))
    best[face] = point[face] + (1.0 - point[face].sum()) / len(face)
    distance = np.linalg.norm(best - point, exponent)
    for step in 0.3 ** np.arange(1, 8):
        for _ in range(8):
            p = best.copy()
            p[face] = np.abs(p[face] + step * rng.normal(size=len(face)))
            p /= p.sum()
            other = np.linalg.norm(p - point, exponent)
            assert other >= distance - 1e-12, "the even spread is the projection"
    return distance


@half
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_ball_supports_are_the_faces_in_reach(seed, size, exponent):
    """A face is a support of an Lp ball if its projection is within the radius."""
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.full(size, 0.7))
    radius = float(rng.uniform(0.05, 1.2))
    attainable = set()
    for count in range(1, size + 1):
        for face in itertools.combinations(range(size), count):
            if projection_distance(point, list(face), exponent, rng) <= radius:
                attainable.add(frozenset(face))
    assert families(LpBall(point, radius, exponent)) == wanted(attainable, size)


def test_known_families():
    """Worked examples of every family; 0.1 + 0.2 is more than 0.3, so that one is touched."""
    assert families(Singleton([0.5, 0.0, 0.5])) == ({frozenset({0, 2})},) * 2
    third = Interval([0.0, 0.0, 0.0], [0.1 + 0.2, 0.7, 0.4])
    assert families(third)[0] == {frozenset({0, 1}), frozenset({1, 2})}
    assert families(Interval([0.0] * 3, [1.0] * 3))[1] == {frozenset({o}) for o in range(3)}
    assert families(L1Ball([0.8, 0.2], 0.4)) == (
        {frozenset({0})},
        {frozenset({0}), frozenset({0, 1})},
    )
    corners = Polytope([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert families(corners)[0] == {frozenset({0}), frozenset({1, 2})}


def test_positive_lower_bounds_need_no_enumeration():
    """A large marginal without zero bounds has one support; with them it is refused by name."""
    size = 100
    rigid = Interval(np.full(size, 0.001), np.full(size, 0.5))
    assert families(rigid)[1] == {frozenset(range(size))}
    with pytest.raises(
        UnsupportedError, match=r"Marginal 1: nature can .* more than 62 outcomes, but neither"
    ):
        supports(Marginals.from_sets([rigid, Interval(np.zeros(size), np.full(size, 0.5))]))
    with pytest.raises(UnsupportedError, match=r"Marginal 0: .* 131072"):
        supports(Marginals.from_sets([Interval(np.zeros(40), np.full(40, 0.1))]))


@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
def test_large_sets_have_the_families_of_small_ones(seed, size, ball):
    """What is written down without enumeration for large sets is what small ones enumerate."""
    rng = np.random.default_rng(seed)
    point = rng.multinomial(4, np.full(size, 1 / size)) / 4
    radius = rng.choice([0.25, 0.5, 1.0, 1.5, 2.0])
    slack = np.clip(point - radius / 2, 0, 1), np.clip(point + rng.integers(0, 5, size) / 4, 0, 1)
    uset = L1Ball(point, radius) if ball else Interval(*slack)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "FREE_LIMIT", 0)
        try:
            large = families(uset)
        except UnsupportedError:
            return
    assert large == families(uset)


def test_large_unknowns_are_analysed():
    """A hundred outcomes of which nothing is known, or of which only a few were seen."""
    anything = Interval(np.zeros(100), np.ones(100))
    assert families(anything)[0] == {frozenset({o}) for o in range(100)}
    seen = np.arange(100) < 3
    learned = Interval(np.where(seen, 0.2, 0.0), np.where(seen, 0.4, 0.01))
    least, everything = families(learned)
    assert least == {frozenset(range(3))}
    assert everything == least | {frozenset({0, 1, 2, o}) for o in range(3, 100)}


def test_many_families_over_several_buffers():
    """Buffers that fill up are continued where they ended."""
    box = Interval(np.zeros(16), np.full(16, 0.125))  # 12870 supports
    found = supports(Marginals.from_sets([box] * 12 + [Interval([0.7, 0.0], [1.0, 0.3])]))
    assert np.diff(found.support_ptr).tolist() == [12870] * 12 + [2]
    assert listed(found, 12) == [(0,), (0, 1)]
    assert listed(found, 3) == listed(found, 11)


def test_compiled_and_plain_enumeration_agree():
    """The kernel and its Python source give the same masks."""
    weight = digits(np.array([0.6, 0.5, 0.3, 0.2, 1e-40]), kernels.BITS)
    threshold = digits(np.array([0.4]), kernels.BITS)
    threshold = np.pad(threshold, ((0, 0), (0, weight.shape[1] - threshold.shape[1])))
    results = []
    for run in (kernels.enumerate_supports, kernels.enumerate_supports.py_func):
        masks, ends = np.zeros(64, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
        scratch = np.zeros((3, 64), dtype=np.int64)
        run(np.array([0, 5]), np.array([True]), weight, threshold, scratch, masks, ends)
        results.append((masks.tolist(), ends.tolist()))
    assert results[0] == results[1]
