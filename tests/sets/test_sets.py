import math

import numpy as np
import pytest

from rfmdp.errors import ModelError
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton
from rfmdp.sets.marginals import Marginals, balls_around
from set_twins import contains, minimise

NAN = math.nan

BAD_SETS = [
    (lambda: Singleton([]), r"Singleton: probabilities must be a non-empty vector"),
    (lambda: Singleton([[0.5], [0.5]]), r"must be a non-empty vector, got shape \(2, 1\)"),
    (lambda: Singleton(["a", "b"]), r"Probabilities must be numbers"),
    (lambda: Singleton([0.5, NAN]), r"probabilities must lie in \[0, 1\]"),
    (lambda: Singleton([0.5, 0.6]), r"and sum to 1, .* which sum to 1.1"),
    (lambda: Singleton([-0.5, 1.5]), r"probabilities must lie in \[0, 1\]"),
    (lambda: Interval([-0.1, 0.5], [0.5, 0.6]), r"must have 0 <= lower .*, outcome 0 has"),
    (lambda: Interval([0.1, 0.5], [0.5, 1.6]), r"must have 0 <= lower .*, outcome 1 has"),
    (
        lambda: Interval([NAN, 0.5], [0.5, 0.6]),
        r"must have 0 <= lower .*, outcome .*nan",
    ),
    (
        lambda: Interval([0.1, 0.5], [NAN, 0.6]),
        r"must have 0 <= lower .*, outcome .*nan",
    ),
    (lambda: Interval([0.6, 0.1], [0.5, 0.9]), r"must have 0 <= lower .*, outcome 0"),
    (
        lambda: Interval([0.6, 0.6], [0.7, 0.9]),
        r".* sums of at most 1, .* they are 1.2",
    ),
    (
        lambda: Interval([0.1, 0.1], [0.4, 0.4]),
        r".* of at least 1, they are .* 0.8",
    ),
    (lambda: Interval([0.1], [0.5, 0.5]), r"the same size, got \(1, 2, 1\)"),
    (lambda: Interval([0, 0], [1, 1], [1.0]), r"the same size, got \(2, 2, 1\)"),
    (
        lambda: Interval([0, 0], [0.6, 1], [0.7, 0.3]),
        r"outcome 0 has 0.0, 0.7, 0.6",
    ),
    (lambda: L1Ball([0.5, 0.5], -1.0), r"radius must be finite and >= 0, .* got -1.0"),
    (lambda: L1Ball([0.5, 0.5], NAN), r"radius must be finite and >= 0, .* got nan"),
    (lambda: LinfBall([0.5, 0.5], math.inf), r"radius must be finite and >= 0, .* got inf"),
    (lambda: LinfBall([0.5, 0.5], "wide"), r"radius must be finite and >= 0, .* got 'wide'"),
    (lambda: LpBall([0.5, 0.5], 0.1, 0.5), r"exponent must be in \[1, inf\]; got .* and 0.5"),
    (lambda: LpBall([0.5, 0.5], 0.1, NAN), r"exponent must be in \[1, inf\]; got .* and nan"),
    (lambda: Polytope(np.empty((0, 2))), r"vertices must be a non-empty \(V, X\) array"),
    (lambda: Polytope([[0.5, 0.5], [1.0]]), r"Probabilities must be numbers"),
    (lambda: Polytope([[1.0, 0.0], [0.9, 0.9]]), r"Polytope, vertex 1: .* sum to 1.8"),
    (lambda: contains(Singleton([1.0]), [0.5, 0.5]), r"a member has 1 outcomes, got shape \(2,\)"),
    (lambda: minimise(Singleton([1.0]), [1.0, 2.0]), r"Singleton: needs 1 finite values"),
    (lambda: minimise(Interval([0], [1]), [NAN]), r"Interval: needs 1 finite values, got \[nan\]"),
]


@pytest.mark.parametrize(("make", "message"), BAD_SETS, ids=[m for _, m in BAD_SETS])
def test_bad_sets_say_what_is_wrong(make, message):
    """Every fault is a ModelError that says what must hold and what was found."""
    with pytest.raises(ModelError, match=message):
        make()


