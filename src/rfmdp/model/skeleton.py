"""What exploration finds: states, rows and successors, before sets, labels and rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.ragged import owners
from rfmdp.record import Provenance
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """The arrays of `FactoredMDP` that exploration fills; same names, same layout.

    `row_actions` is `NO_ACTION` in the self-loops that were given to deadlocks.
    """

    NO_ACTION: ClassVar[int] = -1

    variables: tuple[Variable, ...]
    valuations: Int32Array  # (S, vars)
    initial: IntArray  # (I,)
    row_ptr: IntArray  # (S + 1,)
    row_actions: Int32Array  # (R,)
    marginal_ptr: IntArray  # (R + 1,)
    row_marginals: Int32Array  # (sum of factors per row,)
    row_factors: Int32Array  # (sum of factors per row,)
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
        """Return the skeleton with the marginals that some row uses, numbered from 0 on.

        And the old identifier of every new one, ascending.
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
        provenance: Provenance | None = None,
    ) -> FactoredMDP:
        """Return the finished model.

        Self-loops of deadlocks get the unlabelled action "", which is added if it is missing,
        and their states the label "deadlock".
        """
        names = list(actions)
        labels = dict(labels or {})
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
            provenance=provenance,
        )
