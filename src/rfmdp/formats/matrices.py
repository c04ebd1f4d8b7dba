"""Models from and to matrices of NumPy and SciPy: one (S, S) per action, as pymdptoolbox has it.

model = from_matrices(P, R)                  # P: (A, S, S), or a list of dense or sparse matrices
model = from_matrices(lower, R, upper=upper) # an interval MDP
model = from_columns(lower, upper, state_ptr)  # IntervalMDP.jl: a column per state and action
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.flat import FlatBoxes, flat_model, transition_bounds
from rfmdp.model.flatten import flatten
from rfmdp.ragged import find, owners, segment_lengths, segment_sum, starts
from rfmdp.types import FloatArray, IntArray

REWARD = "reward"  # name of the reward structure


def from_matrices(
    transitions: Any,
    rewards: Any = None,
    *,
    upper: Any = None,
    initial: ArrayLike = 0,
    actions: Sequence[str] | None = None,
    labels: Mapping[str, ArrayLike] = MappingProxyType({}),
) -> FactoredMDP:
    """Return a model from transition matrices, one per action.

    Parameters
    ----------
    transitions
        (A, S, S), or a sequence of A matrices (S, S), dense or of SciPy: entry (s, t) of matrix a
        is the probability to go from s to t. A row of zeros says that s does not have action a.
    rewards
        (S,) per state, (S, A) per state and action, or (A, S, S) (or A sparse matrices) per
        transition, of which the expectation is taken. Paid when the action is taken.
    upper
        As `transitions`, the upper bounds of probabilities; `transitions` are the lower ones then.
    initial
        Initial state or states.
    actions
        Names; by default a0, a1, ...
    labels
        (S,) truth values by name.

    Raises
    ------
    ModelError
        If shapes do not fit, or a row is no distribution.
    UnsupportedError
        For intervals with rewards of transitions: their expectation would depend on nature.

    Examples
    --------
    >>> P = [[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]]
    >>> model = from_matrices(P, [[5.0, 10.0], [-1.0, 2.0]])
    >>> model.states, model.actions, model.rewards["reward"].row.tolist()
    (2, ('a0', 'a1'), [5.0, 10.0, -1.0, 2.0])
    """
    lower = _Entries.of("transitions", transitions)
    high = lower if upper is None else _Entries.of("upper", upper, lower.shape)
    number, states, _ = lower.shape
    boxes = _boxes("from_matrices", lower, high)
    taken = boxes.sizes > 0  # (S * A,), state by state
    alone = np.flatnonzero(~taken.reshape(states, number).any(axis=1))
    if len(alone):
        raise ModelError(
            f"from_matrices: every state must have an action, but all rows of state {alone[0]} "
            "are zero."
        )
    paid = _rewards(rewards, lower, exact=upper is None)
    return _flat(
        starts(taken.reshape(states, number).sum(axis=1)), high.key % states, boxes.take(taken),
        np.flatnonzero(taken) % number, _names(actions, number), initial, labels,
        {} if paid is None else {REWARD: Rewards(np.zeros(states), paid.reshape(-1)[taken])},
    )  # fmt: skip


def from_columns(
    lower: Any,
    upper: Any,
    state_ptr: ArrayLike | None = None,
    *,
    initial: ArrayLike = 0,
    actions: Sequence[str] | None = None,
    labels: Mapping[str, ArrayLike] = MappingProxyType({}),
) -> FactoredMDP:
    """Return an interval model from matrices in the layout of IntervalMDP.jl.

    Parameters
    ----------
    lower, upper
        (S, R), dense or of SciPy: column r is the distribution of row r, entries are target states.
    state_ptr
        (S + 1,) first column of every state, counted from 0 (Julia's `stateptr` less one). By
        default every state has the same number of columns.
    initial, actions, labels
        As in `from_matrices`; numbers of states are counted from 0.

    Examples
    --------
    >>> model = from_columns([[0.1, 0.0], [0.4, 1.0]], [[0.6, 0.0], [0.9, 1.0]])
    >>> model.states, model.marginals.upper.tolist()
    (2, [0.6, 0.9])
    """
    low, high = (
        _Entries.of("lower", [_transposed(lower)]),
        _Entries.of("upper", [_transposed(upper)]),
    )
    _, rows, states = high.shape
    if low.shape != high.shape or (state_ptr is None and rows % states):
        raise ModelError(
            f"from_columns: must be two matrices of one shape, with columns for every state; found "
            f"{low.shape[:0:-1]} and {high.shape[:0:-1]}."
        )
    ptr = np.arange(0, rows + 1, rows // states) if state_ptr is None else np.asarray(state_ptr)
    if len(ptr) != states + 1 or ptr[0] != 0 or ptr[-1] != rows or np.any(segment_lengths(ptr) < 1):
        raise ModelError(
            f"from_columns: state_ptr must have {states + 1} entries that rise from 0 to {rows}."
        )
    boxes = _boxes("from_columns", low, high)
    place = np.arange(rows) - ptr[:-1][owners(ptr.astype(np.int64))]
    names = _names(actions, int(place.max()) + 1)
    return _flat(ptr.astype(np.int64), high.key % states, boxes, place, names, initial, labels, {})


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """A flat model as one matrix per action; `upper` is `lower` if all is known."""

    actions: tuple[str, ...]
    lower: list[Any]  # A sparse matrices (S, S)
    upper: list[Any]
    rewards: dict[str, FloatArray]  # (S, A) each; what states pay is part of it


def to_matrices(model: FactoredMDP) -> Matrices:
    """Return a model as sparse matrices, one per action; it is flattened.

    The row of an action that a state does not have is empty, as `from_matrices` reads it.

    Raises
    ------
    UnsupportedError
        If some state has several choices of one action: the layout has no place for that.

    Examples
    --------
    >>> matrices = to_matrices(from_matrices([[[0.5, 0.5], [0.0, 1.0]]], [1.0, 0.0]))
    >>> matrices.lower[0].toarray().tolist(), matrices.rewards["reward"].tolist()
    ([[0.5, 0.5], [0.0, 1.0]], [[1.0], [0.0]])
    """
    from scipy.sparse import csr_array

    flat = flatten(model)
    number = len(flat.actions)
    place = flat.row_states * number + flat.row_actions
    times = np.bincount(place, minlength=flat.states * number)
    odd = np.flatnonzero(times > 1)
    if len(odd):
        raise UnsupportedError(
            "to_matrices: every state must have every action once at most, but "
            f"{flat.state_name(int(odd[0] // number))} has {flat.actions[odd[0] % number]!r} "
            f"{times[odd[0]]} times; write another format."
        )
    at = owners(flat.successor_ptr)
    sides = []
    for value in transition_bounds(flat):
        matrices = []
        for a in range(number):
            own = flat.row_actions[at] == a
            entries = (value[own], (flat.row_states[at[own]], flat.successors[own]))
            matrices.append(csr_array(entries, shape=(flat.states, flat.states)))
        sides.append(matrices)
    rewards = {}
    for name, paid in flat.rewards.items():
        table = np.zeros(flat.states * number)
        table[place] = paid.state[flat.row_states] + paid.row
        rewards[name] = table.reshape(flat.states, number)
    return Matrices(flat.actions, sides[0], sides[1], rewards)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """The entries of some matrices that are not zero, in order of row, matrix and column."""

    shape: tuple[int, int, int]  # matrices, rows, columns
    key: IntArray  # (row * matrices + matrix) * columns + column, ascending
    value: FloatArray

    @staticmethod
    def of(name: str, given: Any, shape: tuple[int, int, int] | None = None) -> _Entries:
        """Read dense or sparse matrices; `shape` is what they must have."""
        from scipy.sparse import coo_array

        try:
            parts = [coo_array(matrix, dtype=np.float64) for matrix in given]
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{name}: must be matrices of numbers, one per action ({error})."
            ) from (error)
        shapes = {part.shape for part in parts}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ModelError(f"{name}: must be matrices of one shape, found {sorted(shapes)}.")
        rows, columns = shapes.pop()
        if shape is None and name == "transitions" and rows != columns:
            raise ModelError(f"{name}: must be square, found {rows} x {columns}.")
        if shape is not None and (len(parts), rows, columns) != shape:
            raise ModelError(
                f"{name}: must have the shape {shape}, found {(len(parts), rows, columns)}."
            )
        number = len(parts)
        for part in parts:
            part.sum_duplicates()
        keys = [
            (part.coords[0].astype(np.int64) * number + a) * columns + part.coords[1]
            for a, part in enumerate(parts)
        ]
        key = np.concatenate(keys)
        value = np.concatenate([part.data for part in parts])
        order = np.argsort(key, kind="stable")
        kept = order[value[order] != 0.0]
        return _Entries((number, rows, columns), key[kept], value[kept])

    def at(self, key: IntArray) -> FloatArray:
        """Return the entries at some places; 0 where there is none."""
        return np.append(self.value, 0.0)[find(self.key, key)]  # -1, not found: the last one


def _boxes(where: str, low: _Entries, high: _Entries) -> FlatBoxes:
    """Return a box per row of some matrices, also for empty ones; `where` is for messages."""
    if np.any(~np.isin(low.key, high.key)):
        raise ModelError(f"{where}: lower bounds must not exceed upper ones, some do.")
    number, rows, columns = high.shape
    size = np.bincount(high.key // columns, minlength=number * rows)
    return FlatBoxes.centred(starts(size), low.at(high.key), high.value)


def _transposed(matrix: Any) -> Any:
    return (matrix if hasattr(matrix, "tocoo") else np.asarray(matrix, dtype=np.float64)).T


def _rewards(given: Any, known: _Entries, *, exact: bool) -> FloatArray | None:
    """Return what actions pay, (S, A); None if nothing is said."""
    if given is None:
        return None
    number, states, _ = known.shape
    matrices = isinstance(given, list | tuple) and any(hasattr(m, "tocoo") for m in given)
    table = None if matrices else np.asarray(given, dtype=np.float64)
    if table is not None and table.shape == (states,):
        return np.repeat(table[:, None], number, axis=1)
    if table is not None and table.shape == (states, number):
        return table
    if table is not None and table.shape != (number, states, states):
        raise ModelError(
            f"rewards: must have the shape {(states,)}, {(states, number)} or "
            f"{(number, states, states)}, found {table.shape}."
        )
    if not exact:
        raise UnsupportedError(
            "rewards: paid per transition, their expectation would depend on nature; give them per "
            "state and action."
        )
    paid = _Entries.of("rewards", given, known.shape)
    pointers = np.searchsorted(known.key, np.arange(states * number + 1) * states)
    return segment_sum(known.value * paid.at(known.key), pointers).reshape(states, number)


def _names(given: Sequence[str] | None, number: int) -> tuple[str, ...]:
    names = tuple(f"a{i}" for i in range(number)) if given is None else tuple(given)
    if len(names) != number:
        raise ModelError(f"actions: must name {number} actions, found {len(names)}.")
    return names


def _flat(
    row_ptr: IntArray, successors: IntArray, boxes: FlatBoxes, row_actions: IntArray,
    actions: tuple[str, ...], initial: ArrayLike, labels: Mapping[str, ArrayLike],
    rewards: Mapping[str, Rewards],
) -> FactoredMDP:  # fmt: skip
    """Return the model with equal distributions shared."""
    return flat_model(
        row_ptr,
        successors.astype(np.int32),
        *boxes.shared(),
        initial=np.atleast_1d(np.asarray(initial, dtype=np.int64)),
        row_actions=row_actions,
        actions=actions,
        labels={name: np.asarray(where, dtype=np.bool_) for name, where in labels.items()},
        rewards=rewards,
    )