PTR = [0, 2, 4]
GOOD = [0.5, 0.5]
BAD_BOXES = [
    (
        [*GOOD, -0.1, 0.5],
        [*GOOD, 0.5, 0.6],
        r"Marginal 1: must have 0 <= lower .*",
    ),
    (
        [*GOOD, 0.1, 0.5],
        [*GOOD, 0.5, 1.6],
        r"Marginal 1: must have 0 <= lower .*",
    ),
    ([*GOOD, NAN, 0.5], [*GOOD, 0.5, 0.6], r"Marginal 1: must have .* outcome 0 has .*nan"),
    ([*GOOD, 0.5, 0.5], [*GOOD, 0.5, NAN], r"Marginal 1: must have .* outcome 1 has .*nan"),
    ([*GOOD, 0.6, 0.1], [*GOOD, 0.5, 0.9], r"Marginal 1: must have 0 <= lower .*, outcome 0"),
    (
        [*GOOD, 0.6, 0.6],
        [*GOOD, 0.7, 0.9],
        r"Marginal 1: .* sums of at most 1, .* they are 1.2",
    ),
    (
        [*GOOD, 0.1, 0.1],
        [*GOOD, 0.4, 0.4],
        r"Marginal 1: .* of at least 1, they are .* 0.8",
    ),
    (
        [*GOOD, 0.6, 0.1],
        [*GOOD, 0.9, 0.4],
        r"Marginal 1: must have 0 <= lower <= nominal",
    ),
    (GOOD, [*GOOD, *GOOD], r"lower must have 4 numbers, as outcome_ptr says, got shape \(2,\)"),
]


@pytest.mark.parametrize(("lower", "upper", "message"), BAD_BOXES, ids=[m for *_, m in BAD_BOXES])
def test_bad_boxes_in_bulk_name_the_marginal(lower, upper, message):
    """Bulk checks find the first bad marginal and name it."""
    with pytest.raises(ModelError, match=message):
        Marginals.from_boxes(PTR, lower, upper, [*GOOD, *GOOD])


@pytest.mark.parametrize(
    ("pointers", "points", "message"),
    [
        ([0, 2, 2], GOOD, r"Marginal 1: must have at least one outcome"),
        ([1, 2], GOOD, r"outcome_ptr must be a vector of integers that starts with 0"),
        ([0, 2], [0.5, 0.4], r"Marginal 0: .* of at least 1, they are .* 0.9"),
        ([0, 2], [0.5, 0.6], r"Marginal 0: .* sums of at most 1, .* they are 1.1"),
        ([0, 3], GOOD, r"lower must have 3 numbers"),
    ],
)
def test_bad_points_in_bulk(pointers, points, message):
    """Known distributions are checked as boxes are."""
    with pytest.raises(ModelError, match=message):
        Marginals.from_points(pointers, points)


def test_foreign_sets_are_named():
    """Something that is no set is named by its position."""
    with pytest.raises(ModelError, match=r"Marginal 1: must be an uncertainty set, got \[0.5"):
        Marginals.from_sets([Singleton([1.0]), [0.5, 0.5]])


def test_sets_do_not_follow_the_callers_array():
    """A set copies what it is given, and is read-only."""
    p = np.array([0.5, 0.5])
    uset = Singleton(p)
    p[0] = 0.9
    assert uset.nominal.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        uset.nominal[0] = 0.9


@pytest.mark.parametrize("radius", [-0.1, NAN, [0.1, -0.1]])
def test_bad_radii(radius):
    """Radii in bulk must be numbers >= 0."""
    points = Marginals.from_points(PTR, [*GOOD, *GOOD])
    for around in (balls_around, lambda m, r: balls_around(m, r, 1.0)):
        with pytest.raises(ModelError, match=r"A radius must be a number >= 0"):
            around(points, np.asarray(radius))


@pytest.mark.parametrize("radius", ["a", [0.1, 0.2, 0.3], {}])
def test_radii_that_are_no_numbers(radius):
    """A radius is a number, or an array of one per marginal."""
    with pytest.raises(
        ModelError, match=r"A radius must be a number >= 0, or .* one per marginal \(2\)"
    ):
        balls_around(Marginals.from_points(PTR, [*GOOD, *GOOD]), radius)


def test_bad_floor():
    """A floor of one half or more leaves no room."""
    with pytest.raises(ModelError, match=r"floor must lie in \[0, 0.5\)"):
        balls_around(Marginals.from_points(PTR, [*GOOD, *GOOD]), 0.1, floor=0.5)


def test_radius_keeps_the_support_and_the_floor():
    """Certain outcomes stay certain; the floor bounds uncertain ones only."""
    points = Marginals.from_points([0, 3, 4], [0.05, 0.95, 0.0, 1.0])
    box = balls_around(points, 0.1, floor=0.01)
    assert box.lower == pytest.approx([0.01, 0.85, 0.0, 1.0])
    assert box.upper == pytest.approx([0.15, 0.99, 0.0, 1.0])
    ball = balls_around(points, [0.1, 0.1], 1.0)
    assert ball.lower == pytest.approx([0.0, 0.9, 0.0, 1.0])
    assert ball.upper == pytest.approx([0.1, 1.0, 0.05, 1.0])
