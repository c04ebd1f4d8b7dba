"""A model whose transitions are never written out: factors, what they read, and their moves.

The states are all combinations of local states, numbers in mixed radix: factor 0 is the most
significant. In a *context* (values of the variables that a factor reads) an action makes a factor
take a *move*: it goes to a local state for certain, or an outcome of a marginal says to which.
A row of the model is an action that no factor forbids; its marginals are those of its moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.memory import available_memory
from rfmdp.model.arrays import (
    FactoredMDP,
    Rewards,
    UncertainModel,
    Variable,
    model_sizes,
    named_reward,
    require_all_values,
    state_text,
)
from rfmdp.model.blocked import BlockedMDP
from rfmdp.ragged import chunks, starts
from rfmdp.record import Provenance
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

FORBIDDEN = -1  # in place of a move: the factor does not allow the action
CHUNK = 1 << 16  # states whose variables are looked at at once
AT_ONCE = 1 << 22  # successors that are written out at a time
WRITTEN = 32.0  # bytes of a transition while a model is built

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
class LatticeMDP(UncertainModel):
    """A robust factored MDP by its factors. See the module's docstring.

    Sets are points, boxes, L1 balls and polytopes.
    """

    variables: tuple[Variable, ...]
    factors: tuple[Factor, ...]  # in the order in which they are contracted
    moves: Moves
    marginals: Marginals
    actions: tuple[str, ...]
    initial_values: Int32Array  # (I, vars)
    labels: Mapping[str, Formula] = field(default_factory=dict)
    rewards: Mapping[str, FormulaRewards] = field(default_factory=dict)
    formulas: Mapping[str, Any] = field(default_factory=dict)
    marginal_names: tuple[str, ...] = ()
    outcome_names: tuple[str, ...] = ()
    provenance: Provenance | None = None

    def __repr__(self) -> str:
        return f"LatticeMDP({', '.join(model_sizes(self))})"

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

    @cached_property
    def rows(self) -> int:
        """Number of rows, counted factor by factor."""
        return self._count(np.ones(len(self.moves.marginal), dtype=np.int64))

    @cached_property
    def transitions(self) -> int:
        """Number of transitions that would be written out, counted factor by factor."""
        return self._count(np.diff(self.moves.target_ptr))

    def _count(self, weights: IntArray) -> int:
        """Return the sum over all rows of the product of the weights of their moves.

        Factors are contracted one by one; `axes` are the variables that later ones still read.
        """
        everyone = len(self.variables)  # the axis of actions
        table, axes = np.ones(len(self.actions), dtype=np.int64), [everyone]
        for d, factor in enumerate(self.factors):
            later = {c for other in self.factors[d + 1 :] for c in other.reads}
            kept = [c for c in dict.fromkeys([*axes, *factor.reads]) if c in {everyone, *later}]
            names = {c: k for k, c in enumerate(dict.fromkeys([*axes, *factor.reads, everyone]))}
            weigh = np.append(weights, 0)[factor.moves]  # FORBIDDEN is the last one
            weigh = weigh.reshape(*(self.radix(c) for c in factor.reads), -1)
            table = np.einsum(
                table, [names[c] for c in axes],
                weigh, [names[c] for c in (*factor.reads, everyone)],
                [names[c] for c in kept],
            )  # fmt: skip
            axes = kept
        return int(table.sum())

    @cached_property
    def deadlocks(self) -> BoolArray | None:
        """States (S,) in which no action is possible; None: there are none."""
        bits = [_possible_actions(factor) for factor in self.factors]
        everywhere = np.bitwise_and.reduce([np.bitwise_and.reduce(b) for b in bits])
        if everywhere:
            return None
        where = self.evaluate(lambda values: self.possible(values) == 0, np.bool_)
        return where if where.any() else None

    def possible(self, values: Int32Array) -> IntArray:
        """Return the actions that are possible in states with some values, as bits (N,)."""
        able = np.full(len(values), -1, dtype=np.int64)
        for factor in self.factors:
            able &= _possible_actions(factor)[self.contexts(factor, values)]
        return able

    def some_rule(self) -> AnyArray:
        """Return an action that is possible in every state, (S,); 0 where there is none."""

        def first(values: Int32Array) -> AnyArray:
            able = self.possible(values)
            return np.asarray(np.log2(np.maximum(able & -able, 1)))  # exact: one bit is set

        return self.evaluate(first, np.uint8)

    @property
    def initial(self) -> IntArray:
        """The initial states, (I,)."""
        low = np.array([v.low for v in self.variables])
        numbers: IntArray = (self.initial_values - low) @ self.strides
        return np.sort(numbers)

    @property
    def row_actions(self) -> IntArray:
        """The action of a row of a policy: its rows are numbers of actions."""
        return np.arange(len(self.actions))

    def radix(self, column: int) -> int:
        """Return the number of values of a variable."""
        return self.variables[column].high - self.variables[column].low + 1

    def state_values(self, states: IntArray) -> Int32Array:
        """Return the variables of some states, (N, vars)."""
        values = np.empty((len(states), len(self.variables)), dtype=np.int32)
        for column, variable in enumerate(self.variables):
            values[:, column] = states // self.strides[column] % self.radix(column) + variable.low
        return values

    def contexts(self, factor: Factor, values: Int32Array) -> IntArray:
        """Return the context of a factor in states with some values, (N,)."""
        context = np.zeros(len(values), dtype=np.int64)
        for column in factor.reads:
            digit = values[:, column] - self.variables[column].low
            context = context * self.radix(column) + digit
        return context

    def row_moves(self, states: IntArray, actions: IntArray) -> IntArray:
        """Return the moves of all factors in some rows, (N, factors); or FORBIDDEN."""
        values = self.state_values(states)
        moves = [f.moves[self.contexts(f, values), actions] for f in self.factors]
        return np.stack(moves, axis=1).astype(np.int64)

    def evaluate(self, formula: Formula, dtype: Any = np.float64) -> AnyArray:
        """Return a formula in all states, (S,)."""
        values: AnyArray = np.empty(self.states, dtype=dtype)
        for start in range(0, self.states, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, self.states))
            values[start : start + CHUNK] = formula(self.state_values(numbers))
        return values

    def label(self, name: str) -> BoolArray:
        """Return where a label holds, (S,); `init` and `deadlock` always exist."""
        if name in self.labels:
            return self.evaluate(self.labels[name], np.bool_)
        holds = np.zeros(self.states, dtype=np.bool_)
        if name == "init":
            holds[self.initial] = True
        elif name != "deadlock":
            names = ", ".join(sorted({*self.labels, "init", "deadlock"}))
            raise ModelError(f'Label "{name}" is not defined by the model; it has: {names}.')
        elif self.deadlocks is not None:
            return self.deadlocks
        return holds

    def reward(self, name: str | None) -> FormulaRewards:
        """Return a reward structure by name; `None` is the first one."""
        return named_reward(self.rewards, name)

    def with_marginals(self, marginals: Marginals) -> LatticeMDP:
        """Return the same structure with other sets of the same sizes."""
        if (marginals.kind == Kind.LP).any():
            raise UnsupportedError(
                "A model that is not written out must have points, boxes, L1 balls or polytopes as "
                "sets; use load_prism for others."
            )
        return super().with_marginals(marginals)

    def find(self, **values: int) -> int:
        """Return the state with the given values of all variables, `find(x=1, y=2)`."""
        require_all_values(self.variables, values)
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
        values = self.state_values(np.array([state]))[0]
        return state_text((v.name for v in self.variables), values)

    def marginal_name(self, j: int) -> str:
        """Return the identifier of a marginal for messages."""
        return self.marginal_names[j]

    def choice_name(self, row: int) -> str:
        """Return the name of an action; of one without a label its number."""
        return self.actions[row] or f"choice {row + 1}"


AnyModel: TypeAlias = FactoredMDP | LatticeMDP | BlockedMDP


def written(model: AnyModel) -> FactoredMDP:
    """Return a model whose transitions are written out, which the caller needs.

    Raises
    ------
    UnsupportedError
        If they are not, and the model is solved by its factors.
    ResourceError
        If the model is in blocks, and there is no memory for all of them.
    """
    if isinstance(model, BlockedMDP):
        return model.written()
    if isinstance(model, LatticeMDP):
        raise UnsupportedError(
            f"This needs a model whose transitions are written out; this one is solved by its "
            f"factors and would have {model.transitions:,}. Use `solution.explicit()` or "
            "`load_prism`, which write them out."
        )
    return model


def _possible_actions(factor: Factor) -> IntArray:
    """Return the actions that a factor allows in every context, as bits."""
    bits = np.left_shift(np.int64(1), np.arange(factor.moves.shape[1]))
    possible: IntArray = np.where(factor.moves == FORBIDDEN, 0, bits).sum(axis=1)
    return possible


def written_rows(
    model: LatticeMDP, states: IntArray, actions: IntArray
) -> Iterator[tuple[FactoredMDP, IntArray, IntArray]]:
    """Yield the given rows, their states and actions, in portions of about `AT_ONCE` successors.

    A portion is a model with a state per row, whose successors are states of the lattice. A row
    stays where it is if some factor forbids its action, or if no action has its number.
    """
    moves = model.row_moves(states, np.minimum(actions, len(model.actions) - 1))
    moves[(moves == FORBIDDEN).any(axis=1) | (actions == len(model.actions))] = FORBIDDEN
    sizes = np.append(np.diff(model.moves.target_ptr), 1)[moves]  # FORBIDDEN is the last one
    for begin, end in chunks(starts(np.prod(sizes, axis=1)), AT_ONCE):
        some = slice(begin, end)
        rows = _portion(model, states[some], moves[some], sizes[some])
        yield rows, states[some], actions[some]


def _portion(model: LatticeMDP, states: IntArray, moves: IntArray, sizes: IntArray) -> FactoredMDP:
    """Write some rows out, factor by factor; certain moves have one target and no marginal."""
    stride = model.states
    ptr, targets = model.moves.target_ptr, np.append(model.moves.targets, 0)
    row = np.arange(len(states))
    successors = np.zeros_like(row)
    for size, move, outcomes in zip(model.sizes, moves.T, sizes.T, strict=True):
        stride //= size
        counts = outcomes[row]
        begin = np.repeat(ptr[move][row] - starts(counts)[:-1], counts)
        row = np.repeat(row, counts)
        to = targets[begin + np.arange(len(begin))]
        to = np.where(move[row] == FORBIDDEN, states[row] // stride % size, to)
        successors = np.repeat(successors, counts) + to * stride
    marginal = np.append(model.moves.marginal, -1)[moves]
    uncertain = marginal >= 0
    return FactoredMDP(
        row_ptr=np.arange(len(states) + 1),
        marginal_ptr=starts(uncertain.sum(axis=1)),
        row_marginals=marginal[uncertain].astype(np.int32),
        successor_ptr=np.searchsorted(row, np.arange(len(states) + 1)),
        successors=successors.astype(np.int32),
        marginals=model.marginals,
        initial=np.zeros(1, dtype=np.int64),
        row_actions=np.zeros(len(states), dtype=np.int32),
        actions=("",),
        row_factors=np.nonzero(uncertain)[1].astype(np.int32),
    )


def write_out(model: LatticeMDP, rules: IntArray) -> tuple[FactoredMDP, IntArray]:
    """Return the model with all rows of all states, and those that are the actions of some rules.

    Rules and rows are (..., S); states keep their numbers, and those without a choice get a
    self-loop. It is an UnsupportedError if the transitions do not fit into memory.
    """
    if model.transitions * WRITTEN > available_memory() or model.transitions >= 1 << 31:
        raise UnsupportedError(
            f"This needs a model whose transitions are written out; this one is solved by its "
            f"factors and would have {model.transitions:,}. Ask it with fewer modules."
        )
    values = model.state_values(np.arange(model.states))
    possible = model.possible(values)
    names = model.actions if possible.all() or "" in model.actions else (*model.actions, "")
    taken = possible
    if not possible.all():  # who can do nothing stays
        taken = np.where(possible == 0, np.int64(1) << names.index(""), possible)
    states, actions = np.nonzero((taken[:, None] >> np.arange(len(names))) & 1)
    pieces = [rows for rows, _, _ in written_rows(model, states, actions)]

    def joined(name: str) -> AnyArray:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    def pointers(name: str) -> IntArray:
        return starts(np.concatenate([np.diff(getattr(piece, name)) for piece in pieces]))

    written = FactoredMDP(
        row_ptr=starts(np.bincount(states, minlength=model.states)),
        marginal_ptr=pointers("marginal_ptr"),
        row_marginals=joined("row_marginals"),
        successor_ptr=pointers("successor_ptr"),
        successors=joined("successors"),
        marginals=model.marginals,
        initial=model.initial,
        row_actions=actions.astype(np.int32),
        actions=names,
        labels={name: model.label(name) for name in (*model.labels, "init", "deadlock")},
        rewards={
            name: _written_rewards(model, rewards, states, actions)
            for name, rewards in model.rewards.items()
        },
        variables=model.variables,
        valuations=values,
        factors=tuple(factor.name for factor in model.factors),
        row_factors=joined("row_factors"),
        marginal_names=model.marginal_names,
        outcome_names=model.outcome_names,
        formulas=model.formulas,
        provenance=model.provenance,
    )
    earlier = possible & ((np.int64(1) << rules.astype(np.int64)) - 1)
    return written, written.row_ptr[:-1] + np.bitwise_count(earlier)


def _written_rewards(
    model: LatticeMDP, rewards: FormulaRewards, states: IntArray, actions: IntArray
) -> Rewards:
    """Return what states and rows pay."""
    of_states: FloatArray = np.zeros(model.states)
    if rewards.state is not None:
        of_states = model.evaluate(rewards.state)
    paid = np.zeros(len(states))
    for action, formula in enumerate(rewards.actions):
        some = np.flatnonzero(actions == action)
        if formula is not None and len(some):
            paid[some] = formula(model.state_values(states[some]))
    return Rewards(of_states, paid)
