"""Uncertainty on a nominal model, with a radius per module and per action."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.touching import warn_if_touching
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.record import balls
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.radius import balls_around, boxes_around
from rfmdp.types import FloatArray, IntArray

NONE: Mapping[str, float] = MappingProxyType({})


def with_uncertainty(
    model: FactoredMDP,
    radius: float = 0.0,
    *,
    exponent: float = math.inf,
    by_module: Mapping[str, float] = NONE,
    by_action: Mapping[str, float] = NONE,
    floor: float = 0.0,
) -> FactoredMDP:
    """Return the model with balls around its nominal distributions.

    A marginal belongs to the module and the action of its command. Its radius is that of the
    action if `by_action` has one, else that of the module, else `radius`; modules that share it
    (one renames the other) have one each if their radii differ. Probabilities 0 and 1 stay as they
    are, so that the support is kept.

    Parameters
    ----------
    radius
        Where neither its action nor its module has a radius of its own.
    exponent
        Of the norm: inf for boxes, 1 for L1 balls, any p >= 1.
    by_module, by_action
        Radii by name; "" are the unlabelled commands.
    floor
        Least probability of every possible outcome, an explicit assumption; boxes only.

    Raises
    ------
    ModelError
        For an unknown name or a negative radius.
    UnsupportedError
        For a floor with a norm other than L-infinity.

    Examples
    --------
    >>> from rfmdp.language.load import parse_prism
    >>> text = "mdp module m x : [0..1]; [a] true -> 0.5 : (x'=0) + 0.5 : (x'=1); endmodule"
    >>> model = with_uncertainty(parse_prism(text), 0.1, by_action={"a": 0.2})
    >>> model.marginals[0].lower.tolist()
    [0.3, 0.3]
    """
    if floor != 0.0 and not math.isinf(exponent):
        raise UnsupportedError("A floor needs the L-infinity norm; leave it out, or use boxes.")
    if not radius >= 0.0:
        raise ModelError(f"A radius must be >= 0, got {radius!r}.")
    _check_names("module", by_module, model.factors)
    _check_names("action", by_action, model.actions)
    model, radii = _split(model, radius, _radii(model, radius, by_module, by_action))
    if math.isinf(exponent):
        sets = boxes_around(model.marginals, radii, floor)
    else:
        sets = balls_around(model.marginals, radii, exponent)
    model = model.with_marginals(sets)
    warn_if_touching(model, radii)
    return model.with_provenance(
        sets=balls(radius, exponent=exponent, by_module=by_module, by_action=by_action, floor=floor)
    )


def _radii(
    model: FactoredMDP,
    radius: float,
    by_module: Mapping[str, float],
    by_action: Mapping[str, float],
) -> FloatArray:
    """Return the radius of every use of a marginal, shaped as `model.row_marginals`."""
    actions = np.repeat(model.row_actions, segment_lengths(model.marginal_ptr))
    by_factor = np.array([by_module.get(name, radius) for name in model.factors], dtype=float)
    uses = np.full(len(model.row_marginals), float(radius))
    if len(model.row_factors):
        uses = by_factor[model.row_factors]
    for name, value in by_action.items():
        uses[actions == model.actions.index(name)] = value
    return uses


def _split(model: FactoredMDP, radius: float, uses: FloatArray) -> tuple[FactoredMDP, FloatArray]:
    """Return the model with a marginal per radius that it is used with, and all radii (M,)."""
    sets, ids = model.marginals, model.row_marginals
    radii = np.full(len(sets), float(radius))
    radii[ids] = uses
    if np.array_equal(radii[ids], uses):
        return model, radii
    kinds, kind = np.unique(uses, return_inverse=True)
    codes, numbers = np.unique(ids.astype(np.int64) * len(kinds) + kind, return_inverse=True)
    old = codes // len(kinds)
    pointers = starts(sets.sizes[old])
    outcomes = entries(sets.outcome_ptr, old)
    new_radii = kinds[codes % len(kinds)]
    parted = replace(
        model,
        marginals=Marginals.from_points(pointers, sets.nominal[outcomes]),
        row_marginals=numbers.astype(ids.dtype),
        marginal_names=_names(model, old, new_radii),
        outcome_names=tuple(model.outcome_names[k] for k in outcomes)
        if model.outcome_names
        else (),
    )
    return parted, new_radii


def _names(model: FactoredMDP, old: IntArray, radii: FloatArray) -> tuple[str, ...]:
    """Return the names of parted marginals: a name that would occur twice tells its radius."""
    if not model.marginal_names:
        return ()
    uses = np.bincount(old)
    return tuple(
        model.marginal_names[j] + (f" with radius {radius!r}" if uses[j] > 1 else "")
        for j, radius in zip(old.tolist(), radii.tolist(), strict=True)
    )


def _check_names(kind: str, given: Mapping[str, float], known: Iterable[str]) -> None:
    names = list(known)
    for name, value in given.items():
        if name not in names:
            listed = ", ".join(name or '""' for name in names)
            raise ModelError(f"Radius of {kind} '{name}': no such {kind}; there are: {listed}.")
        if not value >= 0.0:
            raise ModelError(f"Radius of {kind} '{name}': must be >= 0, got {value!r}.")
