"""The published solving table again: tasks, comparison with what was printed, files.

    plan = solving_plan(domains=["chain"], radii=[0.025])
    table = reproduce_solving(plan, "out")

Runs may be killed at any time: what is finished stays, and the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from rfmdp.campaign.records import read, run_missing
from rfmdp.campaign.runner import Runner, place
from rfmdp.campaign.store import Store
from rfmdp.errors import ModelError
from rfmdp.paper.domains.table import DOMAINS, find
from rfmdp.paper.methods import METHODS, QUICK_METHODS, SolvingMethod, find_method
from rfmdp.paper.plan import CampaignPlan, LeftOut
from rfmdp.paper.published import EXPLAINED, RADII, Published, published_table
from rfmdp.paper.solving_runs import SolvingRecord, SolvingTask, Told, model_digest, solved

TIMEOUT = 900.0  # seconds per run
QUICK_RADIUS = 0.025
QUICK_LPS = ("chain",)  # where --quick also runs LPs and vertices: seconds


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


def solving_plan(
    *,
    domains: Sequence[str] = (),
    radii: Iterable[float] = (),
    methods: Sequence[str] = (),
    quick: bool = False,
    timeout: float = TIMEOUT,
) -> CampaignPlan[SolvingTask]:
    """Return the runs of a campaign.

    Parameters
    ----------
    domains, radii, methods
        What to run, all by default. A method runs on a domain where it takes very long only if
        both are named.
    quick
        Radius 0.025 only, exact and interval arithmetic everywhere, the others on Chain.
    timeout
        Seconds per run.
    """
    names = [find(name).name for name in domains] or list(DOMAINS)
    words = [find_method(word).word for word in methods] or [m.word for m in METHODS]
    chosen = list(radii) or ([QUICK_RADIUS] if quick else list(RADII))
    if not all(0.0 < radius < 1.0 for radius in chosen):
        raise ModelError(f"Radii must lie between 0 and 1, got {chosen}.")
    tasks: list[SolvingTask] = []
    left_out: list[LeftOut] = []
    for name in names:
        for word in words:
            reason = "" if name in domains and word in methods else _reason(name, word, quick)
            if reason:
                left_out.append(LeftOut(name, word, reason))
                continue
            tasks += [SolvingTask(name, radius, word, timeout) for radius in sorted(chosen)]
    return CampaignPlan(tuple(tasks), tuple(left_out))


def _reason(name: str, word: str, quick: bool) -> str:
    """Return why a method is not run on a domain unless asked for; empty if it is."""
    if quick and word not in QUICK_METHODS and name not in QUICK_LPS:
        return "not part of --quick"
    return find_method(word).left_out.get(name, "")


def reproduce_solving(
    plan: CampaignPlan[SolvingTask],
    folder: str | PathLike[str],
    told: Told | None = None,
    runner: Runner | None = None,
) -> SolvingTable:
    """Run what is missing, write CSV, Markdown, HTML and the figure, and return the table.

    Files in `folder`: `records/*.json`, `solving.csv`, `solving.md`, `solving.html`,
    `solving.svg` and `solving.png`. By default one run after the other, each with all cores, so
    that seconds can be compared; `place(jobs)` runs them side by side.
    """
    store = Store(Path(folder) / "records")
    run_missing(plan.tasks, SolvingRecord, store, runner or place(jobs=1), solved, told=told)
    return write_solving(plan, folder)


def write_solving(plan: CampaignPlan[SolvingTask], folder: str | PathLike[str]) -> SolvingTable:
    """Write the files of a campaign from its records; runs without record are left out."""
    from rfmdp.paper.solving_files import write_files

    store = Store(Path(folder) / "records")
    table = SolvingTable(tuple(_lines(plan, store)), plan.left_out)
    write_files(table, Path(folder))
    return table


def _lines(plan: CampaignPlan[SolvingTask], store: Store) -> Iterator[TableLine]:
    printed = published_table()
    digests = {name: model_digest(name) for name in {task.domain for task in plan.tasks}}
    for task in plan.tasks:
        record, method = read(store, task, SolvingRecord), find_method(task.method)
        if record is not None and record.model == digests[task.domain]:
            yield TableLine(record, method, printed.get((task.domain, task.radius, method.column)))
