"""Rows of a lattice, written out: some as a model of these rows alone, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.memory import available_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.lattice import FORBIDDEN, FormulaRewards, LatticeMDP
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, FloatArray, IntArray

AT_ONCE = 1 << 20  # successors that are written out at a time
WRITTEN = 32.0  # bytes of a transition while a model is built


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """Rows of a lattice; their successors are states of the lattice."""

    model: FactoredMDP  # a state per row; its successors are numbers of the lattice
    states: IntArray  # (R,)
    actions: IntArray  # (R,)


def written_out(
    model: LatticeMDP, states: IntArray, actions: IntArray, at_once: int
) -> Iterator[WrittenRows]:
    """Yield the given rows in portions of about `at_once` successors.

    A row stays where it is if some factor forbids its action, or if no action has its number.
    """
    moves = model.row_moves(states, np.minimum(actions, len(model.actions) - 1))
    moves[(moves == FORBIDDEN).any(axis=1) | (actions == len(model.actions))] = FORBIDDEN
    sizes = np.append(np.diff(model.moves.target_ptr), 1)[moves]  # FORBIDDEN is the last one
    ends = np.cumsum(np.prod(sizes, axis=1))
    begin = 0
    while begin < len(states):
        offset = 0 if begin == 0 else ends[begin - 1]
        end = max(begin + 1, int(np.searchsorted(ends, offset + at_once)))
        some = slice(begin, end)
        yield _portion(model, states[some], actions[some], moves[some], sizes[some])
        begin = end


def _portion(
    model: LatticeMDP, states: IntArray, actions: IntArray, moves: IntArray, sizes: IntArray
) -> WrittenRows:
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
    rows = FactoredMDP(
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
    return WrittenRows(rows, states, actions)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenModel:
    """All states of a lattice with their transitions; states keep their numbers."""

    model: FactoredMDP
    possible: IntArray  # (S,) actions of the lattice, as bits

    def rows_of(self, actions: IntArray) -> IntArray:
        """Return the rows that are actions of the lattice, (..., S); where none is, a self-loop."""
        earlier = self.possible & ((np.int64(1) << actions.astype(np.int64)) - 1)
        rows: IntArray = self.model.row_ptr[:-1] + np.bitwise_count(earlier)
        return rows


def write_out(model: LatticeMDP) -> WrittenModel:
    """Write all rows of all states out.

    Raises
    ------
    UnsupportedError
        If they do not fit into memory.
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
    pieces = [rows.model for rows in written_out(model, states, actions, AT_ONCE)]

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
            name: _rewards(model, rewards, states, actions)
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
    return WrittenModel(written, possible)


def _rewards(
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
