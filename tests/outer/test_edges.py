"""What nature can empty is exact: sets at their edges, from the set to the certified value."""

from fractions import Fraction

import numpy as np
import pytest

import rfmdp
from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Cumulative, Instantaneous, Reach, ReachReward, Spec, Until
from rfmdp.outer.solution import Status
from rfmdp.sets.families import (
    Interval,
    L1Ball,
    LinfBall,
    LpBall,
    Polytope,
    Singleton,
)
from rfmdp.solving import solve


def loop(sets, successors, cost=0.0, others=()):
    """Return one state whose row moves to 0 = itself, 1 = goal, 2 = sink."""
    sets = list(sets) if isinstance(sets, list) else [sets]
    rows = [(list(range(len(sets))), successors)]
    for other, moves in others:
        rows.append(([len(sets)], moves))
        sets.append(other)
    return FactoredMDP.from_rows(
        [rows, [([], [1])], [([], [2])]],
        sets,
        labels={"goal": [False, True, False]},
        rewards={"steps": Rewards([0.0] * 3, [cost] * len(rows) + [0.0, 0.0])} if cost else {},
    )


def value(model, nature=MIN):
    """Return the certified bounds of reaching the goal from the first state."""
    solution = solve(model, Spec(Reach("goal"), MAX, nature))
    solution.require_certified()
    return solution.at_initial()


HALF = [(Singleton([0.5, 0.5]), [1, 2])]
TIGHT = np.full(512, 1.0 / 512)
EDGES = [
    (L1Ball([0.9, 0.1], 0.2), [0, 1], 0.0),
    (L1Ball([0.9, 0.1], 0.2 - 4e-13), [0, 1], 1.0),
    (L1Ball([0.9, 0.1], np.nextafter(0.2, 0.0)), [0, 1], 1.0),
    (Interval([0.0] * 4, [1.0, 1.0, 0.5, 0.5 - 5e-13]), [1, 1, 0, 0], 1.0),
    (Interval([0.0] * 4, [1.0, 1.0, 0.5, 0.5]), [1, 1, 0, 0], 0.0),
    (LpBall([0.4, 0.3, 0.3], 0.45, 2000.0), [0, 1, 1], 1.0),
    (LpBall([0.5, 0.5], np.sqrt(0.5), 2.0), [0, 1], 0.0),
    (LpBall([9 / 64, 16 / 64, 39 / 64], 36 / 64 * (1 + 1e-13), 1.5), [1, 1, 0], 0.0),
    (LpBall([9 / 64, 16 / 64, 39 / 64], 36 / 64 * (1 - 1e-13), 1.5), [1, 1, 0], 1.0),
    (Interval(np.zeros(513), np.append(TIGHT, 1e-3)), [0] * 512 + [1], 0.0),
    (
        Interval(np.zeros(513), np.append(np.append(TIGHT[:-1], np.nextafter(1 / 512, 0)), 1e-3)),
        [0] * 512 + [1],
        1.0,
    ),
    (Polytope([[1.0 - 1e-13, 1e-13], [0.5, 0.5]]), [0, 1], 1.0),
    (LinfBall([0.5, 0.5], 0.5), [0, 1], 0.0),
    (LinfBall([0.5, 0.5], np.nextafter(0.5, 0.0)), [0, 1], 1.0),
]


@pytest.mark.parametrize(("uset", "successors", "expected"), EDGES)
def test_what_nature_can_empty(uset, successors, expected):
    """A state that can be left is left surely, however rarely; one that cannot never is."""
    bounds = value(loop(uset, successors))
    assert (bounds.lower, bounds.upper) == (expected, expected)


# (9/64)^1.5 + (16/64)^1.5 + (25/64)^1.5 = (27 + 64 + 125) / 512 = (36/64)^1.5
TOUCHING = [36 / 64, np.nextafter(36 / 64, 0)]


@pytest.mark.parametrize("radius", TOUCHING)
def test_where_floats_cannot_tell_the_ball_is_refused(radius):
    """Powers that are no integers agree to rounding: what nature can empty is not decided."""
    model = loop(LpBall([9 / 64, 16 / 64, 39 / 64], radius, 1.5), [1, 1, 0])
    with pytest.raises(UnsupportedError, match="floats cannot tell"):
        solve(model, Spec(Reach("goal"), MAX, MIN))
    steps = solve(model, Spec(Until(np.ones(model.states, dtype=bool), "goal", 3), MAX, MIN))
    assert steps.status is Status.CERTIFIED


