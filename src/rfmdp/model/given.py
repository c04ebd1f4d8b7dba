"""Models from numbers: flat arrays, or lists of rows. Both are checked in full."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards, Row
from rfmdp.model.validate import product_text, require_valid
from rfmdp.ragged import owner, segment_product, starts
from rfmdp.sets.families import UncertaintySet
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.validate import layout_problems
from rfmdp.types import AnyArray, IntArray


def from_arrays(
    row_ptr: ArrayLike,
    row_marginals: Sequence[Sequence[int]] | tuple[IntArray, IntArray],
    successors: ArrayLike,
    marginals: Marginals | Iterable[UncertaintySet],
    *,
    initial: ArrayLike,
    row_actions: ArrayLike | None,
    actions: Sequence[str] | None,
    labels: Mapping[str, ArrayLike],
    rewards: Mapping[str, Rewards],
) -> FactoredMDP:
    """Return a model from flat arrays; documented at `FactoredMDP.from_arrays`."""
    packed = _packed(marginals)
    first_rows = _integers("row_ptr", row_ptr)
    marginal_ptr, ids = _ragged(row_marginals)
    targets = _integers("successors", successors)
    successor_ptr = _successor_pointers(packed, marginal_ptr, ids, len(targets))
    rows = len(marginal_ptr) - 1
    chosen = _default_actions(first_rows, rows) if row_actions is None else row_actions
    chosen = _integers("row_actions", chosen)
    if actions is None:
        actions = [f"a{i}" for i in range(int(chosen.max(initial=0)) + 1)]
    model = FactoredMDP(
        row_ptr=first_rows,
        marginal_ptr=marginal_ptr,
        row_marginals=_narrow("row_marginals", ids),
        successor_ptr=successor_ptr,
        successors=_narrow("successors", targets),
        marginals=packed,
        initial=_integers("initial", np.atleast_1d(np.asarray(initial))),
        row_actions=_narrow("row_actions", chosen),
        actions=tuple(actions),
        labels={name: np.asarray(where) for name, where in labels.items()},
        rewards=dict(rewards),
    )
    require_valid(model)
    return model


def from_rows(
    states: Sequence[Sequence[Row]],
    marginals: Marginals | Iterable[UncertaintySet],
    *,
    initial: ArrayLike,
    labels: Mapping[str, ArrayLike],
    rewards: Mapping[str, Rewards],
) -> FactoredMDP:
    """Return a model from one list of rows per state; documented at `FactoredMDP.from_rows`."""
    packed = _packed(marginals)
    sizes = packed.sizes.tolist()
    names: dict[str, int] = {}
    chosen: list[int] = []
    targets: list[IntArray] = []
    for s, rows in enumerate(states):
        for number, row in enumerate(rows):
            targets.append(_tensor(sizes, f"State {s}, row {number}", row))
            name = row[2] if len(row) == 3 else f"a{number}"
            chosen.append(names.setdefault(name, len(names)))
    return from_arrays(
        starts([len(rows) for rows in states]),
        [row[0] for rows in states for row in rows],
        np.concatenate(targets) if targets else np.empty(0, np.int64),
        packed,
        initial=initial,
        row_actions=np.array(chosen, dtype=np.int64),
        actions=list(names),
        labels=labels,
        rewards=rewards,
    )


def _packed(marginals: Marginals | Iterable[UncertaintySet]) -> Marginals:
    """Return packed sets whose arrays fit each other; `validate` looks at their numbers."""
    if not isinstance(marginals, Marginals):
        return Marginals.from_sets(marginals)
    for j, message in layout_problems(marginals):
        raise ModelError(f"Marginals: {message}" if j < 0 else f"Marginal {j}: {message}")
    return marginals


def _tensor(sizes: Sequence[int], where: str, row: Row) -> IntArray:
    """Return the successors of a row; a wrong number of them would shift all that follow."""
    last = len(sizes) - 1
    for j in row[0]:
        if not 0 <= j <= last:
            raise ModelError(f"{where}: marginals must be within 0..{last}, got {j}.")
    own = [sizes[j] for j in row[0]]
    found = _integers(f"{where}, successors", row[1])
    if len(found) != math.prod(own):
        raise ModelError(
            f"{where}: the tensor must have {product_text(own)} successors, has {len(found)}."
        )
    return found


def _default_actions(row_ptr: IntArray, rows: int) -> IntArray:
    """Count the rows of every state from 0."""
    lengths = np.maximum(np.diff(row_ptr), 0)
    if len(row_ptr) == 0 or lengths.sum() != rows:
        return np.zeros(rows, dtype=np.int64)
    return np.arange(rows) - np.repeat(row_ptr[:-1], lengths)


def _ragged(
    given: Sequence[Sequence[int]] | tuple[IntArray, IntArray],
) -> tuple[IntArray, IntArray]:
    """Return (pointers, values) of lists per row, or of a pair of arrays that is one already."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray):
        return _integers("marginal_ptr", given[0]), _integers("row_marginals", given[1])
    lists: list[Any] = list(given)
    flat = [j for row in lists for j in row]
    return starts([len(row) for row in lists]), _integers("row_marginals", flat)


def _successor_pointers(
    marginals: Marginals, pointers: IntArray, ids: IntArray, given: int
) -> IntArray:
    """Return where every tensor starts: the products of the sizes, added up."""
    rises = len(pointers) > 0 and pointers[0] == 0 and pointers[-1] == len(ids)
    if not rises or np.any(pointers[1:] < pointers[:-1]):
        raise ModelError(f"row_marginals: pointers must rise from 0 to {len(ids)}.")
    wrong = np.flatnonzero((ids < 0) | (ids >= len(marginals)))
    if wrong.size:
        row = owner(pointers, wrong[0])
        raise ModelError(
            f"Row {row}: marginals must be within 0..{len(marginals) - 1}, got {ids[wrong[0]]}."
        )
    size = segment_product(marginals.sizes[ids], pointers)
    needed = float(np.sum(size, dtype=np.float64))  # the sum of integers could wrap
    if needed > 2.0 * given or starts(size)[-1] != given:
        shown = f"{needed:.3g}" if needed > 2.0 * given else starts(size)[-1]
        raise ModelError(f"successors: the tensors of all rows need {shown} entries, got {given}.")
    return starts(size)


def _integers(name: str, values: ArrayLike) -> IntArray:
    array: AnyArray = np.asarray(values)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ModelError(f"{name}: must be integers, got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.int64).ravel()


def _narrow(name: str, values: AnyArray) -> AnyArray:
    """Return int32, refusing what does not fit."""
    if values.size and (values.min() < -(2**31) or values.max() >= 2**31):
        raise ModelError(f"{name}: must fit 32 bits, the largest is {values.max()}.")
    return np.ascontiguousarray(values, dtype=np.int32)
