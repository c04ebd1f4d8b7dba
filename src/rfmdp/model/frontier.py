"""What explorers share: rows as they were found become a model in the order of its states.

A Python description is explored by `model.build`, a PRISM text by `language.explorer`. States
are numbered in the order of their valuations: the result depends neither on the order of discovery
nor on how states are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.packing import Packing
from rfmdp.ragged import owners, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray, Int32Array, IntArray

CERTAIN = -1  # in place of a marginal's id: the move has one outcome in this row
NO_ACTION = -1  # of the self-loops that are given to deadlocks
Progress = Callable[[int, int], None]  # called as progress(states, transitions)


def arranged(
    packing: Packing,
    words: IntArray,
    start: Int32Array | IntArray,
    rows: Int32Array,
    marginals: Int32Array,
    successors: Int32Array,
) -> FactoredMDP:
    """Return what was explored: states in the order of valuations, their rows as they were found.

    Sets, names of actions, labels and rewards are still missing; see `finished`.

    Parameters
    ----------
    words : (S, W) the states in the order of discovery, packed
    start : (I,) the numbers of initial states in that order
    rows : (R, 4) state, action, number of marginals, number of successors
    marginals : (uses, 2) identifier and factor, row by row
    successors : (K,) states, row by row
    """
    from rfmdp.kernels.explorer import arrange

    source = rows[:, 0]
    order = packing.order(words)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    row_ptr = starts(np.bincount(rank[source], minlength=len(order)))
    position = np.empty(len(source), dtype=np.int32 if len(source) < 2**31 else int)
    action = np.empty(len(source), dtype=np.int32)
    targets = np.empty(len(successors), np.int32)
    marginal_ptr, successor_ptr = (np.zeros(len(source) + 1, dtype=np.int64) for _ in range(2))
    identifier, factor = (np.empty(len(marginals), dtype=np.int32) for _ in range(2))
    arrange(
        (rows, marginals, successors), rank, row_ptr[:-1].copy(), position,
        (action, marginal_ptr, successor_ptr), (identifier, factor), targets,
    )  # fmt: skip
    return FactoredMDP(
        marginals=Marginals.from_sets(()),
        actions=(),
        variables=packing.variables,
        valuations=packing.unpack(words[order]),
        initial=np.flatnonzero(np.bincount(rank[start])),
        row_ptr=row_ptr,
        row_actions=action,
        marginal_ptr=marginal_ptr,
        row_marginals=identifier,
        row_factors=factor,
        successor_ptr=successor_ptr,
        successors=targets,
    )


def deadlocks(model: FactoredMDP) -> BoolArray:
    """Return the states of an explored model (S,) that have only a self-loop given to them."""
    where = np.zeros(model.states, dtype=np.bool_)
    where[owners(model.row_ptr)[model.row_actions == NO_ACTION]] = True
    return where


def with_used_marginals(model: FactoredMDP) -> tuple[FactoredMDP, IntArray]:
    """Return an explored model with the marginals that some row uses, numbered from 0 on.

    And the old identifier of every new one, ascending.
    """
    seen = np.bincount(model.row_marginals) > 0
    number = (np.cumsum(seen) - 1).astype(np.int32)
    return replace(model, row_marginals=number[model.row_marginals]), np.flatnonzero(seen)


def finished(
    model: FactoredMDP, actions: Sequence[str], labels: Mapping[str, BoolArray], **fields: Any
) -> FactoredMDP:
    """Return an explored model with all its fields.

    Self-loops of deadlocks get the unlabelled action "", which is added if it is missing, and their
    states the label "deadlock".
    """
    names, labels = list(actions), dict(labels)
    loops = model.row_actions == NO_ACTION
    if loops.any():
        if "" not in names:
            names.append("")
        labels["deadlock"] = deadlocks(model)
        fields["row_actions"] = np.where(loops, np.int32(names.index("")), model.row_actions)
    return replace(model, actions=tuple(names), labels=labels, **fields)
