"""Outcomes that may change places: the tree without renamed vertices against all vertices."""

import itertools

import numpy as np
from hypothesis import given, strategies as st

from examples import half
from rfmdp.inner.solvers import Exact, VertexEnumeration
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval
from row_problems import RowProblem

from .test_exact import solve


def renamed(pattern: tuple[int, ...], classes: tuple[int, ...]) -> tuple[int, ...]:
    """Return a name of a tuple of outcomes that outcomes of one class can share."""
    first: dict[int, int] = {}
    for outcome in pattern:
        first.setdefault(outcome, sum(classes[o] == classes[outcome] for o in first))
    return tuple(10 * classes[outcome] + first[outcome] for outcome in pattern)


@st.composite
def symmetric_rows(draw):
    """Return a row whose outcomes are alike within drawn classes, and some noise in one entry."""
    size, axes, *extra = draw(st.sampled_from([(5, 3), (4, 4), (3, 5), (4, 4, 2)]))
    classes = tuple(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    shape = (*extra, *[size] * axes)
    number: dict[tuple[int, ...], float] = {}
    values = np.empty(shape)
    for at in itertools.product(*map(range, shape)):
        key = (*at[: len(extra)], *renamed(at[len(extra) :], classes))
        values[at] = number.setdefault(key, float(rng.integers(0, 4)))
    if draw(st.booleans()):  # nearly symmetric is not symmetric
        values[tuple(rng.integers(0, shape))] += 1e-3
    sets = []
    for count in shape:
        width = rng.choice([0.1, 0.2, 0.125])
        middle = np.full(count, 1.0 / count)
        if count == size:
            middle[np.array(classes) == 1] *= 0.75
            middle /= middle.sum()
        sets.append(Interval(np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)))
    return RowProblem(tuple(sets), np.arange(values.size), values.ravel())


@half
@given(symmetric_rows())
def test_renamed_vertices_are_not_needed(problem):
    """The exact value is that of all products of vertices, to 1e-12 of the span."""
    allowed = 2e-12 * problem.span + 1e-15 * np.abs(problem.tensor).max()
    for nature in (MIN, MAX):
        low, high, _ = solve(Exact(), [problem], nature)
        plain_low, plain_high, _ = solve(VertexEnumeration(), [problem], nature)
        assert abs(low[0] - plain_low[0]) <= allowed
        assert abs(high[0] - plain_high[0]) <= allowed


def test_draws_of_equals_need_few_nodes():
    """Four stations draw from eight numbers: some thousand times fewer nodes than vertices."""
    values = np.empty((8,) * 4)
    for at in itertools.product(range(8), repeat=4):
        values[at] = not any(at.count(o) == 1 for o in at)
    box = Interval(np.full(8, 0.105), np.full(8, 0.145))
    problem = RowProblem((box,) * 4, np.arange(8**4), values.ravel())
    below, above, solver = solve(Exact(), [problem])
    assert above[0] - below[0] <= 1e-12
    assert solver.stats.nodes < 1000
