"""Everything that is wrong with a model, with names.

Each `_check_*` function looks at one aspect and returns its issues. What follows pointers runs
only on pointers that can be followed, and everything only on arrays of the right types. All are
vectorised: a fraction of the time it takes to build.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from weakref import WeakSet

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.report import Issue, Report, model_sizes
from rfmdp.ragged import owner, segment, segment_lengths, segment_product
from rfmdp.types import AnyArray, BoolArray, FloatArray

SHOWN_SIZES = 12  # factors of a product that are written out
LARGEST_REWARD = 1e100  # so that expected sums of many stay far from the largest float
NAMED = 1000  # issues of one kind that are named one by one; the others are counted
ARRAYS: dict[str, tuple[type, int]] = {  # type and number of dimensions
    "row_ptr": (np.int64, 1),
    "marginal_ptr": (np.int64, 1),
    "row_marginals": (np.int32, 1),
    "successor_ptr": (np.int64, 1),
    "successors": (np.int32, 1),
    "initial": (np.int64, 1),
    "row_actions": (np.int32, 1),
    "valuations": (np.int32, 2),
    "row_factors": (np.int32, 1),
}

POINTERS = {  # and what they end with
    "row_ptr": "the number of rows",
    "marginal_ptr": "len(row_marginals)",
    "successor_ptr": "len(successors)",
}

_VALID: WeakSet[FactoredMDP] = WeakSet()  # models are frozen: once valid, they stay so


def require_valid(model: FactoredMDP) -> None:
    """Raise `ModelError` with the errors of a model; looks at every model once."""
    if not isinstance(model, FactoredMDP):
        raise UnsupportedError(
            f"A model must be a FactoredMDP, got a {type(model).__name__}; `open_model` opens "
            "files and domains by their name."
        )
    if not is_valid(model):
        validate(model).require_valid()


def is_valid(model: FactoredMDP) -> bool:
    """Return whether a model has no errors; one that has none is looked at once."""
    if model not in _VALID and validate(model).valid:
        _VALID.add(model)
    return model in _VALID


def validate(model: FactoredMDP) -> Report:
    """Return every problem of a model.

    Examples
    --------
    >>> from rfmdp.model.arrays import FactoredMDP, Variable
    >>> from rfmdp.sets.families import Singleton
    >>> coin = Singleton([0.5, 0.5])
    >>> model = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [coin])
    >>> print(validate(model))
    The model with 2 states, 2 rows, 3 transitions and 1 marginal is well formed.
    """
    issues = list(_check_types(model))
    if issues:
        return Report(tuple(issues))
    issues = list(_check_pointers(model))
    for check in _GENERAL if issues else (*_GENERAL, *_ROWS):
        issues += check(model)
    *sizes, marginals = model_sizes(model)
    return Report(tuple(issues), f"The model with {', '.join(sizes)} and {marginals}")


def _per_item(
    where: BoolArray, name: Callable[[int], str], message: Callable[[int], str]
) -> list[Issue]:
    """Return one issue per index that is set, the many beyond `NAMED` as a number."""
    items = np.flatnonzero(where)
    issues = [Issue(name(int(i)), message(int(i))) for i in items[:NAMED]]
    if len(items) > NAMED:
        more = len(items) - NAMED
        issues.append(Issue("And so on", f"{more} further cases like the last one."))
    return issues


def _within(
    values: AnyArray, count: int, name: Callable[[int], str], what: str = ""
) -> list[Issue]:
    """Return one issue per entry that is no index of `count` things."""
    if not len(values) or (values.min() >= 0 and values.max() < count):
        return []
    return _per_item(
        (values < 0) | (values >= count),
        name,
        lambda i: f"{what}must be within 0..{count - 1}, got {values[i]}.",
    )


def _row(model: FactoredMDP, row: int) -> str:
    """Return the name of a row; it must not stumble over what else is wrong."""
    state = owner(model.row_ptr, row)
    action = "no action"
    if len(model.row_actions) == model.rows:
        index = int(model.row_actions[row])
        valid = 0 <= index < len(model.actions)
        action = f"action {(model.actions[index] or '(unlabelled)') if valid else index}"
    return f"Row {row} (s{_state(model, state)[1:]}, {action})"


def _state(model: FactoredMDP, state: int) -> str:
    """Return the name of a state, likewise."""
    fits = model.valuations.shape == (model.states, len(model.variables)) and model.variables
    return f"State {state} {model.state_name(state)}" if fits else f"State {state}"


def _check_types(model: FactoredMDP) -> Iterator[Issue]:
    """Arrays have the types and dimensions that kernels are compiled for."""
    for name, (dtype, dimensions) in ARRAYS.items():
        array = getattr(model, name)
        if array.dtype != dtype or array.ndim != dimensions:
            must = f"must be {np.dtype(dtype).name} with {dimensions} dimensions"
            yield Issue(name, f"{must}, got {array.dtype} with {array.ndim}.")
    for name in POINTERS:
        if getattr(model, name).size == 0:
            yield Issue(name, "must have at least one entry.")


def _check_pointers(model: FactoredMDP) -> Iterator[Issue]:
    """CSR pointers start at 0, never fall, and end at the length of what they point into."""
    ends = model.rows, len(model.row_marginals), len(model.successors)
    for (name, meaning), end in zip(POINTERS.items(), ends, strict=True):
        pointer = getattr(model, name)
        if pointer[0] != 0:
            yield Issue(name, f"must start with 0, got {pointer[0]}.")
        if pointer[-1] != end:
            yield Issue(name, f"must end with {end} ({meaning}), got {pointer[-1]}.")
        yield from _per_item(
            pointer[1:] < pointer[:-1],  # differences could wrap
            lambda i: f"{name}[{i + 1}]",  # noqa: B023
            lambda i: f"must be >= {pointer[i]}, got {pointer[i + 1]}.",  # noqa: B023
        )
    rows, lengths = len(model.successor_ptr), len(model.marginal_ptr)
    if rows != lengths:
        must = f"must have one entry per row and one more ({rows})"
        yield Issue("marginal_ptr", f"{must}, got {lengths}.")


def _check_states(model: FactoredMDP) -> list[Issue]:
    """Every state has a row."""
    if model.states == 0:
        return [Issue("States", "there must be at least one.")]
    empty = segment_lengths(model.row_ptr) == 0
    named = partial(_state, model)
    return _per_item(empty, named, lambda s: "must have at least one row, has none.")


def _check_tensors(model: FactoredMDP) -> list[Issue]:
    """Marginals of rows exist, and tensors have the product of their sizes."""
    ids = model.row_marginals
    issues = _within(
        ids,
        len(model.marginals),
        lambda at: _row(model, owner(model.marginal_ptr, at)),
        "marginals ",
    )
    if issues:
        return issues
    expected = segment_product(model.marginals.sizes[ids], model.marginal_ptr)
    sizes = segment_lengths(model.successor_ptr)
    return _per_item(
        expected != sizes,
        partial(_row, model),
        lambda r: f"the tensor must have {_product(model, r)} successors, has {sizes[r]}.",
    )


def _product(model: FactoredMDP, row: int) -> str:
    """Return the sizes of a row's marginals: `2 x 3 = 6`, `the product of 64 sizes, 1.8e+19,`."""
    ids = model.row_marginals[segment(model.marginal_ptr, row)]
    sizes = model.marginals.sizes[ids].tolist()
    if len(sizes) < 2:
        return str(sizes[0] if sizes else 1)
    product = math.prod(sizes)
    if len(sizes) > SHOWN_SIZES:
        return f"the product of {len(sizes)} sizes, {float(product):.6g},"
    return f"{' x '.join(map(str, sizes))} = {product}"


