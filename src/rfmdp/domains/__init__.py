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
from functools import cache
from pathlib import Path

from rfmdp.domains.bounds import published_bounds
from rfmdp.domains.table import DOMAINS, PUBLISHED, Constants, find
from rfmdp.errors import ModelError
from rfmdp.language.build import build_model
from rfmdp.language.check import check_model
from rfmdp.language.checked import CheckedModel
from rfmdp.language.load import read_text
from rfmdp.language.parse import parse_model
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import Model
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
    given = {"instance": instance, "radius": radius, **constants}
    return with_sets(name, given, build_model(checked_domain(name, given)))


def checked_domain(name: str, given: Constants) -> CheckedModel:
    """Return the checked text of a domain."""
    values = {k: value for k, value in given.items() if k not in ("instance", "radius")}
    domain = find(name)
    constants = domain.constants(str(given.get("instance", PUBLISHED))) | values
    return _checked(domain.path, tuple(constants.items()))


@cache
def _checked(
    path: Path, constants: tuple[tuple[str, bool | int | float | str], ...]
) -> CheckedModel:
    return check_model(parse_model(read_text(path), str(path)), dict(constants))


def with_sets(name: str, given: Constants, model: Model) -> Model:
    """Return a nominal model with the uncertainty of a radius, if there is one."""
    size = _number(given.get("radius", 0.0))
    if not size:
        return model
    if str(given.get("instance", PUBLISHED)) == PUBLISHED:
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


__all__ = ["DOMAINS", "domain", "domain_spec", "published_bounds"]
