"""What a learning run is about: everything that was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.budget import Shares
from rfmdp.learning.confidence import ConfidenceSet
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.methods import Method
from rfmdp.learning.rewards import SHARE, MixtureReward, RewardFamily
from rfmdp.learning.schedule import Points, StopWhen
from rfmdp.learning.support import (
    DeclaredSupport,
    Discovery,
    FloorSupport,
    SparseSupport,
    Support,
)
from rfmdp.learning.transition_rewards import TransitionReward
from rfmdp.objective import Spec
from rfmdp.outer.settings import Limits
from rfmdp.sources.source import Source
from rfmdp.types import FloatArray

DECLARED = DeclaredSupport()


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is about."""

    source: Source
    spec: Spec
    method: Method
    beta: float
    stop: StopWhen
    points: Points
    length: int
    seed: int
    limits: Limits
    p_min: float = 0.0
    support: Support = DECLARED
    rewards: RewardFamily | TransitionReward | None = None
    name: str = ""  # of the system, for people

    @property
    def confidence(self) -> ConfidenceSet | Discovery:
        """The sets of the guarantee."""
        base = self.method.confidence
        if isinstance(self.support, DeclaredSupport):
            return base
        if self.p_min > 0.0:
            raise UnsupportedError("p_min: with an unknown support, use FloorSupport(p_min).")
        return Discovery(base, self.support)  # type: ignore[arg-type]  # checked there

    def floors(self, ids: Identifiers) -> FloatArray:
        """Return the assumed least probability of outcomes, per identifier."""
        floored = isinstance(self.support, FloorSupport | SparseSupport)
        least = self.support.p_min if floored else self.p_min  # type: ignore[union-attr]
        floors, sizes = ids.floors(least), ids.model.marginals.sizes
        if self.p_min > 0.0 and np.any(floors * sizes > 1.0):
            largest = int(np.argmax(floors * sizes))
            raise ModelError(
                f"p_min: outcomes with at least {self.p_min:g} each must sum to 1 at most, but "
                f"{ids.model.marginal_name(largest)} has {sizes[largest]}; take a smaller one."
            )
        return floors

    def shares(self) -> Shares:
        """Return how beta is divided."""
        rollout = self.beta * self.method.rollout
        rest = self.beta - rollout
        reward = SHARE * rest if isinstance(self.rewards, MixtureReward) else 0.0
        return Shares(rest - reward, reward, rollout)
