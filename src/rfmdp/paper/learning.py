"""The published learning curves again: tasks, curves over seeds, what a guarantee costs, files.

    plan = learning_plan(domains=["aircraft"], seeds=3)
    table = reproduce_learning(plan, "out")

Runs may be killed at any time: what is finished stays, evaluation by evaluation, and the next call
goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from rfmdp.campaign.records import run_missing
from rfmdp.campaign.runner import Runner, place
from rfmdp.campaign.store import Store
from rfmdp.errors import ModelError
from rfmdp.paper.domains.table import find
from rfmdp.paper.learning_methods import METHODS, find_method
from rfmdp.paper.learning_runs import Place, Record, Task, Tell, Told, learned
from rfmdp.paper.learning_settings import find_setting
from rfmdp.paper.learning_setup import SETUPS

SEEDS = 10
TRAJECTORIES = 1_000_000
TIMEOUT = 3600.0  # seconds per run


def learning_plan(
    *,
    domains: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Iterable[int] = range(SEEDS),
    trajectories: int = TRAJECTORIES,
    settings: Sequence[str] = ("text",),
    timeout: float = TIMEOUT,
) -> tuple[Task, ...]:
    """Return the runs of a campaign, those of the first seed first.

    Parameters
    ----------
    domains, methods
        What to run, all by default.
    seeds, trajectories
        Which seeds, and the trajectories of every run.
    settings
        Readings of the published experiments: text, code.
    timeout
        Seconds per run.
    """
    names = [_learned(name) for name in domains] or list(SETUPS)
    words = [find_method(word).word for word in methods] or [m.word for m in METHODS]
    read = [find_setting(name).name for name in settings]
    return tuple(
        Task(name, word, seed, trajectories, timeout, setting)
        for seed in seeds
        for setting in read
        for word in words
        for name in names
    )


def _learned(name: str) -> str:
    """Return the name of a domain that was learned."""
    found = find(name).name
    if found not in SETUPS:
        raise ModelError(f"Domain {found} was not learned; those that were: {', '.join(SETUPS)}.")
    return found


def run_learning(
    plan: Sequence[Task],
    folder: str | PathLike[str],
    told: Told | None = None,
    tell: Tell | None = None,
    runner: Runner | None = None,
) -> None:
    """Run what is missing: `records/*.json`, and `runs/*.rfmdp` of what is not finished."""
    runs = Store(Path(folder) / "runs").folder
    shared = Place(str(runs.resolve()), tell)

    def keep(task: Task, record: Record, number: int, tasks: int) -> None:
        if record.done >= task.trajectories:  # the record is written: nothing to go on with
            shared.file(task).unlink(missing_ok=True)
        if told is not None:
            told(task, record, number, tasks)

    store = Store(Path(folder) / "records")
    run_missing(plan, Record, store, runner or place(), learned, shared, keep)
