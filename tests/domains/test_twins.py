"""PRISM files against the same domains in the Python builder."""

import sys
from pathlib import Path

import numpy as np
import pytest

from rfmdp.domains import domain, domain_spec
from rfmdp.objective import ReachReward, Spec, Until
from rfmdp.solving import solve

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import described

CASES = {
    "aircraft": ({}, {}),
    "chain": ({}, {}),
    "sysadmin": ({"machines": 6, "horizon": 5}, {"N": 6, "T": 5}),
}


@pytest.mark.parametrize("name", CASES)
def test_file_and_builder_give_the_same_value(name):
    """Two descriptions, one value, at a radius that both sets of marginals share."""
    theirs, ours = CASES[name]
    twin = getattr(described, name)(**theirs).with_radius(0.03, 1e-3)
    model = domain(name, **ours).with_radius(0.03, 1e-3)
    assert (twin.states, twin.rows) == (model.states, model.rows)
    assert twin.transitions == model.transitions
    found = solve(model, domain_spec(name)).at_initial()
    other = solve(twin, twin_spec(name, twin)).at_initial()
    assert found.lower == pytest.approx(other.lower, rel=1e-6)
    assert found.upper == pytest.approx(other.upper, rel=1e-6)


def test_drones_move_alike():
    """State by state, the first drone of file and builder has the same successors."""
    twin, model = described.drone(size=4), domain("drone", n=4, maxY=4)
    order = np.lexsort(twin.valuations.T[::-1])
    ours = np.lexsort(model.valuations.T[::-1])
    assert np.array_equal(twin.valuations[order], model.valuations[ours])
    assert successors(twin, order) == successors(model, ours)


def successors(model, order):
    """Return the multiset of valuations that every action leads to, from some states."""
    codes = model.valuations @ (5 ** np.arange(6))
    found = []
    for state in order[::97]:
        for row in range(model.row_ptr[state], model.row_ptr[state + 1]):
            part = slice(model.successor_ptr[row], model.successor_ptr[row + 1])
            action = model.actions[model.row_actions[row]]
            found.append((action, sorted(codes[model.successors[part]].tolist())))
    return sorted(found)


def twin_spec(name, twin):
    """Return a twin's specification with its own labels."""
    spec = domain_spec(name)
    if name == "aircraft":
        return Spec(Until(~twin.label("collision"), "goal"), spec.agent, spec.nature)
    target = {"chain": "target", "sysadmin": "end"}[name]
    return Spec(ReachReward(target), spec.agent, spec.nature)
