"""Claims about a target of a lattice in which a play may last for ever.

No number of steps from zero comes above the value.

probability  It is the least fixed point of T, so that T(U) <= U proves an upper bound U.
rewards      None is below 0, and plays that miss the target are worth infinity. So bounded L with
             L <= T(L) are lower bounds. If T(U) < U in all states of finite U, by rows that cannot
             lead to infinite ones, then each step takes some d > 0 from U and what was paid: the
             target is reached after U / d steps in the mean, and U is an upper bound.
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


def paid_for(
    game: Contraction, bound: FloatArray, over: BoolArray, rule: IntArray, by_policy: ByPolicy
) -> BoolArray:
    """Return where (S,) a bound of rewards is infinite, or T(bound) < bound is proven."""
    infinite = np.isinf(bound)
    finite = np.where(infinite, np.max(bound[~infinite], initial=0.0), bound)
    after = game.back({-1: finite, 1: finite}, rule, by_policy)[1]
    leads = game.may_lead(infinite, rule if by_policy(1) else None)
    return over | infinite | ((after < finite) & ~leads)


def reached(
    game: Contraction, claim: FloatArray, pay: FloatArray, over: BoolArray, rule: IntArray,
    by_policy: ByPolicy, most: int, progress: Callable[[str], None], *, endless: bool = False,
) -> BoolArray:  # fmt: skip
    """Return where (S,) steps from zero come up to a claim, at most so many.

    If endless plays are worth infinity, a claim that a step does not lower is one.
    """
    value = pay
    if endless:
        after = game.back({-1: claim, 1: claim}, rule, by_policy)[-1]
        if (np.where(over, pay, after) >= claim).all():
            return np.ones_like(over)
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
