"""States whose probability within finitely many steps is exactly 0 or 1, found by the graph.

Steps that carry one rounding error for all states (`outer.horizon`) never show that a probability
is exactly 1. That all successors have the value 1 does, without any arithmetic. It shows it of the
optimum only, so it is no bound of a `Solution`: the policy there may have taken another row, whose
value is so close to 1 that floats tell no difference.
"""

from __future__ import annotations

import numpy as np

from rfmdp.answers.quantity import Quantity
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import BackwardStep, Form, pose
from rfmdp.outer.solution import Solution
from rfmdp.types import BoolArray


def with_certainties(found: Quantity, solution: Solution, interest: BoolArray) -> Quantity:
    """Return a solved quantity with bounds 0 or 1 where a probability is known to be that.

    The graph is asked only if the bounds leave that open in some state of interest.
    """
    open_ = interest & (found.lower < found.upper)
    open_ &= np.isfinite(found.lower) & np.isfinite(found.upper)
    if not np.any(open_ & ((found.lower <= 0.0) | (found.upper >= 1.0))):
        return found
    certain = certain_states(solution.model, solution.spec)
    if certain is None:
        return found
    zero, one = certain
    ends = (found.lower, found.value, found.upper)
    return Quantity(found.type, *(np.where(zero, 0.0, np.where(one, 1.0, x)) for x in ends))


def certain_states(model: FactoredMDP, spec: Spec) -> tuple[BoolArray, BoolArray] | None:
    """Return states (S,) that certainly have value 0, and those with value 1.

    Some may be missing. None: the objective is unbounded, or its values are no probabilities.

    Examples
    --------
    >>> from rfmdp.objective import MIN, Next
    >>> model = FactoredMDP.from_rows([[([], [1])], [([], [1])]], [], labels={"b": [False, True]})
    >>> zero, one = certain_states(model, Spec(Next("b"), MIN, MIN))
    >>> one.tolist()
    [True, True]
    """
    problem = pose(model, spec)
    if problem.form is not Form.STEPS or not problem.probability:
        return None
    sets = []
    for value in (0.0, 1.0):
        # the agent reaches this value if one row has it, or only if all rows have it
        one_is_enough = (problem.agent is MAX) == (value == 1.0)
        join = np.logical_or if one_is_enough else np.logical_and
        holds: BoolArray = problem.start == value
        last: tuple[BackwardStep, BoolArray] | None = None
        for step in problem.steps:
            if last is not None and last[0] is step and np.array_equal(last[1], holds):
                continue  # the same step again changes nothing
            last = step, holds
            rows = np.logical_and.reduceat(holds[model.successors], model.successor_ptr[:-1])
            holds = join.reduceat(rows, model.row_ptr[:-1])
            holds = np.where(step.fixed, step.given == value, holds)
        sets.append(holds)
    zero, one = reversed(sets) if problem.flipped else sets
    return zero, one