def _check_successors(model: FactoredMDP) -> list[Issue]:
    """Successors are states."""
    pointers = model.successor_ptr
    return _within(
        model.successors, model.states, lambda at: _row(model, owner(pointers, at)), "successors "
    )


def _check_initial(model: FactoredMDP) -> list[Issue]:
    """There is an initial state, and all of them exist."""
    if len(model.initial) == 0:
        return [Issue("Initial states", "there must be at least one.")]
    return _within(model.initial, model.states, lambda i: "Initial states")


def _check_actions(model: FactoredMDP) -> list[Issue]:
    """Every row has an action that exists."""
    return _size("row_actions", model.row_actions, model.rows, "row") or _within(
        model.row_actions, len(model.actions), lambda r: f"Row {r}", "its action "
    )


def _check_labels(model: FactoredMDP) -> Iterator[Issue]:
    """Labels have one boolean per state."""
    for name, where in model.labels.items():
        yield from _size(f'Label "{name}"', where, model.states, "state")
        if where.dtype != np.bool_:
            yield Issue(f'Label "{name}"', f"must be boolean, got {where.dtype}.")


def _check_rewards(model: FactoredMDP) -> Iterator[Issue]:
    """Reward structures have one number per state and per row, none of which may overflow."""
    for name, reward in model.rewards.items():
        if isinstance(reward, Rewards):
            yield from _check_payments(f'Reward "{name}"', "state", reward.state, model.states)
            yield from _check_payments(f'Reward "{name}"', "row", reward.row, model.rows)
        else:
            must = "must be Rewards(state, row): a number per state, and one per row; got"
            yield Issue(f'Reward "{name}"', f"{must} {reward!r}.")


