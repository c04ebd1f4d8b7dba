"""The learned model twice: with everything unknown against the agent, and for the agent.

Both have the same uncertainty sets. They differ in what rows pay, where that is learned, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.rewards import UnknownRewards
from rfmdp.learning.setup import Setup
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import pose
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray


class LearnedModel:
    """What is learned, as models and specifications to solve.

    `model` has the identifiers to count as marginals. `payments` are rewards
    that are learned; None: rows pay what the model says.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.model, self.spec = ids.model, setup.spec
        self.payments: UnknownRewards | None = None
        if setup.rewards is not None:
            self.payments = UnknownRewards(setup.rewards, self.model, self.spec, setup.shares())

    @property
    def least(self) -> float:
        """What a row pays at least."""
        if self.payments is not None:
            return self.payments.family.range.low
        problem = pose(self.model, self.spec)
        return float(np.min([*problem.reward, *problem.start], initial=0.0))

    def pessimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        return self._with(sets, low=self.spec.agent is MAX), self.spec

    def optimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        spec = replace(self.spec, nature=self.spec.agent)
        return self._with(sets, low=self.spec.agent is not MAX), spec

    def paid(self, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most, (R,); None if they pay what the model says."""
        return None if self.payments is None else self.payments.bounds(low)

    def _with(self, sets: Marginals, low: bool) -> FactoredMDP:
        """Return the model with learned sets, and with the least or largest rewards."""
        model = self.model.with_marginals(sets).with_provenance(sets={"kind": "learned"})
        return model if self.payments is None else self.payments.apply(model, low)
