"""A specification on a model in normal form: what the solvers of the outer loop read.

Seven forms are enough for all objectives: probability of reaching (least fixed point), reward until
a target (of both signs or not), total reward, discounted reward, a mean in the long run, and a
finite number of backward steps. `Globally` is one minus the probability of leaving, with both
directions turned: `flipped` says so. An until with a budget is one of another model, unfolded by
what was paid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import remembering, restrict, unfold
from rfmdp.model.lattice import AnyModel
from rfmdp.objective import MAX, MIN, BudgetUntil, Direction, Objective, Spec, Until
from rfmdp.outer.solution import Policy, Solution
from rfmdp.ragged import segment_lengths
from rfmdp.state_sets import StateSet
from rfmdp.types import BoolArray, FloatArray, IntArray


class Form(Enum):
    """How the value is defined."""

    REACH = "reach"  # least fixed point of probabilities
    TO_TARGET = "reward to target"  # infinite where the target may be missed
    MIXED = "reward of both signs to target"  # likewise
    TOTAL = "total reward"  # least fixed point of rewards
    DISCOUNTED = "discounted reward"
    AVERAGE = "mean in the long run"
    STEPS = "finite horizon"


@dataclass(frozen=True, slots=True, eq=False)
class BackwardStep:
    """One backward step of a finite horizon: the value is `given` where `fixed`, else a backup."""

    fixed: BoolArray  # (S,)
    given: FloatArray  # (S,)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A normal form with all its arrays."""

    model: FactoredMDP
    form: Form
    agent: Direction
    nature: Direction
    target: BoolArray  # (S,) value 1, or where reward stops
    stay: BoolArray  # (S,) outside stay and target the value is 0
    reward: FloatArray  # (R,) paid by taking the row
    start: FloatArray  # (S,) value after the last step, for STEPS
    steps: tuple[BackwardStep, ...] = ()  # last step first; for REACH: the steps before the until
    discount: float = 1.0
    probability: bool = False  # whether values are probabilities
    flipped: bool = False  # the answer is one minus the value
    rounded: bool = False  # whether some rewards are rounded sums of two; `REWARD` pays for that

    @property
    def lingerer(self) -> Direction:
        """Who could seem to gain by staying for ever at no reward, see `certify`."""
        return MIN if self.form in (Form.TO_TARGET, Form.MIXED) else MAX

    @property
    def terminal(self) -> BoolArray:
        """The states (S,) whose value is known without looking at their rows."""
        return self.target | ~self.stay


def pose(model: FactoredMDP, spec: Spec) -> Problem:
    """Bring a specification on a model into normal form."""
    objective = spec.objective
    if not objective.plain:
        raise UnsupportedError(
            f"{spec}: this works for objectives whose policy depends on state and step alone; "
            "`solve`, `evaluate` and `verify` take all."
        )
    first, last = objective.span
    steps = max(first, last or 0)
    require_memory(8.0 * steps * (model.states + 1), f"A policy with a rule per step ({steps})")
    blank = without_aims(model, spec, model.rows)
    if objective.rewarded:
        return _reward(objective, blank)
    if not objective.endless:
        return until(objective, blank)
    inside = where(model, objective.sets["target"])[model.row_states].astype(np.float64)
    return replace(blank, form=Form.AVERAGE, reward=inside, probability=True)


def without_aims(model: Any, spec: Spec, rows: int) -> Problem:
    """Return the problem in which nothing is paid or reached, for some model and rows."""
    none, zero = np.zeros(model.states, dtype=np.bool_), np.zeros(model.states)
    return Problem(model, Form.STEPS, spec.agent, spec.nature, none, ~none, np.zeros(rows), zero)


def where(model: AnyModel, states: StateSet) -> BoolArray:
    """Return a set of states as booleans (S,)."""
    if isinstance(states, str):
        return model.label(states)
    if isinstance(states, np.ndarray):
        if states.shape != (model.states,) or states.dtype != np.bool_:
            raise ModelError(
                f"A set of states must be a boolean array of {model.states} entries, got "
                f"{states.dtype} with shape {states.shape}."
            )
        return states
    return states.holds(model)


def until(objective: Objective, blank: Problem) -> Problem:
    """Return the problem to reach a target through some states within some steps."""
    model, sets = blank.model, {name: where(blank.model, s) for name, s in objective.sets.items()}
    problem = replace(blank, probability=True)
    if objective.complement:  # it stays unless it leaves
        agent, nature = blank.agent.opposite, blank.nature.opposite
        problem = replace(problem, agent=agent, nature=nature, flipped=True)
        sets = {"target": ~sets["stay"]}
    target, stay = sets["target"], sets.get("stay", np.ones(model.states, dtype=np.bool_))
    first, last = objective.span
    before = (BackwardStep(~stay, blank.start),) * first
    if last is None:
        return replace(problem, form=Form.REACH, target=target, stay=stay, steps=before)
    goal = target.astype(np.float64)
    inside = (BackwardStep(target | ~stay, goal),) * (last - first)
    return replace(problem, start=goal, steps=inside + before)


