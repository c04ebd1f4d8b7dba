"""Random sets, rows and models for hypothesis, and the checks that every inner solver must pass.

For tests of rfmdp and of anything written against it. A solver of your own:

    from hypothesis import given, strategies as st
    from row_problems import check_inner_solver, row_problems

    @given(st.lists(row_problems(), min_size=1, max_size=5))
    def test_mine(problems):
        check_inner_solver(MySolver(), problems)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from rfmdp.inner.protocol import Inner, PreparedInner, Side
from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP, Row
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.ragged import starts
from rfmdp.sets.families import (
    Interval,
    L1Ball,
    LinfBall,
    LpBall,
    Polytope,
    Singleton,
    UncertaintySet,
)
from rfmdp.threads import set_threads, threads
from rfmdp.types import FloatArray, IntArray
from set_twins import contains, minimise, product_minimum, vertices

GRAIN = 20  # probabilities k / 20: ties, zeros, and sums that miss one by an ulp
EXPONENTS = (1.1, 1.5, 2.0, 3.0, 10.0)
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def distributions(draw: Draw, size: int) -> FloatArray:
    """Draw a distribution over `size` outcomes: on a grid with ties and zeros, or anywhere."""
    if draw(st.booleans()):
        cuts = draw(st.lists(st.integers(0, GRAIN), min_size=size - 1, max_size=size - 1))
        return np.diff([0, *sorted(cuts), GRAIN]) / GRAIN
    weights = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).exponential(size=size)
    return np.asarray(weights / weights.sum())


@st.composite
def intervals(draw: Draw, size: int) -> Interval:
    """Draw a box around a distribution; widths of zero and bounds at 0 are common."""
    p = draw(distributions(size))
    ends = st.lists(
        st.one_of(st.just(0.0), st.integers(1, 8).map(lambda k: k / GRAIN), st.floats(0.0, 0.5)),
        min_size=size,
        max_size=size,
    )
    down, up = np.array(draw(ends)), np.array(draw(ends))
    return Interval(np.maximum(p - down, 0.0), np.minimum(p + up, 1.0), p)


def radii() -> st.SearchStrategy[float]:
    """Draw radii of balls: zero, small, and beyond the simplex."""
    return st.one_of(st.just(0.0), st.sampled_from([0.05, 0.1, 0.5]), st.floats(1e-6, 2.5))


@st.composite
def smooth_balls(draw: Draw, size: int) -> LpBall:
    """Draw an Lp ball with 1 < p < inf, which has no finite list of vertices."""
    return LpBall(draw(distributions(size)), draw(radii()), draw(st.sampled_from(EXPONENTS)))


@st.composite
def polytopes(draw: Draw, size: int) -> Polytope:
    """Draw the hull of one to five distributions; repeated and redundant ones are common."""
    return Polytope(np.array(draw(st.lists(distributions(size), min_size=1, max_size=5))))


def finite_sets(size: int) -> st.SearchStrategy[UncertaintySet]:
    """Draw a set of any family with finitely many vertices; boxes are most common."""
    balls = [
        st.builds(family, distributions(size), radii())
        for family in ([L1Ball, LinfBall] if size <= 5 else [LinfBall])
    ]
    points = st.builds(Singleton, distributions(size))
    return st.one_of(intervals(size), intervals(size), points, polytopes(size), *balls)


def boxes(size: int) -> st.SearchStrategy[UncertaintySet]:
    """Draw a box or a point."""
    return st.one_of(intervals(size), st.builds(Singleton, distributions(size)))


def any_sets(size: int) -> st.SearchStrategy[UncertaintySet]:
    """Draw a set of any family, smooth ones included."""
    return st.one_of(finite_sets(size), smooth_balls(size))


@st.composite
def value_vectors(draw: Draw, count: int) -> FloatArray:
    """Draw finite values: with ties, constant, in general position, or badly scaled."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["ties", "constant", "general", "scaled", "offset"]))
    if kind == "ties":
        return rng.integers(0, 3, count).astype(np.float64)
    if kind == "constant":
        return np.full(count, rng.normal())
    if kind == "scaled":
        return np.asarray(rng.normal(size=count) * 10.0 ** rng.uniform(-12.0, 12.0, count))
    return rng.normal(size=count) + (1e9 if kind == "offset" else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class RowProblem:
    """One inner problem: independent sets, and where every joint outcome leads."""

    sets: tuple[UncertaintySet, ...]
    successors: IntArray  # (K,) indices into `values`
    values: FloatArray  # (S,)

    @property
    def tensor(self) -> FloatArray:
        """The value of every joint outcome, (K,)."""
        return self.values[self.successors]

    @property
    def span(self) -> float:
        """Largest minus smallest value that the row can reach."""
        return float(np.ptp(self.tensor))

    def bracket(self, nature: Direction) -> tuple[Fraction, Fraction]:
        """Return numbers between which the exact optimum lies; equal if vertices exist.

        With Lp balls among the sets: contraction from the last factor to the first, and
        coordinate descent from there, by `sets.minimise` in floats.
        """
        sign = 1 if nature is MIN else -1
        smooth = [isinstance(s, LpBall) and 1.0 < s.exponent < math.inf for s in self.sets]
        if any(smooth):
            low, high = _float_bracket(self.sets, sign * self.tensor)
            slack = 1e-12 * (self.span + abs(low))
            ends = Fraction(low - slack), Fraction(high + slack)
        else:
            corners = [vertices(s) for s in self.sets]
            tensor = [sign * Fraction(x) for x in self.tensor.tolist()]
            value = product_minimum(corners, tensor)
            ends = value, value
        return ends if nature is MIN else (-ends[1], -ends[0])

    def model(self) -> FactoredMDP:
        """Return a model whose row 0 is this row; the other states stay where they are."""
        return joined_model([self])[0]


def _float_bracket(sets: Sequence[UncertaintySet], tensor: FloatArray) -> tuple[float, float]:
    shape = [s.size for s in sets]
    values = tensor
    for uset in reversed(sets):
        fibres = values.reshape(-1, uset.size)
        values = np.array([minimise(uset, fibre)[0] for fibre in fibres])
    points: list[FloatArray] = [minimise(s, np.arange(s.size))[1] for s in sets]
    high = math.inf
    for k in itertools.islice(itertools.cycle(range(len(sets))), 4 * len(sets)):
        slices = tensor.reshape(shape)
        for axis in reversed(range(len(sets))):
            if axis != k:
                slices = np.tensordot(slices, points[axis], axes=(axis, 0))
        points[k] = minimise(sets[k], slices)[1]
        high = float(points[k] @ slices)
    return float(values[0]), high


@st.composite
def row_problems(
    draw: Draw,
    sets: Callable[[int], st.SearchStrategy[UncertaintySet]] = finite_sets,
    factors: tuple[int, int] = (2, 5),
    largest: int = 8,
    joint: int = 48,
) -> RowProblem:
    """Draw a row with some factors of 1 to `largest` outcomes, at most `joint` in all.

    `sets(size)` draws one of the factors' sets. A third of the rows has outcomes that meet in
    one successor.
    """
    count = draw(st.integers(*factors))
    sizes: list[int] = []
    for _ in range(count):
        room = joint // math.prod(sizes, start=1)
        sizes.append(draw(st.integers(1, max(1, min(largest, room)))))
    sizes = draw(st.permutations(sizes))
    total = math.prod(sizes)
    states = draw(st.sampled_from([total, total, max(1, total // 2)]))
    successors = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).permutation(total) % states
    chosen = tuple(draw(sets(size)) for size in sizes)
    return RowProblem(chosen, successors, draw(value_vectors(states)))


def joined_model(problems: Sequence[RowProblem]) -> tuple[FactoredMDP, FloatArray]:
    """Return a model whose first rows are the problems, and the values of its states.

    State 0 owns the rows; every problem has the states it needs behind it, which stay put.
    """
    behind = 1 + starts([len(p.values) for p in problems])
    first = starts([len(p.sets) for p in problems])
    rows = [
        (range(a, a + len(p.sets)), p.successors + at, f"row{number}")
        for number, (p, a, at) in enumerate(zip(problems, first, behind, strict=False))
    ]
    stay: list[list[Row]] = [[([], [state], "stay")] for state in range(1, int(behind[-1]))]
    model = FactoredMDP.from_rows([rows, *stay], [s for p in problems for s in p.sets])
    return model, np.concatenate([[0.0], *(p.values for p in problems)])


def check_inner_solver(
    inner: Inner, problems: Sequence[RowProblem], tolerance: float = 1e-9
) -> None:
    """Raise `AssertionError` unless an inner solver keeps its contract on these problems.

    For both directions of nature: the proven sides hold in exact arithmetic and the others are
    infinite; only the wanted rows are written; one thread or all give the same; nature's two
    directions mirror each other; adding a constant to the values adds it to the bounds; the
    answers are distributions that attain the value; the marginals of `Exact` are members of their
    sets with that product.

    Parameters
    ----------
    inner
        The solver.
    problems
        Rows that it does not refuse; they are put into one model.
    tolerance
        Allowed where numbers are compared that the contract does not call bounds, as a share of
        the span of a row's values.
    """
    model, values = joined_model(problems)
    rows = np.arange(len(problems))
    spans = np.array([p.span for p in problems])
    allowed = tolerance * (spans + 1e-6 * np.abs(values).max())

    def bounds(solver: PreparedInner, values: FloatArray) -> FloatArray:
        both = np.full((2, model.rows), np.nan)
        solver.backup(values, rows, *both)
        assert np.isnan(both[:, len(rows) :]).all(), "backup wrote to rows that were not wanted"
        return both[:, : len(rows)]

    for nature in (MIN, MAX):
        solver = inner.prepare(model, nature)
        found = bounds(solver, values)
        for number, problem in enumerate(problems):
            where = f"{inner.name}, nature {nature.name}, {problem}"
            _check_sides(where, solver.proves, problem.bracket(nature), *found[:, number])
        before = threads()
        set_threads(1)
        try:
            alone = bounds(solver, values)
        finally:
            set_threads(before)
        same = np.array_equal(alone, found)
        assert same, f"{inner.name}: results depend on the number of threads"
        mirror = -bounds(inner.prepare(model, nature.opposite), -values)[::-1]
        moved = bounds(solver, values + 1.0)
        for fault, a, b in (
            ("does not mirror nature", mirror, found),
            ("does not shift with the values", moved, found + 1.0),
        ):
            close = (a == b) | (np.abs(np.where(np.isfinite(a), a, 0.0) - b) <= allowed)
            assert close.all(), f"{inner.name} {fault}: {a} and {b}"
        sizes = [len(p.successors) for p in problems]
        answers = np.split(solver.respond(values, rows), np.cumsum(sizes)[:-1])
        for number, (problem, p) in enumerate(zip(problems, answers, strict=True)):
            _check_answer(f"{inner.name}, {problem}", problem, p, found[:, number], allowed[number])
        if isinstance(inner, Exact):
            sizes = [uset.size for p in problems for uset in p.sets]
            points = iter(np.split(solver.marginals(values, rows), np.cumsum(sizes)[:-1]))
            for problem, p in zip(problems, answers, strict=True):
                own = list(itertools.islice(points, len(problem.sets)))
                _check_marginals(f"{inner.name}, {problem}", problem, own, p)


def _check_sides(
    where: str, proves: Side, bracket: tuple[Fraction, Fraction], below: float, above: float
) -> None:
    low, high = bracket
    if Side.BELOW in proves:
        assert Fraction(below) <= high, f"{where}: below {below!r} > {high}"
    else:
        assert below == -math.inf, f"{where}: below must be -inf, it is not proven"
    if Side.ABOVE in proves:
        assert Fraction(above) >= low, f"{where}: above {above!r} < {low}"
    else:
        assert above == math.inf, f"{where}: above must be inf, it is not proven"


def _check_answer(
    where: str, problem: RowProblem, p: FloatArray, bounds: FloatArray, allowed: float
) -> None:
    assert np.all(p >= -1e-12), f"{where}: a negative probability in {p}"
    assert abs(p.sum() - 1.0) <= 1e-8, f"{where}: the answer sums to {p.sum()}"
    first = problem.tensor[0]
    value = first + p @ (problem.tensor - first)
    ends = bounds[np.isfinite(bounds)]
    assert ends.min() - allowed <= value <= ends.max() + allowed, (
        f"{where}: the answer has the value {value}, the bounds are {ends}"
    )


def _check_marginals(
    where: str, problem: RowProblem, points: list[FloatArray], p: FloatArray
) -> None:
    for uset, point in zip(problem.sets, points, strict=True):
        assert contains(uset, point, 1e-9), f"{where}: {point} is no member"
    product = np.array([math.prod(entries) for entries in itertools.product(*points)])
    assert np.allclose(product, p, atol=1e-9), f"{where}: {p} is not the product"
