"""Initial states: the values of variables, or all states that satisfy `init ... endinit`."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.language.ast import Expr
from rfmdp.language.checked import CheckedModel
from rfmdp.language.guard_ranges import implied_ranges
from rfmdp.language.states import CHUNK, evaluate_states
from rfmdp.types import IntArray

MAX_CANDIDATES = 1 << 28


def initial_valuations(checked: CheckedModel) -> IntArray:
    """Return the valuations (I, vars) of all initial states, ascending.

    Raises
    ------
    PrismError
        If no state satisfies the condition, or there are too many to try.
    """
    if isinstance(checked.init, Expr):
        return _satisfying(checked, checked.init)
    return np.array(checked.init, dtype=np.int64).reshape(1, -1)


def _satisfying(checked: CheckedModel, condition: Expr) -> IntArray:
    """Try all valuations that simple bounds of the condition leave, in chunks."""
    low, radix = _box(checked, condition)
    count = math.prod(radix)
    if count > MAX_CANDIDATES:
        reason = (
            f"the condition of 'init' leaves {count:.3g} states to try, must be at most "
            f"{MAX_CANDIDATES}; add conjuncts that bound single variables, such as x=0"
        )
        raise checked.source.error(condition.position, reason)
    found = []
    for start in range(0, count, CHUNK):
        codes = np.arange(start, min(start + CHUNK, count))
        valuations = np.empty((len(codes), len(radix)), dtype=np.int32)
        for k in range(len(radix) - 1, -1, -1):
            valuations[:, k] = codes % radix[k] + low[k]
            codes //= radix[k]
        found.append(valuations[evaluate_states(condition, checked, valuations)])
    if not any(len(part) for part in found):
        reason = "some state must satisfy the condition of 'init', found none"
        raise checked.source.error(condition.position, reason)
    return np.concatenate(found)


def _box(checked: CheckedModel, condition: Expr) -> tuple[list[int], list[int]]:
    """Return, for every variable, the least value that a condition allows, and how many it does."""
    needs = implied_ranges(condition)
    low, radix = [], []
    for variable in checked.variables:
        least, most = needs.get(variable.name, (-math.inf, math.inf))
        first = int(max(variable.low, least))
        low.append(first)
        radix.append(max(0, int(min(variable.high, most)) - first + 1))
    return low, radix
