"""The model that a policy leaves: with nature's sets, or as a chain with nature's choice fixed.

What a policy remembers becomes part of the state: a variable `step` or `paid` tells how many steps
are gone, or what was paid of a budget.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import Unrolled, remembering, restrict, taking, unroll
from rfmdp.objective import BudgetUntil, Globally, Parity, Spec, Until
from rfmdp.outer.backups import Faces
from rfmdp.outer.nature import Nature
from rfmdp.outer.problem import pose, unfolded, where
from rfmdp.outer.solution import Policy, Solution
from rfmdp.ragged import starts
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import evaluate, solve


class NatureChoice(Enum):
    """Which member of every set nature takes."""

    NOMINAL = "nominal"
    WORST = "worst"  # against the agent, for the policy and the specification
    BEST = "best"


def resolved(
    model: FactoredMDP, policy: Policy, spec: Spec, nature: NatureChoice | None
) -> tuple[Unrolled, Spec]:
    """Return the model of a policy with nature's choice fixed, and the specification for it.

    It has one row per state, and no uncertainty unless nature keeps its sets (None).

    Where the policy or the specification counts steps, nature's choice depends on them as well:
    the model then has a state per number of steps gone and state.
    """
    earliest, steps = spec.objective.span
    if policy.stationary and (nature is None or (steps is None and earliest == 0)):
        rule = policy.rows[0]
        unrolled = Unrolled(
            restrict(model, rule), np.arange(model.states), rule,
            np.zeros(model.states, dtype=np.int64), np.array([0, model.states]),
        )  # fmt: skip
    else:
        unrolled = unroll(model, policy.rows, steps, earliest)
    chain = unrolled.model
    goal = unrolled_spec(model, spec, unrolled)
    if nature is NatureChoice.NOMINAL:
        chain = chain.nominal()
    elif nature is not None:
        pull = spec.agent.opposite if nature is NatureChoice.WORST else spec.agent
        if steps is not None:
            chain = _answers_by_step(model, replace(spec, nature=pull), unrolled).chain()
        elif isinstance(goal.objective, Parity):
            chain = _best_vertices(chain, Spec(goal.objective, pull, pull))
        else:
            rows = Policy(np.arange(chain.rows)[None])
            chain = evaluate(chain, rows, goal, nature=pull).nature().chain()
    return replace(unrolled, model=chain), goal


def unrolled_spec(model: FactoredMDP, spec: Spec, unrolled: Unrolled) -> Spec:
    """Return the specification for a model unrolled in time, with 0 as the earliest step.

    States there know how many steps are gone. So `stay U[a,b] target` becomes an until whose target
    begins in layer a, and `G[a,b] stay` may be anywhere before that layer.
    """
    here = spec.objective
    sets: dict[str, Any] = {n: where(model, s)[unrolled.states] for n, s in here.sets.items()}
    match here:
        case Until(earliest=earliest):
            sets |= {"target": sets["target"] & (unrolled.steps >= earliest), "earliest": 0}
        case Globally(earliest=earliest):
            sets |= {"stay": sets["stay"] | (unrolled.steps < earliest), "earliest": 0}
    return replace(spec, objective=replace(here, **sets))


def _best_vertices(chain: FactoredMDP, goal: Spec) -> FactoredMDP:
    """Return a chain with the vertices that are best for nature, who takes them like an agent.

    With one player left, some vertex per state is optimal for a parity objective.
    """
    faces = Faces(chain, np.arange(chain.rows))
    if len(faces) < chain.rows:
        missing = int(np.setdiff1d(np.arange(chain.rows), faces.rows)[0])
        raise UnsupportedError(
            f"Nature's choice for {goal.objective} must be among the vertices of its sets; in "
            f"{chain.state_name(missing)} they are too many, or its set has none (Lp balls). "
            "Leave nature its sets."
        )
    rows, count = faces.rows[faces.owner], len(faces.owner)
    vertices = taking(
        chain, slice(None), rows, np.diff(faces.vertex_ptr), faces.successor,
        marginal_ptr=np.arange(count + 1),
        row_marginals=np.arange(count, dtype=np.int32),
        factors=(),
        row_factors=chain.row_factors[:0],
        marginals=Marginals.from_points(faces.entry_ptr, faces.probability),
        marginal_names=(),
        outcome_names=(),
    )  # fmt: skip
    return restrict(vertices, solve(vertices, goal).policy.rows[0])


def _answers_by_step(model: FactoredMDP, spec: Spec, unrolled: Unrolled) -> Nature:
    """Return nature's answers in every layer of a finite horizon, by steps back from its end."""
    problem = pose(model, spec)
    inner = Exact().prepare(model, problem.nature)
    value = problem.start
    below, above = np.empty((2, model.rows))
    answers = []
    for layer in reversed(range(len(unrolled.layers) - 1)):
        inside = slice(unrolled.layers[layer], unrolled.layers[layer + 1])
        states, rows = unrolled.states[inside], unrolled.rows[inside]
        answers.append(inner.marginals(value, rows))
        if layer == len(problem.steps):
            continue  # the end: nothing is done there any more
        inner.backup(value, rows, below, above)
        middle = 0.5 * (below[rows] + above[rows])
        step = problem.steps[len(problem.steps) - 1 - layer]
        value = np.zeros(model.states)
        value[states] = problem.reward[rows] + problem.discount * middle
        value = np.where(step.fixed, step.given, value)
    chain = unrolled.model
    sizes = chain.marginals.sizes[chain.row_marginals]
    begin = starts(sizes)[chain.marginal_ptr]
    return Nature(chain, np.arange(chain.rows), begin, np.concatenate(answers[::-1]))


def induced_model(solution: Solution, nature: NatureChoice | None = None) -> FactoredMDP:
    """Return the model in which the policy of a solution is fixed: one row per state.

    Parameters
    ----------
    nature : Which member of every set nature takes; None leaves it the sets. The worst and the
        best ones are those for the policy and the specification of the solution.

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
    if isinstance(spec.objective, BudgetUntil):
        model, policy, spec = unfolded(model, policy, spec)
    unrolled, _ = resolved(model, policy, spec, nature)
    if policy.stationary:
        return unrolled.model
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
