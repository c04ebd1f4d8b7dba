"""The words of a Python description: states seen as arrays, moves of factors, actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.arrays import Variable, state_text
from rfmdp.sets.families import AnySet
from rfmdp.types import AnyArray, IntArray, frozen


class States:
    """Many states at once: `states.x` or `states["x"]` is the (N,) int64 array of a variable.

    Columns are read-only; `states.x + 1` makes a new array.
    """

    __slots__ = ("_cache", "_rows", "_values", "_variables")

    def __init__(
        self, variables: Sequence[Variable], valuations: AnyArray, rows: IntArray | None = None
    ) -> None:
        self._variables = variables
        self._values = valuations  # (all, vars)
        self._rows = rows  # those of this view, None for all
        self._cache: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self._values) if self._rows is None else len(self._rows)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the variables."""
        return (v.name for v in self._variables)

    def __getitem__(self, name: str) -> IntArray:
        if name not in self._cache:
            names = list(self)
            if name not in names:
                known = ", ".join(names)
                raise ModelError(f"Variable {name} is not defined by the model; it has: {known}.")
            column = self._values[:, names.index(name)]
            if self._rows is not None:
                column = column[self._rows]
            self._cache[name] = frozen(column.astype(np.int64, copy=False))
        return self._cache[name]

    def __getattr__(self, name: str) -> IntArray:
        if name.startswith("__") or name in States.__slots__:
            raise AttributeError(name)
        return self[name]

    def __repr__(self) -> str:
        return f"States({len(self)} valuations of {', '.join(self)})"


def select(states: States, rows: IntArray) -> States:
    """Return the view of some rows of a view; a variable may be named as it likes, so no method."""
    if len(rows) == len(states):
        return states
    chosen = rows if states._rows is None else states._rows[rows]
    return States(states._variables, states._values, chosen)


def name_state(states: States, row: int) -> str:
    """Return one state of a view as `(x=1, y=0)` for messages."""
    return state_text(states, (states[name][row] for name in states))


Predicate: TypeAlias = Callable[[States], ArrayLike]  # (N,) booleans
Amount: TypeAlias = float | Callable[[States], ArrayLike]  # (N,) numbers, or one for all
Assignment: TypeAlias = Mapping[str, ArrayLike]  # variable -> (N,) integers, or one for all


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """How one factor moves under an action.

    Parameters
    ----------
    factor : name of the factor
    marginals : the sets that its distribution may come from: one set, several, or several by
        name. The *same object*, wherever it is used, is the same unknown distribution. A set
        with one possible outcome is a certain move and never becomes a marginal.
    effect : `effect(states, identifier, outcome)`, the new values of the variables that an
        outcome changes. `identifier` (N,) is what `identify` gave for these states, `outcome` is
        one integer. Variables left out keep their values.
    identify : the dependency function, `identify(states)`: index (N,) into `marginals`; may be
        left out if there is one set.
    """

    factor: str
    marginals: AnySet | Sequence[AnySet] | Mapping[str, AnySet]
    effect: Callable[[States, IntArray, int], Assignment]
    identify: Callable[[States], ArrayLike] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """A choice of the agent. Several actions may share a name: they are further choices.

    Parameters
    ----------
    name : the label
    moves : the factors that move, independently of each other
    guard : where the action is enabled; everywhere if left out
    update : new values of the variables that change for certain
    rewards : by structure, what taking the action pays
    """

    name: str
    moves: Sequence[Move] = ()
    guard: Predicate | None = None
    update: Callable[[States], Assignment] | None = None
    rewards: Mapping[str, Amount] = field(default_factory=dict)
