"""How the published experiments learned: per domain, and as text or code of the paper have it.

Identifiers there are (module, local state, action), with the clock for Stock Trading, and with
both neighbours and the clock for SysAdmin.

Text and code differ in beta, in the length of trajectories, in when to plan again, in how often
another action is tried, in where trajectories end, in floors under probabilities, in the share of
beta of an L1 ball, and in pseudo-counts of flat learning. Which of them made the published curves
is not said anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from rfmdp.domains import Version, find
from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson, Validity
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.methods import Doubling, Method, Optimistic
from rfmdp.learning.setup import Budget
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import solve
from rfmdp.sources.source import Simulated, Source
from rfmdp.types import BoolArray, FloatArray, IntArray

SEEDS = 10
TRAJECTORIES = 1_000_000
FLOOR = 1e-8  # of the code, under every probability
SIXFOLD = Doubling(factor=6.0)  # the code looks at visits of pairs of global states and actions


# steps of a trajectory as the code has them
LENGTH_IN_CODE = {
    "aircraft": 11,
    "frozen_lake": 50,
    "stock_trading": 11,
    "sysadmin": 6,
    "drone": 50,
}
SETUPS: Mapping[str, Version] = MappingProxyType(
    {name: learned for name in LENGTH_IN_CODE if (learned := find(name).learning) is not None}
)


@dataclass(frozen=True, slots=True)
class PseudoCounts:
    """Clopper-Pearson boxes from counts to which samples that were never drawn are added.

    They draw the boxes towards uniform distributions, so they are no confidence sets.
    """

    added: int = 2  # to every outcome

    label = "Clopper-Pearson with pseudo-counts"
    validity = Validity.SINGLE_LOOK
    assumptions = (*ClopperPearson.assumptions, "pseudo-counts do no harm (they do)")
    events = staticmethod(ClopperPearson.events)

    def sets(self, outcome_ptr: IntArray, counts: IntArray, delta: FloatArray) -> Marginals:
        """Return a box per marginal."""
        return ClopperPearson().sets(outcome_ptr, np.asarray(counts) + self.added, delta)


def decided(model: FactoredMDP, spec: Spec) -> BoolArray:
    """Return the states (S,) of which the optimal value is 0, 1 or infinite."""
    value = solve(model, spec).value
    ends: BoolArray = (value == 0.0) | (value == 1.0) | np.isinf(value)
    return ends


@dataclass(frozen=True, slots=True)
class PaperReading:
    """One way to read the published experiments: by the paper's text, or by its code."""

    name: str
    title: str
    beta: float

    def method(self, method: Method) -> Method:
        """Return a method with the parts of this setting."""
        if self is not CODE or method.confidence.validity is not Validity.SINGLE_LOOK:
            return method
        changed: dict[str, Any] = {"exploration": Optimistic(other=0.1), "schedule": SIXFOLD}
        if method.granularity is Granularity.FLAT:
            changed["confidence"] = PseudoCounts()
        return replace(method, budget=Budget.PROBABILITIES, **changed)

    def keywords(self, domain: str, method: Method) -> dict[str, Any]:
        """Return what `learn` is asked for, with a method."""
        setup = SETUPS[domain]
        chosen = self.method(method)
        boxes = isinstance(chosen.confidence, ClopperPearson | PseudoCounts)
        # boxes of more than 62 outcomes that nature may empty are beyond the analysis of graphs
        vast = method.granularity is Granularity.FLAT and domain in ("sysadmin", "drone")
        floored = vast or (self is CODE and boxes)
        return {
            "method": chosen,
            "beta": self.beta,
            "length": LENGTH_IN_CODE[domain] if self is CODE else setup.length,
            "local": setup.local_states,
            "p_min": FLOOR if floored else None,
        }

    def source(self, model: FactoredMDP, spec: Spec) -> Source:
        """Return where samples come from."""
        return Simulated(model, ends=decided(model, spec) if self is CODE else None)


TEXT = PaperReading("text", "as the paper's text has it", 1e-4)
CODE = PaperReading("code", "as public versions of its code have it", 1e-3)
SETTINGS: Mapping[str, PaperReading] = MappingProxyType({s.name: s for s in (TEXT, CODE)})


def find_setting(name: str) -> PaperReading:
    """Return a reading by its name."""
    if name not in SETTINGS:
        raise ModelError(f"There is no setting '{name}'; there are: {', '.join(SETTINGS)}.")
    return SETTINGS[name]
