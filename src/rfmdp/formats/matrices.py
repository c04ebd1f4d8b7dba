"""Models from and to matrices of NumPy and SciPy: one (S, S) per action, as pymdptoolbox has it.

model = from_matrices(P, R)                  # P: (A, S, S), or a list of dense or sparse matrices
model = from_matrices(lower, R, upper=upper) # an interval MDP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.table import ModelTable, make_model, to_table
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import find, owners, segment_lengths
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
    lower = _stacked("transitions", transitions)
    states, number = lower.shape[1], lower.shape[0] // lower.shape[1]
    shape = (number, states, states)
    high = lower if upper is None else _stacked("upper", upper, shape)
    taken = segment_lengths(high.indptr).reshape(states, number) > 0
    if not taken.any(axis=1).all():
        raise ModelError(
            "from_matrices: every state must have an action, but all rows of state "
            f"{int(np.argmin(taken.any(axis=1)))} are zero."
        )
    rows = np.flatnonzero(taken)
    paid = _rewards(rewards, lower, shape, exact=upper is None)
    table = ModelTable(
        states,
        rows // number,
        *_bounds(lower[rows], high[rows]),
        rows % number,
        _names(actions, number),
        np.atleast_1d(np.asarray(initial, dtype=np.int64)),
        {name: np.asarray(holds, dtype=np.bool_) for name, holds in labels.items()},
        {} if paid is None else {REWARD: Rewards(np.zeros(states), paid.reshape(-1)[rows])},
    )
    return make_model(table, "from_matrices")


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

    table, _ = to_table(model)
    number = len(table.actions)
    place = table.row_states * number + table.row_actions
    times = np.bincount(place, minlength=table.states * number)
    if times.max() > 1:
        odd = int(np.argmax(times))
        raise UnsupportedError(
            "to_matrices: every state must have every action once at most, but "
            f"{model.state_name(odd // number)} has {table.actions[odd % number]!r} {times[odd]} "
            "times; write another format."
        )
    row = owners(table.successor_ptr)
    shape = (table.states, table.states)
    sides: list[list[Any]] = [[], []]
    for a in range(number):
        at = np.flatnonzero(table.row_actions[row] == a)
        places = table.row_states[row[at]], table.successors[at]
        for side, values in zip(sides, (table.lower, table.upper), strict=True):
            side.append(csr_array((values[at], places), shape=shape))
    rewards = {}
    for name, paid in table.rewards.items():
        sums = np.zeros(table.states * number)
        sums[place] = paid.state[table.row_states] + paid.row
        rewards[name] = sums.reshape(table.states, number)
    return Matrices(table.actions, sides[0], sides[1], rewards)


def _stacked(name: str, matrices: Any, shape: tuple[int, int, int] | None = None) -> Any:
    """Return matrices as one sparse matrix without zeros: row s of matrix a is row s * A + a."""
    from scipy.sparse import csr_array, vstack

    try:
        sparse = [csr_array(matrix, dtype=np.float64) for matrix in matrices]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: must be matrices of numbers, one per action ({error}).") from (
            error
        )
    shapes = {matrix.shape for matrix in sparse}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ModelError(f"{name}: must be matrices of one shape, found {sorted(shapes)}.")
    number, (rows, columns) = len(sparse), shapes.pop()
    if shape is not None and (number, rows, columns) != shape:
        raise ModelError(f"{name}: must have the shape {shape}, found {(number, rows, columns)}.")
    if rows != columns:
        raise ModelError(f"{name}: must be square, found {rows} x {columns}.")
    order = np.arange(number * rows).reshape(number, rows).T.reshape(-1)
    stacked = vstack(sparse, format="csr")[order]
    stacked.sum_duplicates()
    stacked.eliminate_zeros()
    return stacked


def _bounds(low: Any, high: Any) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return where rows start, their successors and bounds, of two sparse matrices."""
    ptr, columns = high.indptr.astype(np.int64), high.shape[1]
    key = owners(ptr) * columns + high.indices
    low_key = owners(low.indptr.astype(np.int64)) * columns + low.indices
    if np.any(find(key, low_key) < 0):
        raise ModelError("from_matrices: lower bounds must not exceed upper ones, some do.")
    lower = np.append(low.data, 0.0)[find(low_key, key)]  # -1, not found: the last one
    return ptr, high.indices.astype(np.int64), lower, high.data


def _rewards(
    rewards: Any, probabilities: Any, shape: tuple[int, int, int], *, exact: bool
) -> FloatArray | None:
    """Return what actions pay, (S, A); None if nothing is said."""
    if rewards is None:
        return None
    number, states, _ = shape
    if not (isinstance(rewards, list | tuple) and any(hasattr(m, "tocoo") for m in rewards)):
        table = np.asarray(rewards, dtype=np.float64)
        if table.shape == (states,):
            return np.repeat(table[:, None], number, axis=1)
        if table.shape == (states, number):
            return table
        if table.shape != shape:
            raise ModelError(
                f"rewards: must have the shape {(states,)}, {(states, number)} or {shape}, found "
                f"{table.shape}."
            )
    if not exact:
        raise UnsupportedError(
            "rewards: paid per transition, their expectation would depend on nature; give them per "
            "state and action."
        )
    paid = probabilities.multiply(_stacked("rewards", rewards, shape)).sum(axis=1)
    return np.asarray(paid, dtype=np.float64).reshape(states, number)


def _names(actions: Sequence[str] | None, number: int) -> tuple[str, ...]:
    names = tuple(f"a{i}" for i in range(number)) if actions is None else tuple(actions)
    if len(names) != number:
        raise ModelError(f"actions: must name {number} actions, found {len(names)}.")
    return names
