"""Everything that is wrong with a model, with names.

What follows pointers runs only on pointers that can be followed, and everything only on arrays of
the right types. All is vectorised: a fraction of the time it takes to build.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any
from weakref import WeakSet

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, counted
from rfmdp.ragged import owner, segment, segment_lengths, segment_product
from rfmdp.types import AnyArray, BoolArray, IntArray

SHOWN = 20  # issues in an error message
LARGEST_REWARD = 1e100  # so that expected sums of many stay far from the largest float
NAMED = 1000  # issues of one kind that are named
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

_VALID: WeakSet[FactoredMDP] = WeakSet()  # models are frozen: once valid, they stay so


def require_valid(model: FactoredMDP) -> None:
    """Raise `ModelError` with the errors of a model; looks at every model once."""
    if not isinstance(model, FactoredMDP):
        raise UnsupportedError(
            f"A model must be a FactoredMDP, got a {type(model).__name__}; `open_model` opens "
            "files and domains by their name."
        )
    issues = () if model in _VALID else validate(model)
    if issues:
        lines = [f"The model has {counted(len(issues), 'error')}:", *issues[:SHOWN]]
        if len(issues) > SHOWN:
            lines.append(f"... and {len(issues) - SHOWN} more")
        raise ModelError("\n  ".join(lines))


def validate(model: FactoredMDP) -> tuple[str, ...]:
    """Return every error of a model: where it is, what must hold and what was found."""
    issues = tuple(_wrong_types(model))
    if issues:
        return issues
    pointers = tuple(_wrong_pointers(model))
    rows = () if pointers else _wrong_rows(model)
    others = _wrong_sizes(model), _wrong_states(model), _same_names(model)
    issues = (*pointers, *chain.from_iterable(others), *rows)
    if not issues:
        _VALID.add(model)
    return issues


def _first(wrong: BoolArray) -> list[int]:
    """Return the first indices that are set."""
    first: list[int] = np.flatnonzero(wrong)[:NAMED].tolist()
    return first


def _outside(values: AnyArray, count: int, name: Callable[[int], str]) -> Iterator[str]:
    """Give one issue per entry that is no index of `count` things."""
    if len(values) and not 0 <= values.min() <= values.max() < count:
        for i in _first((values < 0) | (values >= count)):
            yield f"{name(i)} must be within 0..{count - 1}, got {values[i]}."


def _row(model: FactoredMDP, row: int) -> str:
    """Return the name of a row, as far as what else is wrong lets it be said."""
    with suppress(IndexError, ValueError):
        return f"Row {row} ({model.row_name(row)})"
    return f"Row {row}"


def _state(model: FactoredMDP, state: int) -> str:
    """Return the name of a state, likewise."""
    with suppress(IndexError, ValueError):
        return model.state_name(state)
    return f"State {state}"


def _wrong_types(model: FactoredMDP) -> Iterator[str]:
    """Arrays have the types and dimensions that kernels are compiled for."""
    for name, (dtype, dimensions) in ARRAYS.items():
        array = getattr(model, name)
        if array.dtype != dtype or array.ndim != dimensions:
            must = f"must be {np.dtype(dtype).name} with {dimensions} dimensions"
            yield f"{name}: {must}, got {array.dtype} with {array.ndim}."
        if name.endswith("_ptr") and array.size == 0:
            yield f"{name}: must have at least one entry."


def _wrong_pointers(model: FactoredMDP) -> Iterator[str]:
    """CSR pointers start at 0, never fall, and end at the length of what they point into."""
    for name, pointer, end, meaning in (
        ("row_ptr", model.row_ptr, model.rows, "the number of rows"),
        ("marginal_ptr", model.marginal_ptr, len(model.row_marginals), "len(row_marginals)"),
        ("successor_ptr", model.successor_ptr, len(model.successors), "len(successors)"),
    ):
        falls = _first(pointer[1:] < pointer[:-1])  # differences could wrap
        if pointer[0] != 0 or pointer[-1] != end or falls:
            where = f", which falls after entry {falls[0]}" if falls else ""
            must = f"must rise from 0 to {end} ({meaning})"
            yield f"{name}: {must}, got {pointer[0]} .. {pointer[-1]}{where}."
    rows, lengths = len(model.successor_ptr), len(model.marginal_ptr)
    if rows != lengths:
        yield f"marginal_ptr: must have one entry per row and one more ({rows}), got {lengths}."


def _wrong_rows(model: FactoredMDP) -> Iterator[str]:
    """States have rows, whose marginals exist, with as many successors, which are states."""
    for s in _first(segment_lengths(model.row_ptr) == 0):
        yield f"{_state(model, s)}: must have at least one row, has none."
    ids = model.row_marginals

    def row_at(pointers: IntArray, i: int) -> str:
        return _row(model, owner(pointers, i))

    count = len(model.marginals)
    wrong = [*_outside(ids, count, lambda i: f"{row_at(model.marginal_ptr, i)}: marginals")]
    yield from wrong
    sizes = segment_lengths(model.successor_ptr)
    if not wrong:
        expected = segment_product(model.marginals.sizes[ids], model.marginal_ptr)
        for r in _first(expected != sizes):
            factors = model.marginals.sizes[ids[segment(model.marginal_ptr, r)]].tolist()
            must = f"the tensor must have {math.prod(map(float, factors)):.6g} successors"
            yield f"{_row(model, r)}: {must}, has {sizes[r]}."
    targets, pointers = model.successors, model.successor_ptr
    yield from _outside(targets, model.states, lambda i: f"{row_at(pointers, i)}: successors")


def _wrong_sizes(model: FactoredMDP) -> Iterator[str]:
    """Columns have an entry per row, state, marginal or outcome; numbers of things exist."""
    columns: list[tuple[str, Any, str, int]] = [
        ("row_actions", model.row_actions, "row", model.rows)
    ]
    for name, where in model.labels.items():
        columns.append((f'Label "{name}"', where, "state", model.states))
        if where.dtype != np.bool_:
            yield f'Label "{name}": must be boolean, got {where.dtype}.'
    for name, reward in model.rewards.items():
        if not isinstance(reward, Rewards):
            must = "must be Rewards(state, row): a number per state, and one per row"
            yield f'Reward "{name}": {must}; got {reward!r}.'
            continue
        for what, values, count in (
            ("state", reward.state, model.states),
            ("row", reward.row, model.rows),
        ):
            context = f'Reward "{name}", {what}s'
            columns.append((context, values, what, count))
            must = f"must be numbers of at most {LARGEST_REWARD:g}"  # that may not overflow
            for i in _first(~(np.abs(values) <= LARGEST_REWARD)):
                yield f"{context}: {must}, {what} {i} has {values.flat[i]}."
    if model.marginal_names:
        columns.append(("marginal_names", model.marginal_names, "marginal", len(model.marginals)))
    if model.outcome_names:
        outcomes = len(model.marginals.nominal)
        columns.append(("outcome_names", model.outcome_names, "outcome", outcomes))
    if model.factors or len(model.row_factors):
        uses = len(model.row_marginals)
        columns.append(("row_factors", model.row_factors, "marginal of a row", uses))
    for context, values, what, expected in columns:
        flat = not isinstance(values, np.ndarray) or values.ndim == 1
        if not flat or len(values) != expected:
            size = len(values) if flat else f"the shape {values.shape}"
            yield f"{context}: must have one entry per {what} ({expected}), got {size}."
    for what, count in (("States", model.states), ("Initial states", len(model.initial))):
        if count == 0:
            yield f"{what}: there must be at least one."
    yield from _outside(model.initial, model.states, lambda i: "Initial states:")
    yield from _outside(model.row_actions, len(model.actions), lambda r: f"Row {r}: its action")
    yield from _outside(model.row_factors, len(model.factors), lambda i: f"row_factors[{i}]:")


def _wrong_states(model: FactoredMDP) -> Iterator[str]:
    """Valuations have one value per state and variable, within its range."""
    expected, shape = (model.states, len(model.variables)), model.valuations.shape
    if not model.variables and model.valuations.size == 0:
        return
    if shape != expected:
        yield f"Valuations: must have the shape {expected}, got {shape}."
        return
    for v, column in zip(model.variables, model.valuations.T, strict=True):
        must = f"{v.name} must be within {v.low}..{v.high}."
        for s in _first((column < v.low) | (column > v.high)):
            yield f"{_state(model, s)}: {must}"


def _same_names(model: FactoredMDP) -> Iterator[str]:
    """Names are unique."""
    for what, names in (
        ("Action", model.actions),
        ("Variable", tuple(v.name for v in model.variables)),
        ("Factor", model.factors),
        ("Marginal", model.marginal_names),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        yield from (f"{what} {name!r}: is named twice." for name in twice)
