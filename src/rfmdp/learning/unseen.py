"""Outcomes that the model does not list: one more outcome per identifier, and where it leads.

Nobody knows where an outcome leads that was never seen. For a guarantee it leads to the worst that
can happen, for an optimistic bound to the best. One state behind all others stands for that. A
simulated truth lists all outcomes, so there the extra outcome has probability 0.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.identifiers import Identifiers
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, ReachReward, Spec, Total
from rfmdp.outer.problem import where
from rfmdp.sets.marginals import Marginals
from rfmdp.types import IntArray

MOST = 50_000_000  # successors with the extra outcomes
UNSEEN = "unseen"


def with_unseen(ids: Identifiers) -> Identifiers:
    """Return the identifiers with one more outcome, for all that the model does not list.

    Raises
    ------
    UnsupportedError
        If rows have so many factors that the tensors become too large.
    """
    model = ids.model
    sizes = model.marginals.sizes
    lengths = np.ones(model.rows, dtype=np.float64)
    slot_rows = np.repeat(np.arange(model.rows), np.diff(model.marginal_ptr))
    np.multiply.at(lengths, slot_rows, sizes[model.row_marginals] + 1.0)
    if lengths.sum() > MOST:
        raise UnsupportedError(
            f"Unknown support: an outcome more per factor makes {lengths.sum():.3g} successors of "
            f"{model.transitions}, at most {MOST:g} are allowed; declare the support."
        )
    successor_ptr, successors = _tensors(model, lengths.astype(np.int64))
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
    behind, ptr = sets.outcome_ptr[1:], sets.outcome_ptr + np.arange(len(sets) + 1)
    lower = np.insert(np.asarray(sets.lower), behind, 0.0)
    upper = np.insert(np.asarray(sets.upper), behind, most)
    nominal = np.insert(np.asarray(sets.nominal), behind, 0.0)
    return Marginals.from_boxes(ptr, lower, upper, nominal)


def _tensors(model: FactoredMDP, lengths: IntArray) -> tuple[IntArray, Any]:
    from rfmdp.kernels.identify import extended_tensors

    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    out = np.empty(int(pointers[-1]), dtype=np.int32)
    extended_tensors(
        model.marginal_ptr, model.row_marginals, model.marginals.outcome_ptr, model.successor_ptr,
        model.successors, pointers, model.states, out,
    )  # fmt: skip
    return pointers, out


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
    changed: dict[str, Any] = {
        f.name: np.append(where(original, getattr(objective, f.name)), flag)
        for f in fields(objective)
        if f.name in ("stay", "target")
    }
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
