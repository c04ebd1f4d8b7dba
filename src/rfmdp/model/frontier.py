"""Breadth-first exploration by whole frontiers of states; never a Python loop per state.

The Python builder gives `expand`, a function from the codes of a frontier to blocks of rows. (The
PRISM language explores by a machine of its own, `language.explorer`.) A row's successors are sums
of codes: what the deterministic part contributes, plus one contribution per move and outcome. Two
examples, with x and y in 0..9, code = 10 x + y:

- x steps by a marginal with outcomes +1, +2 and y by one with outcomes 0, -1: `rest` is the
  code of the state, the contributions are [10, 20] and [0, -1]: changes of the code.
- the same in absolute terms: `rest` is 0, contributions [10 (x+1), 10 (x+2)] and [y, y-1].

Rows of a block may differ in the sizes of their marginals, and a move may be certain in some
rows (one outcome, no marginal). Codes become int32 states at once, so that a transition costs
four bytes while exploring and four in the finished model. States are numbered in the order of
their valuations: the result depends neither on the order of discovery nor on
how they are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.packing import Buffer, Packing, StateTable
from rfmdp.ragged import chunks, owners, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray

CERTAIN = -1  # in place of a marginal's id: the move has one outcome in this row
NO_ACTION = -1  # of the self-loops that are given to deadlocks
SLICE = 1 << 16  # states expanded at once: bounds the memory of temporaries
CHUNK = 1 << 17  # successors that are numbered at once, likewise


class BlockMove(NamedTuple):
    """The moves of one factor in N rows; outcome o of row r adds contribution[r, o] to a code."""

    factor: int
    marginal: AnyArray  # (N,) identifier of the distribution, or CERTAIN where the size is 1
    size: AnyArray  # (N,) outcomes
    contribution: IntArray  # (N, largest size)


class RowBlock(NamedTuple):
    """N rows of different states, all with moves of the same factors."""

    source: IntArray  # (N,) index into the frontier
    action: int
    rest: IntArray  # (N,) contribution of all that no move contributes
    moves: Sequence[BlockMove]

    def column(self, name: str) -> AnyArray:
        """Return a field of all moves, (N, moves)."""
        columns = [getattr(move, name) for move in self.moves]
        return np.array(columns, dtype=np.int64).reshape(len(columns), len(self.rest)).T

    def codes(self, rows: slice) -> IntArray:
        """Return the codes of the successors of some rows, one tensor in C order after another."""
        sizes = self.column("size")[rows]
        ptr = starts(sizes.prod(axis=1))
        codes = np.empty(ptr[-1], dtype=np.int64)
        for shape in np.unique(sizes, axis=0):
            alike = np.flatnonzero((sizes == shape).all(axis=1))
            tensors = self.rest[rows][alike, None]
            for move, d in zip(self.moves, shape.tolist(), strict=True):
                change = move.contribution[rows][alike, :d]
                tensors = (tensors[:, :, None] + change[:, None, :]).reshape(len(alike), -1)
            codes[ptr[alike][:, None] + np.arange(tensors.shape[1])] = tensors
        return codes


Expand = Callable[[IntArray], Iterable[RowBlock]]  # of codes (N,)
Progress = Callable[[int, int], None]  # called as progress(states, transitions)


def explore(
    packing: Packing, initial: IntArray, expand: Expand, progress: Progress | None = None
) -> FactoredMDP:
    """Return the reachable states and rows of a model, for `finished` to complete.

    States that get no row loop.

    Parameters
    ----------
    packing : how valuations are packed, into one word
    initial : (I,) codes of the initial states
    expand : all rows of the states of a frontier, in blocks; may be a generator
    progress : called now and then, see `Progress`

    Raises
    ------
    ModelError
        For a successor outside the variables' ranges, and more than 2^31 states.
    """
    explored = _Explored(packing)
    start = explored.enter(initial)
    done = 0
    while done < explored.count:
        stop = min(explored.count, done + SLICE)
        for block in expand(explored.states.packed[done:stop, 0].copy()):
            explored.add(block, done)
        done = stop
        if progress is not None:
            progress(explored.count, explored.successors.size)
    return explored.arranged(start)


class _Explored:
    """All states and rows so far, in the order of discovery; see `arranged`."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self.states = StateTable(packing)
        self.count = 0
        self.rows, self.marginals = Buffer(np.int32, 4), Buffer(np.int32, 2)
        self.successors = Buffer(np.int32)

    def add(self, block: RowBlock, first: int) -> None:
        """Append the rows of a block whose frontier starts at state `first`."""
        count = len(block.source)
        if count == 0:
            return
        total = block.column("size").prod(axis=1, dtype=np.float64)
        if total.max() >= 2**31:
            name = self.packing.name(self.states.packed[first + block.source[total.argmax()]])
            raise ModelError(
                f"State {name}: a row must have fewer than 2^31 successors, found "
                f"{total.max():.3g}; fewer variables may change at once."
            )
        marginal = block.column("marginal")
        stored = marginal != CERTAIN
        rows = self.rows.extend(count)
        rows[:, 0], rows[:, 1] = block.source + first, block.action
        rows[:, 2] = stored.sum(axis=1)
        rows[:, 3] = total
        marginals = self.marginals.extend(int(stored.sum()))
        factors = [move.factor for move in block.moves]
        marginals[:, 0] = marginal[stored]
        marginals[:, 1] = np.broadcast_to(factors, stored.shape)[stored]
        ptr = starts(total)
        out = self.successors.extend(int(ptr[-1]))
        for begin, end in chunks(ptr, CHUNK):
            out[ptr[begin] : ptr[end]] = self.enter(block.codes(slice(begin, end)))

    def enter(self, codes: IntArray) -> Int32Array:
        """Return the numbers (K,) of states with some codes; new ones get the next."""
        from rfmdp.kernels.tables import enter_states

        if len(codes) and not 0 <= codes.min() <= codes.max() < self.packing.domain:
            raise ModelError(
                "A row that was explored leaves the variables' ranges; expand() must check its "
                "values."
            )
        states, numbers = self.states, np.empty(len(codes), dtype=np.int32)
        states.make_room(self.count, len(codes))
        tables = states.table, states.packed, self.count, states.dense
        self.count = int(enter_states(*tables, codes[:, None], numbers))
        return numbers

    def arranged(self, start: Int32Array) -> FactoredMDP:
        """Return all that was found in order; states without rows get a self-loop."""
        words = self.states.packed[: self.count]
        del self.states  # its table is not needed any more
        has_row = np.zeros(self.count, dtype=np.bool_)
        has_row[self.rows.array[: self.rows.size, 0]] = True
        dead = np.flatnonzero(~has_row)
        loops = self.rows.extend(len(dead))
        loops[:] = (0, NO_ACTION, 0, 1)
        loops[:, 0] = self.successors.extend(len(dead))[:] = dead
        rows, marginals = self.rows.trim(), self.marginals.trim()
        successors = self.successors.trim()
        return arranged(self.packing, words, start, rows, marginals, successors)


