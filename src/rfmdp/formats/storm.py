"""Models to and from stormpy (the extra `storm`), in memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from types import ModuleType
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.formats.table import ModelTable, Variables, make_model, state_variables, to_table
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.flatten import is_known
from rfmdp.ragged import owners, starts
from rfmdp.types import BoolArray, FloatArray, IntArray


class Probabilities(Enum):
    """What a model gives to Storm."""

    NOMINAL = auto()  # the nominal member of every set
    INTERVALS = auto()  # the bounds, flattened by interval arithmetic


def to_stormpy(model: FactoredMDP, probabilities: Probabilities | None = None) -> Any:
    """Return a sparse MDP of stormpy with the model's labels, actions and rewards.

    Parameters
    ----------
    model
        Any model; it is flattened.
    probabilities
        The nominal probabilities (`SparseMdp[float]`), or intervals (`SparseMdp[Interval]`), which
        are a relaxation of a row with several marginals. By default intervals, unless all
        probabilities are known.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed.
    """
    stormpy = _stormpy()
    storm_models = stormpy.models
    nominal = is_known(model) if probabilities is None else probabilities is Probabilities.NOMINAL
    table, _ = to_table(model.nominal() if nominal else model)
    kind = float if nominal else stormpy.Interval
    labels = storm_models.StateLabeling(table.states)
    for name, where in table.labels.items():
        labels.add_label(name)
        labels.set_states(name, _bits(stormpy, where))
    components = storm_models.SparseModelComponents[kind](_matrix(stormpy, table, kind), labels)
    choices = storm_models.ChoiceLabeling(table.rows)
    for i, name in enumerate(table.actions):
        if name:
            choices.add_label(name)
            choices.set_choices(name, _bits(stormpy, table.row_actions == i))
    components.choice_labeling = choices
    components.reward_models = {
        name: storm_models.SparseRewardModel[kind](
            optional_state_reward_vector=_values(rewards.state, kind),
            optional_state_action_reward_vector=_values(rewards.row, kind),
        )
        for name, rewards in table.rewards.items()
    }
    return storm_models.SparseMdp[kind](components)


def from_stormpy(model: Any) -> FactoredMDP:
    """Return a sparse DTMC or MDP of stormpy, with doubles or intervals, as a flat model.

    State valuations become variables if all are booleans or integers.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed, or for other types of models and values, and for rewards of
        transitions (their expectation would depend on nature).
    """
    stormpy = _stormpy()
    kinds = stormpy.models.ModelType
    if not model.is_sparse_model or model.model_type not in (kinds.DTMC, kinds.MDP):
        raise UnsupportedError(f"from_stormpy needs a sparse DTMC or MDP, got {model.model_type}.")
    if model.supports_parameters or model.is_exact:
        raise UnsupportedError("from_stormpy needs doubles or intervals as probabilities.")
    row_ptr = np.arange(model.nr_states + 1)
    if model.is_nondeterministic_model:
        row_ptr = np.array(model.nondeterministic_choice_indices, dtype=np.int64)
    rows = int(row_ptr[-1])
    actions, row_actions = _actions(model, rows)
    table = ModelTable(
        model.nr_states,
        owners(row_ptr),
        *_entries(model, bool(model.supports_uncertainty)),
        row_actions,
        actions,
        np.array(model.initial_states, dtype=np.int64),
        {
            name: _flags(model.labeling.get_states(name), model.nr_states)
            for name in sorted(model.labeling.get_labels())
            if name != "init"
        },
        {
            name: _rewards(name, rewards, model.nr_states, rows)
            for name, rewards in model.reward_models.items()
        },
        _valuations(model),
    )
    return make_model(table, "from_stormpy")


def _stormpy() -> ModuleType:
    """Return stormpy, or say how to get it."""
    try:
        import stormpy
    except ImportError as error:
        raise UnsupportedError(
            "This needs stormpy, which is not installed; install the extra: pip install "
            "'rfmdp[storm]'."
        ) from error
    if not hasattr(stormpy, "UncertaintyResolutionMode"):
        raise UnsupportedError("This needs stormpy 2.0 or newer; upgrade it.")
    module: ModuleType = stormpy
    return module


def _bits(stormpy: ModuleType, where: BoolArray) -> Any:
    return stormpy.datastructures.BitVector(len(where), np.flatnonzero(where).tolist())


def _values(values: FloatArray, kind: type) -> list[Any]:
    return values.tolist() if kind is float else [kind(x, x) for x in values.tolist()]


def _matrix(stormpy: ModuleType, table: ModelTable, kind: type) -> Any:
    """Return the transition matrix, with a row group per state."""
    lower, upper = table.lower.tolist(), table.upper.tolist()
    values = lower if kind is float else [kind(*ends) for ends in zip(lower, upper, strict=True)]
    builder = stormpy.datastructures.SparseMatrixBuilder[kind](
        rows=table.rows,
        columns=table.states,
        entries=len(table.successors),
        has_custom_row_grouping=True,
        row_groups=table.states,
    )
    rows = owners(table.successor_ptr).tolist()
    builder.add_next_values(rows, table.successors.tolist(), values, table.row_ptr[:-1].tolist())
    return builder.build()


def _entries(model: Any, intervals: bool) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return where rows start, their successors, and bounds of their probabilities."""
    matrix = model.transition_matrix
    sizes, columns, values = [], [], []
    for row in range(matrix.nr_rows):
        entries = [(e.column, e.value) for e in matrix.get_row(row)]
        sizes.append(len(entries))
        columns += [column for column, _ in entries]
        values += [value for _, value in entries]
    lower = np.array([v.lower() if intervals else v for v in values], dtype=np.float64)
    upper = np.array([v.upper() for v in values]) if intervals else lower
    return starts(sizes), np.array(columns, dtype=np.int64), lower, upper


