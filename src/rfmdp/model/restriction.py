"""Sets that nature keeps to: smaller than those of a model, marginal by marginal of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import starts
from rfmdp.sets.boxes import box_centres
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """Boxes for some marginals of rows, one after the other, by their places in `row_marginals`."""

    places: IntArray  # (N,)
    lower: FloatArray
    upper: FloatArray

    def on(self, model: FactoredMDP) -> FactoredMDP:
        """Return the model with these boxes in place of its sets.

        Examples
        --------
        >>> from rfmdp.sets.families import Interval
        >>> any_ = Interval([0.0, 0.0], [1.0, 1.0])
        >>> model = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [any_])
        >>> often = Restriction(np.array([0]), np.array([0.0, 0.5]), np.array([0.5, 1.0]))
        >>> often.on(model).marginals[1].lower.tolist()
        [0.0, 0.5]
        """
        sizes = model.marginals.sizes[model.row_marginals[self.places]]
        ptr = starts(sizes)
        boxes = Marginals.from_boxes(
            ptr, self.lower, self.upper, box_centres(ptr, self.lower, self.upper)
        )
        taken = model.row_marginals.copy()
        taken[self.places] = len(model.marginals) + np.arange(len(self.places))
        return replace(
            model,
            row_marginals=taken,
            marginals=model.marginals.joined(boxes),
            marginal_names=(),
            outcome_names=(),
        )
