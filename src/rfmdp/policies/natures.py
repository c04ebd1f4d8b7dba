"""The chain of a policy in which nature's choice is fixed: to run, or to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

import numpy as np

from rfmdp.inner.exact import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.restrict import restrict
from rfmdp.model.unroll import Unrolled, unroll
from rfmdp.objective import Spec
from rfmdp.outer.nature import Nature
from rfmdp.outer.problem import pose
from rfmdp.outer.solution import Policy
from rfmdp.ragged import segment, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.questions import minimise
from rfmdp.solving import evaluate
from rfmdp.sources.measure import unrolled_spec
from rfmdp.types import BoolArray


class NatureChoice(Enum):
    """Which member of every set nature takes."""

    NOMINAL = "nominal"
    WORST = "worst"  # against the agent, for the policy and the specification
    BEST = "best"
    RANDOM = "random"  # somewhere in every set, the same in all rows that share it


def resolved(
    model: FactoredMDP, policy: Policy, spec: Spec, nature: NatureChoice, seed: int = 0
) -> tuple[Unrolled, Spec]:
    """Return the chain of a policy with nature's choice fixed, and the specification for it.

    The chain has one row per state and no uncertainty.

    Where the policy or the specification counts steps, nature's choice depends on them as well:
    the chain then has a state per number of steps gone and state.

    Parameters
    ----------
    policy
        The last rule repeats if there are fewer rules than steps.
    seed
        Of the random members.

    Raises
    ------
    ResourceError
        If the states of all steps do not fit into memory.
    """
    earliest, steps = spec.objective.span
    if steps is None and earliest == 0 and policy.stationary:
        rule = policy.rows[0]
        found = Unrolled(
            restrict(model, rule), np.arange(model.states), rule,
            np.zeros(model.states, dtype=np.int64), np.array([0, model.states]),
        )  # fmt: skip
    else:
        found = unroll(model, policy.rows, steps, earliest)
    chain = found.model
    asked = unrolled_spec(model, spec, found)
    if nature is NatureChoice.NOMINAL:
        chain = chain.nominal()
    elif nature is NatureChoice.RANDOM:
        chain = chain.with_marginals(_random_members(model.marginals, seed))
    else:
        pull = spec.agent.opposite if nature is NatureChoice.WORST else spec.agent
        if steps is not None:
            chain = _answers_by_step(model, replace(spec, nature=pull), found).chain()
        else:
            rows = Policy(np.arange(chain.rows)[None])
            chain = evaluate(chain, rows, asked, nature=pull).nature().chain()
    return replace(found, model=chain), asked


def _answers_by_step(model: FactoredMDP, spec: Spec, found: Unrolled) -> Nature:
    """Return nature's answers in every layer of a finite horizon, by steps back from its end."""
    problem = pose(model, spec)
    inner = Exact().prepare(model, problem.nature)
    value = problem.start
    below, above = np.empty((2, model.rows))
    answers = []
    for layer in reversed(range(len(found.layers) - 1)):
        part = slice(found.layers[layer], found.layers[layer + 1])
        states, rows = found.states[part], found.rows[part]
        answers.append(inner.marginals(value, rows))
        if layer == len(problem.steps):
            continue  # the end: nothing is done there any more
        inner.backup(value, rows, below, above)
        middle = 0.5 * (below[rows] + above[rows])
        step = problem.steps[len(problem.steps) - 1 - layer]
        value = np.zeros(model.states)
        value[states] = problem.reward[rows] + problem.discount * middle
        value = np.where(step.fixed, step.given, value)
    chain = found.model
    sizes = chain.marginals.sizes[chain.row_marginals]
    begin = starts(sizes)[chain.marginal_ptr]
    return Nature(chain, np.arange(chain.rows), begin, np.concatenate(answers[::-1]))


def _random_members(marginals: Marginals, seed: int) -> Marginals:
    """Return a random member of every set: a random mixture of minimisers of random directions."""
    random = np.random.default_rng(seed)
    points = []
    for uset in marginals:
        corners = [minimise(uset, random.standard_normal(uset.size))[1] for _ in range(4)]
        point = random.dirichlet(np.ones(len(corners))) @ np.array(corners)
        points.append(point / point.sum())
    joined = np.concatenate(points) if points else np.empty(0)
    return Marginals.from_points(marginals.outcome_ptr, joined)


def trace(chain: FactoredMDP, length: int, stop: BoolArray | None, seed: int) -> Iterator[str]:
    """Yield one trajectory of a chain for people: state, action, and what happened.

    Parameters
    ----------
    chain
        One row per state and no uncertainty, as `resolved` returns it.
    length
        Steps, at most.
    stop : (S,)
        Where it ends early.
    """
    random = np.random.default_rng(seed)
    sets = chain.marginals
    state = int(chain.initial[0])
    for step in range(length):
        if stop is not None and stop[state]:
            yield f"{step:4}  {chain.state_name(state)}  end"
            return
        row = int(chain.row_ptr[state])
        place, words, chance = 0, [], 1.0
        for j in chain.row_marginals[segment(chain.marginal_ptr, row)]:
            p = sets.nominal[segment(sets.outcome_ptr, j)]
            p = p / p.sum()  # a sum that NumPy accepts
            outcome = int(random.choice(len(p), p=p))
            place = place * len(p) + outcome
            chance = chance * float(p[outcome])
            words.append(_effect(chain, int(j), outcome))
        happened = "; ".join(words) or "for certain"
        yield (
            f"{step:4}  {chain.state_name(state)}  {chain.choice_name(row)}: {happened} "
            f"({chance:.4g})"
        )
        state = int(chain.successors[chain.successor_ptr[row] + place])
    yield f"{length:4}  {chain.state_name(state)}"


def _effect(chain: FactoredMDP, j: int, outcome: int) -> str:
    if not chain.outcome_names:
        return f"outcome {outcome + 1}"
    return chain.outcome_names[int(chain.marginals.outcome_ptr[j]) + outcome]
