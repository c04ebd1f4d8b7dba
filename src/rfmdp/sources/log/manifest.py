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
        _require_names("columns", self.columns, "the columns of variables and roles", null=True)
        _require_names("actions", self.actions, "what the actions are called")
        _require_mapping("values", self.values, "what the values of variables are called")
        for name, called in self.values.items():
            if not isinstance(called, Mapping) or not all(map(_is_whole, called.values())):
                raise DataError(
                    f"values: {name!r} must have a number for every one of its names, like "
                    f'{{"new": 0, "worn": 1}}, found {called!r}.'
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
        names = ("selection", "columns", "actions", "values")
        if not isinstance(content, dict) or set(content) - set(names):
            odd = sorted(set(content) - set(names)) if isinstance(content, dict) else "no object"
            raise FileError(f"{path}: a manifest has the fields {', '.join(names)}; found {odd}.")
        try:
            return Manifest(**content)
        except DataError as error:
            raise FileError(f"{path}: {error}") from error


def _require_names(field: str, content: Any, what: str, *, null: bool = False) -> None:
    """Raise DataError unless a field of a manifest has names by name; `null`: or None."""
    _require_mapping(field, content, what)
    for name, called in content.items():
        if not (isinstance(called, str) or (null and called is None)):
            raise DataError(f"{field}: {name!r} must have a name, found {called!r}.")


def _require_mapping(field: str, content: Any, what: str) -> None:
    """Raise DataError unless a field of a manifest has something by name."""
    if not isinstance(content, Mapping):
        raise DataError(f"{field}: must say {what}, each by its name, found {content!r}.")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and float(value).is_integer()


@dataclass(frozen=True, slots=True)
class Places:
    """Which columns of a table hold what; None where there is no such column."""

    now: tuple[str, ...]  # of the variables, in their order
    after: tuple[str, ...]  # of their next values
    action: str | None
    episode: str | None
    time: str | None
    terminated: str | None
    reward: str | None
    unread: str | None  # a column of rewards that is not to be read

    @property
    def names(self) -> list[str]:
        """All columns that are read, each once."""
        roles = (self.action, self.episode, self.time, self.terminated, self.reward)
        read = (*self.now, *self.after, *(name for name in roles if name is not None))
        return list(dict.fromkeys(read))

    @staticmethod
    def find(table: str, there: list[str], model: FactoredMDP, manifest: Manifest) -> Places:
        """Return where everything stands in a table with the given columns.

        Raises
        ------
        DataError
            If a column is missing, or the manifest names one that means nothing.
        """
        variables = [v.name for v in model.variables]
        meanings = [*variables, *(f"{x}'" for x in variables), *ROLES]
        for name in manifest.columns:
            if name not in meanings:
                raise DataError(f"columns: {name!r} must be one of {', '.join(meanings)}.")
        said = manifest.columns

        def required(name: str, *defaults: str) -> str:
            choices = [said[name]] if said.get(name) is not None else list(defaults)
            for column in choices:
                if column in there:
                    return str(column)
            raise DataError(
                f"{table}: must have a column for {name} ({' or '.join(map(repr, choices))}), has "
                f"{', '.join(there)}; say which one it is (`columns={{{name!r}: NAME}}`)."
            )

        now = tuple(required(x, x) for x in variables)
        after = tuple(required(f"{x}'", f"next_{x}", f"{x}'") for x in variables)
        taken = {*now, *after}
        roles: dict[str, str | None] = {}
        for role, default in ROLES.items():
            if said.get(role) is not None:
                roles[role] = required(role)
            else:
                free = role not in said and default in there and default not in taken
                roles[role] = default if free else None
        if roles["action"] is None and len(model.actions) > 1:
            required("action", "action")
        ignored = "reward" in said and said["reward"] is None and ROLES["reward"] in there
        return Places(now, after, **roles, unread=ROLES["reward"] if ignored else None)
