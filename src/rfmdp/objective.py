"""What is measured, and who picks: objectives, directions and specifications.

A set of states is given as a label of the model, as a boolean array over its states, or as
any object with a method `holds(model)` that returns such an array (the property parser makes
these). An objective never holds a tolerance; that belongs to the solver.

Two worked combinations:

>>> Spec(Reach("goal"), agent=MAX, nature=MIN)       # Pmaxmin=? [ F "goal" ]
Spec(objective=Reach(target='goal'), agent=<Direction.MAX: 1>, nature=<Direction.MIN: -1>)
>>> Spec(ReachReward("goal", "cost"), agent=MIN, nature=MAX).robust  # Rminmax, the guarantee
True
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rfmdp.errors import ModelError
from rfmdp.types import BoolArray

if TYPE_CHECKING:
    from rfmdp.model.arrays import FactoredMDP


class Direction(Enum):
    """Which way a player pushes the value."""

    MIN = -1
    MAX = 1

    @property
    def sign(self) -> float:
        """+1 for MAX, -1 for MIN."""
        return float(self.value)

    @property
    def opposite(self) -> Direction:
        """The other direction."""
        return Direction(-self.value)


MIN, MAX = Direction.MIN, Direction.MAX


class StateFormula(Protocol):
    """Anything that says in which states of a model it holds."""

    def holds(self, model: FactoredMDP) -> BoolArray:
        """Return a (S,) array."""
        ...


States: TypeAlias = str | BoolArray | StateFormula


@dataclass(frozen=True, slots=True)
class Reach:
    """Probability of reaching `target` at some time."""

    target: States


@dataclass(frozen=True, slots=True)
class Until:
    """Probability of reaching `target` within `earliest..latest` steps through `stay` only.

    `latest=None` is unbounded. With `earliest > 0` all states before the step that counts
    must satisfy `stay`, as in PRISM's `stay U[a,b] target`.
    """

    stay: States
    target: States
    latest: int | None = None
    earliest: int = 0

    def __post_init__(self) -> None:
        _check_steps(self.latest, self.earliest)


@dataclass(frozen=True, slots=True)
class Globally:
    """Probability of staying in `stay` for ever, or during the steps `earliest..latest`."""

    stay: States
    latest: int | None = None
    earliest: int = 0

    def __post_init__(self) -> None:
        _check_steps(self.latest, self.earliest)


@dataclass(frozen=True, slots=True)
class Next:
    """Probability that the next state is in `target`."""

    target: States


@dataclass(frozen=True, slots=True)
class ReachReward:
    """Expected reward collected before `target`; infinite where it may never be reached."""

    target: States
    reward: str | None = None


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Expected reward of the first `steps` steps, discounted per step."""

    steps: int
    reward: str | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        _check_steps(self.steps, 0)
        _check_discount(self.discount)


@dataclass(frozen=True, slots=True)
class Instantaneous:
    """Expected state reward at step `step`."""

    step: int
    reward: str | None = None

    def __post_init__(self) -> None:
        _check_steps(self.step, 0)


@dataclass(frozen=True, slots=True)
class Discounted:
    """Expected reward for ever, discounted by `discount` < 1 per step."""

    discount: float
    reward: str | None = None

    def __post_init__(self) -> None:
        _check_discount(self.discount)
        if self.discount >= 1.0:
            raise ModelError("Discounted: discount must be < 1; use Total for undiscounted reward.")


@dataclass(frozen=True, slots=True)
class Total:
    """Expected reward for ever, undiscounted; may be infinite."""

    reward: str | None = None


Objective: TypeAlias = (
    Reach | Until | Globally | Next | ReachReward | Cumulative | Instantaneous | Discounted | Total
)


@dataclass(frozen=True, slots=True)
class Spec:
    """An objective and the directions of agent and nature."""

    objective: Objective
    agent: Direction = MAX
    nature: Direction = MIN

    @property
    def robust(self) -> bool:
        """Whether nature opposes the agent."""
        return self.agent is not self.nature


def _check_steps(latest: int | None, earliest: int) -> None:
    if earliest < 0 or (latest is not None and latest < earliest):
        raise ModelError(
            f"Step bounds must satisfy 0 <= earliest <= latest, got {earliest}, {latest}."
        )


def _check_discount(discount: float) -> None:
    if not 0.0 < discount <= 1.0:
        raise ModelError(f"A discount must lie in (0, 1], got {discount!r}.")
