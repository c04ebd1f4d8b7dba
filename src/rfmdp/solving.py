"""Solve and evaluate: all the orchestration there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.blocked import BlockedMDP
from rfmdp.model.derived import restrict
from rfmdp.model.lattice import AnyModel, LatticeMDP
from rfmdp.model.validate import require_valid
from rfmdp.objective import BudgetUntil, Direction, Parity, Spec, Temporal, TemporalReward
from rfmdp.outer.average import solve_average
from rfmdp.outer.blocks.solve import solve_blocked
from rfmdp.outer.horizon import solve_discounted, solve_prefix, solve_steps
from rfmdp.outer.problem import Form, Problem, pose, solve_budget, where
from rfmdp.outer.solution import Policy, Solution
from rfmdp.outer.task import (
    LimitReached,
    Limits,
    StateBounds,
    Task,
    nothing_proven,
    prepare,
    to_solution,
)
from rfmdp.outer.unbounded import solve_mixed, solve_unbounded
from rfmdp.state_sets import StateSet
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.temporal.parity import solve_parity
from rfmdp.temporal.product import Product, solve_temporal, with_automaton, with_memory
from rfmdp.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from rfmdp.answers.property import Property


FARTHEST = 1e100  # a warm start beyond is none: next to it rewards would not count


def solve(
    model: AnyModel,
    spec: Spec | Property | str,
    *,
    inner: Inner | None = None,
    limits: Limits | None = None,
    states: StateSet = "init",
    warm: Solution | FloatArray | None = None,
    automaton: HoaAutomaton | None = None,
) -> Solution:
    """Return certified bounds of the optimal value of a specification, with a policy.

    Parameters
    ----------
    model, spec
        What to solve; a property, parsed or as text, stands for its specification. A model that
        is not written out (`load_lattice`) needs a bound of steps, a discount, or a target.
    inner
        How nature's choice in a row is solved; `Exact()` by default.
    limits
        Precision, limits and progress; `Limits()` by default.
    states
        Where the wanted precision has to be reached: the initial states by default.
    warm
        An earlier solution of a similar problem to start from. Bounds are proven anew.
    automaton
        What a path formula means, in place of what it says (`read_automaton`).

    Returns
    -------
    Solution
        `lower` and `upper` per state are proven bounds of the exact robust value.

    Raises
    ------
    UnsupportedError
        Before any work, if the inner solver does not fit the model.

    Examples
    --------
    >>> import rfmdp as rf
    >>> move = rf.Interval([0.2, 0.4], [0.6, 0.8])
    >>> model = rf.FactoredMDP.from_rows(
    ...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [move],
    ...     labels={"goal": [False, True, False]})
    >>> bounds = rf.solve(model, rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN)).at_initial()
    >>> bounds.lower <= 0.2 <= bounds.upper, bounds.width < 1e-6
    (True, True)
    """
    method, limits = inner or Exact(), limits or Limits()
    if not isinstance(model, LatticeMDP | BlockedMDP):
        require_valid(model)
    specification = as_spec(spec, model)
    if isinstance(model, LatticeMDP):
        if not isinstance(method, Exact):
            raise UnsupportedError(
                "A model that is not written out is solved by the exact method, not by "
                f"{method.name}; leave the method out, or load the model with load_prism."
            )
        # the contraction is compiled only where it is used
        from rfmdp.outer.lattice.solve import solve_lattice

        return solve_lattice(model, specification, limits, where(model, states))
    if isinstance(model, BlockedMDP):
        interest = where(model.frame, states)
        return solve_blocked(model, specification, method, limits, interest)
    interest, specification = where(model, states), with_automaton(specification, automaton)
    again = partial(solve, inner=inner, limits=limits)
    match specification.objective:  # models made of this one, solved in turn
        case BudgetUntil():
            return solve_budget(model, specification, interest, again)
        case Temporal() | TemporalReward():
            return solve_temporal(
                model, specification, interest,
                lambda product, request, interest: again(
                    product.model, request, states=interest, warm=warm
                ),
            )  # fmt: skip
        case Parity():
            return solve_parity(
                model, specification, interest, method.name, limits, partial(solve, inner=inner)
            )
    task = prepare(pose(model, specification), method, limits, interest)
    guess = _guess(task.problem, warm)
    with task.stats.phase("solve"):
        result = _run(task, guess)
    return to_solution(task, specification, method.name, result)


def as_spec(request: Spec | Property | str, model: AnyModel, *, settled: bool = False) -> Spec:
    """Return the specification that a property, or its text, stands for with a model.

    If it is `settled` because nobody's direction matters, `P=?` will do on a model with choices.
    """
    if isinstance(request, Spec):
        return request
    if isinstance(request, str):
        from rfmdp.answers.property import parse_property  # the layer above, for this line only

        request = parse_property(request)
    if not hasattr(request, "spec"):
        raise UnsupportedError(
            "A specification must be a Spec, a parsed property or its text, got a "
            f"{type(request).__name__}."
        )
    return request.spec(model, settled=settled)


def _guess(problem: Problem, warm: Solution | FloatArray | None) -> FloatArray | None:
    """Return the values (S,) of a problem to start from; they must be those of as many states.

    A number that is no possible value, or too far out to compute with, becomes 0: a first guess
    may be wrong, but not infinite.
    """
    if warm is None:
        return None
    model = problem.model
    value = np.asarray(warm.value if isinstance(warm, Solution) else warm)
    if value.shape != (model.states,) or value.dtype.kind not in "fiu" or np.isnan(value).any():
        raise ModelError(
            f"warm: must have one number per state of this model ({model.states}), got "
            f"{value.dtype} of shape {value.shape}; start without it, or solve the same states."
        )
    guess = value.astype(np.float64)
    if problem.probability:
        return np.clip(1.0 - guess if problem.flipped else guess, 0.0, 1.0)
    least = 0.0 if problem.form in (Form.TO_TARGET, Form.TOTAL) else -FARTHEST
    guess[~((guess >= least) & (guess <= FARTHEST))] = 0.0
    return guess


SOLVERS: Mapping[Form, Callable[[Task, FloatArray | None], StateBounds]] = {
    Form.REACH: solve_unbounded,
    Form.TO_TARGET: solve_unbounded,
    Form.TOTAL: solve_unbounded,
    Form.MIXED: solve_mixed,
    Form.DISCOUNTED: solve_discounted,
    Form.AVERAGE: solve_average,
}
"""The solver of every form but a finite horizon; from a first guess (S,) of the values."""


def _run(task: Task, warm: FloatArray | None) -> StateBounds:
    """Find bounds by the solver of the problem's form."""
    problem = task.problem
    if problem.form is Form.STEPS:
        return solve_steps(task)
    try:
        task.clock.check_overdue()
        result = SOLVERS[problem.form](task, warm)
    except LimitReached as reached:  # before there was anything to prove
        result = nothing_proven(problem, reached.status)
    return solve_prefix(task, result) if problem.steps else result


