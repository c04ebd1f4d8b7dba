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

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

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


StateSet: TypeAlias = str | BoolArray | StateFormula


@dataclass(frozen=True, slots=True, eq=False)
class NamedStates:
    """States of one model, and the text that they came from."""

    text: str
    states: BoolArray = field(repr=False)

    def holds(self, model: FactoredMDP) -> BoolArray:
        """Return the states.

        Raises
        ------
        ModelError
            If the model has another number of states.
        """
        if self.states.shape != (model.states,) or self.states.dtype != np.bool_:
            raise ModelError(
                f"{self.text}: must be a boolean array of {model.states} entries for this model, "
                f"got {self.states.dtype} with shape {self.states.shape}; give the property again."
            )
        return self.states


@dataclass(frozen=True, slots=True)
class Reach:
    """Probability of reaching `target` at some time."""

    target: StateSet

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Until:
    """Probability of reaching `target` within `earliest..latest` steps through `stay` only.

    `latest=None` is unbounded. With `earliest > 0` all states before the step that counts
    must satisfy `stay`, as in PRISM's `stay U[a,b] target`.
    """

    stay: StateSet
    target: StateSet
    latest: int | None = None
    earliest: int = 0

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Globally:
    """Probability of staying in `stay` for ever, or during the steps `earliest..latest`."""

    stay: StateSet
    latest: int | None = None
    earliest: int = 0

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Next:
    """Probability that the next state is in `target`."""

    target: StateSet

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class ReachReward:
    """Expected reward collected before `target`; infinite where it may never be reached."""

    target: StateSet
    reward: str | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Expected reward of the first `steps` steps, discounted per step."""

    steps: int
    reward: str | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Instantaneous:
    """Expected state reward at step `step`."""

    step: int
    reward: str | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True)
class Discounted:
    """Expected reward for ever, discounted by `discount` < 1 per step."""

    discount: float
    reward: str | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.discount >= 1.0:
            raise ModelError("Discounted: discount must be < 1; use Total for undiscounted reward.")


@dataclass(frozen=True, slots=True)
class Total:
    """Expected reward for ever, undiscounted; may be infinite."""

    reward: str | None = None

    def __post_init__(self) -> None:
        _check(self)


Objective: TypeAlias = (
    Reach | Until | Globally | Next | ReachReward | Cumulative | Instantaneous | Discounted | Total
)


@dataclass(frozen=True, slots=True)
class Spec:
    """An objective and the directions of agent and nature."""

    objective: Objective
    agent: Direction = MAX
    nature: Direction = MIN

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            raise ModelError(f"Spec: objective must be one, got {self.objective!r:.60}.")
        for name in ("agent", "nature"):
            if not isinstance(getattr(self, name), Direction):
                raise ModelError(
                    f"Spec: {name} must be MAX or MIN, got {getattr(self, name)!r:.60}."
                )

    @property
    def robust(self) -> bool:
        """Whether nature opposes the agent."""
        return self.agent is not self.nature

    def __str__(self) -> str:
        """Return it in the notation of properties; unnamed sets of states by their size.

        >>> str(Spec(Until("safe", "goal", latest=5)))
        'Pmaxmin=? [ "safe" U<=5 "goal" ]'
        >>> str(Spec(Next(np.array([True, False, True]))))
        'Pmaxmin=? [ X (2 states) ]'
        """
        name = getattr(self.objective, "reward", None)
        reward = f'R{{"{name}"}}' if name else "R"
        kind = "P" if isinstance(self.objective, Reach | Until | Globally | Next) else reward
        sides = f"{self.agent.name}{self.nature.name}".lower()
        return f"{kind}{sides}=? [ {_path(self.objective)} ]"


def _path(objective: Objective) -> str:
    """Return what stands between the brackets of a property."""
    match objective:
        case Reach(target) | ReachReward(target):
            return f"F {_named(target)}"
        case Until(stay, target, latest, earliest):
            everywhere = isinstance(stay, np.ndarray) and bool(stay.all())
            if everywhere or getattr(stay, "text", None) == "true":
                return f"F{_times(latest, earliest)} {_named(target)}"
            return f"{_named(stay)} U{_times(latest, earliest)} {_named(target)}"
        case Globally(stay, latest, earliest):
            return f"G{_times(latest, earliest)} {_named(stay)}"
        case Next(target):
            return f"X {_named(target)}"
        case Cumulative(steps, _, discount):
            return f"C{_factor(discount)}<={steps}"
        case Instantaneous(step):
            return f"I={step}"
        case Discounted(discount):
            return f"C{_factor(discount)}"
    return "C"


def _named(states: StateSet) -> str:
    if isinstance(states, str):
        return f'"{states}"'
    if isinstance(states, np.ndarray):
        return f"({np.count_nonzero(states)} states)"
    text = str(getattr(states, "text", "..."))
    return text if re.fullmatch(r'!?(\w+|"[^"]*")', text) else f"({text})"


def _times(latest: int | None, earliest: int) -> str:
    if latest is None:
        return f">={earliest}" if earliest else ""
    return f"[{earliest},{latest}]" if earliest else f"<={latest}"


def _factor(discount: float) -> str:
    return "" if discount == 1.0 else f"{{discount={discount!r}}}"


def _check(objective: Objective) -> None:
    """Raise ModelError unless every field of an objective is what its name says."""
    for name in (own.name for own in fields(objective)):
        value = getattr(objective, name)
        wanted, holds = _FIELDS[name]
        if not holds(value):
            raise ModelError(
                f"{type(objective).__name__}: {name} must be {wanted}, got {value!r:.60}."
            )
    if isinstance(objective, Until | Globally):
        latest, earliest = objective.latest, objective.earliest
        if latest is not None and latest < earliest:
            raise ModelError(
                f"Step bounds must satisfy 0 <= earliest <= latest, got {earliest}, {latest}."
            )


def _is_count(value: object) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= 0  # type: ignore[operator]


def _is_set(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype == np.bool_ and value.ndim == 1)
    return isinstance(value, str) or hasattr(value, "holds")


def _is_discount(value: object) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0.0 < value <= 1.0)  # type: ignore[operator]


_SET = "a label, a boolean array over states, or a formula", _is_set
_COUNT = "a number of steps >= 0", _is_count
_FIELDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "target": _SET,
    "stay": _SET,
    "steps": _COUNT,
    "step": _COUNT,
    "earliest": _COUNT,
    "latest": ("a number of steps >= 0 or None", lambda value: value is None or _is_count(value)),
    "discount": ("a number in (0, 1]", _is_discount),
    "reward": ("a name or None", lambda value: value is None or isinstance(value, str)),
}
