"""What is said about a model: its sizes, and what may not be as intended.

Floats are rationals, so nature cannot empty an outcome that it must leave 2^-54. Decimals rarely
mean that: 1 - 0.7 is a float above 0.3, and 0.1 + 0.2 + 0.7 is less than one. So there is a warning
of sets that miss 0 by rounding only, because that decides between the values 0 and 1.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import PrismWarning
from rfmdp.ragged import owner, segment, segment_sum
from rfmdp.rounding import DOUBT, RESIDUE, RESIDUE_GRAIN
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from rfmdp.model.lattice import AnyModel


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

    Parameters
    ----------
    radii : (M,) of the balls that were put around nominal distributions; None for sets of a text
    """
    sets = model.marginals
    missing = least_by_rounding(sets)
    if radii is not None:
        missing[sets.lower == sets.nominal] = 0.0  # no radius, so nothing touches it
    places = np.flatnonzero(missing)
    if not places.size:
        return
    k = int(places[0])
    j = owner(sets.outcome_ptr, k)
    effect = f": {model.outcome_names[k]}" if model.outcome_names else ""
    where = f"{model.marginal_name(j)}, outcome {k - int(sets.outcome_ptr[j]) + 1}{effect}"
    more = f" So for {places.size - 1} more." if places.size > 1 else ""
    radius = "" if radii is None else f" with the radius {float(radii[j])!r}"
    warnings.warn(
        f"{where}: nature cannot empty it: {missing[k]:.2g} of it{radius} stay, which is what "
        "rounding left of 0. Write 0, or a slightly larger radius, if nature may empty it; else a "
        f"clearly larger bound.{more}",
        PrismWarning,
        stacklevel=3,
    )


def least_by_rounding(sets: Marginals) -> FloatArray:
    """Return the least probability of outcomes (O,) where it is a residue of rounding, else 0.

    A residue is positive, at most 2^-50, and a multiple of 2^-70, as differences of numbers above
    1e-5 are. Small numbers that someone wrote, 1e-20 say, have more digits than that.
    """
    least = np.where(_is_residue(sets.lower), sets.lower, 0.0)
    boxes = np.repeat(sets.kind == Kind.BOX, sets.sizes)
    others = np.repeat(segment_sum(sets.upper, sets.outcome_ptr), sets.sizes) - sets.upper
    doubtful = boxes & (sets.lower == 0.0) & (sets.upper > 0.0) & (np.abs(others - 1.0) <= DOUBT)
    for k in np.flatnonzero(doubtful).tolist():
        outcomes = segment(sets.outcome_ptr, owner(sets.outcome_ptr, k))
        missing = math.fsum([1.0, float(sets.upper[k]), *(-sets.upper[outcomes]).tolist()])
        least[k] = missing if 0.0 < missing <= RESIDUE else 0.0
    return least


def _is_residue(values: FloatArray) -> BoolArray:
    small: BoolArray = (values > 0.0) & (values <= RESIDUE)
    grains = values[small] / RESIDUE_GRAIN
    small[small] = grains == np.rint(grains)
    return small
