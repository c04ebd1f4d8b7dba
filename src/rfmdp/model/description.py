"""The words of a Python description: states seen as arrays, moves of factors, actions.

And the checks of what functions of states give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, RfmdpError
from rfmdp.model.arrays import Variable, state_text
from rfmdp.sets.families import AnySet
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray, frozen


class States:
    """Many states at once: `states.x` or `states["x"]` is the (N,) int64 array of a variable.

    Columns are read-only; `states.x + 1` makes a new array.
    """

    __slots__ = ("_cache", "_values", "_variables")

    def __init__(self, variables: Sequence[Variable], valuations: AnyArray) -> None:
        self._variables = variables
        self._values = valuations  # (N, vars)
        self._cache: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the variables."""
        return (v.name for v in self._variables)

    def __getitem__(self, name: str) -> IntArray:
        if name not in self._cache:
            names = list(self)
            if name not in names:
                raise ModelError(
                    f"Variable {name} is not defined by the model; it has: {', '.join(names)}."
                )
            self._cache[name] = frozen(self._values[:, names.index(name)].astype(np.int64))
        return self._cache[name]

    def __getattr__(self, name: str) -> IntArray:
        if name.startswith("__") or name in States.__slots__:
            raise AttributeError(name)
        return self[name]

    def __repr__(self) -> str:
        return f"States({len(self)} valuations of {', '.join(self)})"


def select(states: States, rows: IntArray) -> States:
    """Return some of the states; a variable may be named as it likes, so no method."""
    return states if len(rows) == len(states) else States(states._variables, states._values[rows])


def name_state(states: States, row: int) -> str:
    """Return one state as `(x=1, y=0)` for messages."""
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


@contextmanager
def seeing_arrays(where: str) -> Iterator[None]:
    """Say what functions of states see, if one of them fails for it."""
    try:
        yield
    except RfmdpError:
        raise
    except ValueError as error:
        raise ModelError(
            f"{where}: a function failed ({error}). Functions see arrays of many states: write "
            "(s.x < 2) & (s.y > 0), np.minimum, np.where in place of `and`, `or`, `not`, `min`, "
            "`if`."
        ) from error


def booleans(values: ArrayLike, states: States, where: str) -> BoolArray:
    """Check what a predicate gave: (N,) booleans or one for all."""
    return np.broadcast_to(_checked(values, states, where, "b", "booleans"), (len(states),))


def integers(values: ArrayLike, states: States, where: str) -> AnyArray:
    """Check what a function of states gave: (N,) integers or one for all."""
    return _checked(values, states, where, "iub", "integers").astype(np.int64, copy=False)


def numbers(amount: Amount, states: States, where: str) -> FloatArray:
    """Return a number, or what a function of states gives, as (N,) numbers."""
    values = amount(states) if callable(amount) else amount
    array = _checked(values, states, where, "iubf", "numbers")
    return np.full(len(states), array, dtype=np.float64)


def _checked(values: ArrayLike, states: States, where: str, kinds: str, expected: str) -> AnyArray:
    """Return an array (N,), or one entry for all, of one of NumPy's kinds."""
    array = np.asarray(values)
    if array.dtype.kind not in kinds or array.shape not in ((), (len(states),)):
        raise ModelError(
            f"{where}: must give {expected}, one per state ({len(states)}) or one for "
            f"all, got {array.dtype} of shape {array.shape}."
        )
    return array
