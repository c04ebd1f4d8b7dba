"""A model whose transitions are never written out: factors, what they read, and their moves.

The states are all combinations of local states, numbers in mixed radix: factor 0 is the most
significant. In a *context* (values of the variables that a factor reads) an action makes a factor
take a *move*: it goes to a local state for certain, or an outcome of a marginal says to which.
A row of the model is an action that no factor forbids; its marginals are those of its moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import Variable, state_text
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.radius import boxes_around
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray

FORBIDDEN = -1  # in place of a move: the factor does not allow the action
CHUNK = 1 << 16  # states whose variables are looked at at once

Formula: TypeAlias = Callable[[Int32Array], AnyArray]
# from variables of some states (N, vars) to a value of each (N,)


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A group of variables that moves together, and how."""

    name: str
    columns: tuple[int, ...]  # its variables
    reads: tuple[int, ...]  # variables that its moves depend on, its own among them
    moves: Int32Array  # (contexts in C order of `reads`, actions) or FORBIDDEN


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Moves of all factors: a marginal and where its outcomes lead, or a certain local state."""

    marginal: Int32Array  # (N,), -1: certain
    target_ptr: IntArray  # (N + 1,)
    targets: IntArray  # local states


@dataclass(frozen=True, slots=True, eq=False)
class FormulaRewards:
    """A reward structure by formulas: of states, and of actions in states; None pays nothing."""

    state: Formula | None
    actions: tuple[Formula | None, ...]  # actions that pay alike share a formula


@dataclass(frozen=True, eq=False)
class LatticeMDP:
    """A robust factored MDP by its factors. See the module's docstring.

    All sets are boxes or points.
    """

    variables: tuple[Variable, ...]
    factors: tuple[Factor, ...]  # in the order in which they are contracted
    moves: Moves
    marginals: Marginals
    actions: tuple[str, ...]
    initial_values: Int32Array  # (I, vars)
    label_formulas: Mapping[str, Formula] = field(default_factory=dict)
    reward_formulas: Mapping[str, FormulaRewards] = field(default_factory=dict)
    formulas: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"LatticeMDP({self.states:,} states, not written out; {len(self.factors)} factors, "
            f"{len(self.actions)} actions, {len(self.marginals)} marginals)"
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of local states of every factor."""
        return tuple(
            int(np.prod([self.radix(c) for c in factor.columns], dtype=np.int64))
            for factor in self.factors
        )

    @cached_property
    def strides(self) -> IntArray:
        """What one more of every variable adds to the number of a state, (vars,)."""
        strides = np.zeros(len(self.variables), dtype=np.int64)
        stride = 1
        for factor in reversed(self.factors):
            for column in reversed(factor.columns):
                strides[column] = stride
                stride *= self.radix(column)
        return strides

    @property
    def states(self) -> int:
        """Number of states of the lattice."""
        return int(np.prod(self.sizes, dtype=np.int64))

    @property
    def initial(self) -> IntArray:
        """The initial states, (I,)."""
        low = np.array([v.low for v in self.variables])
        numbers: IntArray = (self.initial_values - low) @ self.strides
        return np.sort(numbers)

    @property
    def uncertain(self) -> bool:
        """Whether nature has a choice somewhere."""
        return bool((self.marginals.lower < self.marginals.upper).any())

    @property
    def row_actions(self) -> IntArray:
        """The action of a row of a policy: its rows are numbers of actions."""
        return np.arange(len(self.actions))

    def radix(self, column: int) -> int:
        """Return the number of values of a variable."""
        return self.variables[column].high - self.variables[column].low + 1

    def valuations(self, states: IntArray) -> Int32Array:
        """Return the variables of some states, (N, vars)."""
        values = np.empty((len(states), len(self.variables)), dtype=np.int32)
        for column, variable in enumerate(self.variables):
            values[:, column] = states // self.strides[column] % self.radix(column) + variable.low
        return values

    def evaluate(self, formula: Formula, dtype: Any = np.float64) -> AnyArray:
        """Return a formula in all states, (S,)."""
        values: AnyArray = np.empty(self.states, dtype=dtype)
        for start in range(0, self.states, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, self.states))
            values[start : start + CHUNK] = formula(self.valuations(numbers))
        return values

    def label(self, name: str) -> BoolArray:
        """Return where a label holds, (S,); `init` and `deadlock` always exist."""
        if name in self.label_formulas:
            return self.evaluate(self.label_formulas[name], np.bool_)
        holds = np.zeros(self.states, dtype=np.bool_)
        if name == "init":
            holds[self.initial] = True
        elif name != "deadlock":
            names = ", ".join(sorted({*self.label_formulas, "init", "deadlock"}))
            raise ModelError(f'Label "{name}" is not defined by the model; it has: {names}.')
        return holds

    def reward(self, name: str | None) -> FormulaRewards:
        """Return a reward structure by name; `None` is the first one."""
        if name is None and self.reward_formulas:
            return next(iter(self.reward_formulas.values()))
        if name is not None and name in self.reward_formulas:
            return self.reward_formulas[name]
        names = ", ".join(f'"{key}"' for key in self.reward_formulas) or "none"
        text = "A reward structure" if name is None else f'Reward structure "{name}"'
        raise ModelError(f"{text} is not defined by the model; it has: {names}.")

    def with_marginals(self, marginals: Marginals) -> LatticeMDP:
        """Return the same structure with other boxes of the same sizes."""
        if not np.array_equal(marginals.outcome_ptr, self.marginals.outcome_ptr):
            raise ModelError(
                f"with_marginals: needs {len(self.marginals)} sets with the sizes of this model's, "
                f"got {len(marginals)}."
            )
        if not np.isin(marginals.kind, (Kind.SINGLETON, Kind.BOX)).all():
            raise UnsupportedError(
                "A model that is not written out must have boxes or points as sets; use load_prism "
                "for others."
            )
        return replace(self, marginals=marginals)

    def with_radius(self, radius: float, floor: float = 0.0) -> LatticeMDP:
        """Return the model with L-infinity boxes; see `FactoredMDP.with_radius`."""
        if self.uncertain:
            raise ModelError(
                "with_radius: must be around a nominal model, this one has sets of its own; use "
                "model.nominal().with_radius(...) to drop them first."
            )
        return self.with_marginals(boxes_around(self.marginals, radius, floor))

    def nominal(self) -> LatticeMDP:
        """Return the model with every set replaced by its nominal member."""
        points = Marginals.from_points(self.marginals.outcome_ptr, self.marginals.nominal)
        return self.with_marginals(points)

    def find(self, **values: int) -> int:
        """Return the state with the given values of all variables, `find(x=1, y=2)`."""
        names = [v.name for v in self.variables]
        if set(values) != set(names):
            raise ModelError(
                f"A state is given by all variables ({', '.join(names)}); "
                f"got {', '.join(values) or 'none'}."
            )
        state = 0
        for variable, stride in zip(self.variables, self.strides.tolist(), strict=True):
            value = values[variable.name]
            if not variable.low <= value <= variable.high:
                raise ModelError(
                    f"{variable.name} must be in {variable.low}..{variable.high}, got {value}."
                )
            state += stride * (value - variable.low)
        return state

    def state_name(self, state: int) -> str:
        """Return a state as `(x=1, y=0)`."""
        values = self.valuations(np.array([state]))[0]
        return state_text((v.name for v in self.variables), values)
