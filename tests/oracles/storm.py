"""Storm as an oracle: values of a property on our models, by the in-memory conversion.

Nominal: `storm_value(model, 'Pmax=? [F "goal"]')` checks the nominal probabilities, flattened, with
sound value iteration to an absolute precision of 1e-10.

Intervals: `storm_value(model, formula, nature=MIN)` runs Storm's robust value iteration on the
intervals of `flatten`, that is, on the *relaxation* by interval arithmetic: it equals our value
with `IntervalArithmetic`, and with any inner solver if every row has at most one marginal.
Traps of stormpy 2.0:
- `UncertaintyResolutionMode.MINIMIZE/MAXIMIZE` mean the computed formula, and `G` is computed by
  its complement, so they come out swapped there; ROBUST (against the agent) and COOPERATIVE (with
  the agent) are right for every operator and are what is used here.
- Lower bounds of 0 are refused, or give wrong graph analysis: this raises ValueError instead.
- Robust value iteration stops on a residual: expect 1e-6 on slow mixing models, not 1e-10.
- It says on standard output that it changes the method; that is harmless.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pytest

from rfmdp.formats.libraries import to_stormpy
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.types import FloatArray

PRECISION = "1/10000000000"


def storm_value(
    model: FactoredMDP,
    formula: str,
    nature: Direction | None = None,
    *,
    initial: bool = False,
) -> FloatArray:
    """Return Storm's value of every state, or of the first initial one; skips without stormpy.

    Parameters
    ----------
    model : any model
    formula : a property with max or min, such as `R{"cost"}min=? [F "goal"]`
    nature : None for the nominal model, else the direction that resolves the intervals
    """
    stormpy = pytest.importorskip("stormpy")
    if nature is not None and np.any((model.marginals.lower == 0) & (model.marginals.upper > 0)):
        raise ValueError("Storm refuses intervals with the lower bound 0")
    settled = nature is None or not model.uncertain
    mode = None if settled else _mode(stormpy, formula, nature)
    environment = stormpy.environments.sound()
    solver = environment.solver().min_max()
    solver.precision = stormpy.Rational(PRECISION)
    solver.relative_termination_criterion = False
    result = stormpy.model_checking(
        _converted(model, nature is None),
        stormpy.parse_property(formula),
        only_initial_states=initial,
        environment=environment,
        uncertainty_resolution_mode=mode,
    )
    states = model.initial[:1].tolist() if initial else range(model.states)
    return np.array([result.get_value(s) for s in states], dtype=np.float64)


@lru_cache(maxsize=16)  # a model is asked for many properties
def _converted(model, nominal):
    """Return a model for Storm, with its nominal probabilities or with its intervals."""
    return to_stormpy(model.nominal() if nominal else model)


def _mode(stormpy, formula, nature):
    """Return how Storm calls nature's direction, seen from the agent's."""
    found = re.match(r'\s*[PR](\{"[^"]*"\})?(min|max)=\?', formula)
    assert found, f"the formula must start with Pmin, Pmax, Rmin or Rmax: {formula}"
    agent = MAX if found[2] == "max" else MIN
    modes = stormpy.UncertaintyResolutionMode
    return modes.COOPERATIVE if agent is nature else modes.ROBUST