def _actions(model: Any, rows: int) -> tuple[tuple[str, ...], IntArray]:
    """Return the action names and the action of every row; several labels are joined by `,`."""
    if not model.has_choice_labeling():
        return ("",), np.zeros(rows, dtype=np.int64)
    names: dict[str, int] = {}
    chosen = [
        names.setdefault(
            ",".join(sorted(model.choice_labeling.get_labels_of_choice(r))), len(names)
        )
        for r in range(rows)
    ]
    return tuple(names), np.array(chosen, dtype=np.int64)


def _flags(bits: Any, size: int) -> BoolArray:
    where = np.zeros(size, dtype=np.bool_)
    where[np.array(list(bits), dtype=np.int64)] = True
    return where


def _rewards(name: str, rewards: Any, states: int, rows: int) -> Rewards:
    if rewards.has_transition_rewards:
        raise UnsupportedError(
            f'Reward structure "{name}" pays per transition: the expected reward would depend on '
            "nature; move it to states or choices."
        )
    state = rewards.state_rewards if rewards.has_state_rewards else [0.0] * states
    row = rewards.state_action_rewards if rewards.has_state_action_rewards else [0.0] * rows
    return Rewards(_plain(name, state), _plain(name, row))


def _plain(name: str, values: Sequence[Any]) -> FloatArray:
    """Return rewards as numbers; those of interval models are intervals of width 0."""
    ends = [(v, v) if isinstance(v, float) else (v.lower(), v.upper()) for v in values]
    pairs = np.array(ends, dtype=np.float64).reshape(-1, 2)
    if np.any(pairs[:, 0] != pairs[:, 1]):
        raise UnsupportedError(f'Reward structure "{name}" has intervals; rewards must be numbers.')
    return pairs[:, 0].copy()


def _valuations(model: Any) -> Variables:
    """Return the variables of the states; none if one is neither boolean nor integer."""
    if not model.has_state_valuations():
        return (), None
    states = model.state_valuations
    variables = sorted(states.get_all_variables(), key=lambda variable: str(variable.name))
    if not all(v.has_boolean_type() or v.has_integer_type() for v in variables):
        return (), None
    return state_variables(
        (
            str(v.name),
            np.array([int(states.get_value(s, v)) for s in range(model.nr_states)]),
            bool(v.has_boolean_type()),
        )
        for v in variables
    )
