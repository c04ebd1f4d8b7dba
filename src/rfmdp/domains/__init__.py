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

from rfmdp.domains.bounds import published_bounds
from rfmdp.domains.table import DOMAINS, PUBLISHED, Constants, find
from rfmdp.errors import ModelError
from rfmdp.language.load import load_prism
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Progress
from rfmdp.objective import Spec


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
        "published" (default: the model behind the published solving table), "textbook" (the model
        as the paper's prose describes it) or "learning" (the smaller one of the published learning
        experiments).
    radius
        L-infinity radius of the uncertainty; in the instance "published" with the published
        oddities of the bounds, elsewhere as `with_radius` does it.
    constants
        Values for constants of the file, over those of the instance.

    Raises
    ------
    ModelError
        If there is no such domain or instance.
    PrismError
        If the file has no such constant.
    """
    return open_domain(name, {"instance": instance, "radius": radius, **constants})


def open_domain(name: str, given: Constants, progress: Progress | None = None) -> FactoredMDP:
    """Return the model of a domain; `instance` and `radius` of `domain` are among what is given."""
    values = dict(given)
    instance, size = str(values.pop("instance", PUBLISHED)), _number(values.pop("radius", 0.0))
    found = find(name)
    model = load_prism(found.path, found.constants(instance) | values, progress=progress)
    if not size:
        return model
    if instance == PUBLISHED:
        model = published_bounds(found.name, model, size)
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


__all__ = ["DOMAINS", "domain", "domain_spec", "open_domain", "published_bounds"]
