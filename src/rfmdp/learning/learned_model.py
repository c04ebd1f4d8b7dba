"""The learned model from both sides: with all that is unknown against the agent, and for it.

Both have the same uncertainty sets. They differ in what is not known beside probabilities: where
outcomes lead that were never seen, and what rows pay whose rewards are not known.
"""

from __future__ import annotations

from dataclasses import replace

from rfmdp.learning.budget import Ledger
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.rewards import RewardFamily, UnknownRewards
from rfmdp.learning.support import DeclaredSupport, SparseSupport, Support
from rfmdp.learning.unseen import view, with_unseen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray


class LearnedModel:
    """Models and specifications to solve; `ids` and `truth` are those to learn with."""

    def __init__(
        self, ids: Identifiers, spec: Spec, support: Support, rewards: RewardFamily | None
    ) -> None:
        self.spec, self.states = spec, ids.model.states
        self.rewards = None if rewards is None else UnknownRewards(rewards, ids.model, spec)
        if isinstance(support, DeclaredSupport | SparseSupport):
            self.ids = ids
            self._worst = self._best = (ids.model, spec)
        else:
            self.ids = with_unseen(ids)
            sides = (view(ids.model, self.ids.model, spec, worst) for worst in (True, False))
            self._worst, self._best = sides

    @property
    def truth(self) -> tuple[FactoredMDP, Spec]:
        """The model to sample from and to evaluate policies on."""
        return self._worst

    @property
    def structure(self) -> tuple[FactoredMDP, Spec]:
        """The structure to plan with."""
        return self._best

    def pessimistic(self, sets: Marginals, ledger: Ledger) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        return self._with(*self._worst, sets, ledger, low=self.spec.agent is MAX)

    def optimistic(self, sets: Marginals, ledger: Ledger) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        model, spec = self._best
        friendly = replace(spec, nature=spec.agent)
        return self._with(model, friendly, sets, ledger, low=self.spec.agent is not MAX)

    def paid(self, ledger: Ledger, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most; None if rewards are known."""
        if self.rewards is None:
            return None
        delta = ledger.reward_delta(self.rewards.identifiers)
        return self.rewards.lower(delta) if low else self.rewards.upper(delta)

    def _with(
        self, model: FactoredMDP, spec: Spec, sets: Marginals, ledger: Ledger, low: bool
    ) -> tuple[FactoredMDP, Spec]:
        """Return the model with learned sets, and with the least or largest rewards."""
        learned, paid = model.with_marginals(sets), self.paid(ledger, low)
        if paid is None or self.rewards is None:
            return learned, spec
        return self.rewards.apply(learned, paid, low), spec
