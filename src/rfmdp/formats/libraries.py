"""Models from and to objects of other libraries: matrices of NumPy and SciPy, models of stormpy.

model = from_matrices(P, R)                  # P: (A, S, S), or a list of dense or sparse matrices
model = from_matrices(lower, R, upper=upper) # an interval MDP

Matrices are those of pymdptoolbox, one (S, S) per action. Models of stormpy (the extra `storm`) go
by a UMB file, which both sides know; it also reads Storm's DRN files. Storm reads `.umb` in return.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.formats.table import Columns, Text, make_model
from rfmdp.formats.umb import read_umb, write_umb
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.ragged import owners, segment_lengths, starts

REWARD = "reward"  # name of the reward structure


def from_matrices(
    transitions: Any,
    rewards: ArrayLike | None = None,
    *,
    upper: Any = None,
    initial: ArrayLike = 0,
    actions: Sequence[str] | None = None,
    labels: Mapping[str, ArrayLike] = MappingProxyType({}),
) -> FactoredMDP:
    """Return a model from transition matrices, one per action.

    Parameters
    ----------
    transitions : (A, S, S), or a sequence of A matrices (S, S), dense or of SciPy: entry (s, t) of
        matrix a is the probability to go from s to t. A row of zeros: s does not have action a.
    rewards : (S,) per state, or (S, A) per state and action. Paid when the action is taken.
    upper : As `transitions`, the upper bounds of probabilities; `transitions` are the lower ones.
    initial : Initial state or states.
    actions : Names; by default a0, a1, ...
    labels : (S,) truth values by name.

    Raises
    ------
    ModelError
        If shapes do not fit, or a row is no distribution.

    Examples
    --------
    >>> P = [[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]]
    >>> model = from_matrices(P, [[5.0, 10.0], [-1.0, 2.0]])
    >>> model.states, model.actions, model.rewards["reward"].row.tolist()
    (2, ('a0', 'a1'), [5.0, 10.0, -1.0, 2.0])
    """
    low = _stacked("transitions", transitions)
    states, number = low.shape[1], low.shape[0] // low.shape[1]
    high = low if upper is None else _stacked("upper", upper)
    if high.shape != low.shape:
        raise ModelError("upper: must have as many matrices of the same shape as `transitions`.")
    enabled = segment_lengths(high.indptr).reshape(states, number) > 0
    rows = np.flatnonzero(enabled)
    ptr = high[rows].indptr.astype(np.int64)
    lower = np.asarray(low[owners(high.indptr.astype(np.int64)), high.indices]).reshape(-1)
    if np.count_nonzero(lower) < low.nnz:
        raise ModelError("from_matrices: lower bounds must not exceed upper ones, some do.")
    paid = {}
    if rewards is not None:
        table = np.asarray(rewards, dtype=np.float64)
        if table.shape not in ((states,), (states, number)):
            raise ModelError(
                f"rewards: must have the shape {(states,)} or {(states, number)}, found "
                f"{table.shape}; of rewards per transition take the mean, (P * R).sum(-1).T."
            )
        per_action = np.broadcast_to(table.reshape(states, -1), (states, number))
        paid[REWARD] = Rewards(np.zeros(states), per_action.reshape(-1)[rows])
    names = tuple(f"a{i}" for i in range(number)) if actions is None else tuple(actions)
    if len(names) != number:
        raise ModelError(f"actions: must name {number} actions, found {len(names)}.")
    columns = Columns(
        starts(enabled.sum(axis=1)), ptr, high.indices.astype(np.int64), lower, high.data,
        rows % number, names,
    )  # fmt: skip
    return make_model(
        columns,
        "from_matrices",
        initial=np.atleast_1d(np.asarray(initial, dtype=np.int64)),
        labels={name: np.asarray(holds, dtype=np.bool_) for name, holds in labels.items()},
        rewards=paid,
    )


def _stacked(name: str, matrices: Any) -> Any:
    """Return matrices as one sparse matrix without zeros: row s of matrix a is row s * A + a."""
    from scipy.sparse import csr_array, vstack

    try:
        sparse = [csr_array(matrix, dtype=np.float64) for matrix in matrices]
        ((rows, columns),) = {matrix.shape for matrix in sparse}
        if rows != columns:
            raise ValueError(f"found {rows} x {columns}")
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{name}: must be square matrices of numbers of one shape, one per action ({error})."
        ) from error
    order = np.arange(len(sparse) * rows).reshape(-1, rows).T.reshape(-1)
    stacked = vstack(sparse, format="csr")[order]
    stacked.sum_duplicates()
    stacked.eliminate_zeros()
    return stacked


def to_stormpy(model: FactoredMDP) -> Any:
    """Return a sparse MDP of stormpy with the model's labels, actions and rewards.

    It has intervals, which are a relaxation of a row with several marginals, unless all
    probabilities are known: `to_stormpy(model.nominal())` has the nominal ones.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed.
    """
    stormpy = require_stormpy()
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.umb")
        write_umb(model, path, always_mdp=True)
        return stormpy.build_model_from_umb(path)


def from_stormpy(model: Any) -> FactoredMDP:
    """Return a sparse DTMC or MDP of stormpy, with doubles or intervals, as a flat model.

    State valuations become variables if all are booleans or integers.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed, or for other types of models and values, and for rewards of
        transitions (their expectation would depend on nature).
    """
    stormpy = require_stormpy()
    kinds = stormpy.models.ModelType
    fits = model.is_sparse_model and model.model_type in (kinds.DTMC, kinds.MDP)
    if not fits or model.supports_parameters or model.is_exact:
        raise UnsupportedError(
            "from_stormpy needs a sparse DTMC or MDP with doubles or intervals as probabilities, "
            f"got a {type(model).__name__}."
        )
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.umb")
        stormpy.io.export_to_umb(model, path)
        return read_umb(path, "from_stormpy")


def read_drn(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the DTMC or MDP in a DRN file, with probabilities or intervals.

    Raises
    ------
    FileError
        If the file is missing, truncated, or Storm cannot read it.
    UnsupportedError
        If stormpy is not installed, or for other types of models.
    """
    stormpy = require_stormpy()
    lines = Text(path).lines
    states = sum(line.startswith("state ") for line in lines)
    header = re.search(r"^@nr_states\s+(\d+)", "\n".join(lines), re.MULTILINE)
    if header is None or int(header[1]) != states:  # Storm would go on
        promise = "no number of states" if header is None else f"{header[1]} states"
        raise FileError(
            f"{path}: a DRN file must have as many states as its header promises; it promises "
            f"{promise} and has {states}; it may be truncated."
        )
    try:
        model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise FileError(f"{path}: Storm cannot read it as a DRN file ({reason}).") from error
    return from_stormpy(model)


def require_stormpy() -> ModuleType:
    """Return stormpy, or say how to get it."""
    try:
        storm = import_module("stormpy")
        import_module("stormpy.io")
        storm.UncertaintyResolutionMode  # noqa: B018  since 2.0
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            "This needs stormpy 2.0 or newer, which is not installed; install the extra: pip "
            "install 'rfmdp[storm]'."
        ) from error
    return storm
