"""The 84 published values of the exact and the interval column."""

from itertools import product

import numpy as np
import pytest

from rfmdp.domains import DOMAINS, domain, published_bounds
from rfmdp.inner.exact import Exact
from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.objective import MAX
from rfmdp.paper.published import EXPLAINED, RADII, published_table
from rfmdp.solving import solve

QUICK = {"chain": RADII, "herman": (0.025, 0.1), "aircraft": (0.025, 0.1)}
# certified values where the printed one has an error of its own
TRUE = {
    ("chain", 0.025, "interval"): 451.2863144,
    ("chain", 0.1, "exact"): 1019.7102222,
    ("chain", 0.1, "interval"): 6356.227832,
    ("frozen_lake", 0.1, "interval"): 2797.5958,
}
# seconds each
LONG = {
    ("drone", 0.025, "exact"),
    ("drone", 0.025, "interval"),
    ("frozen_lake", 0.025, "interval"),
}


def is_slow(*row):
    """Return whether a value is certified by `make test-all` only."""
    name, radius, _ = row
    return radius not in QUICK.get(name, (0.025,)) or row in LONG


ROWS = [
    pytest.param(*row, marks=pytest.mark.slow if is_slow(*row) else [])
    for row in product(DOMAINS, RADII, ("exact", "interval"))
]


@pytest.fixture(scope="module")
def nominal():
    """Return a function that builds the published model of a domain, the last one kept."""
    kept = {}

    def model(name):
        if name not in kept:
            kept.clear()
            kept[name] = domain(name)
        return kept[name]

    return model


@pytest.mark.parametrize(("name", "radius", "column"), ROWS)
def test_published_value(nominal, name, radius, column):
    """The certified guarantee is the printed value, or the known truth behind it."""
    found = DOMAINS[name]
    model, known = published_bounds(name, nominal(name), radius), found.versions["published"]
    assert (model.states, model.transitions) == (known.states, known.transitions)
    inner = Exact() if column == "exact" else IntervalArithmetic()
    solution = solve(model, found.spec, inner=inner)
    value = float(solution.guarantee[model.initial].max())
    printed = published_table()[name, radius, column]
    if (name, radius, column) in EXPLAINED:
        assert value == pytest.approx(TRUE[name, radius, column], rel=1e-6)
        assert value == pytest.approx(float(printed.value), rel=1e-4)
    else:
        assert printed.agrees(value)
    if column == "exact":
        _require_narrow(solution, model)


def _require_narrow(solution, model):
    lower, upper = (float(np.max(side[model.initial])) for side in (solution.lower, solution.upper))
    assert upper - lower <= 1e-6 * upper
    assert solution.require_certified() is solution


def test_no_more_differences_than_known():
    """Four of the 84 printed values contain a stopping error."""
    own = [key for key in EXPLAINED if key[2] in ("exact", "interval")]
    assert sorted(own) == sorted(TRUE)
    assert all(DOMAINS[name].agent is not MAX for name, _, _ in own)
