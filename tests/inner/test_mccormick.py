"""McCormick against a plain SciPy programme written from the paper, and against brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from rfmdp.errors import SolverError
from rfmdp.inner import mccormick
from rfmdp.inner.mccormick import McCormick, Variant
from rfmdp.inner.protocol import Side
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, L1Ball, Singleton, bounds
from set_twins import packed_vertices as vertices

from .rows import one_row_model, product_tensor, rows_model

SHAPES = [(2, 2), (3, 3), (2, 4), (1, 3), (2, 2, 2), (3, 2, 2), (2, 2, 2, 2)]


def random_box(rng, size, radius=0.2):
    """Return a box around a random distribution, with some entries that may vanish."""
    p = rng.dirichlet(np.ones(size))
    return Interval(
        np.maximum(p - radius * rng.random(size), 0), np.minimum(p + radius * rng.random(size), 1)
    )


def bound_of(inner, sets, value, nature=MIN):
    """Return the bound of row 0 on the side that is proven."""
    model = one_row_model(sets, len(value))
    below, above = np.full(model.rows, np.nan), np.full(model.rows, np.nan)
    inner.prepare(model, nature).backup(value, np.array([0]), below, above)
    assert above[0] == np.inf if nature is MIN else below[0] == -np.inf
    return below[0] if nature is MIN else above[0]


def exact_minimum(sets, value):
    """Return the least expectation over all products of vertices, in fractions."""
    exact = [Fraction(x) for x in value.tolist()]
    best = None
    for corners in itertools.product(*[vertices(s) for s in sets]):
        joint = [Fraction(1)]
        for corner in corners:
            joint = [a * Fraction(b) for a in joint for b in corner.tolist()]
        total = sum(a * b for a, b in zip(joint, exact, strict=True))
        best = total if best is None else min(best, total)
    return best


def paper_minimum(sets, value, variant):
    """Return the optimum of the programme as the paper's appendix prints it, by SciPy."""
    boxes = [bounds(s) for s in sets]
    columns = [(l, u) for low, high in boxes for l, u in zip(low, high, strict=True)]
    starts = np.cumsum([0] + [len(low) for low, _ in boxes])
    inequalities, equations = [], []  # (dict of coefficients, right-hand side)
    previous = {(i,): i for i in range(starts[1])}
    if variant is not Variant.PRINTED:
        equations += [({c: 1.0 for c in range(a, b)}, 1.0) for a, b in itertools.pairwise(starts)]
    for k in range(1, len(boxes)):
        current = {}
        for (key, u), j in itertools.product(previous.items(), range(len(boxes[k][0]))):
            v, h = starts[k] + j, len(columns)
            (ul, uu), (vl, vu) = columns[u], columns[v]
            columns.append((ul * vl, uu * vu))
            current[(*key, j)] = h
            inequalities += [
                ({u: vl, v: ul, h: -1.0}, ul * vl),
                ({u: vu, v: uu, h: -1.0}, uu * vu),
                ({u: -vu, v: -ul, h: 1.0}, -ul * vu),
                ({u: -vl, v: -uu, h: 1.0}, -uu * vl),
            ]
        if variant is Variant.MARGINALISED:
            for key, u in previous.items():
                row = {h: 1.0 for full, h in current.items() if full[:-1] == key}
                equations.append(({**row, u: -1.0}, 0.0))
            for j in range(len(boxes[k][0])):
                row = {h: 1.0 for full, h in current.items() if full[-1] == j}
                equations.append(({**row, starts[k] + j: -1.0}, 0.0))
        previous = current
    equations.append(({h: 1.0 for h in previous.values()}, 1.0))
    cost = np.zeros(len(columns))
    cost[list(previous.values())] = value
    result = linprog(
        cost, *dense(inequalities, len(columns)), *dense(equations, len(columns)), bounds=columns
    )
    assert result.status == 0, result.message
    return result.fun


