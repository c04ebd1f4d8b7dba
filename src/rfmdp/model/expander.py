"""From a Python description to blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.description import (
    Action,
    Assignment,
    Move,
    States,
    booleans,
    integers,
    name_state,
    select,
)
from rfmdp.model.frontier import CERTAIN, BlockMove, RowBlock
from rfmdp.model.packing import Packing
from rfmdp.sets.families import UncertaintySet, as_set, bounds
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray, frozen


@dataclass(frozen=True, slots=True, eq=False)
class _MovePlan:
    """A move with its sets looked up: L sets of at most d outcomes."""

    move: Move
    factor: int
    where: str  # for messages
    marginal: Int32Array  # (L,) identifier, or CERTAIN
    size: Int32Array  # (L,) outcomes to build: 1 where certain
    occurs: BoolArray  # (L, d) outcomes that `effect` is asked for


class Expander:
    """Expands frontiers of a description. Its marginals are `sets`, with `names`."""

    def __init__(self, packing: Packing, actions: Sequence[Action]) -> None:
        self.packing = packing
        self.actions = tuple(actions)
        self.factors: dict[str, int] = {}
        self.sets: list[UncertaintySet] = []
        self.names: dict[str, int] = {}  # their numbers by name
        self._numbers: dict[int, int] = {}  # of sets by id(); `sets` keeps the objects alive
        self._column = {v.name: i for i, v in enumerate(packing.variables)}
        self._plans = [[self._plan(a, move) for move in a.moves] for a in self.actions]
        for action in self.actions:
            names = [move.factor for move in action.moves]
            for name in names:
                if names.count(name) > 1:
                    raise ModelError(
                        f"Action {action.name!r}: factor {name!r} moves twice; give it one move."
                    )

    def __call__(self, codes: IntArray) -> Iterator[RowBlock]:
        """Give all rows of the states with some codes, one block per action."""
        states = States(self.packing.variables, self.packing.unpack(codes[:, None]))
        for number, action in enumerate(self.actions):
            enabled = enabled_rows(action, states)
            if enabled.size:
                yield self._block(number, select(states, enabled), enabled, codes)

    def _plan(self, action: Action, move: Move) -> _MovePlan:
        """Look up the sets of a move."""
        where = f"Action {action.name!r}, factor {move.factor!r}"
        named = _named_sets(move, f"{move.factor}, {action.name}")
        if not named:
            raise ModelError(f"{where}: needs at least one set of distributions.")
        if move.identify is None and len(named) > 1:
            raise ModelError(f"{where}: has {len(named)} sets, so identify() must choose one.")
        occurs = np.zeros((len(named), max(uset.size for _, uset in named)), dtype=np.bool_)
        marginal = np.full(len(named), CERTAIN, dtype=np.int32)
        named_by_user = isinstance(move.marginals, Mapping)
        for i, (name, uset) in enumerate(named):
            lower = bounds(uset)[0]
            if lower.max() >= 1.0:
                occurs[i, int(lower.argmax())] = True
            else:
                occurs[i, : uset.size] = True
                marginal[i] = self._number(uset, name, named_by_user)
        factor = self.factors.setdefault(move.factor, len(self.factors))
        size = occurs.sum(axis=1).astype(np.int32)
        return _MovePlan(move, factor, where, marginal, size, occurs)

    def _number(self, uset: UncertaintySet, name: str, named_by_user: bool) -> int:
        """Return the identifier of a set; the same object is the same one, its first name stays."""
        if id(uset) in self._numbers:
            return self._numbers[id(uset)]
        if named_by_user and name in self.names:
            raise ModelError(
                f"Marginal name {name!r} is given to two different sets. "
                f"Use one object for one distribution, or two names."
            )
        free, copy = name, 1
        while free in self.names:
            copy += 1
            free = f"{name} ({copy})"
        self._numbers[id(uset)] = self.names[free] = len(self.sets)
        self.sets.append(uset)
        return self.names[free]

    def _block(self, number: int, states: States, rows: IntArray, codes: IntArray) -> RowBlock:
        """Build the rows of one action."""
        action = self.actions[number]
        claims: dict[str, str] = {}
        rest = codes[rows]
        if action.update is not None:
            where = f"Action {action.name!r}, update"
            rest += self._change(action.update(states), states, where, claims)
        moves = [self._block_move(plan, states, claims) for plan in self._plans[number]]
        return RowBlock(rows, number, rest, moves)

    def _block_move(self, plan: _MovePlan, states: States, claims: dict[str, str]) -> BlockMove:
        """Ask a move for its effect, outcome by outcome, over all rows that have it."""
        chosen = _identify(plan, states)
        occurs, marginal, size = plan.occurs[chosen], plan.marginal[chosen], plan.size[chosen]
        change = np.empty((len(states), int(size.max())), dtype=np.int64)
        for outcome in range(occurs.shape[1]):
            rows = np.flatnonzero(occurs[:, outcome])
            if rows.size == 0:
                continue
            subset = select(states, rows)
            effect = plan.move.effect(subset, frozen(chosen[rows]), outcome)
            where = f"{plan.where}, outcome {outcome}"
            column = np.where(marginal[rows] == CERTAIN, 0, outcome)
            change[rows, column] = self._change(effect, subset, where, claims)
        return BlockMove(plan.factor, marginal, size, change)

    def _change(
        self, values: Assignment, states: States, where: str, claims: dict[str, str]
    ) -> IntArray:
        """Return by how much an assignment changes the codes of states."""
        change = np.zeros(len(states), dtype=np.int64)
        owner = where.split(", outcome")[0]
        for name, value in values.items():
            if claims.setdefault(name, owner) != owner:
                raise ModelError(
                    f"{owner}: sets {name}, already set by {claims[name]}; "
                    f"a variable may change in one place only."
                )
            column = self._column.get(name)
            if column is None:
                listed = ", ".join(self._column)
                raise ModelError(f"{where}: {name} is no variable; the model has: {listed}.")
            new = integers(value, states, f"{where}, variable {name}")
            self._check_range(column, new, states, where)
            change += (new - states[name]) * self.packing.stride[column]
        return change

    def _check_range(self, column: int, new: AnyArray, states: States, where: str) -> None:
        """Refuse values outside a variable's range."""
        variable = self.packing.variables[column]
        if new.min() >= variable.low and new.max() <= variable.high:
            return
        values = np.broadcast_to(new, (len(states),))
        row = int(np.flatnonzero((values < variable.low) | (values > variable.high))[0])
        raise ModelError(
            f"{where}: sets {variable.name} to {values[row]} in state "
            f"{name_state(states, row)}, must be within {variable.low}..{variable.high}."
        )


