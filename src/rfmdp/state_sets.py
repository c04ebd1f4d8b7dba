"""Sets of states, and formulas over paths of them, before any model is there.

A set of states is given as a label of the model, as a boolean array over its states, or as
any object with a method `holds(model)` that returns such an array (the property parser makes
these).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import BoolArray

if TYPE_CHECKING:
    from rfmdp.model.lattice import AnyModel


@runtime_checkable
class StateFormula(Protocol):
    """Anything that says in which states of a model it holds."""

    def holds(self, model: AnyModel) -> BoolArray:
        """Return a (S,) array."""
        ...


StateSet: TypeAlias = str | BoolArray | StateFormula


@dataclass(frozen=True, slots=True, eq=False)
class NamedStates:
    """States of one model, and the text that they came from."""

    text: str
    states: BoolArray = field(repr=False)

    def holds(self, model: AnyModel) -> BoolArray:
        """Return the states; raise ModelError if the model has another number of them."""
        if self.states.shape != (model.states,) or self.states.dtype != np.bool_:
            raise ModelError(
                f"{self.text}: must be a boolean array of {model.states} entries for this model, "
                f"got {self.states.dtype} with shape {self.states.shape}; give the property again."
            )
        return self.states


@dataclass(frozen=True, slots=True)
class PathFormula:
    """A path formula over sets of states, as `rfmdp.temporal` reads it.

    text : as it was written
    tree : see `rfmdp.temporal.formula`; None if an automaton alone says what is meant
    atoms : the sets of states that the tree, or the automaton, refers to by number
    """

    text: str
    tree: tuple[Any, ...] | None
    atoms: tuple[StateSet, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The texts of the atoms."""
        return tuple(str(getattr(states, "text", text_of(states))) for states in self.atoms)


def text_of(states: StateSet) -> str:
    """Return a set of states as properties name it; an array by its size."""
    if isinstance(states, str):
        return f'"{states}"'
    if isinstance(states, np.ndarray):
        return f"({np.count_nonzero(states)} states)"
    text = str(getattr(states, "text", "..."))
    return text if re.fullmatch(r'!?(\w+|"[^"]*")', text) else f"({text})"


def is_state_set(value: object) -> bool:
    """Return whether a value can be a set of states."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype == np.bool_ and value.ndim == 1)
    return isinstance(value, str | StateFormula)