def dense(rows, columns):
    """Return (matrix, right-hand side) of rows given as dictionaries."""
    matrix = np.zeros((len(rows), columns))
    for r, (row, _) in enumerate(rows):
        for c, a in row.items():
            matrix[r, c] += a
    return matrix, np.array([b for _, b in rows])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_variants_are_ordered_below_the_exact_minimum(shape):
    """Printed <= simplex <= marginalised <= exact, for random boxes and values."""
    rng = np.random.default_rng(11)
    for _ in range(4):
        sets = [random_box(rng, d) for d in shape]
        value = rng.normal(size=int(np.prod(shape)))
        found = [bound_of(McCormick(v), sets, value) for v in Variant]
        slack = 1e-11 * np.ptp(value)
        assert found[0] <= found[1] + slack
        assert found[1] <= found[2] + slack
        assert Fraction(max(found)) <= exact_minimum(sets, value)


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bound_equals_the_programme_of_the_paper(shape, variant):
    """The normalised programme has the optimum of the printed one."""
    rng = np.random.default_rng(12)
    for _ in range(3):
        sets = [random_box(rng, d) for d in shape]
        value = rng.normal(size=int(np.prod(shape)))
        found = bound_of(McCormick(variant), sets, value)
        assert found == pytest.approx(paper_minimum(sets, value, variant), abs=1e-7)


def test_two_factors_are_often_exact_with_all_rows():
    """On smooth values the default variant meets the exact minimum."""
    rng = np.random.default_rng(13)
    sets = [random_box(rng, 3), random_box(rng, 4)]
    value = (np.add.outer([0.0, 1.0, 2.0], [0.0, 0.5, 0.7, 2.0])).ravel()
    assert bound_of(McCormick(), sets, value) == pytest.approx(float(exact_minimum(sets, value)))


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("radius", [0.2, 1e-6, 1e-10, 1e-14])
def test_bound_is_sound_for_bad_scales(scale, shift, radius):
    """Tiny sets, tiny and huge values: never above the minimum in exact arithmetic, and close."""
    rng = np.random.default_rng(14)
    p, q = Fraction(1, 4), Fraction(3, 8)  # dyadic, so that boxes sum to one exactly
    step = Fraction(float(radius)).limit_denominator(2**45) or Fraction(1, 2**46)
    step = Fraction(round(step * 2**50), 2**50)
    sets = [
        Interval([float(p - step), float(1 - p - step)], [float(p + step), float(1 - p + step)]),
        Interval([float(q - step), float(1 - q - step)], [float(q + step), float(1 - q + step)]),
    ]
    value = scale * (shift + rng.normal(size=4))
    for variant in Variant:
        found = bound_of(McCormick(variant), sets, value)
        exact = exact_minimum(sets, value)
        assert Fraction(found) <= exact
        loss = float(exact) - found
        assert loss <= 1e-8 * radius * np.ptp(value) + 1e-12 * np.abs(value).max()


def test_values_of_mixed_magnitudes_are_bounded_soundly():
    """One huge value next to small ones does not spoil soundness."""
    rng = np.random.default_rng(15)
    sets = [random_box(rng, 3), random_box(rng, 3)]
    for _ in range(20):
        value = rng.normal(size=9) * 10.0 ** rng.integers(-8, 9, size=9)
        # vertices of random boxes sum to one up to an ulp: allow that much of the span
        exact = float(exact_minimum(sets, value))
        assert bound_of(McCormick(), sets, value) <= exact + 4e-16 * np.ptp(value)


def test_constant_values_are_exact():
    """Nature cannot move a constant."""
    rng = np.random.default_rng(16)
    sets = [random_box(rng, 3), random_box(rng, 3)]
    assert bound_of(McCormick(), sets, np.full(9, 0.1)) == 0.1


@pytest.mark.parametrize("variant", Variant)
def test_directions_mirror(variant):
    """Maximising v is minimising -v with the sign turned back."""
    rng = np.random.default_rng(17)
    sets = [random_box(rng, 3), random_box(rng, 2), random_box(rng, 2)]
    value = rng.normal(size=12)
    inner = McCormick(variant)
    assert bound_of(inner, sets, value, MAX) == -bound_of(inner, sets, -value, MIN)
    model = one_row_model(sets, 12)
    assert inner.prepare(model, MIN).proves is Side.BELOW
    assert inner.prepare(model, MAX).proves is Side.ABOVE


