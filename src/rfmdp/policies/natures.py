"""The chain of a policy in which nature's choice is fixed: to run, or to look at."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.restrict import restrict
from rfmdp.objective import Spec
from rfmdp.outer.solution import Policy
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.minimiser import minimise
from rfmdp.solving import evaluate
from rfmdp.types import BoolArray, FloatArray


class NatureChoice(Enum):
    """Which member of every set nature takes."""

    NOMINAL = "nominal"
    WORST = "worst"  # against the agent, for the policy and the specification
    BEST = "best"
    RANDOM = "random"  # somewhere in every set, the same in all rows that share it


def resolved(
    model: FactoredMDP, policy: Policy, spec: Spec, nature: NatureChoice, seed: int = 0
) -> FactoredMDP:
    """Return the chain of a stationary policy with nature's choice fixed: one row per state.

    Parameters
    ----------
    seed
        Of the random members.

    Raises
    ------
    UnsupportedError
        If the policy changes with time: nature's worst case then does so, too.
    """
    if not policy.stationary:
        raise UnsupportedError(
            "Nature is fixed for policies that do not change with time; this one has "
            f"{len(policy.rows)} rules. Leave nature nominal, or take a policy without a horizon."
        )
    if nature in (NatureChoice.WORST, NatureChoice.BEST):
        pull = spec.agent.opposite if nature is NatureChoice.WORST else spec.agent
        return evaluate(model, policy, spec, nature=pull).nature().chain()
    fixed = restrict(model, policy.rows[0])
    if nature is NatureChoice.NOMINAL:
        return fixed.nominal()
    return fixed.with_marginals(_random_members(fixed.marginals, seed))


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
    state = int(chain.initial[0])
    for step in range(length):
        if stop is not None and stop[state]:
            yield f"{step:4}  {chain.state_name(state)}  end"
            return
        row = int(chain.row_ptr[state])
        place, words, chance = 0, [], 1.0
        for j in chain.row_marginals[chain.marginal_ptr[row] : chain.marginal_ptr[row + 1]]:
            p = _point(chain, int(j))
            outcome = int(random.choice(len(p), p=p))
            place, chance = place * len(p) + outcome, chance * float(p[outcome])
            words.append(_effect(chain, int(j), outcome))
        happened = "; ".join(words) or "for certain"
        yield (
            f"{step:4}  {chain.state_name(state)}  {chain.choice_name(row)}: {happened} "
            f"({chance:.4g})"
        )
        state = int(chain.successors[chain.successor_ptr[row] + place])
    yield f"{length:4}  {chain.state_name(state)}"


def _point(chain: FactoredMDP, j: int) -> FloatArray:
    """Return the one distribution of a marginal, with a sum that NumPy accepts."""
    ptr = chain.marginals.outcome_ptr
    p = chain.marginals.nominal[ptr[j] : ptr[j + 1]]
    summed: FloatArray = p / p.sum()
    return summed


def _effect(chain: FactoredMDP, j: int, outcome: int) -> str:
    if not chain.outcome_names:
        return f"outcome {outcome + 1}"
    return chain.outcome_names[int(chain.marginals.outcome_ptr[j]) + outcome]