def _reward(objective: Objective, blank: Problem) -> Problem:
    """Return the problem of a mean of rewards."""
    model, name, (_, last) = blank.model, objective.reward_name, objective.span
    step = BackwardStep(blank.target, blank.start)  # nothing is fixed
    if last is not None and not objective.summed:
        state = np.array(model.reward(name).state, dtype=np.float64)
        return replace(blank, start=state, steps=(step,) * last)
    rewards, paid = model.reward(name), row_rewards(model, name)
    state = np.repeat(rewards.state, segment_lengths(model.row_ptr))
    shift = paid - rewards.row  # Knuth's two-sum: what rounding took is not 0
    rounded = bool(np.any((rewards.row - (paid - shift)) + (state - shift)))
    paying = replace(blank, reward=paid, rounded=rounded)
    if objective.endless:
        return replace(paying, form=Form.AVERAGE)
    if last is not None:
        return replace(paying, discount=objective.factor, steps=(step,) * last)
    if objective.factor < 1.0:
        return replace(paying, form=Form.DISCOUNTED, discount=objective.factor)
    if "target" not in objective.sets:
        if paid.size and paid.min() < 0.0:
            row = int(paid.argmin())
            raise ModelError(
                f"The total reward is defined for rewards >= 0 only; {model.row_name(row)} pays "
                f"{paid[row]:g}. Use a target, F (ReachReward in Python), a finite horizon, C<=k "
                "(Cumulative), or a discount, C{discount=0.9} (Discounted)."
            )
        return replace(paying, form=Form.TOTAL)
    goal = where(model, objective.sets["target"])
    negative = paid < 0.0
    over = goal[model.row_states]  # what these pay does not count
    form = Form.MIXED if np.any(negative & ~over) else Form.TO_TARGET
    counted = np.where(negative & over, 0.0, paid)
    return replace(paying, form=form, target=goal, reward=counted)


def row_rewards(model: FactoredMDP, name: str | None) -> FloatArray:
    """Return what every row pays: its own reward plus that of its state, (R,)."""
    rewards = model.reward(name)
    total: FloatArray = rewards.row + np.repeat(rewards.state, segment_lengths(model.row_ptr))
    return total


def solve_budget(
    model: FactoredMDP,
    spec: Spec,
    interest: BoolArray,
    solve: Callable[..., Solution],
    policy: Policy | None = None,
) -> Solution:
    """Return the solution of an until with a budget, or its value for a policy.

    `solve` is that of `solving`, for the unfolded model; a policy has a rule for every amount paid.
    """
    paying, _, reach = _by_payment(model, spec)
    if policy is not None:
        paying = restrict(paying, _flat(model, policy))
    first = np.append(interest, np.zeros(paying.states - model.states, dtype=np.bool_))
    result = solve(paying, reach, states=first)
    rules = result.policy.rows[0, :-1].reshape(-1, model.states)
    rules = rules - np.arange(len(rules))[:, None] * model.rows
    lower, upper = (x if x is None else x[:-1] for x in (result.lower, result.upper))
    return replace(
        result, model=model, spec=spec, value=result.value[: model.states],
        policy=policy or Policy(rules), subject="optimum" if policy is None else "policy",
        lower=None if lower is None else lower[: model.states],  # where nothing was paid yet
        upper=None if upper is None else upper[: model.states], witness=(lower, upper),
        interest=interest,
    )  # fmt: skip


def unfolded(model: FactoredMDP, policy: Policy, spec: Spec) -> tuple[FactoredMDP, Policy, Spec]:
    """Return a model whose states know what was paid of a budget, and policy and question for it.

    The policy has a rule for every amount paid.
    """
    paying, states, reach = _by_payment(model, spec)
    layers = len(states) // model.states
    paid = np.append(np.repeat(np.arange(layers), model.states), layers)
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
    named = remembering(paying, model, "paid", paid, states)
    return named, Policy(_flat(model, policy)[None, :]), reach


def _by_payment(model: FactoredMDP, spec: Spec) -> tuple[FactoredMDP, IntArray, Spec]:
    """Return a model unfolded by what was paid, the state of each of its states, and the until."""
    goal = spec.objective
    assert isinstance(goal, BudgetUntil)
    paying = unfold(model, row_rewards(model, goal.reward), goal.budget)
    states = np.append(np.tile(np.arange(model.states), goal.layers), 0)  # the last one has lost
    stay, target = (where(model, s)[states] for s in (goal.stay, goal.target))
    stay[-1] = target[-1] = False
    return paying, states, replace(spec, objective=Until(stay, target))


def _flat(model: FactoredMDP, policy: Policy) -> IntArray:
    """Return a policy with a rule for every amount paid as one (S',) of the unfolded model."""
    shift = model.rows * np.arange(len(policy.rows))[:, None]
    return np.append(policy.rows + shift, len(policy.rows) * model.rows)
