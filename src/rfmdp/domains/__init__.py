"""Benchmark domains by name: PRISM files with a table of constants and properties.

>>> model = domain("chain")                          # the textbook version
>>> model.states
100
>>> domain("chain", M=4).states                      # other constants
16
>>> published_model("chain", 0.025).transitions      # the model behind a published row
3136
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from rfmdp.domains.bounds import published_bounds
from rfmdp.domains.table import DOMAINS, Constants, Domain, Version, find
from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.prism.load import load_prism

TEXTBOOK, PUBLISHED, LEARNING = "textbook", "published", "learning"


def domain(
    name: str,
    *,
    instance: str = TEXTBOOK,
    as_published: bool | str = False,
    **constants: bool | int | float | str,
) -> FactoredMDP:
    """Return the nominal model of a domain; `with_radius` makes it uncertain.

    Parameters
    ----------
    name
        One of `DOMAINS`.
    instance
        "textbook" (default), "published" (the model behind the published solving table) or
        "learning" (the smaller one of the published learning experiments).
    as_published
        True is the same as the instance "published": the oddities of the published model.
    constants
        Values for constants of the file, over those of the instance.

    Raises
    ------
    ModelError
        If there is no such domain or instance.
    PrismError
        If the file has no such constant.
    """
    found = find(name)
    published = str(as_published).strip().lower() == "true"
    chosen = PUBLISHED if published and instance == TEXTBOOK else instance
    values = domain_constants(found.name, chosen) | constants
    with as_file(files(__package__) / found.file) as path:
        return load_prism(path, values)


def domain_constants(
    name: str, instance: str = TEXTBOOK
) -> dict[str, bool | int | float | str]:
    """Return the values of all constants of a domain's file in an instance."""
    found = find(name)
    extra: dict[str, Version | None] = {
        TEXTBOOK: Version({}, 0, 0),
        PUBLISHED: found.published,
        LEARNING: found.learning,
    }
    version = extra.get(instance)
    if version is None:
        known = ", ".join(key for key, value in extra.items() if value is not None)
        raise ModelError(f"Domain {found.name} has no instance {instance!r}; it has: {known}.")
    return {**found.constants, **version.constants}


def domain_path(name: str) -> Path:
    """Return where the PRISM file of a domain is installed."""
    return Path(str(files(__package__) / find(name).file))


def domain_property(name: str) -> str:
    """Return the property of a domain in PRISM's notation."""
    return find(name).prop


def domain_spec(name: str) -> Spec:
    """Return the property of a domain as a specification."""
    return find(name).spec


def published_model(name: str, radius: float) -> FactoredMDP:
    """Return the rf-MDP behind the published row of a domain and a radius, oddities included."""
    found = find(name)
    return published_bounds(found.name, domain(found.name, instance=PUBLISHED), radius)


__all__ = [
    "DOMAINS",
    "Constants",
    "Domain",
    "domain",
    "domain_constants",
    "domain_path",
    "domain_property",
    "domain_spec",
    "published_bounds",
    "published_model",
]
