"""The table of columns that all explicit formats share: made into a model here, and from one.

A row is a choice of a state with one distribution over its successors. A format turns a file into
a `ModelTable` and calls `make_model`, or asks `to_table` for one and writes its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.derived import flat_model, flatten, flatten_note, shared, transition_bounds
from rfmdp.ragged import owner, owners, segment_sum, starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import box_centres
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

Variables: TypeAlias = tuple[tuple[Variable, ...], Int32Array | None]  # and values (S, variables)
Fail: TypeAlias = Callable[[int, str], NoReturn]  # complains about an entry, in words


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """A flat model as columns: rows in the order of their states, successors row after row."""

    states: int
    row_states: IntArray  # (R,) ascending
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray  # (K,)
    lower: FloatArray  # (K,)
    upper: FloatArray  # (K,)
    row_actions: IntArray  # (R,) index into `actions`
    actions: tuple[str, ...]
    initial: IntArray
    labels: Mapping[str, BoolArray] = field(default_factory=dict)
    rewards: Mapping[str, Rewards] = field(default_factory=dict)
    variables: Variables = ((), None)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_states)

    @property
    def row_ptr(self) -> IntArray:
        """First row of every state, (S + 1,)."""
        return starts(np.bincount(self.row_states, minlength=self.states))

    @property
    def choices(self) -> IntArray:
        """Number of every row within its state, (R,)."""
        return np.arange(self.rows) - self.row_ptr[self.row_states]

    @property
    def known(self) -> bool:
        """Whether all probabilities are known."""
        return bool(np.array_equal(self.lower, self.upper))

    @property
    def chain(self) -> bool:
        """Whether every state has one choice."""
        return bool(np.array_equal(self.row_states, np.arange(self.states)))


def make_model(table: ModelTable, name: str, fail: Fail | None = None) -> FactoredMDP:
    """Return the model of a table; rows with equal distributions share a marginal.

    Every state needs a row. Entries of a row with the same successor are added up. `name` says in
    messages what the table comes from; `fail` complains about an entry, by default with its state
    and action.
    """

    def complain(entry: int, message: str) -> NoReturn:
        row = owner(table.successor_ptr, entry)
        action = table.actions[table.row_actions[row]]
        where = f"state {table.row_states[row]}" + (f", action {action}" if action else "")
        raise ModelError(f"{name}: {where}: {message}")

    alone = np.setdiff1d(np.arange(table.states), table.row_states)
    if len(alone):
        raise ModelError(
            f"{name}: every state must have a transition, but {len(alone)} have none, the first is "
            f"{alone[0]}; give them self-loops."
        )
    _check(table, fail or complain)
    table = _merged(table)
    variables, valuations = table.variables
    centres = box_centres(table.successor_ptr, table.lower, table.upper)
    return flat_model(
        table.row_ptr,
        table.successors.astype(np.int32),
        *shared((table.successor_ptr, table.lower, table.upper, centres)),
        initial=table.initial,
        row_actions=table.row_actions,
        actions=table.actions,
        labels=table.labels,
        rewards=table.rewards,
        variables=variables,
        valuations=valuations,
    )


def _check(table: ModelTable, fail: Fail) -> None:
    """Complain about the first entry or row that cannot be one."""
    inside = (table.successors >= 0) & (table.successors < table.states)
    if not inside.all():
        at = int(np.argmin(inside))
        where = f"0..{table.states - 1}, found {table.successors[at]}"
        fail(at, f"The target state must be within {where}.")
    good = (table.lower >= 0.0) & (table.lower <= table.upper) & (table.upper <= 1.0)
    if not good.all():
        at = int(np.argmin(good))
        low, high = table.lower[at], table.upper[at]
        value = f"{low:.12g}" if low == high else f"[{low:.12g}, {high:.12g}]"
        hint = "rates (ctmc) are not supported."
        fail(at, f"Probabilities must satisfy 0 <= l <= u <= 1, found {value}; {hint}")
    low_sum = segment_sum(table.lower, table.successor_ptr)
    high_sum = segment_sum(table.upper, table.successor_ptr)
    bad = (low_sum > 1.0 + SUM_TOLERANCE) | (high_sum < 1.0 - SUM_TOLERANCE)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    fail(
        int(table.successor_ptr[row]),
        f"The probabilities of state {table.row_states[row]} sum to {low_sum[row]:.12g} at least "
        f"and {high_sum[row]:.12g} at most in the row that starts here, 1 must lie between; 17 "
        "digits lose nothing.",
    )


def _merged(table: ModelTable) -> ModelTable:
    """Return the table with entries of a row that meet in one state added up."""
    row = owners(table.successor_ptr)
    key = row * table.states + table.successors
    if np.all(key[1:] > key[:-1]):
        return table
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return table
    sums = [np.minimum(np.bincount(place, side), 1.0) for side in (table.lower, table.upper)]
    ptr = starts(np.bincount(row[first], minlength=table.rows))
    return replace(
        table, successor_ptr=ptr, successors=table.successors[first], lower=sums[0], upper=sums[1]
    )


def to_table(model: FactoredMDP) -> tuple[ModelTable, str]:
    """Return any model as columns, and what that changed, in words; the label init is among them.

    Several marginals of a row are multiplied out by `flatten`.
    """
    flat = flatten(model)
    lower, upper = transition_bounds(flat)
    variables = (tuple(flat.variables), flat.valuations if flat.variables else None)
    table = ModelTable(
        flat.states, flat.row_states, flat.successor_ptr, flat.successors.astype(np.int64), lower,
        upper, flat.row_actions.astype(np.int64), tuple(flat.actions), flat.initial,
        {"init": flat.label("init"), **flat.labels}, flat.rewards, variables,
    )  # fmt: skip
    zeros = 0 if table.known else int(np.count_nonzero(flat.marginals.lower == 0.0))
    refused = f"{zeros} intervals have the lower bound 0, which PRISM and Storm refuse."
    return table, " ".join(filter(None, [flatten_note(model), refused if zeros else ""]))


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: the files, and what of the model they cannot say (may be empty)."""

    paths: tuple[Path, ...]
    note: str
