"""What a trajectory shows of an objective: where it ends, whether it won, what it earned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import Unrolled
from rfmdp.objective import (
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Objective,
    Reach,
    ReachReward,
    Spec,
    Total,
    Until,
)
from rfmdp.outer.problem import where
from rfmdp.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Measured:
    """What a property asks of a trajectory."""

    stop: BoolArray | None  # (S,) where a trajectory ends
    target: BoolArray | None  # (S,) last states that are a success; None: a reward is measured
    reward: str | None = None
    discount: float = 1.0
    steps: int | None = None  # of the objective itself
    last: FloatArray | None = None  # (S,) what the last state pays; nothing else is paid then
    whole: bool = False  # whether a trajectory that is cut off before its steps shows nothing


def measure(model: FactoredMDP, spec: Spec) -> Measured:
    """Return what to look at in a trajectory.

    Raises
    ------
    UnsupportedError
        For objectives whose value is no mean over what trajectories of finite length show.
    """
    objective = spec.objective
    match objective:
        case Reach():
            target = where(model, objective.target)
            return Measured(target, target)
        case Until(earliest=0):
            target = where(model, objective.target)
            return Measured(target | ~where(model, objective.stay), target, steps=objective.latest)
        case Globally(earliest=0, latest=int()):
            stay = where(model, objective.stay)
            return Measured(~stay, stay, steps=objective.latest, whole=True)
        case Next():
            target = where(model, objective.target)
            return Measured(None, target, steps=1, whole=True)
        case ReachReward():
            return Measured(where(model, objective.target), None, objective.reward)
        case Cumulative():
            return Measured(None, None, objective.reward, objective.discount, objective.steps)
        case Instantaneous():
            paid = np.array(model.reward(objective.reward).state, dtype=np.float64)
            return Measured(None, None, steps=objective.step, last=paid, whole=True)
        case Discounted():
            return Measured(None, None, objective.reward, objective.discount)
        case Total():
            return Measured(None, None, objective.reward)
    raise UnsupportedError(
        "Trajectories of finite length do not show G without a bound, means in the long run, "
        "budgets, nor what counts from some step on only (F>=k, U[a,b]); got "
        f"{type(objective).__name__}."
    )


def with_state_arrays(model: FactoredMDP, spec: Spec) -> Spec:
    """Return the specification with its sets of states as arrays (S,) of this model."""
    return replace(spec, objective=replace(spec.objective, **state_sets(model, spec.objective)))


def unrolled_spec(model: FactoredMDP, spec: Spec, unrolled: Unrolled) -> Spec:
    """Return the specification for a model unrolled in time, with 0 as the earliest step.

    States there know how many steps are gone. So `stay U[a,b] target` becomes an until whose target
    begins in layer a, and `G[a,b] stay` may be anywhere before that layer.
    """
    here = spec.objective
    sets = {name: holds[unrolled.states] for name, holds in state_sets(model, here).items()}
    match here:
        case Until(earliest=earliest):
            sets |= {"target": sets["target"] & (unrolled.steps >= earliest), "earliest": 0}
        case Globally(earliest=earliest):
            sets |= {"stay": sets["stay"] | (unrolled.steps < earliest), "earliest": 0}
    return replace(spec, objective=replace(here, **sets))


def state_sets(model: FactoredMDP, objective: Objective) -> dict[str, Any]:
    """Return the sets of states of an objective as arrays (S,), by their names."""
    return {name: where(model, states) for name, states in objective.sets.items()}
