"""A specification on a model in normal form: what the solvers of the outer loop read.

Five forms are enough for all objectives: probability of reaching (least fixed point), reward until
a target, total reward, discounted reward, and a finite number of backward steps. `Globally` is
one minus the probability of leaving, with both directions turned: `flipped` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Direction,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Objective,
    Reach,
    ReachReward,
    Spec,
    StateSet,
    Total,
    Until,
)
from rfmdp.ragged import segment_lengths
from rfmdp.types import BoolArray, FloatArray


class Form(Enum):
    """How the value is defined."""

    REACH = "reach"  # least fixed point of probabilities
    TO_TARGET = "reward to target"  # infinite where the target may be missed
    TOTAL = "total reward"  # least fixed point of rewards
    DISCOUNTED = "discounted reward"
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
    flipped: bool = False  # the answer is one minus the value

    @property
    def probability(self) -> bool:
        """Whether values are probabilities."""
        if self.form is not Form.STEPS or self.reward.any():
            return self.form is Form.REACH
        return bool(np.all((self.start >= 0.0) & (self.start <= 1.0)))

    @property
    def lingerer(self) -> Direction:
        """Who could seem to gain by staying for ever at no reward, see `proofs.certify`."""
        return MIN if self.form is Form.TO_TARGET else MAX

    @property
    def terminal(self) -> BoolArray:
        """The states (S,) whose value is known without looking at their rows."""
        return self.target | ~self.stay


def pose(model: FactoredMDP, spec: Spec) -> Problem:
    """Bring a specification on a model into normal form."""
    named = (getattr(spec.objective, name, 0) for name in ("latest", "earliest", "steps", "step"))
    steps = max(count or 0 for count in named)
    require_memory(8.0 * steps * (model.states + 1), f"A policy with a rule per step ({steps})")
    none, zero = np.zeros(model.states, dtype=np.bool_), np.zeros(model.states)
    blank = Problem(
        model, Form.STEPS, spec.agent, spec.nature, none, ~none, np.zeros(model.rows), zero
    )
    return _pose(spec.objective, blank)


def where(model: FactoredMDP, states: StateSet) -> BoolArray:
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


def _pose(objective: Objective, blank: Problem) -> Problem:
    """Return the problem of an objective, given one of no steps, targets and rewards."""
    model, everywhere = blank.model, blank.stay
    free = BackwardStep(blank.target, blank.start)  # nothing is fixed
    match objective:
        case Reach(target):
            return _until(blank, everywhere, where(model, target), None, 0)
        case Until(stay, target, latest, earliest):
            return _until(blank, where(model, stay), where(model, target), latest, earliest)
        case Globally(stay, latest, earliest):
            agent, nature = blank.agent.opposite, blank.nature.opposite
            turned = replace(blank, agent=agent, nature=nature, flipped=True)
            return _until(turned, everywhere, ~where(model, stay), latest, earliest)
        case Next(target):
            return replace(blank, start=where(model, target).astype(np.float64), steps=(free,))
        case ReachReward(target, name):
            goal = where(model, target)
            paid = _costs(model, name, "reward to a target")
            return replace(blank, form=Form.TO_TARGET, target=goal, reward=paid)
        case Total(name):
            return replace(blank, form=Form.TOTAL, reward=_costs(model, name, "total reward"))
        case Discounted(discount, name):
            paid = row_rewards(model, name)
            return replace(blank, form=Form.DISCOUNTED, reward=paid, discount=discount)
        case Cumulative(steps, name, discount):
            paid = row_rewards(model, name)
            return replace(blank, reward=paid, discount=discount, steps=(free,) * steps)
        case Instantaneous(step, name):
            state = np.array(model.reward(name).state, dtype=np.float64)
            return replace(blank, start=state, steps=(free,) * step)


def _until(
    blank: Problem, stay: BoolArray, target: BoolArray, latest: int | None, earliest: int
) -> Problem:
    """Return the problem to reach a target through `stay` within earliest..latest steps."""
    before = (BackwardStep(~stay, blank.start),) * earliest
    if latest is None:
        return replace(blank, form=Form.REACH, target=target, stay=stay, steps=before)
    goal = target.astype(np.float64)
    inside = (BackwardStep(target | ~stay, goal),) * (latest - earliest)
    return replace(blank, start=goal, steps=inside + before)


def row_rewards(model: FactoredMDP, name: str | None) -> FloatArray:
    """Return what every row pays: its own reward plus that of its state, (R,)."""
    rewards = model.reward(name)
    total: FloatArray = rewards.row + np.repeat(rewards.state, segment_lengths(model.row_ptr))
    return total


def _costs(model: FactoredMDP, name: str | None, what: str) -> FloatArray:
    """Return what every row pays; raise ModelError if that is negative somewhere."""
    reward = row_rewards(model, name)
    if reward.size and reward.min() < 0.0:
        row = int(reward.argmin())
        raise ModelError(
            f"The {what} is defined for rewards >= 0 only; {model.row_name(row)} pays "
            f"{reward[row]:g}. Use a finite horizon, C<=k (Cumulative in Python), or a discount, "
            "C{discount=0.9} (Discounted)."
        )
    return reward
