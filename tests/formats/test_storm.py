"""Conversion to and from stormpy, and Storm's values on small models with known ones."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from oracles.storm import storm_value
from rfmdp.errors import UnsupportedError
from rfmdp.formats.libraries import from_stormpy, to_stormpy
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import flatten
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval

from .models import assert_same, random_model

PROGRAM = """
mdp
module m
  x : [0..2] init 0;
  b : bool init false;
  [go] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);
  [] x>0 -> (b'=true);
endmodule
label "goal" = x=2;
rewards "cost" x=0 : 1.5; [go] true : 2; endrewards
"""


@pytest.fixture
def gamble():
    """Return try (succeeds with 0.3..0.5, fails with 0.2..0.4, else again) or give up (0.4)."""
    tries = Interval([0.3, 0.2, 0.1], [0.5, 0.4, 0.5], [0.4, 0.3, 0.3])
    fixed = Interval([0.4, 0.6], [0.4, 0.6])
    return FactoredMDP.from_rows(
        [
            [([0], [1, 2, 0], "try"), ([1], [1, 2], "stop")],
            [([], [1], "end")],
            [([], [2], "end")],
        ],
        [tries, fixed],
        labels={"goal": [False, True, False], "end": [False, True, True]},
        rewards={"time": Rewards(np.array([1.0, 0.0, 0.0]), np.zeros(4))},
    )


@pytest.mark.parametrize("kind", ["known", "box", "l1"])
@pytest.mark.parametrize("seed", range(3))
def test_there_and_back(kind, seed):
    """A model that goes through stormpy comes back flattened, to the last bit."""
    pytest.importorskip("stormpy")
    model = random_model(np.random.default_rng(seed), kind)
    assert_same(from_stormpy(to_stormpy(model)), flatten(model), variables=False)
    nominal = from_stormpy(to_stormpy(model.nominal()))
    assert_same(nominal, flatten(model.nominal()), variables=False)


def test_a_model_that_storm_built(tmp_path):
    """Variables, labels, actions and rewards of Storm's own builder arrive."""
    stormpy = pytest.importorskip("stormpy")
    path = tmp_path / "m.prism"
    path.write_text(PROGRAM)
    options = stormpy.BuilderOptions(build_full=True)
    model = from_stormpy(stormpy.build_model(stormpy.parse_prism_program(path), options=options))
    assert [(v.name, v.boolean) for v in model.variables] == [("b", True), ("x", False)]
    assert model.valuations[model.initial[0]].tolist() == [0, 0]
    start = int(model.row_ptr[model.initial[0]])
    assert model.actions[model.row_actions[start]] == "go"
    assert model.rewards["cost"].row[start] == 2.0
    assert model.label("goal").tolist() == (model.valuations[:, 1] == 2).tolist()


def test_variables_beyond_32_bits_are_left_out(tmp_path):
    """Their values were cut to 32 bits; the model itself keeps its states."""
    stormpy = pytest.importorskip("stormpy")
    path = tmp_path / "m.prism"
    path.write_text(PROGRAM.replace("x'=2", "x'=4294967298").replace("[0..2]", "[0..4294967298]"))
    options = stormpy.BuilderOptions(build_full=True)
    built = stormpy.build_model(stormpy.parse_prism_program(path), options=options)
    model = from_stormpy(built)
    assert model.states == built.nr_states
    assert "x" not in [v.name for v in model.variables]


def test_nominal_values(gamble):
    """Trying for ever succeeds with 0.4 / 0.7 of the nominal probabilities."""
    best = storm_value(gamble, 'Pmax=? [F "goal"]')
    worst = storm_value(gamble, 'Pmin=? [F "goal"]')
    np.testing.assert_allclose(best, [4 / 7, 1, 0], atol=1e-9)
    np.testing.assert_allclose(worst, [0.4, 1, 0], atol=1e-9)
    time = storm_value(gamble, 'R{"time"}max=? [F "end"]')
    np.testing.assert_allclose(time, [1 / 0.7, 0, 0], atol=1e-8)


@pytest.mark.parametrize(
    ("formula", "nature", "value"),
    [
        ('Pmax=? [F "goal"]', MIN, 3 / 7),
        ('Pmax=? [F "goal"]', MAX, 5 / 7),
        ('Pmin=? [F "goal"]', MIN, 0.4),
        ('Pmin=? [F "goal"]', MAX, 0.4),
        ('Pmax=? [G !"goal"]', MIN, 0.6),
        ('Pmax=? [X "goal"]', MAX, 0.5),
        ('R{"time"}max=? [F "end"]', MAX, 2.0),
        ('R{"time"}max=? [F "end"]', MIN, 1 / 0.9),
    ],
)
def test_robust_values(gamble, formula, nature, value):
    """All pairs of directions, also where Storm computes by the complement."""
    assert storm_value(gamble, formula, nature)[0] == pytest.approx(value, abs=1e-6)


def test_the_oracle_refuses_zero_lower_bounds():
    """Storm's graph analysis is not made for them."""
    pytest.importorskip("stormpy")
    model = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Interval([0, 0], [1, 1])])
    with pytest.raises(ValueError, match="lower bound 0"):
        storm_value(model, 'Pmax=? [F "init"]', MIN)


def test_other_models_are_refused(tmp_path):
    """A continuous-time model is told by its type."""
    stormpy = pytest.importorskip("stormpy")
    path = tmp_path / "c.prism"
    path.write_text("ctmc module m x:[0..1] init 0; <> true -> 2:(x'=1); endmodule")
    with pytest.raises(UnsupportedError, match="sparse DTMC or MDP"):
        from_stormpy(stormpy.build_model(stormpy.parse_prism_program(path)))


def test_without_stormpy(gamble, monkeypatch):
    """The error says which extra to install."""
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(UnsupportedError, match=r"rfmdp\[storm\]"):
        to_stormpy(gamble)
