"""The learned model from both sides: with all that is unknown against the agent, and for it.

Both have the same uncertainty sets. They differ in what is not known beside probabilities: where
outcomes lead that were never seen, and what rows pay whose rewards are not known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.learning.budget import Ledger
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.rewards import RewardFamily, UnknownRewards
from rfmdp.learning.support import DeclaredSupport, SparseSupport, Support
from rfmdp.learning.transition_rewards import TransitionReward, TransitionRewards
from rfmdp.learning.unseen import view, with_unseen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import pose
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray


class LearnedModel:
    """Models and specifications to solve; `ids` and `truth` are those to learn with."""

    def __init__(
        self,
        ids: Identifiers,
        spec: Spec,
        support: Support,
        rewards: RewardFamily | TransitionReward | None,
        inner: Inner,
    ) -> None:
        self.spec, self.states = spec, ids.model.states
        self.rewards: UnknownRewards | None = None
        self.transitions: TransitionRewards | None = None
        listed = isinstance(support, DeclaredSupport | SparseSupport)
        if isinstance(rewards, TransitionReward):
            self.transitions = TransitionRewards(rewards, ids.model, spec, inner)
            if not listed:
                raise UnsupportedError(
                    "TransitionReward: outcomes must be listed, nobody knows what others pay; "
                    "learn with the declared support or SparseSupport."
                )
        elif rewards is not None:
            self.rewards = UnknownRewards(rewards, ids.model, spec)
        if listed:
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

    @cached_property
    def least(self) -> float:
        """What a row pays at least."""
        if self.transitions is not None:
            return self.transitions.least
        if self.rewards is not None:
            return self.rewards.family.range.low
        problem = pose(*self._worst)
        paid = problem.reward if problem.start is None else (*problem.reward, *problem.start)
        return float(np.min(paid, initial=0.0))

    @property
    def reward_words(self) -> str:
        """What is known of rewards, in words that tell runs apart."""
        if self.transitions is not None:
            return f"of transitions, {self.transitions.digest[:16]}"
        return "known" if self.rewards is None else repr(self.rewards.family)

    def evidence(self) -> dict[str, AnyArray]:
        """Return what bounds of rewards are derived from, by name."""
        parts = (part for part in (self.rewards, self.transitions) if part is not None)
        return {name: array for part in parts for name, array in part.evidence().items()}

    def pessimistic(self, sets: Marginals, ledger: Ledger) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        return self._with(*self._worst, sets, ledger, low=self.spec.agent is MAX)

    def optimistic(self, sets: Marginals, ledger: Ledger) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        model, spec = self._best
        friendly = replace(spec, nature=spec.agent)
        return self._with(model, friendly, sets, ledger, low=self.spec.agent is not MAX)

    def paid(self, sets: Marginals, ledger: Ledger, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most; None if they pay what the model says."""
        if self.transitions is not None:
            return self.transitions.bounds(sets, low)
        if self.rewards is None:
            return None
        delta = ledger.reward_delta(self.rewards.identifiers)
        return self.rewards.lower(delta) if low else self.rewards.upper(delta)

    def paying(self, model: FactoredMDP, paid: FloatArray | None, low: bool) -> FactoredMDP:
        """Return a model whose rows pay what `paid` says, at least or at most."""
        if paid is not None and self.transitions is not None:
            return self.transitions.apply(model, paid)
        if paid is not None and self.rewards is not None:
            return self.rewards.apply(model, paid, low)
        return model

    def _with(
        self, model: FactoredMDP, spec: Spec, sets: Marginals, ledger: Ledger, low: bool
    ) -> tuple[FactoredMDP, Spec]:
        """Return the model with learned sets, and with the least or largest rewards."""
        paid = self.paid(sets, ledger, low)
        return self.paying(model.with_marginals(sets), paid, low), spec
