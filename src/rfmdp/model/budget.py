"""A model unfolded by what was paid: one state per amount and state, and one where all is lost.

State `s` after paying `n` is `n * S + s`; row `r` there is `n * R + r`. A row that would pay more
than the budget leads to the last state, which nobody leaves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import row_arrays
from rfmdp.ragged import segment_lengths
from rfmdp.types import FloatArray, IntArray

ENTRY = 40  # bytes that a successor takes while a model is unfolded, about


def unfold(model: FactoredMDP, paid: FloatArray, budget: int) -> FactoredMDP:
    """Return the unfolded model; it has no labels, rewards or variables.

    Parameters
    ----------
    paid : (R,)
        What every row pays.

    Raises
    ------
    ModelError
        If a row pays something else than a whole number >= 0.

    Examples
    --------
    >>> walk = FactoredMDP.from_rows([[([], [1])], [([], [0])]], [])
    >>> unfold(walk, np.array([1.0, 0.0]), 1).successors.tolist()
    [3, 0, 4, 2, 4]
    """
    wrong = np.flatnonzero(~((paid >= 0.0) & (paid == np.floor(paid))))
    if len(wrong):
        raise ModelError(
            "A bound on rewards needs whole numbers >= 0; "
            f"{model.row_name(int(wrong[0]))} pays {paid[wrong[0]]:g}. Scale the rewards, or bound "
            "the steps instead."
        )
    layers = budget + 1
    require_memory(
        ENTRY * layers * model.transitions, f"A model unfolded over a budget of {budget}"
    )
    lost = layers * model.states
    cost: IntArray = np.minimum(paid, layers).astype(np.int64)
    cost = np.repeat(cost, segment_lengths(model.successor_ptr))
    after = np.arange(layers)[:, None] + cost
    moves = np.where(after < layers, after * model.states + model.successors, lost)
    rows = row_arrays(model, np.tile(np.arange(model.rows), layers))
    for name in ("marginal_ptr", "successor_ptr"):
        rows[name] = np.append(rows[name], rows[name][-1] + (name == "successor_ptr"))
    rows["row_actions"] = np.append(rows["row_actions"], rows["row_actions"][:1])
    first = (np.arange(layers)[:, None] * model.rows + model.row_ptr[:-1]).ravel()
    nothing = np.empty((0, 0), dtype=np.int32)
    return replace(
        model,
        row_ptr=np.append(first, [layers * model.rows, layers * model.rows + 1]),
        successors=np.append(moves.ravel(), lost).astype(np.int32),
        labels={}, rewards={}, variables=(), valuations=nothing, formulas={}, provenance=None,
        **rows,
    )  # fmt: skip
