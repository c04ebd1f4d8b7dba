"""The model in which a stationary policy is fixed: one row per state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.types import IntArray


def restrict(model: FactoredMDP, rows: IntArray) -> FactoredMDP:
    """Return the model with only the given row of every state, (S,)."""
    rows = np.asarray(rows, dtype=np.int64)
    inside = (rows >= model.row_ptr[:-1]) & (rows < model.row_ptr[1:])
    if rows.shape != (model.states,) or not inside.all():
        where = ""
        if rows.shape == (model.states,):
            where = f"; {model.state_name(int(np.argmin(inside)))} has another one's"
        raise ModelError(f"A policy must name one of its own rows for each state{where}.")
    return replace(
        model,
        row_ptr=np.arange(model.states + 1),
        successors=model.successors[entries(model.successor_ptr, rows)],
        rewards={k: Rewards(r.state, r.row[rows]) for k, r in model.rewards.items()},
        **row_arrays(model, rows),
        provenance=None,
    )


def row_arrays(model: FactoredMDP, rows: IntArray) -> dict[str, Any]:
    """Return the fields of a model with the given rows, in this order and maybe repeatedly.

    Successors and rewards, which speak of states, are left to the caller.
    """
    marginals = entries(model.marginal_ptr, rows)
    factors = model.row_factors[marginals] if len(model.row_factors) else model.row_factors
    return {
        "marginal_ptr": starts(segment_lengths(model.marginal_ptr)[rows]),
        "row_marginals": model.row_marginals[marginals],
        "successor_ptr": starts(segment_lengths(model.successor_ptr)[rows]),
        "row_actions": model.row_actions[rows],
        "row_factors": factors,
    }
