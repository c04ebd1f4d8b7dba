"""Benchmark domains by name: PRISM files with a table of constants and properties.

>>> model = domain("chain", radius=0.025)            # the model behind a published row
>>> model.transitions
3136
>>> domain("chain", M=4).states                      # other constants
16
>>> domain("chain", instance="textbook").transitions # as the paper's prose has it
676
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rfmdp.domains.table import DOMAINS, PUBLISHED, find
from rfmdp.errors import ModelError
from rfmdp.language.build import build_model
from rfmdp.language.check import check_model
from rfmdp.language.checked import CheckedModel
from rfmdp.language.constants import Constants
from rfmdp.language.load import read_text
from rfmdp.language.parse import parse_model
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import LatticeMDP, written
from rfmdp.objective import Spec
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray

Model: TypeAlias = FactoredMDP | LatticeMDP
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


def domain(
    name: str,
    /,
    *,
    instance: str = PUBLISHED,
    radius: float | str = 0.0,
    **constants: bool | int | float | str,
) -> FactoredMDP:
    """Return the model of a domain, nominal unless a radius is given.

    Parameters
    ----------
    name
        One of `DOMAINS`.
    instance
        "published" (the model behind the published solving table), "textbook" (as the paper's prose
        describes it) or "learning" (the smaller one of the published learning experiments).
    radius
        L-infinity radius of the uncertainty; in the instance "published" with the published
        oddities of the bounds, elsewhere as `with_radius` does it.
    constants
        Values for constants of the file, over those of the instance.
    """
    settings = {"instance": instance, "radius": radius, **constants}
    return written(with_sets(name, settings, build_model(checked_domain(name, settings))))


def checked_domain(name: str, settings: Constants) -> CheckedModel:
    """Return the checked text of a domain."""
    values = {k: value for k, value in settings.items() if k not in ("instance", "radius")}
    domain = find(name)
    constants = domain.constants(str(settings.get("instance", PUBLISHED))) | values
    return _checked(domain.path, tuple(constants.items()))


@cache
def _checked(
    path: Path, constants: tuple[tuple[str, bool | int | float | str], ...]
) -> CheckedModel:
    return check_model(parse_model(read_text(path), str(path)), dict(constants))


def with_sets(name: str, settings: Constants, model: Model) -> Model:
    """Return a nominal model with the uncertainty of a radius, if there is one."""
    size = _number(settings.get("radius", 0.0))
    if not size:
        return model
    if str(settings.get("instance", PUBLISHED)) == PUBLISHED:
        model = published_bounds(find(name).name, model, size)
        return model.with_provenance(sets={"kind": "domain", "radius": size})
    return model.with_radius(size)


def domain_spec(name: str) -> Spec:
    """Return the property of a domain as a specification."""
    return find(name).spec


def _number(radius: float | str) -> float:
    try:
        number = float(radius)
    except ValueError:
        number = math.nan
    if not number >= 0.0:
        raise ModelError(f"A radius must be a number >= 0, got {radius!r}.")
    return number


def published_bounds(name: str, model: Model, radius: float) -> Model:
    """Return a domain's model with the published uncertainty of a radius, oddities included.

    Every branch with nominal probability p gets [max(p - radius, floor), min(p + radius, 1 -
    floor)]; a few branches, found by the names of marginals and outcomes, have bounds of their own.
    Domains without oddities have plain boxes.
    """
    rule = RULES.get(name, PLAIN)
    nominal, ends = model.marginals.nominal, model.marginals.outcome_ptr
    floor, radii = rule.floor(radius), np.full(len(nominal), radius)
    if rule.fixed is not None:
        radii[_matching(model, *rule.fixed)] = FIXED
    open_ = (nominal > 0.0) & (nominal < 1.0)
    lower = np.where(open_, np.maximum(nominal - radii, np.minimum(floor, nominal)), nominal)
    upper = np.where(open_, np.minimum(nominal + radii, np.maximum(1.0 - floor, nominal)), nominal)
    if rule.fall_back and 0.0 < radius < WIDE:  # the slower command has 0.6/9 where it is 0.4/9
        faster = (np.diff(ends) > 2) & (nominal[ends[:-1]] > 0.5)
        falls = np.repeat(faster, np.diff(ends))
        falls[ends[:-1]] = False
        upper = np.where(falls, nominal * 1.5 + radius, upper)
    return model.with_marginals(Marginals.from_boxes(ends, lower, upper, nominal))


def _matching(model: FactoredMDP | LatticeMDP, marginal: str, outcome: str) -> BoolArray:
    """Return the outcomes (O,) of a scattering move with matching names."""
    matches = np.zeros(len(model.outcome_names), dtype=np.bool_)
    pointers = model.marginals.outcome_ptr
    for j, name in enumerate(model.marginal_names):
        if fnmatchcase(name, marginal):
            for k in range(pointers[j], pointers[j + 1]):
                matches[k] = fnmatchcase(model.outcome_names[k], outcome)
    return matches


__all__ = ["DOMAINS", "domain", "domain_spec", "published_bounds"]
