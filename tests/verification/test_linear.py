"""Means over sets as the checker bounds them, at all scales, against fractions."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rfmdp.formats.records import model_to_record
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Instantaneous, Spec
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton
from rfmdp.solving import solve
from rfmdp.verification import products
from rfmdp.verification.fields import Fields
from rfmdp.verification.game import Game
from rfmdp.verification.margins import directed, scaled
from rfmdp.verification.reading import read_model
from rfmdp.verification.sets import Undecided
from rfmdp.verification.solution import verify
from scales import random_set

FAINT = [5e-324, 1.5e-323, 3.5e-323, 1e-310, 2.0**-1022, 1e-300]


def rows_of(sets, lines):
    """Return the checker's rows of a model with these sets, each row with some of them."""
    sizes = [int(np.prod([sets[j].size for j in ids])) for ids in lines]
    model = FactoredMDP.from_rows(
        [[(ids, [0] * size) for ids, size in zip(lines, sizes, strict=True)]], sets
    )
    _, header, arrays = model_to_record(model)
    return Game(read_model(header, Fields(arrays)), 1, -1, None)


def faint_set(rng, size):
    """Return a set whose small weights are subnormal; stored sums are one only nearly."""
    p = rng.choice([0.0, *FAINT], size)
    p[rng.integers(size)] = rng.choice([1.0, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 0.5])
    if p.max() == 0.5:
        p[np.argmin(p)] = 0.5
    p = np.minimum(p, 1.0)
    kind = rng.integers(3)
    if kind == 0:
        return Singleton(p)
    if kind == 1:
        q = np.roll(p, 1)
        return Polytope(np.array([p, q]))
    return random_set(rng, size)


def numbers(rng, count):
    """Return values from subnormal to 1e100, some zero or equal."""
    scale = 10.0 ** rng.choice([-320.0, -300.0, -200.0, 0.0, 96.0, 100.0], count)
    signs = rng.choice([-1.0, 0.0, 1.0, 1.0], count)
    return scale * signs * rng.choice([1.0, 0.3, 1.0 / 3.0, 1.0 + 2.0**-52], count)


def least_exactly(rows, ids, values):
    """Return the least mean of values (K,) in fractions."""
    return rows.exact.minimum(ids, [(Fraction(x),) for x in values.tolist()])[0]


def holds(low, exact, high):
    """Return whether numbers enclose a fraction; one that is none says nothing."""
    left = not np.isfinite(low) or Fraction(float(low)) <= exact
    return left and (not np.isfinite(high) or exact <= Fraction(float(high)))


def by_vertices(rows, ids, values, cut):
    """Return bounds of least means by products of vertices."""
    axes = [rows.rounded.axis(np.array([j])) for j in ids]
    with np.errstate(all="ignore"):
        return products.by_vertices(axes, values, cut)


@pytest.mark.parametrize("seed", range(15))
def test_bounds_of_means_hold_in_fractions(seed):
    """From below, from above and by products: no rounding, no underflow makes a bound false."""
    rng = np.random.default_rng([seed, 10])
    sets, lines = [], []
    for _ in range(20):
        ids = list(range(len(sets), len(sets) + rng.integers(1, 3)))
        sets += [faint_set(rng, int(rng.integers(2, 4))) for _ in ids]
        lines.append(ids)
    rows = rows_of(sets, lines)
    for batch in rows.batches(np.ones(rows.model.rows, bool)):
        values = np.array([numbers(rng, batch.successors.shape[1]) for _ in batch.rows])
        with np.errstate(all="ignore"):
            below, above = batch.bound(values, -1), batch.bound(values, 1)
        for i, ids in enumerate(map(rows.ids, batch.rows)):
            try:
                exact = least_exactly(rows, tuple(ids), values[i])
            except Undecided:
                continue
            where = [sets[j] for j in ids], values[i]
            assert holds(below[i], exact, above[i]), where
            if len(ids) == 1:
                continue
            alone = values[[i]]
            cuts = np.ones(1), np.abs(alone).max(axis=1), alone.mean(axis=1)
            for cut in cuts:
                found = by_vertices(rows, ids, alone, cut)
                if found is not None:
                    (low,), (high,) = found
                    assert holds(low, exact, high), where
                    wanted = min(float(cut[0]), float(exact))
                    lost = 1e-12 * np.abs(values[i]).max() + 1e-299  # to rounding and underflow
                    assert low >= wanted - lost, where


@pytest.mark.parametrize("seed", range(4))
def test_boxes_of_two_outcomes_hold_in_fractions(seed):
    """Where one bound leaves just about what the other allows, and with values of all scales."""
    rng = np.random.default_rng([seed, 12])
    sets = []
    for _ in range(500):
        low = rng.choice([0.0, 5e-324, 1e-17, 0.1, 1.0 / 3.0, 0.5, 0.9, 1.0 - 2.0**-53])
        rest = 1.0 - low
        most = min(1.0, rest * rng.choice([0.7, 1.0 - 2.0**-53, 1.0, 1.0 + 2.0**-52, 1.3]))
        lower = np.array([low, min(rng.choice([0.0, 1e-300, 0.05]), rest, most)])
        upper = np.array([1.0, most])
        turn = slice(None, None, rng.choice([-1, 1]))
        sets.append(Interval(lower[turn], upper[turn]))
    rows = rows_of(sets, [[j] for j in range(len(sets))])
    for batch in rows.batches(np.ones(rows.model.rows, bool)):
        values = np.array([numbers(rng, 2) for _ in batch.rows])
        below, above = batch.bound(values, -1), batch.bound(values, 1)
        for i, (j, *_) in enumerate(map(rows.ids, batch.rows)):
            exact = least_exactly(rows, (j,), values[i])
            assert holds(below[i], exact, above[i]), (sets[j], values[i])
            if batch.free:
                assert above[i] - below[i] <= 1e-14 * np.abs(values[i]).max() + 1e-299


