"""The solving table: its columns are methods, its lines records beside what was printed."""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.errors import ModelError
from rfmdp.paper.campaigns import LeftOut
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.published import EXPLAINED, Published
from rfmdp.paper.solving.runs import SolvingRecord


@dataclass(frozen=True, slots=True)
class SolvingMethod:
    """A column of the campaign.

    word : its name in `rfmdp.inner.METHODS`
    column : the published column that it is compared with
    left_out : domains that are not run unless asked for by name, with the reason
    """

    word: str
    title: str
    column: str
    left_out: dict[str, str]


SLOW_LPS = {
    "drone": "1.6 million LPs per sweep: about 15 minutes a sweep",
    "frozen_lake": "204,310 LPs per sweep, 13 and more sweeps: about 20 minutes a run",
    "sysadmin": "174,603 LPs with up to 2,000 variables: 10 to 20 minutes a run",
}
METHODS = (
    SolvingMethod("exact", "exact", "exact", {}),
    SolvingMethod("interval", "interval arithmetic", "interval", {}),
    SolvingMethod("vertices", "vertex enumeration", "exact", {}),
    SolvingMethod("mccormick", "McCormick, marginalised", "mccormick", SLOW_LPS),
    SolvingMethod("mccormick:simplex", "McCormick, sum p = 1", "mccormick", SLOW_LPS),
    SolvingMethod("mccormick:printed", "McCormick, as printed", "mccormick", SLOW_LPS),
)
BY_WORD = {method.word: method for method in METHODS}


def find_method(word: str) -> SolvingMethod:
    """Return a method by its word."""
    if word not in BY_WORD:
        raise ModelError(f"There is no method '{word}'; there are: {', '.join(BY_WORD)}.")
    return BY_WORD[word]


@dataclass(frozen=True, slots=True)
class TableLine:
    """A record beside what was printed for it."""

    record: SolvingRecord
    method: SolvingMethod
    printed: Published | None

    @property
    def agrees(self) -> bool | None:
        """Whether the value is the printed one to its digits; None where nothing is compared."""
        comparable = self.method.word == self.method.column
        if self.printed is None or self.record.value is None or not comparable:
            return None
        return self.printed.agrees(self.record.value)

    @property
    def explanation(self) -> str:
        """Why the printed value differs; empty if it agrees or nobody knows."""
        key = (self.record.domain, self.record.radius, self.method.column)
        return EXPLAINED.get(key, "") if self.agrees is False else ""


@dataclass(frozen=True, slots=True)
class SolvingTable:
    """All lines of a campaign, and what was left out."""

    lines: tuple[TableLine, ...]
    left_out: tuple[LeftOut, ...]

    def of(self, domain: str, radius: float, method: str) -> TableLine | None:
        """Return one line."""
        key = (domain, radius, method)
        found = (x for x in self.lines if (x.record.domain, x.record.radius, x.method.word) == key)
        return next(found, None)

    @property
    def domains(self) -> list[str]:
        """The domains that have lines, in order."""
        have = {line.record.domain for line in self.lines}
        return [name for name in DOMAINS if name in have]

    @property
    def radii(self) -> list[float]:
        """The radii that have lines."""
        return sorted({line.record.radius for line in self.lines})

    @property
    def methods(self) -> list[SolvingMethod]:
        """The methods that have lines, in order."""
        have = {line.method.word for line in self.lines}
        return [method for method in METHODS if method.word in have]

    @property
    def fine(self) -> bool:
        """Whether all runs are finished and no value differs without a reason."""
        finished = all(line.record.finished for line in self.lines)
        return finished and not any(x.agrees is False and not x.explanation for x in self.lines)

    @property
    def compared(self) -> list[TableLine]:
        """Lines with a printed value."""
        return [line for line in self.lines if line.agrees is not None]
