"""The Python builder: a description of variables, actions and moves becomes a model.

States are explored by whole slices, never by a Python loop per state. The successors of a row are
sums of codes (packed states): the code of the state, what the update of the action changes, and one
change per move and outcome. Say x and y are in 0..9, the code is 10 x + y, x steps by +1 or +2, and
y by 0 or -1: then the changes are [10, 20] and [0, -1]. Rows of an action may differ in the sizes
of their marginals, and a move may be certain in some rows (one outcome, no marginal).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable, require_all_values
from rfmdp.model.description import (
    Action,
    Amount,
    Assignment,
    Move,
    Predicate,
    States,
    booleans,
    integers,
    name_state,
    numbers,
    seeing_arrays,
    select,
)
from rfmdp.model.frontier import (
    CERTAIN,
    NO_ACTION,
    arranged,
    finished,
    with_used_marginals,
)
from rfmdp.model.packing import Buffer, Packing, StateTable
from rfmdp.model.validate import require_valid
from rfmdp.sets.families import UncertaintySet, as_set, bounds
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray, frozen

SLICE = 1 << 16  # states expanded at once: bounds the memory of temporaries
CHUNK = 1 << 17  # successors that are numbered at once, likewise


def build(
    variables: Mapping[str, tuple[int, int]] | Iterable[Variable],
    actions: Sequence[Action],
    *,
    initial: Mapping[str, ArrayLike],
    labels: Mapping[str, Predicate] | None = None,
    rewards: Mapping[str, Amount] | None = None,
) -> FactoredMDP:
    """Return the reachable part of a described model.

    All functions of a description are vectorised: they see many states at once (`States`) and
    give one array entry per state. A reachable state where no action is enabled gets a self-loop
    and the label "deadlock". `docs/modelling.md` has examples.

    Parameters
    ----------
    variables : name -> (low, high), or `Variable`s; the first is most significant in the order
        of states
    actions : the agent's choices
    initial : variable -> value, or (I,) values for several initial states
    labels : name -> where it holds
    rewards : structure -> what a state pays; what an action pays is said by `Action`

    Raises
    ------
    ModelError
        If a value leaves its variable's range (names variable, value, state and action), two
        moves set one variable, a function gives the wrong type or shape, and so on.
    """
    for name in {"init", "deadlock"} & set(labels or ()):
        raise ModelError(f'Label "{name}" is always defined; use another name.')
    if isinstance(variables, Mapping):
        variables = [Variable(name, int(low), int(high)) for name, (low, high) in variables.items()]
    packing = Packing(variables)
    packing.require_one_word()
    expander = _Expander(packing, actions)
    start = _initial_codes(packing, initial)
    with seeing_arrays("build"):
        model = expander.run(start)
        states = States(packing.variables, model.valuations)
        structures = _rewards(model, states, expander.actions, rewards or {})
        where = {
            name: np.array(booleans(holds(states), states, f'Label "{name}"'))
            for name, holds in (labels or {}).items()
        }
    model, used = with_used_marginals(model)
    named, names = list(dict.fromkeys(a.name for a in expander.actions)), list(expander.names)
    index = np.array([*(named.index(a.name) for a in expander.actions), NO_ACTION], np.int32)
    model = finished(
        replace(model, row_actions=index[model.row_actions]),
        named,
        where,
        marginals=Marginals.from_sets(expander.sets[j] for j in used),
        factors=tuple(expander.factors),
        rewards=structures,
        marginal_names=tuple(names[j] for j in used),
    )
    require_valid(model)
    return model


def _initial_codes(packing: Packing, initial: Mapping[str, ArrayLike]) -> IntArray:
    """Check and pack the initial states."""
    require_all_values(packing.variables, initial)
    if not initial:
        return np.zeros(1, dtype=np.int64)
    columns = [np.atleast_1d(np.asarray(initial[v.name])) for v in packing.variables]
    try:
        values = np.stack(np.broadcast_arrays(*columns), axis=1)
    except ValueError:
        values = np.empty(0)
    if values.dtype.kind not in "iub" or values.ndim != 2 or not len(values):
        raise ModelError(
            "Initial states: every variable must have one integer, or equally many of them; got "
            f"{dict(initial)!r:.200}."
        )
    states = States(packing.variables, values)
    for v, column in zip(packing.variables, values.T, strict=True):
        _require_range(column, v.low, v.high, states, f"Initial states: set {v.name} to")
    return packing.pack(values)[:, 0]


def _rewards(
    model: FactoredMDP, states: States, actions: Sequence[Action], rewards: Mapping[str, Amount]
) -> dict[str, Rewards]:
    """Evaluate all reward structures; `row_actions` still numbers the actions as given."""
    names = dict.fromkeys([*rewards, *(name for action in actions for name in action.rewards)])
    per_row, row_states = {name: np.zeros(model.rows) for name in names}, model.row_states
    for number, action in enumerate(actions):
        for name, amount in action.rewards.items():
            rows = np.flatnonzero(model.row_actions == number)
            there = select(states, row_states[rows])
            where = f'Reward "{name}", action {action.name!r}'
            per_row[name][rows] = numbers(amount, there, where)
    return {
        name: Rewards(numbers(rewards.get(name, 0.0), states, f'Reward "{name}"'), per_row[name])
        for name in names
    }


@dataclass(frozen=True, slots=True, eq=False)
class _MovePlan:
    """A move with its sets looked up: L sets of at most d outcomes."""

    move: Move
    factor: int
    where: str  # for messages
    marginal: Int32Array  # (L,) identifier, or CERTAIN
    occurs: BoolArray  # (L, d) outcomes that `effect` is asked for


class _RowMoves(NamedTuple):
    """A move in N rows; outcome o of row r adds change[r, o] to a code."""

    factor: int
    marginal: Int32Array  # (N,) identifier, or CERTAIN where the size is 1
    size: IntArray  # (N,) outcomes
    change: IntArray  # (N, largest size)


class _Expander:
    """Explores a description. Its marginals are `sets`, with `names`."""

    def __init__(self, packing: Packing, actions: Sequence[Action]) -> None:
        self.packing = packing
        self.actions = tuple(actions)
        self.factors: dict[str, int] = {}
        self.sets: list[UncertaintySet] = []
        self.names: dict[str, int] = {}  # their numbers by name
        self._numbers: dict[int, int] = {}  # of sets by id(); `sets` keeps the objects alive
        self._column = {v.name: i for i, v in enumerate(packing.variables)}
        self._plans = [[self._plan(action, move) for move in action.moves] for action in actions]
        # what was found, in the order of discovery; see `arranged`
        self._states, self._count = StateTable(packing), 0
        self._rows, self._marginals = Buffer(np.int32, 4), Buffer(np.int32, 2)
        self._successors = Buffer(np.int32)

    def run(self, initial: IntArray) -> FactoredMDP:
        """Return what can be reached from some codes (I,); states without a row loop."""
        start = self._enter(initial)
        done = 0
        while done < self._count:
            stop = min(self._count, done + SLICE)
            self._expand(done, stop)
            done = stop
        words = self._states.packed[: self._count]
        del self._states  # its table is not needed any more
        rows, marginals = self._rows.trim(), self._marginals.trim()
        return arranged(self.packing, words, start, rows, marginals, self._successors.trim())

    def _plan(self, action: Action, move: Move) -> _MovePlan:
        """Look up the sets of a move."""
        where = f"Action {action.name!r}, factor {move.factor!r}"
        if sum(other.factor == move.factor for other in action.moves) > 1:
            raise ModelError(
                f"Action {action.name!r}: factor {move.factor!r} moves twice; give it one move."
            )
        named = _named_sets(move, f"{move.factor}, {action.name}")
        if not named:
            raise ModelError(f"{where}: needs at least one set of distributions.")
        if move.identify is None and len(named) > 1:
            raise ModelError(f"{where}: has {len(named)} sets, so identify() must choose one.")
        occurs = np.zeros((len(named), max(uset.size for _, uset in named)), dtype=np.bool_)
        marginal = np.full(len(named), CERTAIN, dtype=np.int32)
        for i, (name, uset) in enumerate(named):
            lower = bounds(uset)[0]
            if lower.max() >= 1.0:
                occurs[i, int(lower.argmax())] = True
            else:
                occurs[i, : uset.size] = True
                marginal[i] = self._number(uset, name, isinstance(move.marginals, Mapping))
        factor = self.factors.setdefault(move.factor, len(self.factors))
        return _MovePlan(move, factor, where, marginal, occurs)

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

    def _expand(self, first: int, last: int) -> None:
        """Add the rows of the states first..last - 1, action by action."""
        codes = self._states.packed[first:last, 0].copy()
        states = States(self.packing.variables, self.packing.unpack(codes[:, None]))
        dead = np.ones(last - first, dtype=np.bool_)
        for number, action in enumerate(self.actions):
            where = f"Action {action.name!r}, guard"
            guard = True if action.guard is None else action.guard(states)
            enabled = np.flatnonzero(booleans(guard, states, where))
            if enabled.size:
                dead[enabled] = False
                self._add(number, select(states, enabled), first + enabled, codes[enabled])
        loops = np.flatnonzero(dead)
        self._write(NO_ACTION, first + loops, codes[loops, None], [], loops)

    def _add(self, number: int, states: States, source: IntArray, codes: IntArray) -> None:
        """Add the rows of one action in some states, which are those of `source`."""
        action = self.actions[number]
        claims: dict[str, str] = {}
        if action.update is not None:
            where = f"Action {action.name!r}, update"
            codes += self._change(action.update(states), states, where, claims)
        moves = [self._row_moves(plan, states, claims) for plan in self._plans[number]]
        sizes = np.array([np.ones_like(codes), *(move.size for move in moves)])
        total = sizes.prod(axis=0, dtype=np.float64)
        if total.max() >= 2**31:
            name = name_state(states, int(total.argmax()))
            raise ModelError(
                f"State {name}: a row must have fewer than 2^31 successors, found "
                f"{total.max():.3g}; fewer variables may change at once."
            )
        for shape in np.unique(sizes, axis=1).T:
            alike = np.flatnonzero((sizes == shape[:, None]).all(axis=0))
            step = max(1, CHUNK // math.prod(shape.tolist()))
            for begin in range(0, len(alike), step):
                rows = alike[begin : begin + step]
                tensors = codes[rows, None]
                for move, size in zip(moves, shape[1:], strict=True):
                    change = move.change[rows, None, :size]
                    tensors = (tensors[:, :, None] + change).reshape(len(rows), -1)
                self._write(number, source[rows], tensors, moves, rows)

    def _write(
        self, action: int, source: IntArray, codes: IntArray, moves: list[_RowMoves], rows: IntArray
    ) -> None:
        """Append rows of some states with the codes of their successors, (N, successors)."""
        ids = np.array([move.marginal[rows] for move in moves]).reshape(len(moves), len(rows)).T
        stored = ids != CERTAIN
        out = self._rows.extend(len(rows))
        out[:, 0], out[:, 1], out[:, 2] = source, action, stored.sum(axis=1)
        out[:, 3] = codes.shape[1]
        marginals = self._marginals.extend(int(stored.sum()))
        marginals[:, 0] = ids[stored]
        factors = [move.factor for move in moves]
        marginals[:, 1] = np.broadcast_to(factors, stored.shape)[stored]
        self._successors.extend(codes.size)[:] = self._enter(codes.ravel())

    def _enter(self, codes: IntArray) -> Int32Array:
        """Return the numbers (K,) of states with some codes; new ones get the next."""
        from rfmdp.kernels.explorer import enter_states

        states, numbers = self._states, np.empty(len(codes), dtype=np.int32)
        states.make_room(self._count, len(codes))
        tables = states.table, states.packed, self._count, states.dense
        self._count = int(enter_states(*tables, codes[:, None], numbers))
        return numbers

    def _row_moves(self, plan: _MovePlan, states: States, claims: dict[str, str]) -> _RowMoves:
        """Ask a move for its effect, outcome by outcome, over all rows that have it."""
        chosen: IntArray = np.zeros(len(states), dtype=np.int64)
        if plan.move.identify is not None:
            where = f"{plan.where}, identify"
            index = integers(plan.move.identify(states), states, where)
            _require_range(index, 0, len(plan.marginal) - 1, states, f"{where}: gives")
            chosen += index
        occurs, marginal = plan.occurs[chosen], plan.marginal[chosen]
        size = occurs.sum(axis=1)
        change = np.empty((len(states), int(size.max())), dtype=np.int64)
        for outcome in range(occurs.shape[1]):
            rows = np.flatnonzero(occurs[:, outcome])
            if rows.size == 0:
                continue
            subset = select(states, rows)
            effect = plan.move.effect(subset, frozen(chosen[rows]), outcome)
            column = np.where(marginal[rows] == CERTAIN, 0, outcome)
            where = f"{plan.where}, outcome {outcome}"
            change[rows, column] = self._change(effect, subset, where, claims)
        return _RowMoves(plan.factor, marginal, size, change)

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
            variable = self.packing.variables[column]
            _require_range(new, variable.low, variable.high, states, f"{where}: sets {name} to")
            change += (new - states[name]) * self.packing.stride[column]
        return change


def _require_range(values: AnyArray, low: int, high: int, states: States, what: str) -> None:
    """Refuse values (N,), or one for all, outside of a range."""
    if values.min() >= low and values.max() <= high:
        return
    values = np.broadcast_to(values, (len(states),))
    row = int(np.flatnonzero((values < low) | (values > high))[0])
    raise ModelError(
        f"{what} {values[row]} in state {name_state(states, row)}, must be within {low}..{high}."
    )


def _named_sets(move: Move, prefix: str) -> list[tuple[str, UncertaintySet]]:
    """Return the sets of a move with their names."""
    if isinstance(move.marginals, Mapping):
        named = list(move.marginals.items())
    elif isinstance(move.marginals, Sequence):
        named = [(f"{prefix}, {i}", uset) for i, uset in enumerate(move.marginals)]
    else:
        named = [(prefix, move.marginals)]
    return [(name, as_set(uset, name)) for name, uset in named]
