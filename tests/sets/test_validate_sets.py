"""Packed sets are checked like single ones."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rfmdp.errors import ModelError
from rfmdp.sets.families import Interval, L1Ball, LinfBall, LpBall, Polytope, Singleton
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.validate import layout_problems, problems, with_own_bounds

SETS = [
    Singleton([0.5, 0.5]),
    Interval([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
    L1Ball([0.3, 0.7], 0.2),
    LinfBall([0.3, 0.7], 0.2),
    LpBall([0.2, 0.3, 0.5], 0.1, 2.5),
    Polytope([[0.2, 0.8], [0.6, 0.4]]),
]
PACKED = Marginals.from_sets(SETS)


def altered(name, place, value):
    """Return the packed sets with one entry changed."""
    array = np.array(getattr(PACKED, name))
    array[place] = value
    return replace(PACKED, **{name: array})


def test_sets_of_all_families_are_sound():
    """What the constructors made has no problem, and neither has nothing at all."""
    for packed in (PACKED, Marginals.from_sets([])):
        assert layout_problems(packed) == []
        assert problems(packed) == []


LAYOUT = [
    ("outcome_ptr", 0, 1, "outcome_ptr must rise from 0 to 14, by at least 1."),
    ("outcome_ptr", 2, 1, "outcome_ptr must rise from 0 to 14, by at least 1."),
    ("corner_ptr", 3, 2**62, "corner_ptr must rise from 0 to 4, by at least 0."),
    ("kind", 4, 99, "its kind must be within 0..4, got 99."),
    ("kind", 4, -1, "its kind must be within 0..4, got -1."),
]


@pytest.mark.parametrize(("name", "place", "value", "message"), LAYOUT)
def test_pointers_and_kinds(name, place, value, message):
    """Pointers that cannot be followed and kinds that do not exist are told."""
    assert message in [text for _, text in layout_problems(altered(name, place, value))]


@pytest.mark.parametrize("name", [f.name for f in fields(Marginals)])
@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: a.astype("f4"), lambda a: a[None]])
def test_shapes_and_types(name, change):
    """Every array has the one type and shape that the others say."""
    stated = np.stack([PACKED.lower, PACKED.upper])
    full = replace(PACKED, stated=stated)
    array = getattr(full, name)
    if name == "corners" and len(array) == 0:
        return
    found = layout_problems(replace(full, **{name: change(array)}))
    assert found
    assert all(j == -1 for j, _ in found)


NUMBERS = [
    ("lower", 2, -3.0, 1, "lower bounds must lie in [0, 1], outcome 0 has -3.0."),
    ("upper", 4, 7.0, 1, "upper bounds must lie in [0, 1], outcome 2 has 7.0."),
    ("nominal", 0, np.nan, 0, "nominal probabilities must lie in [0, 1], outcome 0 has nan."),
    ("lower", 2, 0.9, 1, "lower must be <= upper, outcome 0 has [0.9, 0.4]."),
    ("upper", 0, 0.6, 0, "a known distribution must be its own bounds, outcome 0 has others."),
    ("radius", 2, -1.0, 2, "its radius must be >= 0, got -1.0."),
    ("radius", 4, np.inf, 4, "its radius must be >= 0, got inf."),
    ("radius", 2, np.nan, 2, "its radius must be >= 0, got nan."),
    ("exponent", 2, 2.0, 2, "the exponent of an L1 ball must be 1, got 2.0."),
    ("exponent", 4, 0.5, 4, "the exponent must be > 1 and finite, got 0.5."),
    ("exponent", 1, 3.0, 1, "a box must have no exponent, got 3.0."),
    ("corners", 0, 1.5, 5, "vertices must have entries in [0, 1]."),
    ("corners", 0, 0.3, 5, "the entries of every vertex must sum to 1."),
]


@pytest.mark.parametrize(("name", "place", "value", "marginal", "message"), NUMBERS)
def test_numbers(name, place, value, marginal, message):
    """Every number that a constructor would refuse is named with its marginal."""
    sets = altered(name, place, value)
    assert layout_problems(sets) == []
    found = problems(sets)
    assert (marginal, message) in [(j, text[: len(message)]) for j, text in found]
    assert {j for j, _ in found} == {marginal}


def test_sums():
    """Bounds that admit no distribution and nominals that are none are told."""
    low = replace(PACKED, lower=np.array([*PACKED.lower[:2], 0.4, 0.4, 0.4, *PACKED.lower[5:]]))
    assert any("lower bounds must sum to at most 1" in text for _, text in problems(low))
    high = replace(PACKED, upper=np.array([*PACKED.upper[:2], 0.3, 0.3, 0.3, *PACKED.upper[5:]]))
    assert any("upper bounds must sum to at least 1" in text for _, text in problems(high))
    off = altered("nominal", 2, 0.3)
    assert any("nominal probabilities must sum to 1" in text for _, text in problems(off))


numbers = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, -0.1, 1.5, np.nan, np.inf]),
    st.floats(0, 1),
)


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4))
def test_boxes_as_the_constructor_sees_them(entries):
    """Packed boxes are refused where `Interval` refuses one, and not as it stores one."""
    lower, upper, nominal = (np.array(column) for column in zip(*entries, strict=True))
    try:
        box = Interval(lower, upper, nominal)
        lower, upper, nominal = box.lower, box.upper, box.nominal
        accepted = True
    except ModelError:
        accepted = False
    count = len(entries)
    packed = Marginals(
        outcome_ptr=np.array([0, 2, 2 + count]),
        kind=np.array([Kind.SINGLETON, Kind.BOX], dtype=np.int8),
        nominal=np.array([0.5, 0.5, *nominal]),
        lower=np.array([0.5, 0.5, *lower]),
        upper=np.array([0.5, 0.5, *upper]),
        radius=np.full(2, np.nan),
        exponent=np.full(2, np.nan),
        corner_ptr=np.zeros(3, dtype=np.int64),
        corners=np.empty(0),
    )
    assert layout_problems(packed) == []
    found = problems(packed)
    assert (not found) == accepted
    assert all(j == 1 for j, _ in found)


def test_bounds_are_made_anew():
    """Sets of constructors keep their bounds; loose ones of boxes and balls become theirs."""
    for name in ("lower", "upper"):
        assert np.array_equal(getattr(with_own_bounds(PACKED), name), getattr(PACKED, name))
    loose = replace(PACKED, lower=PACKED.lower * 0.5, upper=(1.0 + PACKED.upper) / 2.0)
    again = with_own_bounds(loose)
    for j in (2, 3, 4):
        part = slice(*PACKED.outcome_ptr[j : j + 2])
        assert np.array_equal(again.lower[part], PACKED.lower[part])
        assert np.array_equal(again.upper[part], PACKED.upper[part])
