"""The model in which a stationary policy is fixed: one row per state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.types import AnyArray, IntArray


def restrict(model: FactoredMDP, rows: IntArray) -> FactoredMDP:
    """Return the model with only the given row of every state, (S,)."""
    rows = np.asarray(rows, dtype=np.int64)
    inside = (rows >= model.row_ptr[:-1]) & (rows < model.row_ptr[1:])
    if rows.shape != (model.states,) or not inside.all():
        where = "" if rows.shape != (model.states,) else _first(model, inside)
        raise ModelError(f"A policy must name one of its own rows for each state{where}.")
    marginal_ptr, marginals = _take(model.marginal_ptr, rows)
    successor_ptr, successors = _take(model.successor_ptr, rows)
    factors = model.row_factors[marginals] if len(model.row_factors) else model.row_factors
    return replace(
        model,
        row_ptr=np.arange(model.states + 1),
        marginal_ptr=marginal_ptr,
        row_marginals=model.row_marginals[marginals],
        successor_ptr=successor_ptr,
        successors=model.successors[successors],
        row_actions=model.row_actions[rows],
        row_factors=factors,
        rewards={k: Rewards(r.state, r.row[rows]) for k, r in model.rewards.items()},
    )


def _take(pointers: IntArray, rows: IntArray) -> tuple[IntArray, AnyArray]:
    """Return new pointers and the old places of the entries of some rows."""
    counts = pointers[rows + 1] - pointers[rows]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.concatenate([[0], ends]), np.repeat(pointers[rows], counts) + within


def _first(model: FactoredMDP, inside: AnyArray) -> str:
    state = int(np.flatnonzero(~inside)[0])
    return f"; {model.state_name(state)} has another one's"
