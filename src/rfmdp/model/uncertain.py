"""What models of every layout do with their uncertainty sets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.report import warn_if_touching
from rfmdp.record import Provenance, balls
from rfmdp.sets.marginals import Marginals, balls_around, boxes_around, radii_of


class UncertainModel:
    """A frozen dataclass with `marginals` and a `provenance`; its sets can be replaced."""

    __slots__ = ()

    marginals: Marginals
    provenance: Provenance | None

    @property
    def uncertain(self) -> bool:
        """Whether nature has a choice somewhere."""
        return bool((self.marginals.lower < self.marginals.upper).any())

    def with_marginals(self, marginals: Marginals) -> Self:
        """Return the same structure with other uncertainty sets of the same sizes."""
        if not np.array_equal(marginals.outcome_ptr, self.marginals.outcome_ptr):
            raise ModelError(
                f"with_marginals: needs {len(self.marginals)} sets with the sizes of this model's, "
                f"got {len(marginals)}."
            )
        return self._with(marginals=marginals).with_provenance(sets={"kind": "other"})

    def with_provenance(self, **changes: Any) -> Self:
        """Return the same model with other fields of its provenance, if it has one."""
        if self.provenance is None:
            return self
        return self._with(provenance=replace(self.provenance, **changes))

    def with_radius(self, radius: float, floor: float = 0.0, *, exponent: float = math.inf) -> Self:
        """Return the model with balls around its nominal distributions; the support is kept.

        Parameters
        ----------
        radius
            Every probability p that is not 0 or 1 becomes [max(p - radius, floor),
            min(p + radius, 1 - floor)].
        floor
            Least probability of every possible outcome, an explicit assumption; boxes only.
        exponent
            Of the norm: inf for boxes, 1 for L1 balls, any p >= 1.

        Raises
        ------
        ModelError
            If the model has sets already; `model.nominal().with_radius(...)` replaces them.
        UnsupportedError
            For a floor with a norm other than L-infinity, or sets that this layout cannot have.
        """
        if self.uncertain:
            raise ModelError(
                "with_radius: must be around a nominal model, this one has sets of its own; use "
                "model.nominal().with_radius(...) to drop them first."
            )
        if math.isinf(exponent):
            sets = boxes_around(self.marginals, radius, floor)
        elif floor == 0.0:
            sets = balls_around(self.marginals, radius, exponent)
        else:
            raise UnsupportedError("A floor needs the L-infinity norm; leave it out, or use boxes.")
        model = self.with_marginals(sets)
        warn_if_touching(cast(Any, model), radii_of(self.marginals, radius))
        return model.with_provenance(sets=balls(radius, exponent, floor))

    def nominal(self) -> Self:
        """Return the model with every set replaced by its nominal member."""
        points = Marginals.from_points(self.marginals.outcome_ptr, self.marginals.nominal)
        return self.with_marginals(points).with_provenance(sets={"kind": "nominal"})

    def _with(self, **fields: Any) -> Self:
        return cast(Self, replace(cast(Any, self), **fields))
