"""One bound of one policy: guarantees of learned models with cycles.

To solve such a model is to prove both bounds for all policies, which takes minutes with almost no
data. A guarantee needs less: one bound for one policy, which has one row per state. The policy
comes from a rough plan. It is proven, improved where its own value shows a better row, and proven
again.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from rfmdp.inner.combined import OneSided
from rfmdp.inner.protocol import Inner
from rfmdp.kernels.sweep import choose
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.restrict import restrict
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.operator import Operator
from rfmdp.outer.problem import Form, Problem, pose, where
from rfmdp.outer.proofs.by_discounting import Discounting, fits
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.task import prepare
from rfmdp.solving import solve
from rfmdp.types import FloatArray, IntArray

ROUNDS = 8  # of improving the policy
GAIN = 1e-3  # of the value: a smaller gain ends them
SLACK = 1e-9  # of the largest value: rows must be better by more
BARRIER = 1e6  # infinite states count this many times the largest finite value
LARGE = 3000  # states: above, probabilities to reach are proven by discounting, to GAIN of them
LEAST = 0.01  # seconds that a solver is given at least


def prove(
    model: FactoredMDP,
    spec: Spec,
    inner: Inner,
    rows: IntArray,
    limits: Limits,
    warm: FloatArray | None = None,
) -> Solution:
    """Return a solution with the guarantee of one policy, rows (S,); the other bound is not proven.

    The solution is about the whole model: its optimum is at least as good as the policy.
    """
    fixed = restrict(model, rows)
    problem = pose(fixed, spec)
    if fixed.states > LARGE and fits(problem):
        found = _discounted(problem, spec, inner, limits, warm)
    else:
        found = solve(fixed, spec, inner=OneSided(inner), limits=limits, warm=warm)
    if found.status is Status.INTERRUPTED:  # the solver caught Ctrl-C; the run must end, too
        raise KeyboardInterrupt
    return replace(found, model=model, policy=Policy(rows[None, :].copy()))


def _discounted(
    problem: Problem, spec: Spec, inner: Inner, limits: Limits, warm: FloatArray | None
) -> Solution:
    """Return a lower bound of the probability to reach with the only policy of a model."""
    task = prepare(problem, OneSided(inner), limits, where(problem.model, "init"))
    search = Discounting(task, warm)
    with task.stats.phase("solve"):
        status = search.run(max(GAIN, limits.precision))
    rule = np.arange(problem.model.states)[None, :]
    return Solution(
        problem.model, spec, inner.name, status, search.lower, None,
        np.maximum(search.value, search.lower), Policy(rule),
        limits.precision, task.stats, measure=limits.measure.name,
    )  # fmt: skip


def prove_better(best: Solution, inner: Inner, limits: Limits) -> Solution:
    """Return a proof for a policy that starts as the one of a proof and becomes better."""
    model, spec = best.model, best.spec
    end = time.monotonic() + limits.seconds
    problem = pose(model, spec)
    operator = Operator(problem, OneSided(inner).prepare(model, problem.nature), Stats())
    for _ in range(ROUNDS):
        better = improved(operator, best)
        left = end - time.monotonic()
        if left < LEAST or np.array_equal(better, best.policy.rows[0]):
            break
        guess = best.value if np.isfinite(best.value).all() else None
        found = prove(model, spec, inner, better, replace(limits, seconds=left), guess)
        gain = spec.agent.sign * (initial_guarantee(found) - initial_guarantee(best))
        if not gain > 0.0:
            break
        best = found
        if gain <= GAIN * abs(initial_guarantee(best)):
            break
    return best


def improved(operator: Operator, solution: Solution) -> IntArray:
    """Return the policy (S,) of a solution, with better rows where its guarantee shows some."""
    problem, flipped = operator.problem, operator.problem.flipped
    value = solution.guarantee.copy()
    finite = np.isfinite(value)
    largest = float(np.max(np.abs(value[finite]), initial=1.0))
    value[~finite] = BARRIER * largest
    value = 1.0 - value if flipped else value
    rows = np.arange(problem.model.rows)
    states = np.flatnonzero(~problem.terminal)
    operator.backup(value, rows)
    q = operator.below if problem.agent is MAX else operator.above
    rule: IntArray = solution.policy.rows[0].copy()
    choose(q, problem.model.row_ptr, states, operator.sign, SLACK * largest, rule, value)
    return rule


def nature_can_block(model: FactoredMDP, spec: Spec) -> bool:
    """Return whether nature can keep every policy from a target that it has to reach."""
    problem = pose(model, spec)
    if problem.form is not Form.TO_TARGET or problem.agent is MAX:
        return False
    sure = Graph(model).almost_sure(problem.target, agent=MAX, nature=MIN)
    return not bool(sure[model.initial].all())


def initial_guarantee(solution: Solution) -> float:
    """Return the guarantee in the initial state, of several ones the worst.

    It is infinite if nobody proved it.
    """
    return _initial_bound(solution, lower=solution.spec.agent is MAX)


def initial_optimistic(solution: Solution) -> float:
    """Return the bound of the optimum on the other side, likewise."""
    return _initial_bound(solution, lower=solution.spec.agent is not MAX)


def _initial_bound(solution: Solution, *, lower: bool) -> float:
    bound = solution.lower if lower else solution.upper
    if bound is None:
        return -np.inf if lower else np.inf
    return worst(solution.spec, bound[solution.model.initial])


def worst(spec: Spec, values: FloatArray) -> float:
    """Return the value, of those of all initial states, that is the worst for the agent."""
    return float(np.min(values) if spec.agent is MAX else np.max(values))
