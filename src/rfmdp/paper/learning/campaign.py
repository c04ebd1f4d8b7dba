"""The published learning curves again: tasks, curves over seeds, what a guarantee costs, files.

    plan = learning_plan(domains=["aircraft"], seeds=range(3))
    table = reproduce_learning(plan, "out")

Runs may be killed at any time: what is finished stays, evaluation by evaluation, and the next call
goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from rfmdp.campaign.records import RecordDone, RecordFolder, make_folder
from rfmdp.campaign.runner import Runner, make_runner
from rfmdp.domains.table import DOMAINS, find
from rfmdp.errors import ModelError
from rfmdp.learning import methods as known
from rfmdp.objective import MAX
from rfmdp.paper.campaigns import CampaignPlan, LeftOut
from rfmdp.paper.learning.curves import METHODS, LearningTable, curves_of, find_method
from rfmdp.paper.learning.report import write_table
from rfmdp.paper.learning.runs import (
    LearningRecord,
    LearningTask,
    RunContext,
    TaskProgress,
    model_digest,
    run_task,
)
from rfmdp.paper.learning.settings import SEEDS, SETUPS, TRAJECTORIES, find_setting

TIMEOUT = 3600.0  # seconds per run
QUICK = {  # trajectories with which --quick, one seed, takes about five minutes on two cores
    "aircraft": TRAJECTORIES,
    "frozen_lake": 10_000,
    "stock_trading": TRAJECTORIES,
    "sysadmin": 20_000,
    "drone": 3_000,
}
QUICK_METHODS = ("paper-mccormick", "anytime", "tied")  # where --quick runs fewer trajectories


def learning_plan(
    *,
    domains: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Iterable[int] | None = None,
    trajectories: int | None = None,
    settings: Sequence[str] = ("text",),
    quick: bool = False,
    timeout: float = TIMEOUT,
) -> CampaignPlan[LearningTask]:
    """Return the runs of a campaign, those of the first seed first.

    Parameters
    ----------
    domains, methods
        What to run, all by default.
    seeds, trajectories
        Which seeds, and the trajectories of every run; 10 seeds and 10^6 by default.
    settings
        Readings of the published experiments: text, code.
    quick
        One seed; on large domains fewer trajectories, and the quickest methods only.
    timeout
        Seconds per run.
    """
    names = [_learned(name) for name in domains] or list(SETUPS)
    words = [find_method(word).word for word in methods] or list(METHODS)
    out = [
        LeftOut(name, word, reason)
        for word in words
        for name in names
        if (reason := _reason(name, word, quick and word not in methods))
    ]
    without = {(x.domain, x.method) for x in out}
    full = QUICK if quick else dict.fromkeys(SETUPS, TRAJECTORIES)
    tasks = tuple(
        LearningTask(
            name, word, seed, trajectories or full[name], timeout, find_setting(setting).name
        )
        for seed in (range(1 if quick else SEEDS) if seeds is None else seeds)
        for setting in settings
        for word in words
        for name in names
        if (name, word) not in without
    )
    return CampaignPlan(tasks, tuple(out))


def _learned(name: str) -> str:
    """Return the name of a domain that was learned."""
    found = find(name).name
    if found not in SETUPS:
        raise ModelError(f"Domain {found} was not learned; those that were: {', '.join(SETUPS)}.")
    return found


def _reason(name: str, word: str, quick: bool) -> str:
    """Return why a method does not learn a domain; empty if it does."""
    if quick and QUICK[name] < TRAJECTORIES and word not in QUICK_METHODS:
        return "not part of --quick"
    if known.find_method(word).rollout > 0.0 and DOMAINS[name].agent is not MAX:
        return "the cost of a rollout that is cut off bounds no expected cost"
    return ""


def reproduce_learning(
    plan: CampaignPlan[LearningTask],
    folder: str | PathLike[str],
    done: RecordDone[LearningTask, LearningRecord] | None = None,
    progress: TaskProgress | None = None,
    runner: Runner | None = None,
) -> LearningTable:
    """Run what is missing, and report on all runs of the folder, also of earlier plans.

    A run is saved at every evaluation, its record is written at its end. Files in `folder`:
    `records/*.json`, `runs/*.rfmdp` of runs that can go on, and those of `report_learning`.

    Parameters
    ----------
    done
        Called here after each run.
    progress
        Called in the processes that learn.
    runner
        All local cores by default.
    """
    context = RunContext(str(make_folder(Path(folder) / "runs").resolve()), progress)

    def finish(task: LearningTask, record: LearningRecord, number: int, tasks: int) -> None:
        if record.done >= TRAJECTORIES:  # the record is written, and nobody wants more
            context.file(task).unlink(missing_ok=True)
        if done is not None:
            done(task, record, number, tasks)

    records = RecordFolder(Path(folder) / "records", LearningRecord)
    records.run_missing(plan.tasks, runner or make_runner(), run_task, context, finish)
    return report_learning(folder, plan.left_out)


def report_learning(folder: str | PathLike[str], left_out: Sequence[LeftOut] = ()) -> LearningTable:
    """Write what the records of a folder say, and return it as a table.

    Files: `learning.csv`, `learning.md`, `learning.html`, and a figure per setting,
    `learning-text.svg` and `.png`. Records of models that have changed since are passed over.
    """
    records = RecordFolder(Path(folder) / "records", LearningRecord).all()
    records.sort(key=lambda record: (record.setting, record.seed))
    curves = curves_of([r for r in records if r.model == model_digest(r.domain)])
    table = LearningTable(curves, tuple(left_out))
    if table.curves:
        write_table(table, Path(folder))
    return table
