"""The published tables: values as printed, seconds on 40 cores.

A printed value is a text, because its digits say how far it can agree.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
COLUMNS = ("exact", "interval", "mccormick")
LEARNING_COLUMNS = ("flat", "l1", "interval", "mccormick")
RADII = (0.01, 0.02, 0.025, 0.03, 0.04, 0.1)


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


# costs whose printed value is that of an iteration from below that stopped early; notes.md has why
STOPPED = {
    ("chain", 0.025, "interval"),
    ("chain", 0.1, "exact"),
    ("chain", 0.1, "interval"),
    ("chain", 0.1, "mccormick"),
    ("frozen_lake", 0.1, "interval"),
}


@cache
def published_table() -> dict[tuple[str, float, str], Published]:
    """Return the printed values by domain, radius and column."""
    with (FOLDER / "published_solving.csv").open(encoding="utf-8") as file:
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
    with (FOLDER / "published_learning.csv").open(encoding="utf-8") as file:
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
