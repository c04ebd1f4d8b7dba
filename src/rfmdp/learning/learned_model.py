"""The learned model twice: with everything unknown against the agent, and for the agent.

Both have the same uncertainty sets. They differ where more than probabilities is unknown: what rows
pay, and where outcomes lead that the model does not list. One more outcome per identifier is for
these. For a guarantee it leads to the worst that can happen, for an optimistic bound to the best,
which is a state behind all others. A simulated truth lists all outcomes, so there the extra one has
probability 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.rewards import UnknownRewards
from rfmdp.learning.setup import Setup
from rfmdp.learning.store import SetStore
from rfmdp.learning.support import DeclaredSupport, SparseSupport
from rfmdp.learning.transition_rewards import TransitionReward, TransitionRewardBounds
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, ReachReward, Spec, Total
from rfmdp.outer.problem import pose
from rfmdp.ragged import segment_product, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.measure import state_sets
from rfmdp.types import FloatArray

MOST = 50_000_000  # successors with the extra outcomes
UNSEEN = "unseen"


class LearnedModel:
    """What is learned, as models and specifications to solve.

    `ids` are the identifiers to count, `worst` and `best` the model and the specification with
    outcomes that are not listed leading to the worst and to the best that can happen. `payments`
    are rewards that are learned, or those of transitions; None: rows pay what the model says.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        spec, rewards = setup.spec, setup.rewards
        self.states = ids.model.states
        self.payments: UnknownRewards | TransitionRewardBounds | None = None
        listed = isinstance(setup.support, DeclaredSupport | SparseSupport)
        if isinstance(rewards, TransitionReward):
            self.payments = TransitionRewardBounds(rewards, ids.model, spec, setup.method.inner)
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

    @property
    def least(self) -> float:
        """What a row pays at least."""
        if self.payments is not None:
            return self.payments.least
        problem = pose(*self.worst)
        return float(np.min([*problem.reward, *problem.start], initial=0.0))

    def pessimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        model, spec = self.worst
        return self._with(model, sets, low=spec.agent is MAX), spec

    def optimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        model, spec = self.best
        return self._with(model, sets, low=spec.agent is not MAX), replace(spec, nature=spec.agent)

    def paid(self, sets: SetStore, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most, (R,); None if they pay what the model says."""
        return None if self.payments is None else self.payments.bounds(sets.marginals(), low)

    def _with(self, model: FactoredMDP, sets: Marginals, low: bool) -> FactoredMDP:
        """Return the model with learned sets, and with the least or largest rewards."""
        model = model.with_marginals(sets).with_provenance(sets={"kind": "learned"})
        return model if self.payments is None else self.payments.apply(model, low)


def with_unseen(ids: Identifiers) -> Identifiers:
    """Return the identifiers with one more outcome, for all that the model does not list.

    Raises
    ------
    UnsupportedError
        If rows have so many factors that the tensors become too large.
    """
    from rfmdp.kernels.identify import extended_tensors

    model = ids.model
    lengths = segment_product(model.marginals.sizes[model.row_marginals] + 1, model.marginal_ptr)
    total = lengths.sum(dtype=np.float64)
    if total > MOST:
        raise UnsupportedError(
            f"Unknown support: an outcome more per factor makes {total:.3g} successors of "
            f"{model.transitions}, at most {MOST:g} are allowed; declare the support."
        )
    successor_ptr = starts(lengths)
    successors = np.empty(int(total), dtype=np.int32)
    extended_tensors(model.structure, successor_ptr, model.states, successors)
    low = np.array([[v.low for v in model.variables]], dtype=np.int32)
    valuations = np.vstack([model.valuations, low]) if model.variables else model.valuations
    extended = replace(
        model,
        row_ptr=np.append(model.row_ptr, model.rows + 1),
        marginal_ptr=np.append(model.marginal_ptr, model.marginal_ptr[-1]),
        successor_ptr=np.append(successor_ptr, len(successors) + 1),
        successors=np.append(successors, np.int32(model.states)),
        marginals=_with_lump(model.marginals, 0.0),
        row_actions=np.append(model.row_actions, np.int32(len(model.actions))),
        actions=(*model.actions, UNSEEN),
        labels={name: np.append(at, False) for name, at in model.labels.items()},
        rewards={n: _appended(r, 0.0, 0.0) for n, r in model.rewards.items()},
        valuations=valuations,
        outcome_names=(),
    )
    return replace(ids, model=extended, prior=ids.prior and _with_lump(ids.prior, 1.0))


def _with_lump(sets: Marginals, most: float) -> Marginals:
    """Return sets with one more outcome behind the others, of at most some probability."""
    behind = sets.outcome_ptr[1:]
    ptr = sets.outcome_ptr + np.arange(len(sets) + 1)
    lower = np.insert(np.asarray(sets.lower), behind, 0.0)
    upper = np.insert(np.asarray(sets.upper), behind, most)
    nominal = np.insert(np.asarray(sets.nominal), behind, 0.0)
    return Marginals.from_boxes(ptr, lower, upper, nominal)


def settle_unseen(
    original: FactoredMDP, extended: FactoredMDP, spec: Spec, worst: bool
) -> tuple[FactoredMDP, Spec]:
    """Return the extended model and the specification, its last state the worst one or the best.

    For a probability that state loses or wins. For a reward to a target it is a target, or never
    reaches one. For other rewards it pays, for ever, the least or the largest of the model (for a
    total: 0 or the largest).
    """
    objective, high = spec.objective, (spec.agent is MAX) != worst
    flag = high != isinstance(objective, ReachReward)
    sets = state_sets(original, objective)
    changed: dict[str, Any] = {name: np.append(at, flag) for name, at in sets.items()}
    rewards = {}
    for name, r in original.rewards.items():
        ends = (max(a, default=0.0) if high else min(a, default=0.0) for a in (r.state, r.row))
        state, row = (0.0, 0.0) if isinstance(objective, Total) and not high else ends
        rewards[name] = _appended(r, float(state), float(row))
    return (
        replace(extended, rewards=rewards),
        replace(spec, objective=replace(objective, **changed)),
    )


def _appended(rewards: Rewards, state: float, row: float) -> Rewards:
    return Rewards(np.append(rewards.state, state), np.append(rewards.row, row))
