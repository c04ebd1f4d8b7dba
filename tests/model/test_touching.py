"""Warnings of sets that rounding alone keeps away from 0."""

from __future__ import annotations

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import ModelError, PrismWarning

CHAIN = """dtmc
const double p;
module m
  x : [0..1];
  [] x=0 -> p:(x'=0) + 1-p:(x'=1);
  [] x=1 -> true;
endmodule
label "goal" = x=1;"""

BOUNDS = """idtmc
module m
  x : [0..4];
  [] x=0 -> %s;
  [] x>0 -> (x'=0);
endmodule"""


def outcomes(*bounds: str) -> str:
    """Return a model with one command whose outcomes have the given bounds."""
    return BOUNDS % " + ".join(f"{b} : (x'={k})" for k, b in enumerate(bounds, 1))


def test_a_radius_that_misses_a_probability_by_rounding():
    """1 - 0.7 is above 0.3; the warning names command, outcome, numbers and a remedy that works."""
    model = rf.parse_prism(CHAIN, {"p": 0.7})
    ask = 'Pmin=? [ F "goal" ]'
    said = r"outcome 2: \(x'=1\): nature cannot empty it by rounding only"
    with pytest.warns(PrismWarning, match=said) as caught:
        touching = model.with_radius(0.3)
    assert len(caught) == 1
    assert rf.solve(touching, ask).at_initial().lower == 1.0
    assert rf.solve(model.with_radius(0.3 + 1e-9), ask).at_initial().upper == 0.0
    with pytest.warns(PrismWarning, match=said):
        model.with_radius(0.3)
    with pytest.warns(PrismWarning, match=r"by rounding only"):
        model.with_radius(0.6, exponent=1.0)


@pytest.mark.parametrize(("p", "radius"), [(0.6, 0.4), (0.7, 0.29), (0.7, 0.31), (0.5, 0.5)])
def test_radii_that_mean_what_they_say(p, radius):
    """Probabilities that are the radius, or clearly are not, come without a warning."""
    rf.parse_prism(CHAIN, {"p": p}).with_radius(radius)


def test_a_floor_is_meant():
    """With a floor nature empties nothing anyway."""
    rf.parse_prism(CHAIN, {"p": 0.7}).with_radius(0.3, floor=1e-6)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (["[0.7-0.3,1]", "[1-0.7-0.3,1]"], r"outcome 2: \(x'=2\): .*cannot empty it by"),
        (["[0,0.1]", "[0,0.2]", "[0,0.7]", "[0,0.5]"], r"outcome 4: .*cannot empty it by"),
        (["0.7", "0.3", "1-0.7-0.3"], r"outcome 3: .*cannot empty it by"),
    ],
)
def test_bounds_that_miss_zero_by_rounding(bounds, said):
    """A text says so when it is built, with the line."""
    with pytest.warns(PrismWarning, match=r"m: \[\] line 4, " + said):
        rf.parse_prism(outcomes(*bounds))


@pytest.mark.parametrize(
    "bounds",
    [
        ["[0,0.4]", "[0,0.6]", "[0,0.5]"],
        ["[1e-20,1]", "[0.1,1]"],
        ["[1e-16,1]", "[0.1,1]"],
        ["[0,0.1]", "[0,0.2]", "[0,0.69]", "[0,0.5]"],
        ["[0.5,0.5]", "[0.5,0.5]"],
        ["1e-17", "1-1e-17"],
    ],
)
def test_bounds_that_mean_what_they_say(bounds):
    """Sums that are one, small numbers that were written and clear distances are no matter."""
    rf.parse_prism(outcomes(*bounds))


def test_several_outcomes_are_one_warning():
    """The first one is named, the others are counted."""
    model = rf.FactoredMDP.from_rows(
        [[([0], [0, 1]), ([1], [0, 1])], [([], [1])]],
        [rf.Singleton([0.7, 1 - 0.7]), rf.Singleton([1 - 0.7, 0.7])],
    )
    with pytest.warns(PrismWarning, match=r"^marginal 0, outcome 2: .*So for 1 more\.$"):
        model.with_radius(0.3)
    model.with_radius(np.array([0.1, 0.2]))


def test_a_radius_around_sets_is_refused():
    """Sets are not replaced silently; dropping them first is said aloud."""
    model = rf.parse_prism(CHAIN, {"p": 0.75}).with_radius(0.125)
    with pytest.raises(ModelError, match=r"has sets of its own; use model\.nominal\(\)"):
        model.with_radius(0.0625)
    assert model.nominal().with_radius(0.0625).marginals.lower.tolist() == [0.6875, 0.1875]
