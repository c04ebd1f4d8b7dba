from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rfmdp.errors import ModelError
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton, bounds
from rfmdp.sets.marginals import Kind, Marginals
from set_twins import packed_vertices as vertices

from .strategies import balls, finite_sets

SETS = [
    Singleton([0.25, 0.75]),
    Interval([0.1, 0.2, 0.3], [0.5, 0.5, 0.6]),
    L1Ball([0.5, 0.5], 0.2),
    LinfBall([0.5, 0.5], 0.2),
    LpBall([0.5, 0.25, 0.25], 0.1, 2.0),
    Polytope([[1.0, 0.0], [0.5, 0.5]]),
]


def test_round_trip_keeps_families_and_data():
    """from_sets and [j] give every set back; iteration and length agree."""
    packed = Marginals.from_sets(SETS)
    assert len(packed) == len(SETS)
    assert packed.sizes.tolist() == [2, 3, 2, 2, 3, 2]
    for uset, back in zip(SETS, packed, strict=True):
        assert type(back) is type(uset)
        assert np.array_equal(back.nominal, uset.nominal)
        assert np.stack(bounds(back)) == pytest.approx(np.stack(bounds(uset)), abs=1e-15)
    assert (packed[4].radius, packed[4].exponent) == (0.1, 2.0)
    assert np.array_equal(packed[5].vertices, SETS[5].vertices)


def test_kinds():
    """The kind says how the minimiser works."""
    expected = [Kind.SINGLETON, Kind.BOX, Kind.L1, Kind.BOX, Kind.LP, Kind.POLYTOPE]
    assert Marginals.from_sets(SETS).kind.tolist() == expected


@pytest.mark.parametrize(
    "uset",
    [
        Interval([1.0], [1.0]),
        Interval([0.0], [1.0]),
        Interval([0.3, 0.7], [0.3, 0.7]),
        Interval([0.25, 0.75], [0.9, 0.9]),
        L1Ball([1.0], 0.5),
        L1Ball([0.5, 0.5], 0.0),
        LpBall([0.5, 0.5], 0.0, 2.0),
        LinfBall([0.5, 0.5], 0.0),
        Polytope([[0.5, 0.5]]),
    ],
    ids=repr,
)
def test_single_members_are_singletons(uset):
    """A set with one member is of the kind SINGLETON, with equal bounds and nominal."""
    packed = Marginals.from_sets([uset])
    assert packed.kind.tolist() == [Kind.SINGLETON]
    assert np.array_equal(packed.lower, packed.nominal)
    assert np.array_equal(packed.upper, packed.nominal)
    assert isinstance(packed[0], (Singleton, LpBall))


@given(st.lists(finite_sets(), max_size=5))
def test_round_trip_keeps_the_set(sets):
    """Whatever the family, the set that comes back has the same vertices."""
    for uset, back in zip(sets, Marginals.from_sets(sets), strict=True):
        assert vertices(back) == pytest.approx(vertices(uset), abs=1e-15)


def test_empty_sequence():
    """No marginals are fine."""
    for packed in (Marginals.from_sets([]), Marginals.from_points([0], [])):
        assert len(packed) == 0
        assert list(packed) == []


def test_index_out_of_range():
    """An identifier beyond the last marginal is an IndexError, also a negative one."""
    packed = Marginals.from_sets(SETS)
    for j in (-1, len(SETS)):
        with pytest.raises(IndexError):
            packed[j]


def test_bulk_boxes_equal_single_ones():
    """from_boxes packs what from_sets packs."""
    one = Marginals.from_sets([Interval([0.1, 0.2, 0.3], [0.5, 0.5, 0.9]), Singleton([0.1, 0.9])])
    two = Marginals.from_boxes(
        [0, 3, 5],
        [0.1, 0.2, 0.3, 0.1, 0.9],
        [0.5, 0.5, 0.9, 0.1, 0.9],
        [*one.nominal[:3], 0.1, 0.9],
    )
    for name in ("outcome_ptr", "kind", "nominal", "lower", "upper", "corner_ptr"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_a_box_of_one_point_comes_back_as_that_point():
    """An L-infinity ball whose float bounds leave one distribution is that, packed or not."""
    ball = LinfBall([1e-40, 1e-40, 1.0], 1e-41)
    packed = Marginals.from_sets([ball])
    assert packed.kind.tolist() == [Kind.SINGLETON]
    assert np.array_equal(Marginals.from_sets(packed).lower, packed.lower)


def columns(packed):
    """Return all arrays of packed sets but the bounds of a text."""
    return {f.name: getattr(packed, f.name) for f in fields(packed) if f.name != "stated"}


@given(st.lists(finite_sets() | balls(partial(LpBall, exponent=2.5)), max_size=5))
def test_arrays_of_sets_are_the_same_sets(sets):
    """Sets that are made again from their arrays are the same to the last bit."""
    packed = Marginals.from_sets(sets)
    again = Marginals.from_columns(**columns(packed))
    for name, array in columns(packed).items():
        assert np.array_equal(getattr(again, name), array, equal_nan=array.dtype.kind == "f"), name


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("upper", 1, 7.0, "Marginal 0: must have .* 7.0; and"),
        ("lower", 1, np.nan, "Marginal 0: must have .*has nan"),
        ("nominal", 2, 0.9, "sums of at most 1, of 1 and"),
        ("radius", 2, -0.1, "radius must be finite and >= 0"),
        ("radius", 4, np.inf, "radius must be finite and >= 0"),
        ("exponent", 2, 0.5, "exponent must be in"),
        ("exponent", 4, np.nan, "Marginal 4: must be a box, a ball or a list of vertices"),
        ("corners", 0, 0.3, "and sum to 1"),
        ("kind", 5, 9, "Marginal 5: must be a box, a ball or a list of vertices"),
        ("kind", 0, 1, ""),
        ("outcome_ptr", 1, 0, "Marginal 0: must have at least one outcome"),
        ("corner_ptr", 6, 3, "corners must have 3 numbers, as corner_ptr says"),
    ],
)
def test_arrays_of_no_sets_are_refused(name, place, value, message):
    """Numbers that no constructor lets through are refused, whoever wrote them.

    What a set is follows from its numbers: a kind that contradicts them is not believed.
    """
    packed = Marginals.from_sets(SETS)
    arrays = {k: np.array(a) for k, a in columns(packed).items()}
    arrays[name][place] = value
    if not message:
        assert np.array_equal(Marginals.from_columns(**arrays).kind, packed.kind)
        return
    with pytest.raises(ModelError, match=message):
        Marginals.from_columns(**arrays)
