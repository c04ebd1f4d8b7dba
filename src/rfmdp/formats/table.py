"""The columns that all explicit formats share: made into a model here, and from one.

A row is a choice of a state with one distribution over its successors. A format turns a file into
`Columns` and calls `make_model`, or asks `to_columns` for those of a model and writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import flat_model, flatten, flatten_note, shared, transition_bounds
from rfmdp.ragged import owner, owners, segment_lengths, segment_sum, starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import box_centres
from rfmdp.types import FloatArray, IntArray

Fail: TypeAlias = Callable[[int, str], NoReturn]  # complains about an entry, in words


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What states may do: rows in the order of their states, successors row after row."""

    row_ptr: IntArray  # (S + 1,)
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray  # (K,)
    lower: FloatArray  # (K,)
    upper: FloatArray  # (K,)
    row_actions: IntArray  # (R,) index into `actions`
    actions: tuple[str, ...]

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_actions)

    @property
    def known(self) -> bool:
        """Whether all probabilities are known."""
        return bool(np.array_equal(self.lower, self.upper))


def make_model(columns: Columns, name: str, fail: Fail | None = None, **fields: Any) -> FactoredMDP:
    """Return the model of columns; rows with equal distributions share a marginal.

    Every state needs a row. Entries of a row with the same successor are added up. `name` says in
    messages what the columns come from; `fail` complains about an entry, by default with its state
    and action. `fields` are those of the model that are no transitions.
    """

    def complain(entry: int, message: str) -> NoReturn:
        row = owner(columns.successor_ptr, entry)
        action = columns.actions[columns.row_actions[row]]
        where = f"state {owner(columns.row_ptr, row)}" + (f", action {action}" if action else "")
        raise ModelError(f"{name}: {where}: {message}")

    alone = np.flatnonzero(segment_lengths(columns.row_ptr) == 0)
    if len(alone):
        raise ModelError(
            f"{name}: every state must have a transition, but {len(alone)} have none, the first is "
            f"{alone[0]}; give them self-loops."
        )
    _check(columns, fail or complain)
    c = _merged(columns)
    centres = box_centres(c.successor_ptr, c.lower, c.upper)
    return flat_model(
        c.row_ptr,
        c.successors.astype(np.int32),
        *shared((c.successor_ptr, c.lower, c.upper, centres)),
        row_actions=c.row_actions,
        actions=c.actions,
        **fields,
    )


def _check(columns: Columns, fail: Fail) -> None:
    """Complain about the first entry or row that cannot be one."""
    inside = (columns.successors >= 0) & (columns.successors < columns.states)
    if not inside.all():
        at = int(np.argmin(inside))
        where = f"0..{columns.states - 1}, found {columns.successors[at]}"
        fail(at, f"The target state must be within {where}.")
    good = (columns.lower >= 0.0) & (columns.lower <= columns.upper) & (columns.upper <= 1.0)
    if not good.all():
        at = int(np.argmin(good))
        low, high = columns.lower[at], columns.upper[at]
        value = f"{low:.12g}" if low == high else f"[{low:.12g}, {high:.12g}]"
        must = "Probabilities must satisfy 0 <= l <= u <= 1"
        fail(at, f"{must}, found {value}; rates (ctmc) are not supported.")
    low_sum = segment_sum(columns.lower, columns.successor_ptr)
    high_sum = segment_sum(columns.upper, columns.successor_ptr)
    bad = (low_sum > 1.0 + SUM_TOLERANCE) | (high_sum < 1.0 - SUM_TOLERANCE)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    fail(
        int(columns.successor_ptr[row]),
        f"The probabilities of state {owner(columns.row_ptr, row)} sum to {low_sum[row]:.12g} at "
        f"least and {high_sum[row]:.12g} at most in the row that starts here, 1 must lie between; "
        "17 digits lose nothing.",
    )


def _merged(columns: Columns) -> Columns:
    """Return the columns with entries of a row that meet in one state added up."""
    row = owners(columns.successor_ptr)
    key = row * columns.states + columns.successors
    if np.all(key[1:] > key[:-1]):
        return columns
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return columns
    sums = [np.minimum(np.bincount(place, side), 1.0) for side in (columns.lower, columns.upper)]
    ptr = starts(np.bincount(row[first], minlength=columns.rows))
    successors = columns.successors[first]
    return replace(columns, successor_ptr=ptr, successors=successors, lower=sums[0], upper=sums[1])


def to_columns(model: FactoredMDP) -> tuple[FactoredMDP, Columns, str]:
    """Return any model as a flat one, with its columns, and what that changed, in words.

    Several marginals of a row are multiplied out by `flatten`.
    """
    flat = flatten(model)
    columns = Columns(
        flat.row_ptr, flat.successor_ptr, flat.successors.astype(np.int64),
        *transition_bounds(flat), flat.row_actions.astype(np.int64), tuple(flat.actions),
    )  # fmt: skip
    zeros = 0 if columns.known else int(np.count_nonzero(flat.marginals.lower == 0.0))
    refused = f"{zeros} intervals have the lower bound 0, which PRISM and Storm refuse."
    return flat, columns, " ".join(filter(None, [flatten_note(model), refused if zeros else ""]))


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: the files, and what of the model they cannot say (may be empty)."""

    paths: tuple[Path, ...]
    note: str
