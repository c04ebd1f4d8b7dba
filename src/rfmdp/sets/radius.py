"""Uncertainty around nominal distributions: radii in bulk, and per marginal."""

from __future__ import annotations

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.ragged import segment
from rfmdp.sets.families import LpBall
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray


def boxes_around(marginals: Marginals, radius: float | FloatArray, floor: float = 0.0) -> Marginals:
    """Return boxes [max(p - radius, floor), min(p + radius, 1 - floor)] around nominals.

    Probabilities 0 and 1 stay as they are. `radius` is one number or one per marginal (M,).
    """
    radii = radii_of(marginals, radius)
    if not 0.0 <= floor < 0.5:
        raise ModelError(f"The floor must lie in [0, 0.5), got {floor!r}.")
    p = marginals.nominal
    per_outcome = np.repeat(radii, marginals.sizes)
    open_ = (p > 0.0) & (p < 1.0) & (per_outcome > 0.0)
    lower = np.where(open_, np.maximum(p - per_outcome, np.minimum(floor, p)), p)
    upper = np.where(open_, np.minimum(p + per_outcome, np.maximum(1.0 - floor, p)), p)
    return Marginals.from_boxes(marginals.outcome_ptr, lower, upper, p)


def balls_around(marginals: Marginals, radius: float | FloatArray, exponent: float) -> Marginals:
    """Return Lp balls of a radius (one, or one per marginal) around nominals.

    Certain marginals (one outcome with probability 1) stay as they are.
    """
    sets = []
    for j, r in enumerate(radii_of(marginals, radius)):
        outcomes = segment(marginals.outcome_ptr, j)
        certain = bool(np.any(marginals.nominal[outcomes] == 1.0))
        sets.append(LpBall(marginals.nominal[outcomes], 0.0 if certain else float(r), exponent))
    return Marginals.from_sets(sets)


def radii_of(marginals: Marginals, radius: float | FloatArray) -> FloatArray:
    """Return the radius of every marginal (M,)."""
    try:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), (len(marginals),))
    except (TypeError, ValueError):
        raise ModelError(
            f"A radius must be a number, or an array of one per marginal ({len(marginals)}), got "
            f"{radius!r:.60}."
        ) from None
    if not np.all(radii >= 0.0):
        raise ModelError(f"A radius must be >= 0, got {radius!r}.")
    return radii
