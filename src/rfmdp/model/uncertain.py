"""What models of every layout do: say their sizes, and change their uncertainty sets.

Floats are rationals, so nature cannot empty an outcome that it must leave 2^-54. Decimals rarely
mean that: 1 - 0.7 is a float above 0.3, and 0.1 + 0.2 + 0.7 is less than one. So there is a warning
of sets that miss 0 by rounding only, because that decides between the values 0 and 1.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from rfmdp.errors import ModelError, PrismWarning, UnsupportedError
from rfmdp.ragged import owner, segment_sum
from rfmdp.record import Provenance, balls
from rfmdp.rounding import RESIDUE, RESIDUE_GRAIN
from rfmdp.sets.boxes import needed
from rfmdp.sets.marginals import Kind, Marginals, balls_around, boxes_around, radii_of
from rfmdp.types import FloatArray

if TYPE_CHECKING:
    from rfmdp.model.lattice import AnyModel


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


def model_sizes(model: AnyModel) -> list[str]:
    """Return the numbers of states, rows, transitions and marginals, for people."""
    sizes = {
        "state": model.states,
        "row": model.rows,
        "transition": model.transitions,
        "marginal": len(model.marginals),
    }
    return [counted(number, what) for what, number in sizes.items()]


def counted(number: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "marginal"), counted(1200, "state")
    ('1 marginal', '1,200 states')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def warn_if_touching(model: AnyModel, radii: FloatArray | None = None) -> None:
    """Warn of outcomes that nature cannot empty by rounding only; the first one is named.

    What rounding leaves of 0 is at most 2^-50, and a multiple of 2^-70, as differences of numbers
    above 1e-5 are. Small numbers that someone wrote, 1e-20 say, have more digits than that.

    Parameters
    ----------
    radii : (M,) of the balls that were put around nominal distributions; None for sets of a text
    """
    sets, ptr = model.marginals, model.marginals.outcome_ptr
    left = (sets.lower > 0.0) & (sets.lower <= RESIDUE)
    left &= np.remainder(sets.lower, RESIDUE_GRAIN) == 0.0
    others = np.repeat(segment_sum(sets.upper, ptr), sets.sizes) - sets.upper
    near = np.repeat(sets.kind == Kind.BOX, sets.sizes) & (sets.lower == 0.0)
    near &= np.abs(1.0 - others) <= 2.0 * RESIDUE
    left |= near & needed(sets.upper, ptr)
    if radii is not None:
        left &= sets.lower != sets.nominal  # else no radius, so nothing touches it
    places = np.flatnonzero(left)
    if not places.size:
        return
    k = int(places[0])
    j = owner(ptr, k)
    effect = f": {model.outcome_names[k]}" if model.outcome_names else ""
    where = f"{model.marginal_name(j)}, outcome {k - int(ptr[j]) + 1}{effect}"
    more = f" So for {places.size - 1} more." if places.size > 1 else ""
    radius = "" if radii is None else f" and the radius {float(radii[j])!r}"
    warnings.warn(
        f"{where}: nature cannot empty it by rounding only; its bounds{radius} meet 0 nearly. "
        "Write 0, or a slightly larger radius, if nature may empty it; else a clearly larger "
        f"bound.{more}",
        PrismWarning,
        stacklevel=3,
    )
