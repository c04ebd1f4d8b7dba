"""Interval arithmetic: the loose product of PRISM and Storm; see `kernels.products`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rfmdp.inner.exact import Exact
from rfmdp.inner.packing import joint_relaxation
from rfmdp.inner.protocol import PreparedInner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment_lengths
from rfmdp.sets.marginals import Kind


@dataclass(frozen=True, slots=True)
class IntervalArithmetic:
    """Relaxation: joint probabilities between the products of the marginals' bounds.

    Only bounds are read, so every set fits; one that is not a box is replaced by its enclosing
    box. Bounds that a PRISM text states are taken as they are, as PRISM does.
    """

    name: ClassVar[str] = "interval"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model. One box per row is no product: then it is exact, from both sides."""
        marginals = model.marginals
        plain = np.isin(marginals.kind, (Kind.SINGLETON, Kind.BOX)).all()
        if plain and marginals.stated is None and segment_lengths(model.marginal_ptr).max() <= 1:
            return Exact().prepare(model, nature)
        model = model.with_marginals(model.marginals.as_stated())
        boxes = np.full(model.rows, Kind.BOX, np.int64), np.full(model.rows, -1.0)
        return joint_relaxation(model, nature, (*boxes, np.ones(model.rows)))
