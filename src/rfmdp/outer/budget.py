"""Until within a budget: an until of the model unfolded by what was paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import remembering, restrict, unfold
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


def unfolded(model: FactoredMDP, policy: Policy, spec: Spec) -> tuple[FactoredMDP, Policy, Spec]:
    """Return a model whose states know what was paid of a budget, and policy and question for it.

    Parameters
    ----------
    policy
        One with a rule for every amount paid.
    """
    goal = spec.objective
    assert isinstance(goal, BudgetUntil)
    layers, size = goal.layers, model.states
    paying = unfold(model, row_rewards(model, goal.reward), goal.budget)
    states = np.append(np.tile(np.arange(size), layers), 0)  # the last one has lost
    paid = np.append(np.repeat(np.arange(layers), size), layers)
    lost = paid == layers
    every = np.tile(np.arange(model.rows), layers)
    paying = replace(
        paying,
        labels={name: label[states] & ~lost for name, label in model.labels.items()},
        rewards={
            name: Rewards(np.where(lost, 0.0, each.state[states]), np.append(each.row[every], 0.0))
            for name, each in model.rewards.items()
        },
    )
    stay, target = (where(model, s)[states] & ~lost for s in (goal.stay, goal.target))
    rules = policy.rows + model.rows * np.arange(layers)[:, None]
    flat = Policy(np.append(rules.ravel(), layers * model.rows)[None, :])
    named = remembering(paying, model, "paid", paid, states)
    return named, flat, replace(spec, objective=Until(stay, target))
