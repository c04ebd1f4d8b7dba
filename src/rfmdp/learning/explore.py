"""Exploration: which policy to sample next. It may be wrong: guarantees do not rest on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rfmdp.errors import ModelError
from rfmdp.sources.simulator import Behaviour

if TYPE_CHECKING:
    from rfmdp.learning.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Optimistic:
    """The best policy if nature cooperates within the confidence sets (the paper's).

    `other` is the probability of taking another row than the planned one.
    """

    other: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.other <= 1.0:
            raise ModelError(
                f"The chance of any other action must be in [0, 1], found {self.other!r}."
            )

    def plan(self, sampling: Sampling) -> Behaviour:
        """Plan with nature on the agent's side."""
        return Behaviour(sampling.optimistic_rows(), self.other)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Every row of a state with the same probability."""

    def plan(self, sampling: Sampling) -> Behaviour:
        """Return the uniform behaviour."""
        return Behaviour.uniform(sampling.planner.model)


Exploration: TypeAlias = Optimistic | UniformRandom
