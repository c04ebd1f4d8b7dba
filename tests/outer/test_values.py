"""Every objective and pair of directions against brute force on tiny random models."""

import numpy as np
import pytest

from narrow import require_narrow
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Status
from rfmdp.solving import solve
from true_values import LEEWAY, exact_steps, true_value

from .random_specs import specs, tiny_model

SPECS = list(specs())
CHUNK = 50
PER_MODEL = 4


def everywhere(model):
    return np.ones(model.states, dtype=bool)


def check_policy(model, spec, found, truth) -> None:
    """Check that the policy alone attains the value, also where that is one or infinite."""
    if found.policy.stationary:
        attained = true_value(restrict(model, found.policy.rows[0]), spec)
        leeway = 2e-6 * np.where(np.isfinite(truth), np.maximum(1.0, np.abs(truth)), 1.0)
        good = attained >= truth - leeway if spec.agent is MAX else attained <= truth + leeway
        assert np.all(good), (attained, truth)


def check_values(first: int, last: int) -> None:
    """Check a few objectives on each model, all of them in turn: bounds hold and are close."""
    for seed in range(first, last):
        model = tiny_model(seed)
        for k in range(PER_MODEL):
            name, spec = SPECS[(7 * seed + 15 * k) % len(SPECS)]
            truth = true_value(model, spec)
            found = solve(model, spec, states=everywhere(model))
            leeway = LEEWAY * np.where(np.isfinite(truth), np.maximum(1.0, np.abs(truth)), 1.0)
            assert np.all(found.lower <= truth + leeway), (seed, name, truth, found.lower)
            assert np.all(truth <= found.upper + leeway), (seed, name, truth, found.upper)
            assert found.status is Status.CERTIFIED, (seed, name, found.lower, found.upper)
            check_policy(model, spec, found, truth)
            finite = np.isfinite(truth)
            width = found.upper[finite] - found.lower[finite]
            size = np.maximum(np.abs(found.upper[finite]), np.abs(found.lower[finite]))
            scale = max(1.0, float(size.max(initial=0.0)))
            assert np.all(width <= np.maximum(1e-6 * size, 1e-12 * scale)), (seed, name)


@pytest.mark.parametrize("chunk", range(3))
def test_bounds_enclose_the_value_found_by_brute_force(chunk):
    """Bounds hold, and are certified as close as asked, on 150 models: 10 per objective."""
    check_values(CHUNK * chunk, CHUNK * (chunk + 1))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_bounds_enclose_the_value_found_by_brute_force_at_length(chunk):
    """The same on 20000 further models."""
    check_values(10_000 + 1000 * chunk, 10_000 + 1000 * (chunk + 1))


@pytest.mark.parametrize("seed", range(12))
def test_finite_horizons_enclose_exact_fractions(seed):
    """Bounds of finite horizons hold without any leeway against fractions."""
    model = tiny_model(seed)
    for name, spec in SPECS:
        problem = pose(model, spec)
        if problem.form is not Form.STEPS:
            continue
        exact = exact_steps(problem, problem.start.tolist())
        found = require_narrow(solve(model, spec), everywhere(model))
        for s, value in enumerate(exact):
            value = 1 - value if problem.flipped else value
            # vertices of boxes are rounded: a few ulps of the largest value
            assert float(found.lower[s] - value) <= 1e-15 * max(1, abs(value)), (name, s)
            assert float(value - found.upper[s]) <= 1e-15 * max(1, abs(value)), (name, s)
