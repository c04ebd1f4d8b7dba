"""Until within a budget: an until of the model unfolded by what was paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import restrict, unfold
from rfmdp.objective import BudgetUntil, Spec, Until
from rfmdp.outer.problem import row_rewards, where
from rfmdp.outer.solution import Policy, Solution
from rfmdp.types import BoolArray, FloatArray


def solve_budget(
    model: FactoredMDP,
    spec: Spec,
    interest: BoolArray,
    solve: Callable[..., Solution],
    policy: Policy | None = None,
) -> Solution:
    """Return the solution of an until with a budget, or its value for a policy.

    Parameters
    ----------
    solve
        `solving.solve`, for the unfolded model.
    policy
        One with a rule for every amount paid.
    """
    goal = spec.objective
    assert isinstance(goal, BudgetUntil)
    layers, states = goal.layers, model.states
    offset = np.arange(layers)[:, None] * model.rows
    unfolded = unfold(model, row_rewards(model, goal.reward), goal.budget)
    if policy is not None:
        unfolded = restrict(unfolded, np.append(policy.rows + offset, layers * model.rows))
    stay, target = (
        np.append(np.tile(where(model, s), layers), False) for s in (goal.stay, goal.target)
    )
    first = np.append(interest, np.zeros(unfolded.states - states, dtype=np.bool_))
    result = solve(unfolded, replace(spec, objective=Until(stay, target)), states=first)
    rules = result.policy.rows[0, :-1].reshape(layers, states) - offset
    lower, upper = (None if side is None else side[:-1] for side in (result.lower, result.upper))
    return replace(
        result, model=model, spec=spec, value=result.value[:states],
        policy=policy or Policy(rules), subject="optimum" if policy is None else "policy",
        lower=_unpaid(lower, states), upper=_unpaid(upper, states),
        witness=(lower, upper), interest=interest,
    )  # fmt: skip


def _unpaid(bound: FloatArray | None, states: int) -> FloatArray | None:
    """Return a bound where nothing was paid yet."""
    return None if bound is None else bound[:states]
