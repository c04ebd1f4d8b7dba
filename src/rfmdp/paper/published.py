"""The published tables: values as printed, seconds on 40 cores.

A printed value is a text, because its digits say how far it can agree.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

COLUMNS = ("exact", "interval", "mccormick")
LEARNING_COLUMNS = ("flat", "l1", "interval", "mccormick")
RADII = (0.01, 0.02, 0.025, 0.03, 0.04, 0.1)
STOPPED = (
    "The printed value contains the stopping error of its value iteration, which approaches the "
    "value from below"
)


@dataclass(frozen=True, slots=True)
class Published:
    """A printed value with its running time."""

    value: str
    seconds: float

    def agrees(self, value: float) -> bool:
        """Return whether a value, rounded to as many digits, is the printed one.

        >>> Published("0.73", 2535.8).agrees(0.726009)
        True
        """
        digits = len(self.value.partition(".")[2])
        return f"{value:.{digits}f}" == self.value


# why a printed value differs from the certified one
EXPLAINED = {
    ("chain", 0.025, "interval"): (
        f"{STOPPED}: plain value iteration stopped at a relative change of 1e-8 gives 451.2843, "
        "printed 451.28; the limit is 451.2863."
    ),
    ("chain", 0.1, "exact"): (
        f"{STOPPED}: plain value iteration stopped at a relative change of 1e-8 gives 1019.6999, "
        "printed 1019.70; the limit is 1019.7102."
    ),
    ("chain", 0.1, "interval"): (
        f"{STOPPED}: plain value iteration stopped at a relative change of 1e-8 gives 6355.82 "
        "after 61357 sweeps; the limit is 6356.2278."
    ),
    ("chain", 0.1, "mccormick"): (
        f"{STOPPED}, as in the exact column; the relaxation is exact here."
    ),
    ("frozen_lake", 0.1, "interval"): f"{STOPPED}; the limit is 2797.5958.",
}


@cache
def published_table() -> dict[tuple[str, float, str], Published]:
    """Return the printed values by domain, radius and column."""
    with (files(__package__) / "published.csv").open(encoding="utf-8") as file:
        return {
            (row["domain"], float(row["radius"]), column): Published(
                row[f"{column}_value"], float(row[f"{column}_seconds"])
            )
            for row in csv.DictReader(file)
            for column in COLUMNS
        }


@dataclass(frozen=True, slots=True)
class LearningCost:
    """What a guarantee cost."""

    trajectories: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PublishedLearning:
    """A printed row of the learning table: the guarantee of flat learning, and what it cost."""

    guarantee: str
    counts: dict[str, LearningCost]  # by column

    @property
    def target(self) -> float:
        """The guarantee as a number."""
        return float(self.guarantee)


@cache
def published_learning() -> dict[str, PublishedLearning]:
    """Return the printed learning table by domain."""
    with (files(__package__) / "published_learning.csv").open(encoding="utf-8") as file:
        return {
            row["domain"]: PublishedLearning(
                row["guarantee"],
                {
                    column: LearningCost(
                        int(float(row[f"{column}_trajectories"])), float(row[f"{column}_seconds"])
                    )
                    for column in LEARNING_COLUMNS
                },
            )
            for row in csv.DictReader(file)
        }
