"""Methods, their curves over seeds, and the trajectories after which they reach a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.learning.runs import LearningRecord
from experiments.learning.settings import SETTINGS, SETUPS
from experiments.published import LearningCost, published_learning
from experiments.records import LeftOut, Method
from rfmdp.domains import DOMAINS
from rfmdp.learning import methods
from rfmdp.objective import MAX
from rfmdp.types import FloatArray

GUARANTEE = "guarantee"
METHODS = {
    method.word: method
    for method in (
        Method("paper-mccormick", "exact (McCormick)", "mccormick"),
        Method("paper-interval", "interval arithmetic", "interval"),
        Method("anytime", "ours: anytime sets, shared effects"),
        Method("gap-directed", "ours: anytime, sampling where it helps most"),
        Method("tied", "ours: equal probabilities tied"),
        Method("paper-l1", "L1, radii added up", "l1"),
        Method("paper-flat", "flat", "flat"),
    )
}
FLAT, EXACT = "paper-flat", "paper-mccormick"


def find_method(word: str) -> Method:
    """Return a method by its word: those of `rfmdp learn --method`."""
    return METHODS[methods.find_method(word).name]


@dataclass(frozen=True, slots=True)
class Curve:
    """The runs of a method on a domain with several seeds."""

    domain: str
    method: Method
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
    def target(self) -> float:
        """The printed guarantee of flat learning."""
        return published_learning()[self.domain].target

    @property
    def printed(self) -> LearningCost | None:
        """What was printed for this method."""
        return published_learning()[self.domain].counts.get(self.method.column)

    @property
    def printed_best(self) -> int:
        """The printed trajectories of the McCormick column."""
        return published_learning()[self.domain].counts["mccormick"].trajectories

    @property
    def processor(self) -> list[float]:
        """Processor seconds of every run."""
        return [record.history[-1]["processor"] or 0.0 for record in self.records]

    def points(self, column: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return trajectories, mean and standard deviation over runs, all (P,).

        Runs count as far as they go. Where one has no value yet, there is no mean.
        """
        values: dict[int, list[float]] = {}
        for record in self.records:
            for point in record.history:
                value = point[column]
                number = np.nan if value is None else float(value)
                values.setdefault(int(point["trajectories"]), []).append(number)
        where = sorted(values)
        mean, spread = (np.array([f(values[x]) for x in where]) for f in (np.mean, np.std))
        return np.array(where, dtype=np.float64), mean, spread

    def last(self) -> float | None:
        """Return the mean at the last evaluation of the longest run; None if nothing is proven."""
        _, mean, _ = self.points(GUARANTEE)
        return float(mean[-1]) if len(mean) and np.isfinite(mean[-1]) else None

    def reached(self, target: float) -> LearningCost | None:
        """Return what it cost until the mean guarantee was at least (costs: at most) a target.

        Trajectories are those of the first such evaluation; seconds are those of one core, the
        mean over seeds.
        """
        where, mean, _ = self.points(GUARANTEE)
        with np.errstate(invalid="ignore"):
            good = mean >= target if self.maximises else mean <= target
        if not good.any():
            return None
        first = int(np.argmax(good))
        _, spent, _ = self.points("processor")
        return LearningCost(int(where[first]), float(spent[first]))


@dataclass(frozen=True, slots=True)
class LearningTable:
    """All curves, and what was left out."""

    curves: tuple[Curve, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def by_setting(self) -> dict[str, LearningTable]:
        """The tables of the settings that have curves, in order."""
        curves = {name: [c for c in self.curves if c.setting == name] for name in SETTINGS}
        return {name: replace(self, curves=tuple(some)) for name, some in curves.items() if some}

    @property
    def domains(self) -> list[str]:
        """The domains that have curves, in order."""
        have = {curve.domain for curve in self.curves}
        return [name for name in SETUPS if name in have]

    @property
    def methods(self) -> list[Method]:
        """The methods that have curves, in order."""
        have = {curve.method.word for curve in self.curves}
        return [method for word, method in METHODS.items() if word in have]

    # of a table of one setting:

    def of(self, domain: str, word: str) -> Curve | None:
        """Return the curve of a method on a domain."""
        curves = (c for c in self.curves if (c.domain, c.method.word) == (domain, word))
        return next(curves, None)

    def of_methods(self, domain: str, words: Sequence[str]) -> list[Curve]:
        """Return the curves of methods on a domain, as far as there are any, in this order."""
        curves = (self.of(domain, word) for word in words)
        return [curve for curve in curves if curve is not None]

    def in_domain(self, domain: str) -> list[Curve]:
        """Return the curves of a domain, in the order of their methods."""
        return self.of_methods(domain, [method.word for method in self.methods])

    def flat_guarantee(self, domain: str) -> float | None:
        """Return the guarantee with which our own flat learning ends; None if it has none.

        A probability or reward of at least 0 is none.
        """
        flat = self.of(domain, FLAT)
        return None if flat is None else flat.last() or None


def curves_of(records: Sequence[LearningRecord]) -> tuple[Curve, ...]:
    """Return the curves of all records that have evaluations."""
    groups: dict[tuple[str, str, str], list[LearningRecord]] = {}
    for record in records:
        if record.history:
            groups.setdefault((record.domain, record.method, record.setting), []).append(record)
    return tuple(
        Curve(domain, METHODS[word], setting, tuple(runs))
        for (domain, word, setting), runs in groups.items()
    )
