"""Radii around nominal models."""

from __future__ import annotations

import pytest

import rfmdp as rf
from rfmdp.errors import ModelError

CHAIN = """dtmc
const double p;
module m
  x : [0..1];
  [] x=0 -> p:(x'=0) + 1-p:(x'=1);
  [] x=1 -> true;
endmodule
label "goal" = x=1;"""


def test_a_radius_that_misses_a_probability_by_rounding():
    """1 - 0.7 is above 0.3, so nature cannot empty it: the numbers that are stored decide."""
    model = rf.parse_prism(CHAIN, {"p": 0.7})
    ask = 'Pmin=? [ F "goal" ]'
    assert rf.solve(model.with_radius(0.3), ask).at_initial().lower == 1.0
    assert rf.solve(model.with_radius(0.3 + 1e-9), ask).at_initial().upper == 0.0


def test_a_radius_around_sets_is_refused():
    """Sets are not replaced silently; dropping them first is said aloud."""
    model = rf.parse_prism(CHAIN, {"p": 0.75}).with_radius(0.125)
    with pytest.raises(ModelError, match=r"has sets of its own; use model\.nominal\(\)"):
        model.with_radius(0.0625)
    assert model.nominal().with_radius(0.0625).marginals.lower.tolist() == [0.6875, 0.1875]
