"""Methods, their curves over seeds, and the trajectories after which they reach a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rfmdp.learning import methods
from rfmdp.objective import MAX
from rfmdp.paper.campaigns import LeftOut
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.learning.runs import LearningRecord
from rfmdp.paper.learning.settings import SETTINGS, SETUPS
from rfmdp.paper.published import PublishedCount, published_learning
from rfmdp.types import FloatArray

GUARANTEE, ROLLOUT = "guarantee", "rollout"


@dataclass(frozen=True, slots=True)
class LearningMethod:
    """A curve of the campaign.

    word : its name in `rfmdp.learning.methods`
    column : the published column that it is compared with; empty for ours
    """

    word: str
    title: str
    column: str = ""


METHODS = (
    LearningMethod("paper-mccormick", "exact (McCormick)", "mccormick"),
    LearningMethod("paper-interval", "interval arithmetic", "interval"),
    LearningMethod("anytime", "ours: anytime sets, shared effects"),
    LearningMethod("gap-directed", "ours: anytime, sampling where it helps most"),
    LearningMethod("tied", "ours: equal probabilities tied"),
    LearningMethod("rollout", "ours: half of beta for rollouts"),
    LearningMethod("paper-l1", "L1, radii added up", "l1"),
    LearningMethod("paper-flat", "flat", "flat"),
)
BY_WORD = {method.word: method for method in METHODS}
FLAT, EXACT = BY_WORD["paper-flat"], BY_WORD["paper-mccormick"]


def find_method(word: str) -> LearningMethod:
    """Return a method by its word; any of `rfmdp learn --method list` can be run."""
    if word in BY_WORD:
        return BY_WORD[word]
    return LearningMethod(methods.find_method(word).name, word)


def in_order(words: set[str]) -> list[LearningMethod]:
    """Return methods in the order of the campaign, others behind them."""
    order = dict.fromkeys([*BY_WORD, *methods.METHODS])
    return [find_method(word) for word in order if word in words]


@dataclass(frozen=True, slots=True)
class Reached:
    """The first evaluation at which a mean guarantee was good enough."""

    trajectories: int
    seconds: float  # of one core, mean over seeds
    seeds: int


@dataclass(frozen=True, slots=True)
class Curve:
    """The runs of a method on a domain with several seeds."""

    domain: str
    method: LearningMethod
    setting: str
    records: tuple[LearningRecord, ...]

    @property
    def maximises(self) -> bool:
        """Whether larger guarantees are better."""
        return DOMAINS[self.domain].agent is MAX

    @property
    def seeds(self) -> int:
        """Number of runs."""
        return len(self.records)

    @property
    def done(self) -> int:
        """Trajectories of the longest run."""
        return max(record.done for record in self.records)

    @property
    def printed(self) -> PublishedCount | None:
        """What was printed for this method."""
        return published_learning()[self.domain].counts.get(self.method.column)

    def points(self, column: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return trajectories, mean, standard deviation and number of runs, all (P,).

        Runs count as far as they go. Where one has no value yet, there is no mean.
        """
        found: dict[int, list[float]] = {}
        for record in self.records:
            for point in record.history:
                value = point[column]
                number = np.nan if value is None else float(value)
                found.setdefault(int(point["trajectories"]), []).append(number)
        where = sorted(found)
        means = [float(np.mean(found[x])) for x in where]
        spreads = [float(np.std(found[x])) for x in where]
        counts = [len(found[x]) for x in where]
        return (
            np.array(where, dtype=np.float64),
            np.array(means),
            np.array(spreads),
            np.array(counts),
        )

    def last(self, column: str = GUARANTEE) -> float | None:
        """Return the mean at the last evaluation of the longest run; None if nothing is proven."""
        _, mean, _, _ = self.points(column)
        return float(mean[-1]) if len(mean) and np.isfinite(mean[-1]) else None

    def reached(self, target: float, column: str = GUARANTEE) -> Reached | None:
        """Return when the mean guarantee first was at least (costs: at most) a target."""
        where, mean, _, counts = self.points(column)
        _, spent, _, _ = self.points("processor")
        with np.errstate(invalid="ignore"):
            good = mean >= target if self.maximises else mean <= target
        if not good.any():
            return None
        first = int(np.argmax(good))
        return Reached(int(where[first]), float(spent[first]), int(counts[first]))


@dataclass(frozen=True, slots=True)
class LearningTable:
    """All curves of a campaign, and what was left out."""

    curves: tuple[Curve, ...]
    left_out: tuple[LeftOut, ...] = ()

    def of(self, domain: str, method: str, setting: str) -> Curve | None:
        """Return one curve."""
        key = (domain, method, setting)
        found = (c for c in self.curves if (c.domain, c.method.word, c.setting) == key)
        return next(found, None)

    def in_domain(self, domain: str, setting: str) -> list[Curve]:
        """Return the curves of a domain, in the order of their methods."""
        found = (self.of(domain, method.word, setting) for method in self.methods(setting))
        return [curve for curve in found if curve is not None]

    @property
    def domains(self) -> list[str]:
        """The domains that have curves, in order."""
        have = {curve.domain for curve in self.curves}
        return [name for name in SETUPS if name in have]

    @property
    def settings(self) -> list[str]:
        """The settings that have curves, in order."""
        have = {curve.setting for curve in self.curves}
        return [name for name in SETTINGS if name in have]

    def methods(self, setting: str) -> list[LearningMethod]:
        """Return the methods that have curves in a setting, in order."""
        return in_order({c.method.word for c in self.curves if c.setting == setting})

    def flat_guarantee(self, domain: str, setting: str) -> float | None:
        """Return the guarantee with which our own flat learning ends; None if it has none.

        A probability or reward of at least 0 is none.
        """
        flat = self.of(domain, FLAT.word, setting)
        return None if flat is None else flat.last() or None


def curves_of(records: Sequence[LearningRecord]) -> tuple[Curve, ...]:
    """Return the curves of all records that have evaluations."""
    groups: dict[tuple[str, str, str], list[LearningRecord]] = {}
    for record in records:
        if record.history:
            groups.setdefault((record.domain, record.method, record.setting), []).append(record)
    return tuple(
        Curve(domain, find_method(word), setting, tuple(own))
        for (domain, word, setting), own in groups.items()
    )