def test_subnormal_weights_are_not_rounded_relatively():
    """Divided by a sum of 1 - 8e-10 they remain the same floats, which is 8e-10 too little."""
    forged = np.array([1.0 - 8e-10, 1.5e-323])
    rows = rows_of([Singleton([1.0, 0.0])], [[0]])
    sets = replace(rows.model.sets, nominal=forged, lower=forged, upper=forged)
    rows = Game(replace(rows.model, sets=sets), 1, -1, None)
    (batch,) = rows.batches(np.array([True]))
    values = np.array([[0.0, 1e100]])
    exact = Fraction(forged[1]) / sum(map(Fraction, forged)) * Fraction(1e100)
    assert holds(batch.bound(values, -1)[0], exact, batch.bound(values, 1)[0])


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_products_are_rounded_to_a_side(seed):
    """Subnormal numbers included; what is exact stays, and a discounted zero is zero."""
    rng = np.random.default_rng([seed, 11])
    a, b = numbers(rng, 50), numbers(rng, 50)
    for side, rate in itertools.product((-1, 1), (1.0, 0.4, 2.0**-40)):
        sums, products = directed(a, b, side), scaled(rate, a, side)
        for k in range(50):
            assert side * Fraction(sums[k]) >= side * (Fraction(a[k]) + Fraction(b[k]))
            assert side * Fraction(products[k]) >= side * (Fraction(rate) * Fraction(a[k]))
        assert not products[a == 0.0].any()


@pytest.mark.parametrize("side", [-1, 1])
def test_means_in_fractions_are_rounded_to_a_side(side):
    """They were rounded to the nearest float: a third is less than 1/3, and no upper bound."""
    rows = rows_of([Singleton([0.5, 0.25, 0.25]), Singleton([1.0, 2.0**-53])], [[0], [1]])
    for row, values in ((0, [0.1, 0.2, 0.7]), (1, [1.0, 0.1])):
        mean = least_exactly(rows, (row,), np.array(values))
        value = np.array(values)[: len(values)]
        found = rows._rounded(row, value, side * np.inf, side)
        assert side * Fraction(found) >= side * mean
        assert found != mean


@pytest.mark.parametrize(
    ("sets", "worth"),
    [
        ([L1Ball([0.2, 0.8], 1.0 - 2.0**-53)], [1e-20, 1e-300]),
        ([L1Ball([1.0, 2.0**-60], 1.0)], [1.0, 1e20]),
        ([L1Ball([0.1875, 0.375, 0.4375], 2.0),
          Interval([0.0, 0.8618283118, 0.0], [0.0358062249, 1.0, 0.1023654634])],
         [0.0, 0.0, 1e-300, 0.0, 0.0, 0.0, 5e-301, 5e-301, 1e-300]),
    ],
)  # fmt: skip
def test_claims_finer_than_the_checkers_floats_were_called_invalid(sets, worth):
    """Where its floats do not suffice, it counts the rows in question in fractions."""
    states = len(worth)
    model = FactoredMDP.from_rows(
        [
            [(list(range(len(sets))), list(range(1, states + 1)))],
            *([([], [k + 1])] for k in range(states)),
        ],
        sets,
        rewards={"worth": Rewards(np.array([0.0, *worth]), np.zeros(states + 1))},
    )
    for agent, nature in itertools.product((MAX, MIN), repeat=2):
        solution = solve(model, Spec(Instantaneous(1, "worth"), agent, nature))
        assert verify(solution).valid, str(verify(solution))


@pytest.mark.parametrize("seed", range(20))
def test_products_that_differ_by_the_order_of_outcomes_only(seed):
    """Nodes that stand for others prove nothing that a product does not have."""
    rng = np.random.default_rng([seed, 12])
    widths = rng.choice([0.05, 0.1], (2, 3))[seed % 2][None] if seed % 3 else np.full((1, 3), 0.1)
    widths = np.repeat(widths, 3, axis=0)
    sets = [Interval(1 / 3 - width, 1 / 3 + width) for width in widths]
    rows = rows_of(sets, [[0, 1, 2]])
    same = np.array([len({*at}) for at in np.ndindex(3, 3, 3)], dtype=np.float64)
    for values in (same, rng.choice([0.0, 1.0 / 3.0, 1.0], 27), rng.choice([-0.1, 0.0, 0.7], 27)):
        exact = least_exactly(rows, (0, 1, 2), values)
        # rows of equal numbers are no twins
        both = by_vertices(rows, (0, 1, 2), np.array([values, values]), np.array([10.0, 10.0]))
        for low, high in zip(*both, strict=True):
            assert holds(low, exact, high)
            assert high - low < 1e-12
