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

from rfmdp.campaign.records import read, run_missing
from rfmdp.campaign.runner import Runner, place
from rfmdp.campaign.store import Store
from rfmdp.errors import ModelError
from rfmdp.learning.methods import find_method as find_known
from rfmdp.objective import MAX
from rfmdp.paper.domains.table import DOMAINS, find
from rfmdp.paper.learning_curves import LearningTable, curves_of
from rfmdp.paper.learning_methods import METHODS, find_method
from rfmdp.paper.learning_runs import (
    LearningRecord,
    LearningTask,
    Place,
    Tell,
    Told,
    learned,
    model_digest,
)
from rfmdp.paper.learning_settings import find_setting
from rfmdp.paper.learning_setup import SETUPS
from rfmdp.paper.plan import CampaignPlan, LeftOut

SEEDS = 10
TRAJECTORIES = 1_000_000
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
    words = [find_method(word).word for word in methods] or [m.word for m in METHODS]
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
    if find_known(word).rollout > 0.0 and DOMAINS[name].agent is not MAX:
        return "the cost of a rollout that is cut off bounds no expected cost"
    return ""


def reproduce_learning(
    plan: CampaignPlan[LearningTask],
    folder: str | PathLike[str],
    told: Told | None = None,
    tell: Tell | None = None,
    runner: Runner | None = None,
) -> LearningTable:
    """Run what is missing, write CSV, Markdown, HTML and figures, and return the table.

    Files in `folder`: `records/*.json`, `runs/*.rfmdp` of runs that can go on, `learning.csv`,
    `learning.md`, `learning.html`, and a figure per setting, `learning-text.svg` and `.png`.
    `tell` is called in the processes that learn.
    """
    run_learning(plan, folder, told, tell, runner)
    return write_learning(plan, folder)


def run_learning(
    plan: CampaignPlan[LearningTask],
    folder: str | PathLike[str],
    told: Told | None = None,
    tell: Tell | None = None,
    runner: Runner | None = None,
) -> None:
    """Run what is missing; a run is saved at every evaluation, and its record at its end."""
    runs = Store(Path(folder) / "runs").folder
    shared = Place(str(runs.resolve()), tell)

    def keep(task: LearningTask, record: LearningRecord, number: int, tasks: int) -> None:
        if record.done >= TRAJECTORIES:  # the record is written, and nobody wants more
            shared.file(task).unlink(missing_ok=True)
        if told is not None:
            told(task, record, number, tasks)

    store = Store(Path(folder) / "records")
    run_missing(plan.tasks, LearningRecord, store, runner or place(), learned, shared, keep)


def write_learning(plan: CampaignPlan[LearningTask], folder: str | PathLike[str]) -> LearningTable:
    """Write the files of a campaign from its records; runs without record are left out."""
    from rfmdp.paper.learning_files import write_files

    store = Store(Path(folder) / "records")
    digests = {name: model_digest(name) for name in SETUPS}
    found = [read(store, task, LearningRecord) for task in plan.tasks]
    records = [r for r in found if r is not None and r.model == digests[r.domain]]
    table = LearningTable(curves_of(records), plan.left_out)
    write_files(table, Path(folder))
    return table
