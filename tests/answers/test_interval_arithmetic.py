"""`--inner interval` has PRISM's meaning: bounds are multiplied as the text states them."""

import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from examples import quarter
from language.random_models import model_texts
from rfmdp.answers.answer import check
from rfmdp.errors import PrismWarning
from rfmdp.formats.files import load, save
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.language.build import parse_prism
from rfmdp.model.derived import flatten

# x=1 can have 0.4..0.6 only, y=1 only 0.3..0.5, but the text says more
LOOSE = """imdp
module a
  x : [0..2];
  [go] x=0 -> [0.1,0.9] : (x'=1) + [0.4,0.6] : (x'=2);
  [stay] x>0 -> true;
endmodule
module b
  y : [0..2];
  [go] y=0 -> [0.2,0.5] : (y'=1) + [0.5,0.7] : (y'=2);
endmodule
"""
X = {1: (Fraction(1, 10), Fraction(9, 10)), 2: (Fraction(4, 10), Fraction(6, 10))}
Y = {1: (Fraction(2, 10), Fraction(5, 10)), 2: (Fraction(5, 10), Fraction(7, 10))}


def stated_value(target, sign):
    """Return the extreme probability of some of the four corners, by products of the text."""
    low = {k: X[k[0]][0] * Y[k[1]][0] for k in product(X, Y)}
    high = {k: X[k[0]][1] * Y[k[1]][1] for k in product(X, Y)}
    left = 1 - sum(low.values())
    inside = sum(low[k] for k in target)
    room_in = sum(high[k] - low[k] for k in target)
    room_out = sum(high[k] - low[k] for k in low if k not in target)
    return inside + (min(left, room_in) if sign > 0 else max(Fraction(0), left - room_out))


@pytest.mark.parametrize(
    ("formula", "target"),
    [
        ("x=1 & y=1", {(1, 1)}),
        ("x=2 & y=2", {(2, 2)}),
        ("x=1", {(1, 1), (1, 2)}),
        ("x=y", {(1, 1), (2, 2)}),
    ],
)
def test_products_of_stated_bounds(formula, target):
    """The value is that of PRISM's joint intervals, wider than those of attainable bounds."""
    model = parse_prism(LOOSE)
    for nature, sign in (("min", -1), ("max", 1)):
        text = f"Pmax{nature}=? [ X ({formula}) ]"
        found = check(model, text, inner=IntervalArithmetic()).value
        assert found == pytest.approx(float(stated_value(target, sign)), abs=1e-12)
        exact = check(model, text)
        assert (found - exact.value) * sign >= -1e-12


def test_one_command_is_the_same_in_every_method():
    """Without synchronisation unattainable bounds change nothing."""
    text = LOOSE.partition("module b")[0]
    for prop in ("Pmaxmin=? [ F x=1 ]", "Pmaxmax=? [ F x=1 ]"):
        values = [
            check(parse_prism(text), prop, inner=i).value for i in (IntervalArithmetic(), None)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
    assert values[0] == pytest.approx(0.6, abs=1e-12)


def test_an_interval_of_the_only_update_counts_in_products():
    """[0.5,1] : true is certain, but PRISM multiplies its bounds."""
    text = """imdp
    module a x : [0..2]; [go] x=0 -> [0.4,0.6] : (x'=1) + [0.4,0.6] : (x'=2); endmodule
    module b y : [0..1]; [go] true -> [0.5,1] : (y'=1); endmodule"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = parse_prism(text)
    assert check(model, "Pmaxmin=? [ X x=1 ]").value == pytest.approx(0.4)
    found = check(model, "Pmaxmin=? [ X x=1 ]", inner=IntervalArithmetic())
    assert found.value == pytest.approx(0.4)  # 1 - 0.6 * 1
    assert found.lower is not None


def test_stated_bounds_are_saved(tmp_path):
    """A model that was saved gives the same value by interval arithmetic."""
    model = parse_prism(LOOSE)
    save(model, tmp_path / "model.rfmdp")
    again = load(tmp_path / "model.rfmdp")
    assert np.array_equal(again.marginals.stated, model.marginals.stated)


@quarter
@given(model_texts(kinds=("imdp",)))
def test_interval_arithmetic_is_the_flat_model(text):
    """Products of bounds row by row, and the model that they make, have one value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = parse_prism(text)
    flat = flatten(model)
    for prop in ('Pmaxmin=? [ F "top" ]', 'Pminmax=? [ F<=3 "top" ]', "Rmaxmin=? [ C<=3 ]"):
        found = check(model, prop, inner=IntervalArithmetic()).value
        bounds = check(flat, prop)
        assert bounds.lower - 2e-6 <= found <= bounds.upper + 2e-6
