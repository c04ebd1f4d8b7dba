"""The published solving table again: tasks, comparison with what was printed, files.

    plan = solving_plan(domains=["chain"], radii=[0.025])
    table = reproduce_solving(plan, "out")

Runs may be killed at any time: what is finished stays, and the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from rfmdp.campaign.records import RecordDone, RecordFolder
from rfmdp.campaign.runner import Runner, make_runner
from rfmdp.domains.table import DOMAINS, find
from rfmdp.errors import ModelError
from rfmdp.paper.campaigns import CampaignPlan, LeftOut
from rfmdp.paper.published import RADII
from rfmdp.paper.solving.report import SolvingTable, write_table
from rfmdp.paper.solving.runs import (
    METHODS,
    SolvingRecord,
    SolvingTask,
    find_method,
    model_digest,
    run_task,
)

TIMEOUT = 900.0  # seconds per run
QUICK_RADIUS = 0.025
QUICK_METHODS = ("exact", "interval")
QUICK_LPS = ("chain",)  # where --quick also runs LPs and vertices: seconds


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
    words = [find_method(word).word for word in methods] or list(METHODS)
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
    return METHODS[word].left_out.get(name, "")


def reproduce_solving(
    plan: CampaignPlan[SolvingTask],
    folder: str | PathLike[str],
    done: RecordDone[SolvingTask, SolvingRecord] | None = None,
    runner: Runner | None = None,
) -> SolvingTable:
    """Run what is missing, and report on all runs of the folder, also of earlier plans.

    Files in `folder`: `records/*.json`, and those of `report_solving`. By default one run after
    the other, each with all cores, so that seconds can be compared; `make_runner(jobs)` runs them
    side by side.
    """
    records = RecordFolder(Path(folder) / "records", SolvingRecord)
    records.run_missing(plan.tasks, runner or make_runner(jobs=1), run_task, done=done)
    return report_solving(folder, plan.left_out)


def report_solving(folder: str | PathLike[str], left_out: Sequence[LeftOut] = ()) -> SolvingTable:
    """Write what the records of a folder say, and return it as a table.

    Files: `solving.csv`, `solving.md`, `solving.html`, `solving.svg` and `solving.png`. Records of
    models that have changed since are passed over.
    """
    every = RecordFolder(Path(folder) / "records", SolvingRecord).all()
    records = [r for r in every if r.model == model_digest(r.domain)]
    domains, methods = list(DOMAINS), list(METHODS)
    records.sort(key=lambda r: (domains.index(r.domain), methods.index(r.method), r.radius))
    table = SolvingTable(tuple(records), tuple(left_out))
    if table.records:
        write_table(table, Path(folder))
    return table