def enabled_rows(action: Action, states: States) -> IntArray:
    """Return the indices (N,) of the states where an action is enabled."""
    if action.guard is None:
        return np.arange(len(states))
    return np.flatnonzero(booleans(action.guard(states), states, f"Action {action.name!r}, guard"))


def _identify(plan: _MovePlan, states: States) -> IntArray:
    """Return the index of every state's set."""
    if plan.move.identify is None:
        return np.zeros(len(states), dtype=np.int64)
    where = f"{plan.where}, identify"
    chosen = integers(plan.move.identify(states), states, where)
    chosen = np.broadcast_to(chosen, (len(states),))
    wrong = (chosen < 0) | (chosen >= len(plan.size))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ModelError(
            f"{where}: gives {chosen[row]} in state {name_state(states, row)}, "
            f"must be within 0..{len(plan.size) - 1}."
        )
    return chosen


def _named_sets(move: Move, prefix: str) -> list[tuple[str, UncertaintySet]]:
    """Return the sets of a move with their names."""
    if isinstance(move.marginals, Mapping):
        named = list(move.marginals.items())
    elif isinstance(move.marginals, Sequence):
        named = [(f"{prefix}, {i}", uset) for i, uset in enumerate(move.marginals)]
    else:
        named = [(prefix, move.marginals)]
    return [(name, as_set(uset, name)) for name, uset in named]
