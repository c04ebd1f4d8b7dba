"""Until within a budget: a claim about a model becomes one about the model unfolded by payments.

The file holds inductive bounds of every state and amount paid, and a rule per amount. Here the
model is unfolded again, so that the ordinary proof of an until applies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.ragged import segment_lengths
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import need
from rfmdp.verification.reading import Claim


def unfolded(claim: Claim) -> Claim:
    """Return the claim that the witness makes of the unfolded model; its last state has lost."""
    model, layers = claim.written, int(claim.objective["budget"]) + 1
    need(len(claim.policy) == layers, "policy: must have a rule per amount of the budget")
    need(set(claim.witness) == set(claim.bounds), "witness: must have the sides that are claimed")
    paid, rest = claim.paid()
    whole = (paid >= 0.0) & (paid == np.floor(paid)) & (rest == 0.0)
    need(whole.all(), "rewards: must be whole numbers >= 0 under a budget")
    states, rows, lost = model.states, model.rows, layers * model.states
    spent = np.arange(layers)[:, None] + np.minimum(paid, layers).astype(np.int64)
    spent = np.repeat(spent, segment_lengths(model.successor_ptr), axis=1)
    moves = np.where(spent < layers, spent * states + model.successors, lost)
    copies = replace(
        model,
        row_ptr=np.append(_shifted(model.row_ptr, layers), layers * rows + 1),
        marginal_ptr=np.append(
            _shifted(model.marginal_ptr, layers), layers * model.marginal_ptr[-1]
        ),
        row_marginals=np.tile(model.row_marginals, layers),
        successor_ptr=np.append(
            _shifted(model.successor_ptr, layers), layers * model.successor_ptr[-1] + 1
        ),
        successors=np.append(moves.ravel(), lost),
        labels={}, rewards={}, variables={}, formulas={}, provenance=None,
    )  # fmt: skip
    rule = claim.policy + rows * np.arange(layers)[:, None]
    bounds = {side: np.append(bound, 0.0) for side, bound in claim.witness.items()}
    return replace(
        claim, model=copies, objective={"type": "Until"}, bounds=bounds, witness={},
        states={name: _copied(states_, layers) for name, states_ in claim.states.items()},
        policy=np.append(rule.ravel(), layers * rows)[None, :], status="GAP_OPEN",
        value=next(iter(bounds.values()), np.zeros(lost + 1)), texts={},
    )  # fmt: skip


def follows(claim: Claim, side: int) -> BoolArray:
    """Return where (S,) a side is claimed no closer than its witness says before any payment."""
    first: FloatArray = claim.witness[side][: claim.written.states]
    return np.asarray(side * claim.bounds[side] >= side * first)


def _copied(states: BoolArray, layers: int) -> BoolArray:
    return np.append(np.tile(states, layers), False)


def _shifted(pointers: IntArray, layers: int) -> IntArray:
    """Return pointers (n * layers + 1,) of so many copies of what they point to."""
    every = np.arange(layers)[:, None] * pointers[-1] + pointers[:-1]
    return np.append(every.ravel(), layers * pointers[-1])
