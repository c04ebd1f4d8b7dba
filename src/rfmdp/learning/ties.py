"""Marginals that are declared to be the same unknown distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.structure import Structure, equal_numbers
from rfmdp.types import IntArray


def tied(structure: Structure, ties: Sequence[Sequence[int | str]], equal: bool) -> IntArray:
    """Return one member of its group for every marginal, (M,).

    Those may be tied that were written with equal probabilities, or have equal bounds. `equal`: all
    of these are tied.
    """
    model, alike = structure.model, structure.alike
    if alike is None:
        sets = model.marginals
        low, high = (equal_numbers(sets.outcome_ptr, ends) for ends in (sets.lower, sets.upper))
        alike = low * len(sets) + high
    same = alike.copy() if equal else np.arange(len(model.marginals))
    for group in ties:
        for members in _members(model, group, alike):
            for j in members[1:]:
                _check_alike(model, members[0], j, alike)
                same[same == same[j]] = same[members[0]]
    return same


def _members(model: FactoredMDP, group: Sequence[int | str], alike: IntArray) -> list[list[int]]:
    """Return the marginals that a tie joins: one list, or one per marginal of tied modules."""
    number = {name: j for j, name in enumerate(model.marginal_names)}
    if all(member in model.factors for member in group):
        return _alike(model, [str(member) for member in group], alike)
    modules = any(member in model.factors for member in group)
    for member in group:
        named = member in number if isinstance(member, str) else 0 <= member < len(model.marginals)
        if not named and member not in model.factors:
            names = list(model.factors if modules else number)
            more = ", ..." if len(names) > 8 else ""
            raise ModelError(
                f"Tie: the model has no {'module' if modules else 'marginal'} '{member}'; it has: "
                f"{', '.join(names[:8]) or len(model.marginals)}{more}."
            )
    if modules:
        raise ModelError("Tie: must join modules with modules, or marginals with marginals.")
    return [[number[member] if isinstance(member, str) else int(member) for member in group]]


def _alike(model: FactoredMDP, modules: Sequence[str], alike: IntArray) -> list[list[int]]:
    """Return the marginals of modules that come from one text and have equal probabilities."""
    commands: dict[tuple[str, int], list[int]] = {}
    for j, name in enumerate(model.marginal_names):
        module, _, command = name.partition(": [")
        if module in modules:
            place = command.partition("] ")[2].partition(" #")[0]
            commands.setdefault((place, int(alike[j])), []).append(j)
    tied = [members for members in commands.values() if len(members) > 1]
    if not tied:
        raise ModelError(
            f"Tie: modules {', '.join(modules)} must have commands of one text, none renames "
            "another one; tie their marginals one by one."
        )
    return tied


def _check_alike(model: FactoredMDP, first: int, other: int, alike: IntArray) -> None:
    """Raise ModelError if the model itself says that two marginals differ."""
    sizes = model.marginals.sizes
    if sizes[first] != sizes[other] or alike[first] != alike[other]:
        raise ModelError(
            f"Tie: {model.marginal_name(first)} and {model.marginal_name(other)} must have the "
            f"same probabilities or sets in the model; they have others."
        )


def shared_names(model: FactoredMDP, same: IntArray) -> tuple[tuple[str, ...], ...]:
    """Return the groups of marginals that share a representative, by name."""
    groups: dict[int, list[str]] = {}
    for j, representative in enumerate(same.tolist()):
        groups.setdefault(representative, []).append(model.marginal_name(j))
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)
