"""`python -m experiments.learning`: the published learning curves again, beside what was printed.

Runs may be killed at any time: what is finished stays, evaluation by evaluation, and the same
command goes on from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import rfmdp as rf
from experiments.command import DONE, WRONG, ending, options, records_file, say, seeds, words
from experiments.learning.curves import METHODS, LearningTable, curves_of, find_method
from experiments.learning.report import full_cost, method_order, summary, write_table
from experiments.learning.runs import (
    LearningRecord,
    LearningTask,
    ProgressLines,
    RunContext,
    TaskProgress,
    model_digest,
    run_task,
)
from experiments.learning.settings import SEEDS, SETUPS, TRAJECTORIES, find_setting
from experiments.records import LeftOut, Plan, RecordTable, make_folder
from rfmdp.domains import find
from rfmdp.errors import ModelError

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
) -> Plan[LearningTask]:
    """Return the runs of the curves, those of the first seed first.

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
    methods_run = [find_method(word).word for word in methods] or list(METHODS)
    out = [
        LeftOut(name, word, reason)
        for word in methods_run
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
        for word in methods_run
        for name in names
        if (name, word) not in without
    )
    return Plan(tasks, tuple(out))


def _learned(name: str) -> str:
    """Return the name of a domain that was learned."""
    domain = find(name).name
    if domain not in SETUPS:
        raise ModelError(f"Domain {domain} was not learned; those that were: {', '.join(SETUPS)}.")
    return domain


def _reason(name: str, word: str, quick: bool) -> str:
    """Return why a method does not learn a domain; empty if it does."""
    if quick and QUICK[name] < TRAJECTORIES and word not in QUICK_METHODS:
        return "not part of --quick"
    return ""


def run_learning(
    plan: Plan[LearningTask],
    file: str | Path,
    folder: str | Path,
    progress: TaskProgress | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> list[rf.TaskResult]:
    """Run what is missing in a table of records; return the results of those that failed.

    A run is saved at every evaluation in `folder/runs`, its record is written at its end.
    """
    context = RunContext(str(make_folder(Path(folder) / "runs").resolve()), progress)

    def finish(result: rf.TaskResult, number: int, tasks: int) -> None:
        if result.error is None and result.value.done >= TRAJECTORIES:  # nobody wants more
            context.file(result.task).unlink(missing_ok=True)
        _say_learned(result, number, tasks)

    make_folder(Path(file).parent)
    return RecordTable(file, LearningRecord).run_missing(
        plan.tasks, partial(run_task, context), finish, jobs=jobs, scheduler=scheduler
    )


def report_learning(
    file: str | Path, folder: str | Path, left_out: Sequence[LeftOut] = ()
) -> LearningTable:
    """Write what the records of a file say into a folder, and return it as a table.

    Files: `learning.csv`, `learning.md`, and a figure per setting, `learning-text.svg` and `.png`.
    Records of models that have changed since are passed over.
    """
    records = sorted(
        RecordTable(file, LearningRecord).read().values(),
        key=lambda record: (record.setting, record.domain, record.method, record.seed),
    )
    curves = curves_of([r for r in records if r.model == model_digest(r.domain)])
    table = LearningTable(curves, tuple(left_out))
    if table.curves:
        write_table(table, make_folder(folder))
    return table


def main(arguments: Sequence[str]) -> int:
    """Run what is missing, write the files, and print a summary."""
    parser = options("learning", "Learn the published curves again and compare.", TIMEOUT)
    parser.add_argument("--seeds", help="how many seeds, or which: 0,3,4; default: 10")
    parser.add_argument("--trajectories", type=int, help="of every run; default: 1000000")
    parser.add_argument(
        "--setting", default="text", help="as the paper's text or its code has it: text, code"
    )
    given = parser.parse_args(arguments)
    file = records_file(given, "learning")
    plan = learning_plan(
        domains=words(given.domains),
        methods=words(given.methods),
        seeds=None if given.seeds is None else seeds(given.seeds),
        trajectories=given.trajectories,
        settings=words(given.setting),
        quick=given.quick,
        timeout=given.timeout,
    )
    failed = []
    if not given.report:
        where = {"jobs": given.jobs, "scheduler": given.scheduler}
        failed = run_learning(plan, file, given.output, ProgressLines(), **where)
    table = report_learning(file, given.output, plan.left_out)
    print("\n".join(summary(table)))
    for curves in table.by_setting.values():
        print("\n".join([*method_order(curves), *full_cost(curves)]))
    if table.curves:
        print(f"\nWritten: {given.output}/learning.md, .csv, and a figure per setting")
    return WRONG if failed else DONE


def _say_learned(result: rf.TaskResult, number: int, tasks: int) -> None:
    """Say what a run gave, in one line."""
    record = result.value
    outcome = str(result.error).partition("\n")[0]
    if record is not None and record.history:
        last = record.history[-1]
        outcome = (
            f"guarantee {_number(last['guarantee'])}, true value {_number(last['performance'])} "
            f"after {last['trajectories']} trajectories, {last['processor']:.1f} s, "
            f"{record.message or record.stopped}"
        )
    elif record is not None:
        outcome = f"nothing, {record.message or record.stopped}"
    say(f"[{number}/{tasks}] {result.task.key}: {outcome}")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


if __name__ == "__main__":
    sys.exit(ending(lambda: main(sys.argv[1:])))
