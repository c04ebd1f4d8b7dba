"""What is measured, and who picks: objectives, directions and specifications.

Sets of states are those of `state_sets`. An objective never holds a tolerance; that belongs to
the solver.

Two worked combinations:

>>> Spec(Reach("goal"), agent=MAX, nature=MIN)       # Pmaxmin=? [ F "goal" ]
Spec(objective=Reach(target='goal'), agent=<Direction.MAX: 1>, nature=<Direction.MIN: -1>)
>>> Spec(ReachReward("goal", "cost"), agent=MIN, nature=MAX).robust  # Rminmax, the guarantee
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import ClassVar

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.state_sets import PathFormula, StateSet, is_state_set, text_of
from rfmdp.types import IntArray


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


@dataclass(frozen=True, slots=True)
class Objective:
    """What is measured. Its kinds are the classes below; all else is said by these properties.

    Every objective of probabilities is one of reaching `sets["target"]` within `span` through
    `sets["stay"]` only (everywhere, if there is no such set). `Globally` is one minus the
    probability of leaving, hence `complement`. A `formula` is the text of the path formula that
    a set of states of a product model stands for.
    """

    rewarded: ClassVar[bool] = True  # a mean of rewards, or else a probability
    summed: ClassVar[bool] = True  # rewards of all steps add up
    complement: ClassVar[bool] = False  # one minus the probability of reaching the opposite
    endless: ClassVar[bool] = False  # a mean over all steps, for ever
    plain: ClassVar[bool] = True  # state and step alone tell what is to be done
    words: ClassVar[str] = "C"  # how a property writes it

    def __post_init__(self) -> None:
        """Raise ModelError unless every field is what its name says."""
        kind = type(self).__name__
        for name in (item.name for item in fields(self)):
            value = getattr(self, name)
            wanted, holds = _FIELDS[name]
            if not holds(value):
                raise ModelError(f"{kind}: {name} must be {wanted}, got {value!r:.60}.")
        earliest, latest = self.span
        if latest is not None and latest < earliest:
            raise ModelError(
                f"Step bounds must satisfy 0 <= earliest <= latest, got {earliest}, {latest}."
            )
        if latest is None and getattr(self, "discount", 0.0) == 1.0:
            raise ModelError(f"{kind}: discount must be < 1; use Total for undiscounted reward.")

    @property
    def sets(self) -> dict[str, StateSet]:
        """The sets of states by the names of their fields: target, stay."""
        return {i.name: getattr(self, i.name) for i in fields(self) if i.name in SETS}

    @property
    def span(self) -> tuple[int, int | None]:
        """The first and the last number of steps that count; None: for ever."""
        step = getattr(self, "step", None)
        last = getattr(self, "latest", getattr(self, "steps", None))
        return (getattr(self, "earliest", 0), last) if step is None else (step, step)

    @property
    def layers(self) -> int:
        """How many copies of the states tell apart what was paid of a budget; 1 without one."""
        return int(getattr(self, "budget", 0)) + 1

    @property
    def reward_name(self) -> str | None:
        """The name of the reward; None for the only one of a model, or if none is measured."""
        return getattr(self, "reward", None)

    @property
    def factor(self) -> float:
        """What rewards are discounted by in every step; 1: not at all."""
        return float(getattr(self, "discount", 1.0))

    @property
    def path(self) -> str:
        """What stands between the brackets of a property."""
        if (formula := getattr(self, "formula", None)) is not None:
            return str(getattr(formula, "text", formula))
        sets, words = self.sets, self.words
        stay = sets.get("stay")
        everywhere = isinstance(stay, np.ndarray) and bool(stay.all())
        if everywhere or getattr(stay, "text", None) == "true":
            words = words.replace("{stay} U", "F")
        factor = "" if self.factor == 1.0 else f"{{discount={self.factor!r}}}"
        texts = {name: text_of(states) for name, states in sets.items()}
        times, reward = written_steps(*self.span), self.reward_name or ""
        return words.format(self, times=times, factor=factor, reward=reward, **texts)


SETS = ("target", "stay")  # the fields of objectives that are sets of states


@dataclass(frozen=True, slots=True)
class Reach(Objective):
    """Probability of reaching `target` at some time."""

    target: StateSet
    formula: str | None = field(default=None, repr=False)  # see `Objective`

    rewarded: ClassVar[bool] = False
    words: ClassVar[str] = "F {target}"


@dataclass(frozen=True, slots=True)
class Until(Objective):
    """Probability of reaching `target` within `earliest..latest` steps through `stay` only.

    `latest=None` is unbounded. With `earliest > 0` all states before the step that counts
    must satisfy `stay`, as in PRISM's `stay U[a,b] target`.
    """

    stay: StateSet
    target: StateSet
    latest: int | None = None
    earliest: int = 0

    rewarded: ClassVar[bool] = False
    words: ClassVar[str] = "{stay} U{times} {target}"


@dataclass(frozen=True, slots=True)
class BudgetUntil(Objective):
    """Probability of reaching `target` through `stay` only, having paid at most `budget`.

    What a row and its state pay of the reward is paid when the row is taken. All of it must be
    whole numbers >= 0.
    """

    stay: StateSet
    target: StateSet
    budget: int
    reward: str | None = None

    rewarded: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    words: ClassVar[str] = '{stay} U{{"{reward}"}}<={0.budget} {target}'


@dataclass(frozen=True, slots=True)
class Globally(Objective):
    """Probability of staying in `stay` for ever, or during the steps `earliest..latest`."""

    stay: StateSet
    latest: int | None = None
    earliest: int = 0
    formula: str | None = field(default=None, repr=False)  # see `Objective`

    rewarded: ClassVar[bool] = False
    complement: ClassVar[bool] = True
    words: ClassVar[str] = "G{times} {stay}"


@dataclass(frozen=True, slots=True)
class Next(Objective):
    """Probability that the next state is in `target`."""

    target: StateSet

    rewarded: ClassVar[bool] = False
    step: ClassVar[int] = 1
    words: ClassVar[str] = "X {target}"


@dataclass(frozen=True, slots=True)
class ReachReward(Objective):
    """Expected reward collected before `target`; infinite where it may never be reached."""

    target: StateSet
    reward: str | None = None
    formula: str | None = field(default=None, repr=False)  # see `Objective`

    words: ClassVar[str] = "F {target}"


@dataclass(frozen=True, slots=True)
class Cumulative(Objective):
    """Expected reward of the first `steps` steps, discounted per step."""

    steps: int
    reward: str | None = None
    discount: float = 1.0

    words: ClassVar[str] = "C{factor}<={0.steps}"


@dataclass(frozen=True, slots=True)
class Instantaneous(Objective):
    """Expected state reward at step `step`."""

    step: int
    reward: str | None = None

    summed: ClassVar[bool] = False
    words: ClassVar[str] = "I={0.step}"


@dataclass(frozen=True, slots=True)
class Discounted(Objective):
    """Expected reward for ever, discounted by `discount` < 1 per step."""

    discount: float
    reward: str | None = None

    words: ClassVar[str] = "C{factor}"


@dataclass(frozen=True, slots=True)
class Total(Objective):
    """Expected reward for ever, undiscounted; may be infinite."""

    reward: str | None = None


@dataclass(frozen=True, slots=True)
class LongRunAverage(Objective):
    """Mean reward of a step in the long run."""

    reward: str | None = None

    endless: ClassVar[bool] = True
    words: ClassVar[str] = "S"


@dataclass(frozen=True, slots=True)
class LongRunShare(Objective):
    """Share of all steps, in the long run, that begin in `target`."""

    target: StateSet

    rewarded: ClassVar[bool] = False
    endless: ClassVar[bool] = True
    words: ClassVar[str] = "{target}"


@dataclass(frozen=True, slots=True)
class Temporal(Objective):
    """Probability of a path formula; solved on the product of the model with an automaton.

    automaton : one that says what the formula means, by default made from it
    """

    formula: PathFormula
    automaton: object | None = None

    rewarded: ClassVar[bool] = False
    plain: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TemporalReward(Objective):
    """Expected reward until a co-safe path formula is satisfied; infinite where it may never be."""

    formula: PathFormula
    reward: str | None = None

    plain: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, eq=False)
class Parity(Objective):
    """Probability that the largest priority of those that come for ever is even."""

    priority: IntArray  # (S,)
    formula: str

    rewarded: ClassVar[bool] = False
    plain: ClassVar[bool] = False


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
        name = self.objective.reward_name
        reward = f'R{{"{name}"}}' if name else "R"
        kind = reward if self.objective.rewarded else "S" if self.objective.endless else "P"
        sides = f"{self.agent.name}{self.nature.name}".lower()
        return f"{kind}{sides}=? [ {self.objective.path} ]"


def written_steps(earliest: int, latest: int | None) -> str:
    """Return the steps of an operator over time as a property writes them."""
    if latest is None:
        return f">={earliest}" if earliest else ""
    return f"[{earliest},{latest}]" if earliest else f"<={latest}"


def _is_count(value: object) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= 0  # type: ignore[operator]


def _is_discount(value: object) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0.0 < value <= 1.0)  # type: ignore[operator]


def _is_priority(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i"


_SET = "a label, a boolean array over states, or a formula", is_state_set
_COUNT = "a number of steps >= 0", _is_count
_FIELDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "target": _SET,
    "stay": _SET,
    "steps": _COUNT,
    "step": _COUNT,
    "earliest": _COUNT,
    "budget": ("a whole number >= 0", _is_count),
    "latest": ("a number of steps >= 0 or None", lambda value: value is None or _is_count(value)),
    "discount": ("a number in (0, 1]", _is_discount),
    "formula": (
        "a path formula",
        lambda value: value is None or isinstance(value, str | PathFormula),
    ),
    "automaton": ("an automaton or None", lambda value: value is None or hasattr(value, "step")),
    "priority": ("an integer per state", _is_priority),
    "reward": ("a name or None", lambda value: value is None or isinstance(value, str)),
}
