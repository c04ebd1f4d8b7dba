"""Rows of a lattice, written out: some as a model of these rows alone, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.memory import available_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.lattice import FormulaRewards, LatticeMDP
from rfmdp.ragged import entries, starts
from rfmdp.types import FloatArray, IntArray

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
    """Yield the given rows in portions of about `at_once` successors."""
    moves = model.row_moves(states, actions)
    sizes = np.diff(model.moves.target_ptr)[moves]
    ends = np.cumsum(np.prod(sizes, axis=1))
    begin = 0
    while begin < len(states):
        offset = 0 if begin == 0 else ends[begin - 1]
        end = max(begin + 1, int(np.searchsorted(ends, offset + at_once)))
        yield _portion(model, states[begin:end], actions[begin:end], moves[begin:end])
        begin = end


def _portion(
    model: LatticeMDP, states: IntArray, actions: IntArray, moves: IntArray
) -> WrittenRows:
    """Write some rows out, factor by factor; certain moves have one target and no marginal."""
    stride = model.states
    ptr = model.moves.target_ptr
    row = np.arange(len(states))
    successors = np.zeros_like(row)
    for size, column in zip(model.sizes, moves.T, strict=True):
        stride //= size
        counts = (ptr[column + 1] - ptr[column])[row]
        begin = np.repeat(ptr[column][row] - starts(counts)[:-1], counts)
        targets = model.moves.targets[begin + np.arange(len(begin))]
        successors = np.repeat(successors, counts) + targets * stride
        row = np.repeat(row, counts)
    marginal = model.moves.marginal[moves]
    uncertain = marginal >= 0
    successor_ptr = np.searchsorted(row, np.arange(len(states) + 1))
    marginal_ptr = starts(uncertain.sum(axis=1))
    rows = FactoredMDP(
        row_ptr=np.arange(len(states) + 1),
        marginal_ptr=marginal_ptr,
        row_marginals=marginal[uncertain].astype(np.int32),
        successor_ptr=successor_ptr,
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
    numbers = np.arange(model.states)
    values = model.state_values(numbers)
    possible = model.possible(values)
    bits = np.arange(len(model.actions))
    states, actions = np.nonzero((possible[:, None] >> bits) & 1)
    pieces = [rows.model for rows in written_out(model, states, actions, AT_ONCE)]
    stuck = np.flatnonzero(possible == 0)
    row_states = np.concatenate([states, stuck])  # rows of stuck states are self-loops
    order = np.argsort(row_states, kind="stable")
    idle = len(model.actions) if len(stuck) and "" not in model.actions else 0
    names = (*model.actions, "") if idle else model.actions
    loop = model.actions.index("") if len(stuck) and not idle else idle
    joined = {
        name: np.concatenate([np.empty(0, np.int64), *(getattr(p, name) for p in pieces)])
        for name in ("row_marginals", "row_factors", "successors")
    }
    nothing = np.zeros(len(stuck), dtype=np.int64)
    marginal_sizes = np.concatenate([*(np.diff(p.marginal_ptr) for p in pieces), nothing])
    sizes = np.concatenate([*(np.diff(p.successor_ptr) for p in pieces), nothing + 1])
    joined["successors"] = np.concatenate([joined["successors"], stuck])
    kept = entries(starts(marginal_sizes), order)
    row_actions = np.concatenate([actions, np.full(len(stuck), loop)])[order]
    written = FactoredMDP(
        row_ptr=np.searchsorted(row_states[order], np.arange(model.states + 1)),
        marginal_ptr=starts(marginal_sizes[order]),
        row_marginals=joined["row_marginals"][kept].astype(np.int32),
        successor_ptr=starts(sizes[order]),
        successors=joined["successors"][entries(starts(sizes), order)].astype(np.int32),
        marginals=model.marginals,
        initial=model.initial,
        row_actions=row_actions.astype(np.int32),
        actions=names,
        labels={name: model.label(name) for name in (*model.labels, "init", "deadlock")},
        rewards={
            name: _rewards(model, rewards, row_states[order], row_actions)
            for name, rewards in model.rewards.items()
        },
        variables=model.variables,
        valuations=values,
        factors=tuple(factor.name for factor in model.factors),
        row_factors=joined["row_factors"][kept].astype(np.int32),
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
