"""Filters: one value, or a set of states, from the values of many states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rfmdp.answers.quantity import Quantity, by_corners
from rfmdp.errors import ModelError
from rfmdp.language.ast import Type
from rfmdp.language.check_properties import FILTER_TYPES
from rfmdp.model.lattice import AnyModel
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


def apply_filter(
    name: str, model: AnyModel, operand: Quantity, where: BoolArray
) -> tuple[Quantity, Quantity]:
    """Return a filter of values over a set of states: its least and its largest value.

    The two differ for `range` only. Each is the same in all states, except for print.
    """
    if not where.any():
        raise ModelError("A filter must be over at least one state; its condition holds in none.")
    if name in ("print", "printall"):
        return operand, operand
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
    reduced = _reduced(name, operand.type, chosen, where)
    return reduced, reduced


def _reduced(name: str, kind: Type, chosen: list[AnyArray], where: BoolArray) -> Quantity:
    if name in REDUCTIONS:
        return _spread(FILTER_TYPES.get(name, kind), [REDUCTIONS[name](x) for x in chosen], where)
    low, value, high = map(_sum, chosen)
    if kind is not Type.INT and math.isfinite(low):
        low = math.nextafter(low, -math.inf)
    if kind is not Type.INT and math.isfinite(high):
        high = math.nextafter(high, math.inf)
    total = _spread(FILTER_TYPES.get(name, kind), [low, value, high], where)
    if name != "avg":
        return total
    size = Quantity.exact(Type.INT, np.array([len(chosen[0])]))
    return by_corners("/", [total, size], total.type)


def _sum(numbers: AnyArray) -> float:
    """Return a sum that is rounded once."""
    with np.errstate(invalid="ignore"):
        total = float(np.sum(numbers))
    return math.fsum(numbers) if math.isfinite(total) else total


def _spread(kind: Type, ends: Sequence[Any], where: BoolArray) -> Quantity:
    dtype = np.bool_ if kind is Type.BOOL else np.float64
    return Quantity(kind, *(np.full(len(where), end, dtype=dtype) for end in ends))
