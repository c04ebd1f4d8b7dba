"""Models that are built already, in blocks: what tests compare blocks of texts with."""

from dataclasses import dataclass

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.blocked import BlockedMDP, frame_of
from rfmdp.model.derived import taking


@dataclass(frozen=True)
class BuiltRows:
    """Rows of a model by ranges of its states."""

    model: FactoredMDP

    def rows_of(self, first, last):
        """Return the rows of some states."""
        model, states = self.model, slice(first, last)
        row_ptr, inside = model.row_ptr[first : last + 1], model.initial
        successors = model.successors[slice(*model.successor_ptr[row_ptr[[0, -1]]].tolist())]
        inside = inside[(inside >= first) & (inside < last)]
        rows, counts = np.arange(row_ptr[0], row_ptr[-1]), np.diff(row_ptr)
        return taking(model, states, rows, counts, successors, initial=inside - first)

    def whole(self):
        """Return the model."""
        return self.model


def in_blocks(model, blocks, scheduler=None):
    """Return a model in so many blocks, but no more than it has states."""
    return BlockedMDP(
        frame_of(model), BuiltRows(model), model.rows, model.transitions,
        min(blocks, model.states), scheduler=scheduler,
    )  # fmt: skip