def _check_payments(name: str, what: str, values: FloatArray, count: int) -> list[Issue]:
    context = f"{name}, {what}s"
    return _size(context, values, count, what) or _per_item(
        ~(np.abs(values) <= LARGEST_REWARD),
        lambda i: context,
        lambda i: f"must be numbers of at most {LARGEST_REWARD:g}, {what} {i} has {values[i]}.",
    )


def _check_variables(model: FactoredMDP) -> list[Issue]:
    """Valuations have one value per state and variable, within its range."""
    expected = (model.states, len(model.variables))
    if not model.variables and model.valuations.size == 0:
        return []
    if model.valuations.shape != expected:
        shape = model.valuations.shape
        return [Issue("Valuations", f"must have the shape {expected}, got {shape}.")]
    issues: list[Issue] = []
    for v, column in zip(model.variables, model.valuations.T, strict=True):
        message = f"{v.name} must be within {v.low}..{v.high}."
        outside = (column < v.low) | (column > v.high)
        issues += _per_item(outside, partial(_state, model), lambda s: message)  # noqa: B023
    return issues


def _check_names(model: FactoredMDP) -> Iterator[Issue]:
    """Names are unique, and as many as what they name."""
    for what, names in (
        ("Action", model.actions),
        ("Variable", tuple(v.name for v in model.variables)),
        ("Factor", model.factors),
        ("Marginal", model.marginal_names),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        yield from (Issue(f"{what} {name!r}", "is named twice.") for name in twice)
    if model.marginal_names:
        yield from _size("marginal_names", model.marginal_names, len(model.marginals), "marginal")
    if model.outcome_names:
        outcomes = len(model.marginals.nominal)
        yield from _size("outcome_names", model.outcome_names, outcomes, "outcome")


def _check_factors(model: FactoredMDP) -> list[Issue]:
    """If factors are named, every marginal of a row moves one of them."""
    if not model.factors and len(model.row_factors) == 0:
        return []
    uses = len(model.row_marginals)
    return _size("row_factors", model.row_factors, uses, "marginal of a row") or _within(
        model.row_factors, len(model.factors), lambda i: f"row_factors[{i}]"
    )


def _size(context: str, values: AnyArray | Sequence[str], expected: int, what: str) -> list[Issue]:
    if isinstance(values, np.ndarray) and values.ndim != 1:
        size: object = f"the shape {values.shape}"
    elif len(values) == expected:
        return []
    else:
        size = len(values)
    return [Issue(context, f"must have one entry per {what} ({expected}), got {size}.")]


_GENERAL = (
    _check_initial,
    _check_actions,
    _check_labels,
    _check_rewards,
    _check_variables,
    _check_names,
    _check_factors,
)
_ROWS = (_check_states, _check_tensors, _check_successors)
