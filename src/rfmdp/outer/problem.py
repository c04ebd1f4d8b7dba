"""A specification on a model in normal form: what the solvers of the outer loop read.

Five forms are enough for all objectives: probability of reaching (least fixed point), reward until
a target, total reward, discounted reward, and a finite number of backward steps. `Globally` is
one minus the probability of leaving, with both directions turned: `flipped` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import (
    Cumulative,
    Direction,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    StateSet,
    Total,
    Until,
)
from rfmdp.types import BoolArray, FloatArray


class Form(Enum):
    """How the value is defined."""

    REACH = "reach"  # least fixed point of probabilities
    TO_TARGET = "reward to target"  # infinite where the target may be missed
    TOTAL = "total reward"  # least fixed point of rewards
    DISCOUNTED = "discounted reward"
    STEPS = "finite horizon"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One backward step of a finite horizon: value = where fixed: given, else backup."""

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
    discount: float = 1.0
    start: FloatArray | None = None  # (S,) value after the last step, for STEPS
    steps: tuple[Step, ...] = ()  # last step first; for REACH: the steps before the until
    flipped: bool = False  # the answer is one minus the value

    @property
    def probability(self) -> bool:
        """Whether values are probabilities."""
        if self.form is Form.REACH:
            return True
        if self.form is not Form.STEPS or self.start is None or self.reward.any():
            return False
        return bool(np.all((self.start >= 0.0) & (self.start <= 1.0)))

    @property
    def terminal(self) -> BoolArray:
        """States whose value is known without looking at their rows."""
        return self.target | ~self.stay


def pose(model: FactoredMDP, spec: Spec) -> Problem:
    """Bring a specification on a model into normal form."""
    named = (getattr(spec.objective, name, 0) for name in ("latest", "earliest", "steps", "step"))
    steps = max(count or 0 for count in named)
    require_memory(8.0 * steps * (model.states + 1), f"A policy with a rule per step ({steps})")
    return _pose(spec.objective, model, spec)


def where(model: FactoredMDP, states: StateSet) -> BoolArray:
    """Return a set of states as a boolean array."""
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


@singledispatch
def _pose(objective: Any, model: FactoredMDP, spec: Spec) -> Problem:
    raise ModelError(f"Not an objective: {objective!r}.")


@_pose.register
def _(objective: Reach, model: FactoredMDP, spec: Spec) -> Problem:
    return _pose(Until(np.ones(model.states, dtype=np.bool_), objective.target), model, spec)


@_pose.register
def _(objective: Until, model: FactoredMDP, spec: Spec) -> Problem:
    stay, target = where(model, objective.stay), where(model, objective.target)
    if objective.latest is None and objective.earliest == 0:
        return Problem(
            model, Form.REACH, spec.agent, spec.nature, target, stay, np.zeros(model.rows)
        )
    goal = target.astype(np.float64)
    before = Step(~stay, np.zeros(model.states))
    if objective.latest is None:  # an unbounded until after `earliest` steps in `stay`
        return Problem(
            model, Form.REACH, spec.agent, spec.nature, target, stay, np.zeros(model.rows),
            steps=(before,) * objective.earliest,
        )  # fmt: skip
    inside = Step(target | ~stay, goal)
    steps = (inside,) * (objective.latest - objective.earliest) + (before,) * objective.earliest
    return _backward(model, spec, goal, steps)


@_pose.register
def _(objective: Globally, model: FactoredMDP, spec: Spec) -> Problem:
    bad = ~where(model, objective.stay)
    turned = Spec(
        Until(np.ones(model.states, dtype=np.bool_), bad, objective.latest, objective.earliest),
        spec.agent.opposite,
        spec.nature.opposite,
    )
    problem = pose(model, turned)
    return Problem(
        problem.model, problem.form, problem.agent, problem.nature, problem.target, problem.stay,
        problem.reward, problem.discount, problem.start, problem.steps, flipped=True,
    )  # fmt: skip


@_pose.register
def _(objective: Next, model: FactoredMDP, spec: Spec) -> Problem:
    goal = where(model, objective.target).astype(np.float64)
    nothing = Step(np.zeros(model.states, dtype=np.bool_), np.zeros(model.states))
    return _backward(model, spec, goal, (nothing,))


@_pose.register
def _(objective: ReachReward, model: FactoredMDP, spec: Spec) -> Problem:
    target = where(model, objective.target)
    reward = row_rewards(model, objective.reward)
    _require_nonnegative(model, reward, "reward to a target")
    stay = np.ones(model.states, dtype=np.bool_)
    return Problem(model, Form.TO_TARGET, spec.agent, spec.nature, target, stay, reward)


@_pose.register
def _(objective: Total, model: FactoredMDP, spec: Spec) -> Problem:
    reward = row_rewards(model, objective.reward)
    _require_nonnegative(model, reward, "total reward")
    none = np.zeros(model.states, dtype=np.bool_)
    return Problem(model, Form.TOTAL, spec.agent, spec.nature, none, ~none, reward)


@_pose.register
def _(objective: Discounted, model: FactoredMDP, spec: Spec) -> Problem:
    reward = row_rewards(model, objective.reward)
    none = np.zeros(model.states, dtype=np.bool_)
    return Problem(
        model, Form.DISCOUNTED, spec.agent, spec.nature, none, ~none, reward, objective.discount
    )


@_pose.register
def _(objective: Cumulative, model: FactoredMDP, spec: Spec) -> Problem:
    nothing = Step(np.zeros(model.states, dtype=np.bool_), np.zeros(model.states))
    reward = row_rewards(model, objective.reward)
    start = np.zeros(model.states)
    steps = (nothing,) * objective.steps
    return _backward(model, spec, start, steps, reward, objective.discount)


@_pose.register
def _(objective: Instantaneous, model: FactoredMDP, spec: Spec) -> Problem:
    nothing = Step(np.zeros(model.states, dtype=np.bool_), np.zeros(model.states))
    start = np.array(model.reward(objective.reward).state, dtype=np.float64)
    return _backward(model, spec, start, (nothing,) * objective.step)


def row_rewards(model: FactoredMDP, name: str | None) -> FloatArray:
    """Return what every row pays: its own reward plus that of its state, (R,)."""
    rewards = model.reward(name)
    total: FloatArray = rewards.row + np.repeat(rewards.state, np.diff(model.row_ptr))
    return total


def _backward(
    model: FactoredMDP,
    spec: Spec,
    start: FloatArray,
    steps: tuple[Step, ...],
    reward: FloatArray | None = None,
    discount: float = 1.0,
) -> Problem:
    none = np.zeros(model.states, dtype=np.bool_)
    paid = np.zeros(model.rows) if reward is None else reward
    return Problem(
        model, Form.STEPS, spec.agent, spec.nature, none, ~none, paid, discount, start, steps
    )


def _require_nonnegative(model: FactoredMDP, reward: FloatArray, what: str) -> None:
    if reward.size and reward.min() < 0.0:
        row = int(reward.argmin())
        raise ModelError(
            f"The {what} is defined for rewards >= 0 only; {model.row_name(row)} pays "
            f"{reward[row]:g}. Use a finite horizon (Cumulative) or Discounted."
        )
