"""Flat models: one marginal per row over its successors, equal distributions shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from rfmdp.kernels.tables import number_segments
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.validate import require_valid
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

FACTOR = "joint"  # the one factor of a flat model


Boxes: TypeAlias = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""N boxes of different sizes: pointers (N + 1,); lower, upper and nominal numbers of all (E,)."""


def shared(boxes: Boxes) -> tuple[IntArray, Boxes]:
    """Return, for every box, its number among the different boxes, (N,); and these boxes."""
    pointers, *numbers = boxes
    count = len(pointers) - 1
    table = np.zeros(1 << max(4, int(2 * count).bit_length()), dtype=np.int64)
    ids, first = np.empty((2, count), dtype=np.int64)
    bits = np.stack(numbers, axis=1).view(np.int64).reshape(-1)
    ptr = 3 * pointers
    different = number_segments(bits, ptr[:-1], ptr[1:], table, ids, first)
    return ids, take(boxes, first[:different])


def take(boxes: Boxes, chosen: IntArray) -> Boxes:
    """Return some of the boxes."""
    pointers, lower, upper, nominal = boxes
    at = entries(pointers, chosen)
    return starts(segment_lengths(pointers)[chosen]), lower[at], upper[at], nominal[at]


def flat_model(
    row_ptr: IntArray,
    successors: Int32Array,
    ids: IntArray,
    boxes: Boxes,
    *,
    initial: IntArray,
    row_actions: AnyArray,
    actions: Sequence[str],
    labels: Mapping[str, BoolArray] = MappingProxyType({}),
    rewards: Mapping[str, Rewards] = MappingProxyType({}),
    variables: Sequence[Variable] = (),
    valuations: Int32Array | None = None,
) -> FactoredMDP:
    """Return a checked model whose row r has the box `ids[r]` over its successors.

    A row with one successor is a certain move and gets no marginal.

    Parameters
    ----------
    row_ptr : (S + 1,) first row of every state
    successors : (K,) row after row
    ids : (R,) index into `boxes`
    boxes : uncertainty of the rows
    initial, row_actions, actions, labels, rewards, variables, valuations : as in the model
    """
    sizes = segment_lengths(boxes[0])[ids]
    uncertain = sizes > 1
    used, numbers = np.unique(ids[uncertain], return_inverse=True)
    marginals = Marginals.from_boxes(*take(boxes, used))
    model = FactoredMDP(
        row_ptr=row_ptr,
        marginal_ptr=starts(uncertain.astype(np.int64)),
        row_marginals=numbers.astype(np.int32),
        successor_ptr=starts(sizes),
        successors=np.ascontiguousarray(successors, dtype=np.int32),
        marginals=marginals,
        initial=initial,
        row_actions=np.ascontiguousarray(row_actions, dtype=np.int32),
        actions=tuple(actions),
        labels=dict(labels),
        rewards=dict(rewards),
        variables=tuple(variables),
        valuations=np.empty((0, 0), np.int32) if valuations is None else valuations,
        factors=(FACTOR,),
        row_factors=np.zeros(int(uncertain.sum()), dtype=np.int32),
    )
    require_valid(model)
    return model


def joint_outcomes(flat: FactoredMDP) -> IntArray:
    """Return for every transition of a flat model its index among all outcomes, (K,).

    Certain moves, which have no marginal, get the index after the last outcome.
    """
    sizes = segment_lengths(flat.successor_ptr)
    first = np.full(flat.rows, len(flat.marginals.nominal), dtype=np.int64)
    first[segment_lengths(flat.marginal_ptr) == 1] = flat.marginals.outcome_ptr[flat.row_marginals]
    return np.arange(flat.transitions) + np.repeat(first - flat.successor_ptr[:-1], sizes)


def transition_bounds(flat: FactoredMDP) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probabilities of a flat model's transitions, lower and upper (K,)."""
    outcome = joint_outcomes(flat)
    sets = flat.marginals
    return np.append(sets.lower, 1.0)[outcome], np.append(sets.upper, 1.0)[outcome]