def arranged(
    packing: Packing,
    words: IntArray,
    start: Int32Array | IntArray,
    rows: Int32Array,
    marginals: Int32Array,
    successors: Int32Array,
) -> FactoredMDP:
    """Return what was explored: states in the order of valuations, their rows as they were found.

    Sets, names of actions, labels and rewards are still missing; see `finished`.

    Parameters
    ----------
    words : (S, W) the states in the order of discovery, packed
    start : (I,) the numbers of initial states in that order
    rows : (R, 4) state, action, number of marginals, number of successors
    marginals : (uses, 2) identifier and factor, row by row
    successors : (K,) states, row by row
    """
    from rfmdp.kernels.tables import arrange

    source = rows[:, 0]
    order = packing.order(words)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    row_ptr = starts(np.bincount(rank[source], minlength=len(order)))
    position = np.empty(len(source), dtype=np.int32 if len(source) < 2**31 else int)
    action = np.empty(len(source), dtype=np.int32)
    targets = np.empty(len(successors), np.int32)
    marginal_ptr, successor_ptr = (np.zeros(len(source) + 1, dtype=np.int64) for _ in range(2))
    identifier, factor = (np.empty(len(marginals), dtype=np.int32) for _ in range(2))
    arrange(
        (rows, marginals, successors), rank, row_ptr[:-1].copy(), position,
        (action, marginal_ptr, successor_ptr), (identifier, factor), targets,
    )  # fmt: skip
    return FactoredMDP(
        marginals=Marginals.from_sets(()),
        actions=(),
        variables=packing.variables,
        valuations=packing.unpack(words[order]),
        initial=np.flatnonzero(np.bincount(rank[start])),
        row_ptr=row_ptr,
        row_actions=action,
        marginal_ptr=marginal_ptr,
        row_marginals=identifier,
        row_factors=factor,
        successor_ptr=successor_ptr,
        successors=targets,
    )


def deadlocks(model: FactoredMDP) -> BoolArray:
    """Return the states of an explored model (S,) that have only a self-loop given to them."""
    where = np.zeros(model.states, dtype=np.bool_)
    where[owners(model.row_ptr)[model.row_actions == NO_ACTION]] = True
    return where


def with_used_marginals(model: FactoredMDP) -> tuple[FactoredMDP, IntArray]:
    """Return an explored model with the marginals that some row uses, numbered from 0 on.

    And the old identifier of every new one, ascending.
    """
    seen = np.bincount(model.row_marginals) > 0
    number = (np.cumsum(seen) - 1).astype(np.int32)
    return replace(model, row_marginals=number[model.row_marginals]), np.flatnonzero(seen)


def finished(
    model: FactoredMDP, actions: Sequence[str], labels: Mapping[str, BoolArray], **fields: Any
) -> FactoredMDP:
    """Return an explored model with all its fields.

    Self-loops of deadlocks get the unlabelled action "", which is added if it is missing, and their
    states the label "deadlock".
    """
    names, labels = list(actions), dict(labels)
    loops = model.row_actions == NO_ACTION
    if loops.any():
        if "" not in names:
            names.append("")
        labels["deadlock"] = deadlocks(model)
        fields["row_actions"] = np.where(loops, np.int32(names.index("")), model.row_actions)
    return replace(model, actions=tuple(names), labels=labels, **fields)
