"""Counts from observed transitions, for data that was not simulated here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.tally import Tally


def count_transitions(
    ids: Identifiers, rows: ArrayLike, successors: ArrayLike, tally: Tally | None = None
) -> Tally:
    """Return what was seen of every outcome of the identifiers.

    Parameters
    ----------
    ids
        Identifiers of the model that the data is about.
    rows, successors
        (N,) the row that was taken (it says state and action) and the state that followed, in
        the order in which they were seen.
    tally
        What was seen before; it is added to.

    Raises
    ------
    ModelError
        If a successor is none of its row's: guarantees under the declared support are void.

    Examples
    --------
    >>> from rfmdp.learning.identifiers import identify
    >>> from rfmdp.model.arrays import FactoredMDP
    >>> from rfmdp.sets.families import Singleton
    >>> coin = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])
    >>> count_transitions(identify(coin), [0, 0, 0, 1], [0, 1, 1, 1]).counts.tolist()
    [1, 2]
    """
    from rfmdp.kernels.identify import count_transitions as kernel

    model = ids.model
    taken, after = (np.ascontiguousarray(a, dtype=np.int64) for a in (rows, successors))
    if taken.shape != after.shape or taken.ndim != 1:
        raise ModelError(
            f"Transitions: rows and successors must be flat and of one length, found shapes "
            f"{taken.shape} and {after.shape}."
        )
    if np.any((taken < 0) | (taken >= model.rows)):
        raise ModelError(f"Transitions: rows must be within 0..{model.rows - 1}.")
    seen = Tally.empty(model) if tally is None else tally
    fault = kernel(
        taken, after, model.marginal_ptr, model.row_marginals, model.marginals.outcome_ptr,
        model.successor_ptr, model.successors, seen.arrays,
    )  # fmt: skip
    if fault >= 0:
        raise ModelError(
            f"Transition {fault}: {model.row_name(int(taken[fault]))} must lead to one of its "
            f"declared successors, found state {after[fault]}. Guarantees from this data are void: "
            "declare the outcome."
        )
    return seen
