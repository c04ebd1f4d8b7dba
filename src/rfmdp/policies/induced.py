"""The model that a policy leaves, complete: to be written as a file and asked again anywhere.

Nature keeps its sets, or plays a fixed choice. What a policy remembers becomes part of the state: a
variable `step` or `paid` tells how many steps are gone, or what was paid of a budget.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.unroll import restrict, unfold, unroll
from rfmdp.objective import BudgetUntil, Spec, Until
from rfmdp.outer.problem import row_rewards, where
from rfmdp.outer.solution import Policy, Solution
from rfmdp.policies.natures import NatureChoice, resolved
from rfmdp.types import Int32Array, IntArray


def induced_model(solution: Solution, nature: NatureChoice | None = None) -> FactoredMDP:
    """Return the model in which the policy of a solution is fixed: one row per state.

    Parameters
    ----------
    nature
        Which member of every set nature takes; None leaves it the sets. The worst and the best
        ones are those for the policy and the specification of the solution.

    Examples
    --------
    >>> import rfmdp as rf
    >>> step = rf.Interval([0.2, 0.4], [0.6, 0.8])
    >>> model = rf.FactoredMDP.from_rows(
    ...     [[([0], [1, 2]), ([], [0])], [([], [1])], [([], [2])]], [step],
    ...     labels={"goal": [False, True, False]})
    >>> solution = rf.solve(model, 'Pmaxmin=? [ F "goal" ]')
    >>> left, chain = induced_model(solution), induced_model(solution, NatureChoice.WORST)
    >>> left.rows, left.uncertain, chain.uncertain
    (3, True, False)
    """
    if not isinstance(solution, Solution):
        raise UnsupportedError(
            f"induced_model: must be given a solution, got a {type(solution).__name__}."
        )
    model, policy, spec = solution.explicit_model, solution.policy, solution.spec
    memory: tuple[str, IntArray, IntArray] | None = None  # a name, its values, the states
    if isinstance(spec.objective, BudgetUntil):
        model, policy, spec, memory = _unfolded(model, policy, spec)
    elif not policy.stationary:
        earliest, latest = spec.objective.span
        unrolled = unroll(model, policy.rows, latest, earliest)
        memory = "step", unrolled.steps, unrolled.states
        if nature is None:
            return _remembering(unrolled.model, model, *memory)
    if nature is None:
        fixed = restrict(model, policy.rows[0])
    else:
        fixed = resolved(model, policy, spec, nature)[0].model
    base = solution.explicit_model
    return fixed if memory is None else _remembering(fixed, base, *memory)


def _unfolded(
    model: FactoredMDP, policy: Policy, spec: Spec
) -> tuple[FactoredMDP, Policy, Spec, tuple[str, IntArray, IntArray]]:
    """Return the model unfolded over a budget, with labels and rewards, and policy and question."""
    goal = spec.objective
    assert isinstance(goal, BudgetUntil)
    layers, size = goal.layers, model.states
    unfolded = unfold(model, row_rewards(model, goal.reward), goal.budget)
    states = np.append(np.tile(np.arange(size), layers), 0)  # the last one has lost
    paid = np.append(np.repeat(np.arange(layers), size), layers)
    lost = paid == layers
    every = np.tile(np.arange(model.rows), layers)
    unfolded = replace(
        unfolded,
        labels={name: label[states] & ~lost for name, label in model.labels.items()},
        rewards={
            name: Rewards(np.where(lost, 0.0, each.state[states]), np.append(each.row[every], 0.0))
            for name, each in model.rewards.items()
        },
    )
    stay, target = (where(model, s)[states] & ~lost for s in (goal.stay, goal.target))
    rules = policy.rows + model.rows * np.arange(layers)[:, None]
    flat = Policy(np.append(rules.ravel(), layers * model.rows)[None, :])
    return unfolded, flat, replace(spec, objective=Until(stay, target)), ("paid", paid, states)


def _remembering(
    model: FactoredMDP, base: FactoredMDP, name: str, memory: IntArray, states: IntArray
) -> FactoredMDP:
    """Return a model with the variables of its base's states, and one for what is remembered."""
    variables, values = base.variables, base.valuations
    if not variables:
        variables = (Variable("state", 0, max(base.states - 1, 1)),)
        values = np.arange(base.states, dtype=np.int32)[:, None]
    while name in {variable.name for variable in variables}:
        name += "_"
    more: Int32Array = np.column_stack([values[states], memory]).astype(np.int32)
    last = Variable(name, 0, max(int(memory.max()), 1))
    return replace(model, variables=(*variables, last), valuations=more)