def test_worked_example_of_the_paper():
    """P in [.2,.6], q in [.1,.3]: no h of the relaxation is the spurious vertex H."""
    sets = [Interval([0.2, 0.4], [0.6, 0.8]), Interval([0.1, 0.7], [0.3, 0.9])]
    spurious = np.array([0.18, 0.14, 0.24, 0.44])
    # H is where interval arithmetic sends these values; McCormick stays at the exact minimum
    value = np.array([-1.0, 1.0, -1.0, 0.0])
    found = bound_of(McCormick(), sets, value)
    assert found == pytest.approx(float(exact_minimum(sets, value)), abs=1e-12)
    assert found > spurious @ value + 0.05


def test_known_marginals_are_contracted():
    """Singletons, and boxes without width, leave a smaller problem with the same answer."""
    rng = np.random.default_rng(18)
    point = Singleton(np.array([0.25, 0.75]))
    thin = Interval([0.5, 0.5], [0.5, 0.5])
    left, right = random_box(rng, 3), random_box(rng, 2)
    value = rng.normal(size=2 * 3 * 2 * 2)
    inner = McCormick()
    for sets in ([point, left, thin, right], [left, point, right, thin]):
        prepared = inner.prepare(one_row_model(sets, 24), MIN)
        below, above = np.empty(24), np.empty(24)
        prepared.backup(value, np.array([0]), below, above)
        exact = float(exact_minimum(sets, value))
        assert below[0] <= exact
        assert below[0] == pytest.approx(exact, abs=2e-2)
        assert prepared.stats.nodes == 1
    assert bound_of(inner, [point, thin], value[:4]) == pytest.approx(
        float(exact_minimum([point, thin], value[:4])), abs=1e-12
    )


def test_one_uncertain_marginal_needs_no_programme():
    """A single box is solved exactly by giving mass to the lowest values."""
    sets = [Interval([0.1, 0.2, 0.0], [0.6, 0.5, 0.5]), Singleton(np.array([0.5, 0.5]))]
    value = np.array([3.0, 1.0, 0.0, 2.0, 5.0, 1.0])
    model = one_row_model(sets, 6)
    prepared = McCormick().prepare(model, MIN)
    below, above = np.empty(6), np.empty(6)
    prepared.backup(value, np.arange(6), below, above)
    assert below[0] == pytest.approx(0.5 * 2.0 + 0.5 * 1.0, abs=1e-12)
    assert below[1:].tolist() == value[1:].tolist()
    assert prepared.stats.nodes == 0


@pytest.mark.parametrize("nature", [MIN, MAX])
def test_witness_is_a_distribution_that_attains_the_bound(nature):
    """`respond` sums to one, is non-negative, keeps the order of rows, and gives the value."""
    rng = np.random.default_rng(19)
    sets = [random_box(rng, d) for d in (2, 3, 2)] + [Singleton(np.array([0.25, 0.75]))]
    model = rows_model([[0, 1], [1, 2, 0], [3, 1], [1, 3, 0], [], [0, 1]], sets, 9)
    value = rng.normal(size=9)
    prepared = McCormick().prepare(model, nature)
    rows = np.array([5, 1, 4, 2, 3, 0])
    below, above = np.zeros(model.rows), np.zeros(model.rows)
    prepared.backup(value, rows, below, above)
    answer = prepared.respond(value, rows)
    at = 0
    for r in rows:
        part = slice(model.successor_ptr[r], model.successor_ptr[r + 1])
        h = answer[at : at + part.stop - part.start]
        at += len(h)
        assert h.min() >= 0.0
        assert h.sum() == pytest.approx(1.0, abs=1e-12)
        bound = below[r] if nature is MIN else above[r]
        assert h @ value[model.successors[part]] == pytest.approx(bound, abs=1e-9)