@pytest.mark.parametrize(("radius", "value"), [(0.6, 1.0), (np.nextafter(0.6, 1.0), 0.0)])
def test_large_powers_are_decided_by_fractions(radius, value):
    """.6^2000 + 2 * .3^2000 is more than .6^2000, which logarithms in floats do not see."""
    model = loop(LpBall([0.4, 0.3, 0.3], radius, 2000.0), [0, 1, 1])
    bounds = solve(model, Spec(Reach("goal"), MAX, MIN)).at_initial()
    assert (bounds.lower, bounds.upper) == (value, value)


def test_products_too_small_for_a_float_still_happen():
    """Supports are those of the factors: 1e-200 twice is rare, not impossible."""
    rare = Singleton([1e-200, 1.0 - 1e-200])
    flexible = Interval([0.0, 0.5], [0.5, 1.0])
    # goal with .9 or sink with .1, once both rare things happen at once
    leave = Singleton([0.9, 0.1])
    successors = np.zeros((2, 2, 2, 2), dtype=int)
    successors[0, 0] = [[1, 2], [1, 2]]
    model = loop([rare, rare, flexible, leave], successors.ravel().tolist(), others=HALF)
    assert_nine_tenths_within(solve(model, Spec(Reach("goal"), MAX, MIN)))


def assert_nine_tenths_within(solution):
    """Assert that the bounds enclose the value of a play that leaves at last."""
    bounds = solution.at_initial()
    assert Fraction(bounds.lower) <= Fraction(0.9) / (Fraction(0.9) + Fraction(0.1))
    assert Fraction(bounds.upper) >= Fraction(0.9) / (Fraction(0.9) + Fraction(0.1))
    assert rfmdp.verify(solution).valid


def test_vertices_that_are_close_are_two():
    """Nature helps: staying for 2e-14 less than surely is leaving, and better than other rows."""
    close, end = Interval([1 - 2e-14, 0.0], [1.0, 2e-14]), Singleton([0.9, 0.1])
    model = loop([close, end], [0, 0, 1, 2], others=HALF)
    assert_nine_tenths_within(solve(model, Spec(Reach("goal"), MAX, MAX)))


@pytest.mark.parametrize("apart", [1e-13, 3e-14, 2.0**-52, 2.0**-53])
@pytest.mark.parametrize("nature", [MIN, MAX])
def test_vertices_that_are_close_matter_to_large_values(apart, nature):
    """A vertex that was dropped moved a value of 5e11 by more than the width of its bounds."""
    points = [[0.5, 0.5], [0.5 + apart, 0.5 - apart]]
    worth = Rewards(np.array([0.0, 1e12, 0.0]), np.zeros(3))
    model = FactoredMDP.from_rows(
        [[([0], [1, 2])], [([], [1])], [([], [2])]], [Polytope(points)], rewards={"worth": worth}
    )
    solution = solve(model, Spec(Instantaneous(1, "worth"), MAX, nature))
    pick = max if nature is MAX else min
    exact = pick(Fraction(p[0]) / (Fraction(p[0]) + Fraction(p[1])) * 10**12 for p in points)
    bounds = solution.at_initial()
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    assert rfmdp.verify(solution).valid


def test_permuted_outcomes_are_the_same_set():
    """Numbers that nearly sum to one have one meaning: no disjoint certified intervals."""
    p = np.array([0.3, 0.3, 0.4 - 9e-10])
    found = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        moves = np.array([1, 2, 2])
        found.append(value(loop(Singleton(p[order]), moves[order].tolist())))
    exact = 0.3 / (1.0 - 9e-10)
    for bounds in found:
        assert bounds.lower - 1e-15 <= exact <= bounds.upper + 1e-15
    assert max(b.lower for b in found) <= min(b.upper for b in found)


@pytest.mark.parametrize(
    ("agent", "chance"),
    [pytest.param(MIN, 1e-250, marks=pytest.mark.slow), (MAX, 1e-300), (MIN, 5e-324)],
)
def test_a_value_beyond_the_floats_is_not_certified(agent, chance):
    """A cost of 1e90 paid 1e300 times is finite: infinity is no lower bound of it."""
    model = loop(Singleton([1.0, chance]), [0, 1], cost=1e90)
    solution = solve(model, Spec(ReachReward("goal", "steps"), agent, MIN))
    assert solution.status is Status.GAP_OPEN
    assert np.isfinite(solution.lower[0])
    assert solution.upper[0] == np.inf
    assert rfmdp.verify(solution).valid


