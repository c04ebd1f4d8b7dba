"""Claims of probabilities to reach a target of a lattice in which a play may last for ever.

The value is the least fixed point of T, so that T(U) <= U proves an upper bound U, and no number of
steps from zero comes above it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.lattice_model import FORBIDDEN
from rfmdp.verification.lattice_steps import Contraction, Rows
from rfmdp.verification.margins import UNIT

ByPolicy = Callable[[int], bool]


def kept(
    game: Contraction, bound: FloatArray, over: BoolArray, rule: IntArray, by_policy: ByPolicy
) -> BoolArray:
    """Return where (S,) T(bound) <= bound is proven; where a play is over nothing is asked."""
    after = game.back({-1: bound, 1: bound}, rule, by_policy)[1]
    proven = over | (bound >= 1.0) | (after <= bound)
    doubtful = np.flatnonzero(~proven)
    proven[doubtful] = _kept_by_rows(game, bound, doubtful, rule if by_policy(1) else None)
    return proven


def _kept_by_rows(
    game: Contraction, bound: FloatArray, states: IntArray, rule: IntArray | None
) -> BoolArray:
    """Return in which states (N,) all rows that count are proven, written out.

    A row is proven if none of its successors has a larger bound, whatever their probabilities, or
    if its mean is less by more than rounding. All rows count unless a minimising agent has a rule.
    """
    able = np.logical_and.reduce([table != FORBIDDEN for table in game.model.moves_of(states)])
    if rule is not None:
        able &= rule[states][:, None] == np.arange(able.shape[1])
    at, actions = np.nonzero(able)
    unknown = np.full(len(at), np.inf)
    proven = np.zeros(len(bound), dtype=np.bool_)
    proven[states] = True
    values = bound if game.nature < 0 else -bound
    for rows in game.alike(Rows(states[at], actions, -unknown, unknown)):
        _, successors = game.model.rows(rows.states, int(rows.actions[0]))
        better = game.repaired(rows, values)
        mean = better.high if game.nature < 0 else -better.low
        here = bound[rows.states]
        short = (bound[successors].max(axis=1) > here) & ~(mean + 4.0 * UNIT <= here)
        proven[rows.states[short]] = False
    return proven[states]


def reached(
    game: Contraction, claim: FloatArray, pay: FloatArray, over: BoolArray, rule: IntArray,
    by_policy: ByPolicy, most: int, progress: Callable[[str], None],
) -> BoolArray:  # fmt: skip
    """Return where (S,) steps from zero come up to a claim, at most so many."""
    value = pay
    for step in range(most):
        if (claim <= value).all():
            break
        progress(f"from below: step {step + 1}")
        after = game.back({-1: value, 1: value}, rule, by_policy)[-1]
        higher = (after > value) & ~over
        if not higher.any():
            break
        value = np.where(higher, after, value)
    return claim <= value
