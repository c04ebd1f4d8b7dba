"""What people say about their data: how rows were chosen, and which column holds what.

    {
      "selection": "none",
      "columns": {"m1": "machine_1", "m1'": "machine_1_after", "action": "what"},
      "actions": {"fix first": "repair1"},
      "values": {"m1": {"fine": 0, "worn": 1, "broken": 2}}
    }

A variable x stands in the column `x`, and its value in the next state in `next_x` or `x'`, unless
`columns` says otherwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import DataError, FileError
from rfmdp.model.arrays import FactoredMDP

ROLES = {  # what a column may be beside a variable; its name by default
    "action": "action",
    "episode": "episode",
    "time": "t",
    "terminated": "terminated",
    "reward": "reward",
}
FIELDS = {  # of a manifest, with what they say
    "columns": "the columns of variables and roles",
    "actions": "what the actions are called",
    "values": "what the values of variables are called",
}


class Selection(Enum):
    """Whether rows were left out because of what they say; only NONE allows a guarantee."""

    NONE = "none"  # everything that happened is there
    UNKNOWN = "unknown"  # nobody knows
    OUTCOME = "outcome"  # rows or episodes were chosen by what came out: successes, say


@dataclass(frozen=True, slots=True)
class Manifest:
    """How data are to be read.

    Parameters
    ----------
    selection
        Whether rows were left out because of their outcome; a word or a `Selection`.
    columns
        The column of a variable (`x`), of its next value (`x'`), of the action and of the other
        roles: episode, time, terminated, reward. None: there is no such column, or it is not to
        be read.
    actions
        What the data call the actions of the model; by default by their names.
    values
        What the data call the values of variables, by variable; by default by their numbers.
    """

    selection: Selection = Selection.UNKNOWN
    columns: Mapping[str, str | None] = field(default_factory=dict)
    actions: Mapping[Any, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = [choice.value for choice in Selection]
        if not isinstance(self.selection, Selection) and self.selection not in words:
            raise DataError(
                f"selection: must be one of {', '.join(words)}, found {self.selection!r}."
            )
        object.__setattr__(self, "selection", Selection(self.selection))
        for name, what in FIELDS.items():
            content = getattr(self, name)
            if not isinstance(content, Mapping):
                raise DataError(f"{name}: must say {what}, each by its name, found {content!r}.")
        for name, content in (("columns", self.columns), ("actions", self.actions)):
            for key, word in content.items():
                if not (isinstance(word, str) or (name == "columns" and word is None)):
                    raise DataError(f"{name}: {key!r} must have a name, found {word!r}.")
        for key, meaning in self.values.items():
            if not isinstance(meaning, Mapping) or not all(map(_is_whole, meaning.values())):
                raise DataError(
                    f"values: {key!r} must have a number for every one of its names, like "
                    f'{{"new": 0, "worn": 1}}, found {meaning!r}.'
                )

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Manifest:
        """Return the manifest in a JSON file.

        Raises
        ------
        FileError
            If it cannot be read, or has fields that mean nothing.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileError(f"{path}: must be a manifest in JSON ({error}).") from error
        names = ("selection", *FIELDS)
        if not isinstance(content, dict) or set(content) - set(names):
            odd = sorted(set(content) - set(names)) if isinstance(content, dict) else "no object"
            raise FileError(f"{path}: a manifest has the fields {', '.join(names)}; found {odd}.")
        try:
            return Manifest(**content)
        except DataError as error:
            raise FileError(f"{path}: {error}") from error

    def action_numbers(self, model: FactoredMDP) -> dict[str, int]:
        """Return the actions of a model by what the data call them."""
        numbers = {name: i for i, name in enumerate(model.actions)}
        for name in self.actions.values():
            if name not in numbers:
                raise DataError(
                    f"actions: the model has no action {name!r}; it has {', '.join(numbers)}."
                )
        return {str(word): numbers[name] for word, name in self.actions.items()} or numbers

    def value_numbers(self, model: FactoredMDP) -> dict[str, dict[str, int]]:
        """Return the values of variables by what the data call them, where they have names."""
        domains = {v.name: (v.low, v.high) for v in model.variables}
        for name, meaning in self.values.items():
            if name not in domains:
                raise DataError(f"values: {name!r} must be one of {', '.join(domains)}.")
            low, high = domains[name]
            for word, value in meaning.items():
                if not low <= value <= high:
                    raise DataError(
                        f"values: {word!r} must be a value of {name} in {low}..{high}, found "
                        f"{value}."
                    )
        return {n: {str(k): int(v) for k, v in m.items()} for n, m in self.values.items()}

    def places(self, table: str, columns: list[str], model: FactoredMDP) -> dict[str, str]:
        """Return the column of every variable (x), next value (x') and role that a table has.

        Raises
        ------
        DataError
            If a column is missing, or the manifest names one that means nothing.
        """
        variables = [v.name for v in model.variables]
        defaults: dict[str, tuple[str, ...]] = {x: (x,) for x in variables}
        defaults |= {f"{x}'": (f"next_{x}", f"{x}'") for x in variables}
        needed = {*defaults, *(name for name, word in self.columns.items() if word is not None)}
        if len(model.actions) > 1:
            needed.add("action")
        defaults |= {role: (name,) for role, name in ROLES.items()}
        for name in self.columns:
            if name not in defaults:
                raise DataError(f"columns: {name!r} must be one of {', '.join(defaults)}.")
        places: dict[str, str] = {}
        for meaning, names in defaults.items():
            word = self.columns.get(meaning)
            if word is None and meaning in self.columns and meaning not in needed:
                continue  # not to be read
            free = [name for name in names if meaning in needed or name not in places.values()]
            choices = free if word is None else [word]
            column = next((name for name in choices if name in columns), None)
            if column is not None:
                places[meaning] = column
            elif meaning in needed:
                raise DataError(
                    f"{table}: must have a column for {meaning} "
                    f"({' or '.join(map(repr, choices))}), has {', '.join(columns)}; say which one "
                    f"it is (`columns={{{meaning!r}: NAME}}`)."
                )
        return places


def _is_whole(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and float(value).is_integer()