def evaluate(
    model: FactoredMDP,
    policy: Policy | Solution,
    spec: Spec | Property | str,
    *,
    nature: Direction | None = None,
    inner: Inner | None = None,
    limits: Limits | None = None,
    states: StateSet = "init",
) -> Solution:
    """Return certified bounds of the value of a given policy.

    Parameters
    ----------
    policy
        Stationary, or with one rule per step of the objective (and one more for what follows
        the first steps of an unbounded until, as `solve` returns it). A solution stands for its
        policy.
    nature
        `MIN` or `MAX` picks the worst or best nature; by default the specification's. For the
        nominal value hand in `model.nominal()`. One of both must say it if there are sets.

    Returns
    -------
    Solution
        For a stationary policy that of the model with its rows only (`solution.model`); of others
        the `subject` says that the bounds are of the policy.

    Raises
    ------
    ModelError
        If a time-dependent policy meets an objective without a matching number of steps.
    """
    require_valid(model)
    remembers = isinstance(policy, Solution) and policy.product is not None
    policy = policy.policy if isinstance(policy, Solution) else policy
    if not isinstance(policy, Policy):
        raise UnsupportedError(
            f"evaluate: must be a policy, or a solution that has one, got a "
            f"{type(policy).__name__}; `solve(...).policy` and `read_policy` return one."
        )
    specification = as_spec(spec, model, settled=nature is not None or not model.uncertain)
    request = replace(specification, nature=nature or specification.nature)
    if isinstance(request.objective, Temporal | TemporalReward):

        def of_policy(product: Product, question: Spec, interest: BoolArray) -> Solution:
            """Return the value as a claim about the whole product, which keeps all its rows."""
            whole, own = product.model, policy if remembers else with_memory(policy, product)
            found = evaluate(whole, own, question, inner=inner, limits=limits, states=interest)
            return replace(found, model=whole, policy=own, subject="policy")

        return solve_temporal(model, request, where(model, states), of_policy)
    if policy.stationary:
        fixed = restrict(model, policy.rows[0])
        return solve(fixed, request, inner=inner, limits=limits, states=states)
    if isinstance(request.objective, BudgetUntil) and len(policy.rows) == request.objective.layers:
        again = partial(solve, inner=inner, limits=limits)
        return solve_budget(model, request, where(model, states), again, policy)
    problem = pose(model, request)
    rules = len(problem.steps) + (problem.form is not Form.STEPS)
    if not problem.steps or rules != len(policy.rows):
        raise ModelError(
            f"The policy must have one rule per step of the objective: "
            f"{type(request.objective).__name__} needs {rules}, the policy has {len(policy.rows)}; "
            "take the policy of a property with the same number of steps."
        )
    method, limits = inner or Exact(), limits or Limits()
    task = prepare(problem, method, limits, where(model, states))
    if problem.form is Form.STEPS:
        result = solve_steps(task, policy.rows)
    else:  # the last rule is that of the unbounded until that follows the steps
        fixed = restrict(model, policy.rows[-1])
        none, everywhere = np.zeros(fixed.rows), np.ones(fixed.states, dtype=np.bool_)
        unbounded = replace(problem, model=fixed, reward=none, steps=(), flipped=False)
        subtask = prepare(unbounded, method, limits, everywhere, task.stats)
        tail = solve_unbounded(replace(subtask, clock=task.clock))
        tail.choice = policy.rows[-1]
        result = solve_prefix(task, tail, policy.rows[:-1])
    return replace(to_solution(task, request, method.name, result), subject="policy")
