"""What exploration finds: states, rows and successors, before sets, labels and rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.packing import Packing
from rfmdp.ragged import owners, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """Rows in the order of discovery; states are numbered so as well."""

    source: Int32Array  # (R,) the state of every row
    action: Int32Array  # (R,)
    marginals: Int32Array  # (R,) number of marginals
    tensor: Int32Array  # (R,) number of successors
    marginal: Int32Array  # identifiers, row by row
    factor: Int32Array
    successors: Int32Array

    def arranged(self, packing: Packing, known: IntArray, start: Int32Array | IntArray) -> Skeleton:
        """Return the rows with states in the order of valuations, those of a state as they were.

        Parameters
        ----------
        known : (S, words) the states in the order of discovery
        start : the numbers of initial states in that order
        """
        from rfmdp.kernels import frontier as kernels

        order = packing.order(known)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        row_ptr = starts(np.bincount(rank[self.source], minlength=len(order)))
        position = np.empty(len(self.source), dtype=np.int32 if len(self.source) < 2**31 else int)
        kernels.place_rows(self.source, rank, row_ptr[:-1].copy(), position)

        def placed(values: Int32Array) -> Int32Array:
            out = np.empty_like(values)
            out[position] = values
            return out

        def moved(values: Int32Array, pointers: IntArray) -> Int32Array:
            out = np.empty(len(values), dtype=np.int32)
            kernels.move_segments(self.marginals, position, pointers, values, out)
            return out

        marginal_ptr, successor_ptr = starts(placed(self.marginals)), starts(placed(self.tensor))
        successors = np.empty(len(self.successors), dtype=np.int32)
        kernels.move_successors(
            self.tensor, position, successor_ptr, self.successors, rank, successors
        )
        return Skeleton(
            variables=packing.variables,
            valuations=packing.unpack(known[order]),
            initial=np.unique(rank[start]).astype(np.int64),
            row_ptr=row_ptr,
            row_actions=placed(self.action),
            marginal_ptr=marginal_ptr,
            row_marginals=moved(self.marginal, marginal_ptr),
            row_factors=moved(self.factor, marginal_ptr),
            successor_ptr=successor_ptr,
            successors=successors,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """The arrays of `FactoredMDP` that exploration fills; same names, same layout.

    `row_actions` is `NO_ACTION` in the self-loops that were given to deadlocks.
    """

    NO_ACTION: ClassVar[int] = -1

    variables: tuple[Variable, ...]
    valuations: Int32Array  # (S, vars)
    initial: IntArray
    row_ptr: IntArray  # (S + 1,)
    row_actions: Int32Array  # (R,)
    marginal_ptr: IntArray  # (R + 1,)
    row_marginals: Int32Array
    row_factors: Int32Array
    successor_ptr: IntArray  # (R + 1,)
    successors: Int32Array  # (K,)

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def row_states(self) -> IntArray:
        """The state of every row, (R,)."""
        return owners(self.row_ptr)

    @property
    def deadlocks(self) -> BoolArray:
        """The states that have only a self-loop given to them, (S,)."""
        where = np.zeros(self.states, dtype=np.bool_)
        where[self.row_states[self.row_actions == self.NO_ACTION]] = True
        return where

    def drop_unused(self) -> tuple[Skeleton, IntArray]:
        """Renumber the marginals that some row uses consecutively.

        Returns the new skeleton and the old identifier of every new one, ascending.
        """
        seen = np.bincount(self.row_marginals) > 0
        number = (np.cumsum(seen) - 1).astype(np.int32)
        return replace(self, row_marginals=number[self.row_marginals]), np.flatnonzero(seen)

    def model(
        self,
        marginals: Marginals,
        actions: Sequence[str],
        factors: Sequence[str],
        *,
        labels: Mapping[str, BoolArray] | None = None,
        rewards: Mapping[str, Rewards] | None = None,
        marginal_names: Sequence[str] = (),
        outcome_names: Sequence[str] = (),
        formulas: Mapping[str, Any] | None = None,
    ) -> FactoredMDP:
        """Return the finished model.

        Self-loops of deadlocks get the unlabelled action "", which is added if it is missing,
        and their states the label "deadlock".
        """
        names, labels = list(actions), dict(labels or {})
        own: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        loops = self.row_actions == self.NO_ACTION
        if loops.any():
            if "" not in names:
                names.append("")
            own["row_actions"] = np.where(loops, np.int32(names.index("")), self.row_actions)
            labels["deadlock"] = self.deadlocks
        return FactoredMDP(
            **own,
            marginals=marginals,
            actions=tuple(names),
            labels=labels,
            rewards=dict(rewards or {}),
            factors=tuple(factors),
            marginal_names=tuple(marginal_names),
            outcome_names=tuple(outcome_names),
            formulas=dict(formulas or {}),
        )
