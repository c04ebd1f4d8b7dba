"""Curves over seeds, and the trajectories after which they reach a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rfmdp.objective import MAX
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.learning_methods import EXACT, FLAT, LearningMethod, find_method, in_order
from rfmdp.paper.learning_runs import LearningRecord
from rfmdp.paper.learning_settings import SETTINGS
from rfmdp.paper.learning_setup import SETUPS
from rfmdp.paper.plan import LeftOut
from rfmdp.paper.published import PublishedCount, PublishedLearning, published_learning
from rfmdp.types import FloatArray

GUARANTEE, ROLLOUT = "guarantee", "rollout"


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

    def published(self, domain: str) -> PublishedLearning:
        """Return the printed row of a domain."""
        return published_learning()[domain]

    def flat_guarantee(self, domain: str, setting: str) -> float | None:
        """Return the guarantee with which our own flat learning ends; None if it has none.

        A probability or reward of at least 0 is none.
        """
        flat = self.of(domain, FLAT.word, setting)
        return None if flat is None else flat.last() or None

    def exact(self, domain: str, setting: str) -> Curve | None:
        """Return the curve of the paper's sets, composed exactly."""
        return self.of(domain, EXACT.word, setting)


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
