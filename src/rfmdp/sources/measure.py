"""What a trajectory shows of an objective: where it ends, whether it won, what it earned."""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Cumulative, Discounted, Reach, ReachReward, Spec, Total, Until
from rfmdp.outer.problem import where
from rfmdp.types import BoolArray


@dataclass(frozen=True, slots=True)
class Measured:
    """What a property asks of a trajectory."""

    stop: BoolArray | None  # where a trajectory ends
    target: BoolArray | None  # what counts as success; None: a reward is measured
    reward: str | None = None
    discount: float = 1.0
    steps: int | None = None  # of the objective itself


def measure(model: FactoredMDP, spec: Spec) -> Measured:
    """Return what to look at in a trajectory.

    Raises
    ------
    UnsupportedError
        For objectives whose value is no mean over trajectories of finite length.
    """
    objective = spec.objective
    if isinstance(objective, Reach):
        target = where(model, objective.target)
        return Measured(target, target)
    if isinstance(objective, Until) and objective.earliest == 0:
        target = where(model, objective.target)
        return Measured(target | ~where(model, objective.stay), target, steps=objective.latest)
    if isinstance(objective, ReachReward):
        return Measured(where(model, objective.target), None, objective.reward)
    if isinstance(objective, Cumulative):
        return Measured(None, None, objective.reward, objective.discount, objective.steps)
    if isinstance(objective, Discounted):
        return Measured(None, None, objective.reward, objective.discount)
    if isinstance(objective, Total):
        return Measured(None, None, objective.reward)
    raise UnsupportedError(
        "Trajectories show reaching (F, U, U<=k) and rewards (F, C<=k, C, discounted) only; got "
        f"{type(objective).__name__}."
    )
