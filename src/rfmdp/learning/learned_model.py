"""The learned model twice: with everything unknown against the agent, and for the agent.

Both have the same uncertainty sets. They differ where more than probabilities is unknown: where
unseen outcomes lead, and what rows pay.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.rewards import UnknownRewards
from rfmdp.learning.setup import Setup
from rfmdp.learning.support import DeclaredSupport, SparseSupport
from rfmdp.learning.transition_rewards import TransitionReward, TransitionRewards
from rfmdp.learning.unseen import settle_unseen, with_unseen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import pose
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray


class LearnedModel:
    """What is learned, as models and specifications to solve.

    `ids` are the identifiers to count, `worst` and `best` the model and the specification with
    outcomes that are not listed leading to the worst and to the best that can happen. `payments`
    are rewards that are learned, or those of transitions; None: rows pay what the model says.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.spec = spec = setup.spec
        self.states, rewards = ids.model.states, setup.rewards
        self.payments: UnknownRewards | TransitionRewards | None = None
        listed = isinstance(setup.support, DeclaredSupport | SparseSupport)
        if isinstance(rewards, TransitionReward):
            self.payments = TransitionRewards(rewards, ids.model, spec, setup.method.inner)
            if not listed:
                raise UnsupportedError(
                    "TransitionReward: outcomes must be listed, nobody knows what others pay; "
                    "learn with the declared support or SparseSupport."
                )
        elif rewards is not None:
            self.payments = UnknownRewards(rewards, ids.model, spec, setup.shares())
        self.ids = ids if listed else with_unseen(ids)
        self.worst = self.best = (ids.model, spec)
        if not listed:
            self.worst = settle_unseen(ids.model, self.ids.model, spec, worst=True)
            self.best = settle_unseen(ids.model, self.ids.model, spec, worst=False)

    @cached_property
    def least(self) -> float:
        """What a row pays at least."""
        if self.payments is not None:
            return self.payments.least
        problem = pose(*self.worst)
        return float(np.min([*problem.reward, *problem.start], initial=0.0))

    def pessimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        return self._with(*self.worst, sets, low=self.spec.agent is MAX)

    def optimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        model, spec = self.best
        friendly = replace(spec, nature=spec.agent)
        return self._with(model, friendly, sets, low=self.spec.agent is not MAX)

    def paid(self, sets: Marginals, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most, (R,); None if they pay what the model says."""
        return None if self.payments is None else self.payments.bounds(sets, low)

    def _with(
        self, model: FactoredMDP, spec: Spec, sets: Marginals, low: bool
    ) -> tuple[FactoredMDP, Spec]:
        """Return the model with learned sets, and with the least or largest rewards."""
        model = model.with_marginals(sets)
        if self.payments is not None:
            paid = self.payments.bounds(sets, low)
            model = self.payments.apply(model, paid, low)
        return model, spec
