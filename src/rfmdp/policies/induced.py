"""The model that a policy leaves, with nature's sets: one row per state.

It is complete, to be run, or written as a file and asked again anywhere. What a policy remembers
becomes part of the state: a variable `step` or `paid` tells how many steps are gone, or what was
paid of a budget.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import remembering, restrict, unroll
from rfmdp.objective import BudgetUntil
from rfmdp.outer.budget import unfolded
from rfmdp.outer.solution import Solution


def induced_model(solution: Solution) -> FactoredMDP:
    """Return the model in which the policy of a solution is fixed: one row per state.

    Nature keeps its sets; `solution.nature().chain()` has those members that it takes.

    Examples
    --------
    >>> import rfmdp as rf
    >>> step = rf.Interval([0.2, 0.4], [0.6, 0.8])
    >>> model = rf.FactoredMDP.from_rows(
    ...     [[([0], [1, 2]), ([], [0])], [([], [1])], [([], [2])]], [step],
    ...     labels={"goal": [False, True, False]})
    >>> solution = rf.solve(model, 'Pmaxmin=? [ F "goal" ]')
    >>> left, chain = induced_model(solution), solution.nature().chain()
    >>> left.rows, left.uncertain, chain.uncertain
    (3, True, False)
    """
    if not isinstance(solution, Solution):
        raise UnsupportedError(
            f"induced_model: must be given a solution, got a {type(solution).__name__}."
        )
    model, policy, spec = solution.explicit_model, solution.policy, solution.spec
    if isinstance(spec.objective, BudgetUntil):
        model, policy, _ = unfolded(model, policy, spec)
    if policy.stationary:
        return restrict(model, policy.rows[0])
    earliest, latest = spec.objective.span
    unrolled = unroll(model, policy.rows, latest, earliest)
    return remembering(unrolled.model, model, "step", unrolled.steps, unrolled.states)


def without_budget(solution: Solution) -> Solution:
    """Return a solution whose model has what was paid of a budget in its states, if there is one.

    State s with an amount k paid has the number k S + s. The last state is reached by paying more.
    """
    if not isinstance(solution.spec.objective, BudgetUntil):
        return solution
    base = solution.explicit_model
    model, policy, spec = unfolded(base, solution.policy, solution.spec)
    sides = solution.witness or (None, None)
    lower, upper = (None if side is None else np.append(side, 0.0) for side in sides)
    value = lower if upper is None else upper if lower is None else 0.5 * (lower + upper)
    later = np.zeros(model.states - base.states, dtype=np.bool_)
    return replace(
        solution, model=model, policy=policy, spec=spec, lower=lower, upper=upper,
        value=np.zeros(model.states) if value is None else value, witness=None,
        interest=None if solution.interest is None else np.append(solution.interest, later),
    )  # fmt: skip
