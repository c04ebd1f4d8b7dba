"""From a Python description to blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, RfmdpError
from rfmdp.model.description import Action, Assignment, Move, States, name_state, select
from rfmdp.model.frontier import CERTAIN, BlockMove, RowBlock
from rfmdp.model.packing import Packing
from rfmdp.sets.families import UncertaintySet, as_set, bounds
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen


class SetRegistry:
    """The sets of a description that are marginals, by object identity."""

    def __init__(self) -> None:
        self.sets: list[UncertaintySet] = []
        self.names: dict[str, int] = {}
        self._number: dict[int, int] = {}  # by id(); `sets` keeps the objects alive

    def number(self, uset: UncertaintySet, name: str) -> int:
        """Return the identifier of a set; its first name stays."""
        known = self._number.get(id(uset))
        if known is not None:
            return known
        if name in self.names:
            raise ModelError(
                f"Marginal name {name!r} is given to two different sets. "
                f"Use one object for one distribution, or two names."
            )
        self._number[id(uset)] = len(self.sets)
        self.names[name] = len(self.sets)
        self.sets.append(uset)
        return len(self.sets) - 1

    def fresh(self, name: str) -> str:
        """Return a name that is not taken: the given one, or with a number."""
        free, number = name, 1
        while free in self.names:
            number += 1
            free = f"{name} ({number})"
        return free


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
    """Expands frontiers of a description. The sets that it met are in `identifiers`."""

    def __init__(self, packing: Packing, actions: Sequence[Action]) -> None:
        self.packing = packing
        self.actions = tuple(actions)
        self.factors: dict[str, int] = {}
        self.identifiers = SetRegistry()
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
        given = isinstance(move.marginals, Mapping)
        for i, (name, uset) in enumerate(named):
            lower = bounds(uset)[0]
            if lower.max() >= 1.0:
                occurs[i, int(lower.argmax())] = True
            else:
                occurs[i, : uset.size] = True
                name = name if given else self.identifiers.fresh(name)
                marginal[i] = self.identifiers.number(uset, name)
        factor = self.factors.setdefault(move.factor, len(self.factors))
        size = occurs.sum(axis=1).astype(np.int32)
        return _MovePlan(move, factor, where, marginal, size, occurs)

    def _block(self, number: int, states: States, rows: IntArray, codes: IntArray) -> RowBlock:
        """Build the rows of one action."""
        action = self.actions[number]
        claims: dict[str, str] = {}
        rest = codes[rows]
        if action.update is not None:
            where = f"Action {action.name!r}, update"
            rest += self._change(action.update(states), states, where, claims)
        moves = [self._block_move(plan, states, claims) for plan in self._plans[number]]
        return RowBlock.joined(rows, number, rest, moves)

    def _block_move(self, plan: _MovePlan, states: States, claims: dict[str, str]) -> BlockMove:
        """Ask a move for its effect, outcome by outcome, over all rows that have it."""
        chosen = _identify(plan, states)
        occurs, marginal, size = plan.occurs[chosen], plan.marginal[chosen], plan.size[chosen]
        change = np.empty((len(states), int(size.max())), dtype=np.int64)
        for outcome in range(occurs.shape[1]):
            rows = np.flatnonzero(occurs[:, outcome])
            if rows.size == 0:
                continue
            part = select(states, rows)
            effect = plan.move.effect(part, frozen(chosen[rows]), outcome)
            where = f"{plan.where}, outcome {outcome}"
            column = np.where(marginal[rows] == CERTAIN, 0, outcome)
            change[rows, column] = self._change(effect, part, where, claims)
        return plan.factor, marginal, size, change

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
                known = ", ".join(self._column)
                raise ModelError(f"{where}: sets {name}; the model has: {known}.")
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


def enabled_rows(action: Action, states: States) -> IntArray:
    """Return the indices (N,) of the states where an action is enabled."""
    if action.guard is None:
        return np.arange(len(states))
    return np.flatnonzero(booleans(action.guard(states), states, f"Action {action.name!r}, guard"))


def booleans(values: ArrayLike, states: States, where: str) -> BoolArray:
    """Check what a predicate gave: (N,) booleans or one for all."""
    return np.broadcast_to(_checked(values, states, where, "b", "booleans"), (len(states),))


def integers(values: ArrayLike, states: States, where: str) -> AnyArray:
    """Check what a function of states gave: (N,) integers or one for all."""
    return _checked(values, states, where, "iub", "integers").astype(np.int64, copy=False)


def numbers(values: ArrayLike, states: States, where: str) -> FloatArray:
    """Check what a function of states gave: (N,) numbers or one for all; NaN is refused."""
    array = _checked(values, states, where, "iubf", "numbers")
    spread = np.broadcast_to(array.astype(np.float64), (len(states),))
    if np.isnan(spread).any():
        row = int(np.flatnonzero(np.isnan(spread))[0])
        raise ModelError(f"{where}: is NaN in state {name_state(states, row)}.")
    return spread


def _checked(values: ArrayLike, states: States, where: str, kinds: str, expected: str) -> AnyArray:
    """Return an array (N,), or one entry for all, of one of NumPy's kinds."""
    array = np.asarray(values)
    if array.dtype.kind not in kinds or array.shape not in ((), (len(states),)):
        raise ModelError(
            f"{where}: must give {expected}, one per state ({len(states)}) or one for "
            f"all, got {array.dtype} of shape {array.shape}."
        )
    return array


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
