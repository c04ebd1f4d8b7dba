"""Filters: one value, or a set of states, from the values of many states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rfmdp.answers.quantity import Quantity
from rfmdp.errors import ModelError
from rfmdp.language.ast import Type
from rfmdp.language.check_properties import FILTER_TYPES
from rfmdp.model.arrays import FactoredMDP
from rfmdp.rounding import UNIT
from rfmdp.types import AnyArray, BoolArray

REDUCTIONS: dict[str, Callable[[AnyArray], Any]] = {
    "state": np.min,  # of one state
    "first": np.min,
    "min": np.min,
    "max": np.max,
    "count": np.count_nonzero,
    "forall": np.all,
    "exists": np.any,
}
EQUAL = 1e-5  # values this close count as one for argmin and argmax, as in PRISM


def apply_filter(
    name: str, model: FactoredMDP, operand: Quantity, where: BoolArray
) -> tuple[Quantity, Quantity]:
    """Return a filter of values over a set of states: its least and its largest value.

    The two differ for `range` only. Each is the same in all states, except for print, argmin and
    argmax.

    Raises
    ------
    ModelError
        If the set is empty, or has several states and the filter is `state`.
    """
    if not where.any():
        raise ModelError("A filter must be over at least one state; its condition holds in none.")
    if name in ("print", "printall"):
        return operand, operand
    if name in ("argmin", "argmax"):
        extreme = _extreme_states(operand, where, name == "argmin")
        return extreme, extreme
    states = np.flatnonzero(where)
    if name == "state" and len(states) > 1:
        names = ", ".join(model.state_name(int(s)) for s in states[:5])
        more = ", ..." if len(states) > 5 else ""
        raise ModelError(
            f"filter(state, ...) must be over one state, found {len(states)}: {names}{more}; "
            "use filter(min|max|avg|range|print, ...)."
        )
    if name in ("state", "first"):
        states = states[:1]
    chosen = [getattr(operand, end)[states] for end in ("lower", "value", "upper")]
    if name == "range":
        least, most = (_reduced(end, operand.type, chosen, where) for end in ("min", "max"))
        return least, most
    found = _reduced(name, operand.type, chosen, where)
    return found, found


def _reduced(name: str, kind: Type, chosen: list[AnyArray], where: BoolArray) -> Quantity:
    if name in REDUCTIONS:
        return _spread(FILTER_TYPES.get(name, kind), [REDUCTIONS[name](x) for x in chosen], where)
    size = len(chosen[0])
    with np.errstate(invalid="ignore"):
        sums = [np.sum(x) for x in chosen]
        # an int sum is exact; a float one errs by at most n * unit * sum of magnitudes
        error = 0.0 if kind is Type.INT else size * UNIT * float(np.sum(np.abs(chosen[1])))
    if np.isfinite(error):
        sums[0], sums[2] = sums[0] - error, sums[2] + error
    if name == "avg":
        sums = [x / size for x in sums]
    return _spread(FILTER_TYPES.get(name, kind), sums, where)


def _spread(kind: Type, ends: Sequence[Any], where: BoolArray) -> Quantity:
    dtype = np.bool_ if kind is Type.BOOL else np.float64
    return Quantity(kind, *(np.full(len(where), end, dtype=dtype) for end in ends))


def _extreme_states(operand: Quantity, where: BoolArray, least: bool) -> Quantity:
    """Return which states of a set have its smallest (or largest) value."""
    sign = 1.0 if least else -1.0
    lower, upper = (operand.lower, operand.upper) if least else (-operand.upper, -operand.lower)
    value = sign * operand.value
    surely = np.sort(lower[where])
    best = float(np.min(upper[where]))
    second = surely[1] if len(surely) > 1 else np.inf
    others = np.where(lower > surely[0], surely[0], second)  # least lower bound of the others
    sure = where & (upper <= others)
    likely = where & (value <= float(np.min(value[where])) + EQUAL)
    return Quantity(Type.BOOL, sure, likely, where & (lower <= best))