def test_rare_ways_to_infinity_are_verified():
    """A sink that is reached with 5e-324 times 1e-17 still costs infinitely much."""
    rare = Polytope([[0.0, 1.0], [5e-324, 1.0]])
    split = Polytope([[1e-16, 1.0, 1e-17], [0.5, 0.3, 0.2]])
    other = [(Singleton([0.5, 0.5]), [1, 1])]
    model = loop([rare, split], [1, 1, 2, 1, 0, 1], cost=1.0, others=other)
    solution = solve(model, Spec(ReachReward("goal", "steps"), MIN, MAX))
    assert solution.at_initial().lower == pytest.approx(1.0)
    assert rfmdp.verify(solution).valid


@pytest.mark.parametrize("nature", [MIN, MAX])
def test_faint_values_are_verified(nature):
    """Where floats lose digits to underflow, verify counts in fractions."""
    model = FactoredMDP.from_rows(
        [[([0], [1, 2])], [([], [1])], [([], [2])]],
        [Interval([0.0, 0.6875 - 2.0**-53], [0.3125 + 2.0**-53, 0.6875])],
        rewards={"worth": Rewards([0.0, 0.0, 5e-301], [0.0] * 3)},
    )
    solution = solve(model, Spec(Instantaneous(1, "worth"), MAX, nature))
    solution.require_certified()
    assert rfmdp.verify(solution).valid


@pytest.mark.parametrize(
    ("nature", "chance"),
    [
        (MIN, 1e-3),
        (MAX, 1e-3),
        (MIN, 1e-12),
        (MAX, 1e-12),
        pytest.param(MIN, 1e-30, marks=pytest.mark.slow),
        pytest.param(MAX, 1e-30, marks=pytest.mark.slow),
    ],
)
def test_a_box_that_is_hardly_ever_left_ends_in_time(chance, nature):
    """Sweeps would go on for 1/chance steps; the moves of a state to itself are solved for."""
    model = loop(Interval([0.0, chance], [1.0, 2.0 * chance]), [0, 1], cost=1.0)
    found = solve(model, Spec(ReachReward("goal", "steps"), MAX, nature)).at_initial()
    value = 1.0 / chance if nature is MAX else 0.5 / chance
    assert found.lower <= value * (1.0 + 1e-12)
    assert found.upper >= value * (1.0 - 1e-12)


@pytest.mark.parametrize("nature", [MIN, MAX])
def test_free_mass_below_the_digits_of_a_sum_is_free(nature):
    """The lower bounds of a box sum to one but for less than a float can tell."""
    lower = [0.6255980002559576, 4.5421668236987125e-05, 0.3743565780758054]
    box = Interval(lower, [lower[0], 1.0, 0.8743565780758054])
    low, goal, stay = (Fraction(float(x)) for x in box.lower)
    free = 1 - low - goal - stay
    assert 0.0 < float(free) < 2.0**-53
    away = goal + free if nature is MAX else goal
    exact = away / (low + away)
    found = value(loop(box, [2, 1, 0]), nature)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)


def test_values_below_the_normal_range_are_bounded():
    """A bound of a value of a few least floats is no digit off."""
    box = Interval([0.0, 5e-324, 0.0], [1.0, 1.0, 0.375])
    found = solve(loop(box, [0, 1, 2]), Spec(Reach("goal"), MAX, MIN)).at_initial()
    goal = Fraction(5e-324)
    exact = goal / (goal + Fraction(0.375))
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)


@pytest.mark.parametrize("paid", [5e-324, -5e-324, -1.5e-323])
@pytest.mark.parametrize("nature", [MIN, MAX])
def test_the_least_float_is_not_rounded_to_nothing(paid, nature):
    """Half of the least float is no float: bounds that are one number stay that number."""
    model = FactoredMDP.from_rows(
        [[([0], [1, 2, 1])], [([], [1])], [([], [2])]],
        [LpBall([0.3, 0.6, 0.1], 1e-9, 1.5)],
        rewards={"r": Rewards(np.array([0.0, paid, paid]), np.zeros(3))},
    )
    for objective in (Instantaneous(1, "r"), Cumulative(2, "r")):
        bounds = solve(model, Spec(objective, MAX, nature)).at_initial()
        assert bounds.lower <= paid <= bounds.upper
