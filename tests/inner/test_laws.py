"""Laws that hold between solvers, sets and labels."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from examples import half, quarter
from rfmdp.errors import UnsupportedError
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.solvers import Exact, IntervalArithmetic, Sequential, VertexEnumeration
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, LinfBall, LpBall, Singleton
from row_problems import RowProblem, boxes, joined_model, row_problems

from .rows import random_problems
from .test_exact import solve


@half
@given(st.lists(row_problems(boxes, joint=32), min_size=1, max_size=4))
def test_relaxations_are_ordered(problems):
    """Interval <= sequential <= exact, nature minimising."""
    loose = solve(IntervalArithmetic(), problems)[0]
    tight = solve(Sequential(), problems)[0]
    high = solve(Exact(), problems)[1]
    slack = 1e-12 * np.array([p.span + 1e-3 * np.abs(p.tensor).max() for p in problems])
    assert np.all(loose <= tight + slack)
    assert np.all(tight <= high)


def test_mccormick_lies_between_interval_and_exact():
    """With all marginalisation rows the linear relaxation is at least as tight as intervals."""
    problems = random_problems(18, np.random.default_rng(0))
    loose = solve(IntervalArithmetic(), problems)[0]
    linear = solve(McCormick(), problems)[0]
    assert np.all(loose <= linear + 1e-9)
    assert np.all(linear <= solve(Exact(), problems)[1])


@quarter
@given(row_problems(boxes, joint=24))
def test_radius_zero_is_the_nominal_expectation(problem):
    """Every solver gives the plain expectation if nothing is uncertain."""
    points = [s.nominal for s in problem.sets]
    joint = np.ones(1)
    for p in points:
        joint = np.multiply.outer(joint, p).ravel()
    first = problem.tensor[0]
    expected = first + joint @ (problem.tensor - first)
    for exact in (True, False):
        sets = tuple(Singleton(p) if exact else LinfBall(p, 0.0) for p in points)
        known = RowProblem(sets, problem.successors, problem.values)
        inners = (Exact(), IntervalArithmetic(), Sequential())
        for inner, nature in itertools.product(inners, (MIN, MAX)):
            sides = [x[0] for x in solve(inner, [known], nature)[:2] if np.isfinite(x[0])]
            allowed = 1e-12 * problem.span + 1e-14 * np.abs(problem.tensor).max()
            assert sides == pytest.approx([expected] * len(sides), abs=allowed, rel=0)


@half
@given(row_problems(boxes, joint=24), st.floats(0.0, 0.3))
def test_larger_sets_never_help(problem, growth):
    """Wider boxes lower the minimum and raise the maximum."""
    wider = tuple(
        Interval(
            np.maximum(getattr(s, "lower", s.nominal) - growth, 0.0),
            np.minimum(getattr(s, "upper", s.nominal) + growth, 1.0),
        )
        for s in problem.sets
    )
    grown = RowProblem(wider, problem.successors, problem.values)
    assert solve(Exact(), [grown], MIN)[0][0] <= solve(Exact(), [problem], MIN)[1][0]
    assert solve(Exact(), [grown], MAX)[1][0] >= solve(Exact(), [problem], MAX)[0][0]


@half
@given(row_problems(boxes, joint=24), st.randoms(use_true_random=False))
def test_relabelling_factors_and_outcomes_changes_nothing(problem, random):
    """The order of factors, and of outcomes within them, is only a matter of storage."""
    sizes = [s.size for s in problem.sets]
    axes = list(range(len(sizes)))
    random.shuffle(axes)
    orders = [random.sample(range(d), d) for d in sizes]
    successors = problem.successors.reshape(sizes)[np.ix_(*orders)].transpose(axes).ravel()
    sets = [
        Interval(s.lower[o], s.upper[o], s.nominal[o])
        if isinstance(s, Interval)
        else Singleton(s.nominal[o])
        for s, o in zip(problem.sets, orders, strict=True)
    ]
    other = RowProblem(tuple(sets[k] for k in axes), successors, problem.values)
    allowed = 2e-12 * problem.span + 1e-14 * np.abs(problem.tensor).max()
    for inner in (Exact(), IntervalArithmetic(), VertexEnumeration()):
        found, again = solve(inner, [problem])[:2], solve(inner, [other])[:2]
        for mine, theirs in zip(found, again, strict=True):
            assert mine[0] == theirs[0] or abs(mine[0] - theirs[0]) <= allowed


def test_both_orders_answer_with_the_better_one():
    """Named after the bug: respond used the first order where the second gave the bound."""
    problems = random_problems(40, np.random.default_rng(6))
    _, values = joined_model(problems)
    rows = np.arange(len(problems))
    for nature in (MIN, MAX):
        below, above, both = solve(Sequential(), problems, nature)
        proven = below if nature is MIN else above
        answer = both.respond(values, rows)
        starts = np.cumsum([0, *(len(p.successors) for p in problems)])
        for r, p in enumerate(problems):
            value = answer[starts[r] : starts[r + 1]] @ p.tensor
            assert value == pytest.approx(proven[r], abs=1e-13)


def test_vertex_enumeration_refuses_before_it_works():
    """Balls without vertices and too many products are named with the reason."""
    ball = RowProblem((LpBall([0.5, 0.25, 0.25], 0.1, 2.0),), np.arange(3), np.arange(3.0))
    with pytest.raises(UnsupportedError, match=r"Marginal 0, an LpBall .* has no finite vertices"):
        VertexEnumeration().prepare(joined_model([ball])[0], MIN)
    model, _ = joined_model(random_problems(1, np.random.default_rng(0)))
    with pytest.raises(UnsupportedError, match="products of vertices"):
        VertexEnumeration(product_limit=1).prepare(model, MIN)


def test_merged_successors_add_up():
    """Outcomes that meet in one state have one value: a row that always meets is certain."""
    sets = (Interval([0.1, 0.2], [0.8, 0.9]), Interval([0.0, 0.3], [0.7, 1.0]))
    problem = RowProblem(sets, np.array([0, 0, 0, 1]), np.array([2.0, 5.0]))
    below, _, solver = solve(IntervalArithmetic(), [problem])
    # the fourth joint outcome has a probability of at least 0.2 * 0.3
    assert below[0] == pytest.approx(2.0 + 3.0 * 0.06, abs=1e-13)
    answer = solver.respond(np.array([0.0, 2.0, 5.0]), np.zeros(1, np.int64))
    assert answer[3] == pytest.approx(0.06, abs=1e-15)
