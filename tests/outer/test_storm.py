"""Storm as an oracle: plain model checking at radius 0, robust value iteration on intervals."""

from functools import lru_cache

import numpy as np
import pytest

from narrow import require_narrow
from oracles.storm import storm_value
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    Until,
)
from rfmdp.sets.families import Singleton
from rfmdp.solving import solve

OBJECTIVES = {
    'P{}=? [F "goal"]': Reach("goal"),
    'P{}=? ["safe" U "goal"]': Until("safe", "goal"),
    'P{}=? ["safe" U<=4 "goal"]': Until("safe", "goal", 4),
    'P{}=? [G "safe"]': Globally("safe"),
    'P{}=? [X "goal"]': Next("goal"),
    'R{{"cost"}}{}=? [F "goal"]': ReachReward("goal", "cost"),
    'R{{"cost"}}{}=? [C<=5]': Cumulative(5, "cost"),
    'R{{"cost"}}{}=? [I=3]': Instantaneous(3, "cost"),
}


@lru_cache(maxsize=32)  # a model is asked for many properties
def random_mdp(seed: int, factors: int = 2, radius: float = 0.0) -> FactoredMDP:
    """Return an MDP of some independent coins per row, self-loops and traps included."""
    states = 12
    rng = np.random.default_rng(seed)
    sets = [Singleton([p, 1 - p]) for p in (0.25, 0.5, 0.9)]
    rows = []
    for s in range(states):
        line = []
        for _ in range(rng.integers(1, 4)):
            ids = rng.integers(0, 3, rng.integers(0, factors + 1)).tolist()
            near = np.clip(s + rng.integers(-2, 4, 2 ** len(ids)), 0, states - 1)
            line.append((ids, near.tolist()))
        rows.append(line)
    goal, safe = np.zeros(states, bool), rng.random(states) < 0.9
    goal[-1] = True
    cost = Rewards(rng.choice([0.0, 1.0, 2.0], states), rng.choice([0.0, 1.0], sum(map(len, rows))))
    labels = {"goal": goal, "safe": safe}
    model = FactoredMDP.from_rows(rows, sets, labels=labels, rewards={"cost": cost})
    return model.with_radius(radius, floor=1e-3) if radius else model


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("formula", OBJECTIVES)
def test_plain_models_have_storms_values(formula, seed):
    """Without uncertainty, bounds enclose Storm's sound values in every state."""
    model = random_mdp(seed)
    for agent, word in ((MAX, "max"), (MIN, "min")):
        wanted = storm_value(model, formula.format(word))
        spec = Spec(OBJECTIVES[formula], agent, MIN)
        found = require_narrow(solve(model, spec, states=np.ones(model.states, bool)))
        slack = 1e-8 * np.where(np.isfinite(wanted), np.maximum(1, np.abs(wanted)), 1.0)
        assert np.all(found.lower <= wanted + slack)
        assert np.all(wanted <= found.upper + slack)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("formula", [f for f in OBJECTIVES if "I=" not in f])
def test_flat_intervals_have_storms_robust_values(formula, seed):
    """Interval arithmetic is Storm's semantics; its residual is worth 1e-6 or so."""
    model = random_mdp(seed, radius=0.05)
    for agent, word in ((MAX, "max"), (MIN, "min")):
        for nature in (MAX, MIN):
            wanted = storm_value(model, formula.format(word), nature=nature)
            spec = Spec(OBJECTIVES[formula], agent, nature)
            found = solve(model, spec, inner=IntervalArithmetic()).value
            assert found == pytest.approx(wanted, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("formula", [f for f in OBJECTIVES if "I=" not in f])
def test_rows_of_one_factor_enclose_storms_robust_values(formula):
    """With one coin per row nothing is relaxed: certified bounds, and Storm's value between."""
    compared = 0
    for seed in range(10):
        model = random_mdp(seed, factors=1, radius=0.05)
        for agent, word in ((MAX, "max"), (MIN, "min")):
            for nature in (MAX, MIN):
                try:
                    wanted = storm_value(model, formula.format(word), nature=nature)
                except RuntimeError:  # it cannot do rewards where the target may be missed
                    continue
                compared += 1
                spec = Spec(OBJECTIVES[formula], agent, nature)
                found = require_narrow(solve(model, spec, states=np.ones(model.states, bool)))
                finite = np.isfinite(wanted)
                assert np.array_equal(finite, np.isfinite(found.value))
                # its residual, not ours, is what the slack is for
                slack = 1e-6 + 1e-4 * np.abs(wanted[finite])
                assert np.all(found.lower[finite] <= wanted[finite] + slack)
                assert np.all(wanted[finite] <= found.upper[finite] + slack)
    assert compared >= 20
