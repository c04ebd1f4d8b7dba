"""Multiply a factored model out: one marginal per row over its successor states.

What is certain stays exact: known marginals become their joint probabilities. Uncertain ones
become intervals by interval arithmetic, as PRISM and Storm compose them: the bounds of a branch
are the products of its marginals' bounds (as a text states them, if one does), branches that meet
in one state add up (at most 1), and a set that is no box counts as its enclosing box. Nature's set
grows by that: a flat interval model is a *relaxation* of the factored one, and its robust value
lies on the pessimistic side.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from rfmdp.kernels.tables import joint_rows, number_segments
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.validate import require_valid
from rfmdp.ragged import chunks, entries, segment_lengths, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import FloatArray, Int32Array, IntArray

FACTOR = "joint"  # the one factor of a flat model
CHUNK = 1 << 22  # transitions that are multiplied out before equal rows are joined

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
    row_ptr: IntArray, successors: Int32Array, ids: IntArray, boxes: Boxes, **fields: Any
) -> FactoredMDP:
    """Return a checked model whose row r has the box `ids[r]` over its successors.

    A row with one successor is a certain move and gets no marginal. `fields` are those of the
    model that are no transitions; what is None is left out.
    """
    sizes = segment_lengths(boxes[0])[ids]
    uncertain = sizes > 1
    used, numbers = np.unique(ids[uncertain], return_inverse=True)
    model = FactoredMDP(
        row_ptr=row_ptr,
        marginal_ptr=starts(uncertain.astype(np.int64)),
        row_marginals=numbers.astype(np.int32),
        successor_ptr=starts(sizes),
        successors=np.ascontiguousarray(successors, dtype=np.int32),
        marginals=Marginals.from_boxes(*take(boxes, used)),
        row_actions=np.ascontiguousarray(fields.pop("row_actions"), dtype=np.int32),
        actions=tuple(fields.pop("actions")),
        factors=(FACTOR,),
        row_factors=np.zeros(int(uncertain.sum()), dtype=np.int32),
        **{name: value for name, value in fields.items() if value is not None},
    )
    require_valid(model)
    return model


def transition_bounds(flat: FactoredMDP) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probabilities of a flat model's transitions, lower and upper (K,)."""
    sets, sizes = flat.marginals, segment_lengths(flat.successor_ptr)
    first = np.full(flat.rows, len(sets.nominal), dtype=np.int64)  # of certain moves
    first[segment_lengths(flat.marginal_ptr) == 1] = sets.outcome_ptr[flat.row_marginals]
    outcome = np.arange(flat.transitions) + np.repeat(first - flat.successor_ptr[:-1], sizes)
    return np.append(sets.lower, 1.0)[outcome], np.append(sets.upper, 1.0)[outcome]


def flatten(model: FactoredMDP) -> FactoredMDP:
    """Return the flat model: one marginal per row, branches to one successor merged.

    Successors of a row are ascending; those that cannot happen are dropped. States, rows, actions,
    labels, rewards and variables stay; rows with equal distributions share a marginal. Memory: 28
    bytes per merged transition of a chunk, 4 bytes per merged transition for the result; it ends
    with a ResourceError before it takes more than there is.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> coin = Interval([0.4, 0.4], [0.6, 0.6])
    >>> two = FactoredMDP.from_rows([[([0, 0], [0, 1, 1, 1])], [([], [1])]], [coin])
    >>> flat = flatten(two)
    >>> flat.successors.tolist(), flat.marginals.lower.round(2).tolist()
    ([0, 1, 1], [0.16, 0.64])
    """
    pieces = []
    ids = [np.empty(0, np.int64)]
    targets = [np.empty(0, np.int32)]
    count = 0
    for begin, end in chunks(model.successor_ptr, CHUNK):
        successors, boxes = _multiply(model, begin, end)
        numbers, different = shared(boxes)
        pieces.append(different)
        ids.append(numbers + count)
        count += len(different[0]) - 1
        targets.append(successors)
    ends = starts(np.concatenate([segment_lengths(piece[0]) for piece in pieces]))
    lower, upper, nominal = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 2, 3))
    numbers, boxes = shared((ends, lower, upper, nominal))
    names = ("initial", "row_actions", "actions", "labels", "rewards", "variables", "valuations")
    fields = {name: getattr(model, name) for name in names}
    row_boxes = numbers[np.concatenate(ids)]
    return flat_model(model.row_ptr, np.concatenate(targets), row_boxes, boxes, **fields)


def flatten_note(model: FactoredMDP) -> str:
    """Return what `flatten` does to a model, in one sentence for people; empty if nothing."""
    several = int(np.count_nonzero(segment_lengths(model.marginal_ptr) > 1))
    curved = int(np.count_nonzero(model.marginals.kind > Kind.BOX))
    if not several and not curved:
        return ""
    if is_known(model):
        return f"{several} rows multiplied out to joint probabilities."
    return (
        f"{several} rows with several marginals flattened by interval arithmetic (products of "
        f"bounds, added where branches meet) and {curved} sets that are no boxes replaced by their "
        "enclosing boxes. This is a relaxation: robust values become pessimistic."
    )


def is_known(model: FactoredMDP) -> bool:
    """Return whether all probabilities of a model are known."""
    return bool(np.all(model.marginals.kind == Kind.SINGLETON))


def _multiply(model: FactoredMDP, begin: int, end: int) -> tuple[Int32Array, Boxes]:
    """Return successors and boxes of the rows begin..end - 1, multiplied out."""
    sets, rows = model.marginals.as_stated(), np.arange(begin, end)
    length = int(model.successor_ptr[end] - model.successor_ptr[begin])
    require_memory(3 * 28 * length, f"Multiplying out {model.transitions} transitions")
    size, targets, upper = joint_successors(model, rows, sets.upper)
    lower, nominal = (joint_successors(model, rows, p)[2] for p in (sets.lower, sets.nominal))
    row = np.repeat(rows - begin, size)
    order = np.lexsort((targets, row))
    order = order[upper[order] > 0.0]
    size = np.bincount(row[order], minlength=len(rows))
    targets, nominal = targets[order], nominal[order]
    lower, upper = (np.minimum(bound[order], 1.0) for bound in (lower, upper))
    # whatever the rounding of the sum: the only successor of a row is certain
    single = np.repeat(size == 1, size)
    lower[single] = upper[single] = nominal[single] = 1.0
    return targets, (starts(size), lower, upper, nominal)


def joint_successors(
    model: FactoredMDP, rows: IntArray, values: FloatArray
) -> tuple[IntArray, Int32Array, FloatArray]:
    """Return what rows (N,) lead to, as one distribution over successors each.

    That is how many different successors every row has, (N,), these successors, row after row, and
    their mass: `values` (O,), probabilities of outcomes or bounds of them, are multiplied for the
    marginals of a row, and added up where they lead to the same successor.
    """
    lengths = segment_lengths(model.successor_ptr)[rows]
    length = int(lengths.sum())
    sizes = np.empty(len(rows), dtype=np.int64)
    targets, mass = np.empty(length, dtype=np.int32), np.empty(length)
    work = np.full(model.states, -1), np.empty(int(lengths.max(initial=1)))
    entries = np.ascontiguousarray(values)
    used = joint_rows(rows, model.structure, entries, work, sizes, targets, mass)
    return sizes, targets[:used], mass[:used]
