"""The uncertainty sets behind the published tables, oddities included.

Every branch with nominal probability p gets [max(p - radius, floor), min(p + radius, 1 - floor)];
a few branches have bounds of their own. Branches are found by the names of marginals and outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import AnyModel, LatticeMDP, Model
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray, FloatArray

WIDE = 0.1  # the largest published radius, at which some domains have other bounds
FIXED = 0.01  # the radius of branches that keep theirs


@dataclass(frozen=True, slots=True)
class Rule:
    """How a domain's published bounds come about."""

    floor: Callable[[float], float]  # by radius
    fixed: tuple[str, str] | None = None  # marginal and outcome patterns that keep FIXED
    fall_back: bool = False  # Chain: upper bounds of the slower command's fall-back


RULES = {
    "aircraft": Rule(lambda radius: 1e-4),
    "chain": Rule(lambda radius: 0.001 if radius >= WIDE else 0.0, fall_back=True),
    "drone": Rule(lambda radius: 1e-4, ("*: [[]front]*", "(x?'=min(x?+2,*)) & (y?'=max(y?-2,*))")),
    "frozen_lake": Rule(
        lambda radius: 0.001 if radius >= WIDE else 0.0, ("*: [[]n]*", "(c?'=min(c?+3,*))")
    ),
}
PLAIN = Rule(lambda radius: 0.0)


def published_bounds(name: str, model: Model, radius: float) -> Model:
    """Return a domain's model with the published uncertainty of a radius.

    Parameters
    ----------
    name
        The domain's name; domains without oddities have plain boxes.
    model
        Its nominal model, of any size.
    radius
        Greater than 0.
    """
    rule = RULES.get(name, PLAIN)
    nominal = model.marginals.nominal
    floor = rule.floor(radius)
    radii = np.full(len(nominal), radius)
    if rule.fixed is not None:
        radii[_matching(model, *rule.fixed)] = FIXED
    open_ = (nominal > 0.0) & (nominal < 1.0)
    lower = np.where(open_, np.maximum(nominal - radii, np.minimum(floor, nominal)), nominal)
    upper = np.where(open_, np.minimum(nominal + radii, np.maximum(1.0 - floor, nominal)), nominal)
    if rule.fall_back and 0.0 < radius < WIDE:
        branches = _fall_back(model)
        upper = np.where(branches, _slower(nominal) + radius, upper)
    boxes = Marginals.from_boxes(model.marginals.outcome_ptr, lower, upper, nominal)
    return model.with_marginals(boxes)


def _matching(model: FactoredMDP | LatticeMDP, marginal: str, outcome: str) -> BoolArray:
    """Return the outcomes (O,) of a scattering move with matching names."""
    matches = np.zeros(len(model.outcome_names), dtype=np.bool_)
    pointers = model.marginals.outcome_ptr
    for j, name in enumerate(model.marginal_names):
        if fnmatchcase(name, marginal):
            for k in range(pointers[j], pointers[j + 1]):
                matches[k] = fnmatchcase(model.outcome_names[k], outcome)
    return matches


def _fall_back(model: AnyModel) -> BoolArray:
    """Return the fall-back branches (O,) of the faster command of the chain."""
    pointers, nominal = model.marginals.outcome_ptr, model.marginals.nominal
    falls = np.zeros(len(nominal), dtype=np.bool_)
    for first, end in pairwise(pointers):
        if end - first > 2 and nominal[first] > 0.5:
            falls[first + 1 : end] = True
    return falls


def _slower(fast: FloatArray) -> FloatArray:
    """Return the slower command's probability of a fall-back branch: 0.6/9 where it is 0.4/9."""
    return fast * 1.5