def test_results_do_not_depend_on_the_company_of_a_row():
    """Warm starts from other rows change a bound by rounding only."""
    rng = np.random.default_rng(20)
    sets = [random_box(rng, 3) for _ in range(6)]
    rows = [list(pair) for pair in itertools.permutations(range(6), 2)] * 2
    model = rows_model(rows, sets, 40)
    value = rng.normal(size=40)
    together, above = np.zeros(model.rows), np.zeros(model.rows)
    McCormick().prepare(model, MIN).backup(value, np.arange(len(rows)), together, above)
    alone = np.zeros(model.rows)
    for r in range(len(rows)):
        McCormick().prepare(model, MIN).backup(value, np.array([r]), alone, above)
    np.testing.assert_allclose(together[: len(rows)], alone[: len(rows)], atol=1e-11, rtol=0)


def test_other_sets_are_enclosed_by_boxes():
    """An L1 ball is replaced by its box: below the exact minimum."""
    sets = [L1Ball([0.3, 0.7], 0.2), L1Ball([0.2, 0.3, 0.5], 0.1)]
    value = np.array([1.0, 4.0, 2.0, 3.0, 0.0, 5.0])
    joints = itertools.product(*[vertices(s) for s in sets])
    exact = min(product_tensor(corners) @ value for corners in joints)
    assert bound_of(McCormick(), sets, value) <= exact


def test_any_other_argument_was_taken_for_highs():
    """`McCormick(backend="gurobi")`, or any string, ran HiGHS."""
    with pytest.raises(TypeError):
        McCormick(backend="gurobi")


@pytest.mark.parametrize("status", ["kInfeasible", "kNew"])
def test_every_other_status_raises(monkeypatch, status):
    """A status that is no optimum, known or not, is an error that names row and status."""
    ended = SimpleNamespace(name=status)
    monkeypatch.setattr("highspy.Highs.getModelStatus", lambda self: ended)
    box = Interval(np.full(2, 0.4), np.full(2, 0.6))
    prepared = McCormick().prepare(one_row_model([box, box], 4), MIN)
    with pytest.raises(SolverError, match=rf"row 0 \(state 0, action go\).*{status}"):
        prepared.backup(np.arange(4.0), np.array([0]), np.empty(4), np.empty(4))


@pytest.mark.parametrize("noise", [1e-6, 1e-2, 1e3])
def test_bad_multipliers_loosen_the_bound_but_never_break_it(monkeypatch, noise):
    """Whatever multipliers a solver returns, the bound is sound."""
    rng = np.random.default_rng(22)
    sets = [random_box(rng, 3), random_box(rng, 2), random_box(rng, 2)]
    value = rng.normal(size=12)
    good = bound_of(McCormick(), sets, value)
    honest = mccormick._Programme.solve

    def noisy(self, cost):
        columns, multipliers = honest(self, cost)
        return columns, multipliers + noise * rng.normal(size=len(multipliers))

    monkeypatch.setattr(mccormick._Programme, "solve", noisy)
    for variant in Variant:
        bound = bound_of(McCormick(variant), sets, value)
        assert bound < good
        assert Fraction(bound) <= exact_minimum(sets, value)


@pytest.mark.parametrize("variant", Variant)
def test_vacuous_sets_give_the_least_value(variant):
    """With all distributions allowed, nature reaches the least successor."""
    free = Interval(np.zeros(3), np.ones(3))
    value = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert bound_of(McCormick(variant), [free, free], value) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("widths", [(1e-4, 1e-10), (1e-10, 1e-4), (1e-9, 1e-9, 1e-4)], ids=str)
def test_wide_beside_narrow_marginals_stay_feasible(variant, widths):
    """Widths that differ by many orders once made two rows parallel, and HiGHS give up."""
    rng = np.random.default_rng(23)
    centres = [np.array([0.625, 0.375]), np.array([0.125, 0.25, 0.625]), np.array([0.5, 0.5])]
    sets = [
        Interval(p - w * rng.random(len(p)), p + w * rng.random(len(p)), p)
        for p, w in zip(centres, widths, strict=False)
    ]
    for _ in range(5):
        value = rng.normal(size=int(np.prod([s.size for s in sets])))
        bound, exact = bound_of(McCormick(variant), sets, value), exact_minimum(sets, value)
        assert float(exact) - 1e-6 <= bound
        assert Fraction(bound) <= exact
