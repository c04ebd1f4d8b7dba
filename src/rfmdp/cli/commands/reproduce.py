"""`rfmdp reproduce`: the published tables and figures again."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from rfmdp.cli.arguments import check_positive, number
from rfmdp.cli.options import Jobs, Scheduler
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, ProgressLines
from rfmdp.cli.signature import Option, command
from rfmdp.errors import FileError, ModelError

if TYPE_CHECKING:
    from rfmdp.learning.run import Progress
    from rfmdp.paper.learning.runs import LearningRecord, LearningTask
    from rfmdp.paper.solving.runs import SolvingRecord, SolvingTask

Domains = Annotated[str, Option("Domains: aircraft,drone,... All by default.")]
Output = Annotated[str, Option("Folder to write to.", "-o --output")]


@command
def solving(
    domains: Domains = "",
    radii: Annotated[str, Option("Radii: 0.01,0.025,... The published by default.")] = "",
    methods: Annotated[
        str,
        Option("Methods: exact,interval,vertices,mccormick,mccormick:simplex,mccormick:printed."),
    ] = "",
    quick: Annotated[bool, Option("Radius 0.025 and fast methods only.")] = False,
    timeout: Annotated[float, Option("Seconds per run, at most.")] = 900.0,
    output: Output = "reproduced",
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> int:
    """Solve the published table again and compare.

    Writes one record per run, and CSV, Markdown, HTML and a figure. Started again on the same
    folder it goes on where it was. Runs go side by side, one core each; with `--jobs 1` one after
    the other, with all cores. Exit code 2 if a printed value differs without explanation.
    """
    from rfmdp.campaign.runner import make_runner
    from rfmdp.paper.solving.campaign import reproduce_solving, solving_plan
    from rfmdp.paper.solving.report import differences, summary

    check_positive(timeout=timeout, jobs=jobs)
    plan = solving_plan(
        domains=_words(domains),
        radii=[number("--radii", word) for word in _words(radii)],
        methods=_words(methods),
        quick=quick,
        timeout=timeout,
    )
    table = reproduce_solving(plan, output, done=_print_solved, runner=make_runner(jobs, scheduler))
    print("\n".join(summary(table)))
    print("\nDifferences:\n" + "\n".join(f"- {text}" for text in differences(table)))
    for left in plan.left_out:
        print(f"Left out: {left}.")
    print(f"\nWritten: {output}/solving.html, .md, .csv, .svg, .png")
    return CERTIFIED if table.fine else NOT_CERTIFIED


@command
def learning(
    domains: Domains = "",
    methods: Annotated[
        str,
        Option("Methods of `rfmdp learn --method list`; default: the paper's four and ours."),
    ] = "",
    seeds: Annotated[str | None, Option("How many seeds, or which: 0,3,4. Default: 10.")] = None,
    trajectories: Annotated[
        int | None, Option("Trajectories of every run; default: 1000000.")
    ] = None,
    quick: Annotated[bool, Option("One seed; less on the large domains.")] = False,
    setting: Annotated[
        str, Option("As the paper's text or its code has it: text, code, or text,code.")
    ] = "text",
    timeout: Annotated[float, Option("Seconds per run, at most.")] = 3600.0,
    output: Output = "reproduced",
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Learn the published curves again and compare.

    Writes one record per run, and CSV, Markdown, HTML and figures. A run is saved at every
    evaluation: started again on the same folder, also after a kill, the campaign goes on there.
    Runs go side by side, one core each.
    """
    from rfmdp.campaign.runner import make_runner
    from rfmdp.paper.learning.campaign import learning_plan, reproduce_learning
    from rfmdp.paper.learning.text import full_cost, method_order, summary

    check_positive(trajectories=trajectories, timeout=timeout, jobs=jobs)
    plan = learning_plan(
        domains=_words(domains),
        methods=_words(methods),
        seeds=None if seeds is None else _seeds(seeds),
        trajectories=trajectories,
        settings=_words(setting),
        quick=quick,
        timeout=timeout,
    )
    progress = partial(_print_progress, ProgressLines())
    table = reproduce_learning(plan, output, _print_learned, progress, make_runner(jobs, scheduler))
    print("\n".join(summary(table)))
    for part in table.by_setting.values():
        print("\n".join(f"- {text}" for text in (*method_order(part), *full_cost(part))))
    for left in plan.left_out:
        print(f"Left out: {left}.")
    print(f"\nWritten: {output}/learning.html, .md, .csv, and learning-*.svg, .png")


@command
def report(output: Output = "reproduced") -> None:
    """Write tables, figures and pages of a folder again, from its records alone.

    They tell about all runs of the folder, of all commands that wrote there. Nothing is run.
    """
    from rfmdp.paper.learning.campaign import report_learning
    from rfmdp.paper.learning.text import summary as learned
    from rfmdp.paper.solving.campaign import report_solving
    from rfmdp.paper.solving.report import summary as solved

    if not Path(output, "records").is_dir():
        raise FileError(
            f"{output}: must be the folder of a campaign, found no records in it; run "
            "`rfmdp reproduce solving` or `learning` first, or name another folder (-o)."
        )
    table, curves = report_solving(output), report_learning(output)
    told = [*(solved(table) if table.records else ()), *(learned(curves) if curves.curves else ())]
    print("\n".join(told or ["No record is one of today's models."]))


reproduce = click.Group(
    "reproduce",
    commands=[solving, learning, report],
    no_args_is_help=False,  # one line that says what is missing
    help="""Make the published tables and figures again, and compare.

    A campaign leaves one record per run; started again on the same folder it goes on where it was.
    """,
)


def _print_solved(task: SolvingTask, record: SolvingRecord, number: int, tasks: int) -> None:
    """Say what a run gave, in one line."""
    value = "no value" if record.value is None else f"{record.value:.6f}"
    one_sided = record.status == "GAP_OPEN" and record.relative_width is None
    status = "one side proven" if one_sided else record.status.lower().replace("_", " ")
    print(
        f"[{number}/{tasks}] {task.domain} {task.radius:g} {task.method}: {value}, "
        f"{record.seconds_solve:.2f} s, {record.message or status}",
        file=sys.stderr,
        flush=True,
    )


def _print_learned(task: LearningTask, record: LearningRecord, number: int, tasks: int) -> None:
    """Say what a run of learning gave, in one line."""
    last = record.history[-1] if record.history else None
    told = "nothing" if last is None else (
        f"guarantee {_shown(last['guarantee'])}, true value {_shown(last['performance'])} after "
        f"{last['trajectories']} trajectories, {last['processor']:.1f} s"
    )  # fmt: skip
    print(
        f"[{number}/{tasks}] {_named(task)}: {told}, {record.message or record.stopped}",
        file=sys.stderr,
        flush=True,
    )


def _print_progress(lines: ProgressLines, task: LearningTask, now: Progress) -> None:
    """Say now and then how a run of learning goes."""
    if lines.due(now.seconds):
        print(
            f"{_named(task)}: {now.phase}, {now.trajectories} of {task.trajectories} "
            f"trajectories, {now.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def _named(task: LearningTask) -> str:
    return f"{task.domain} {task.method} ({task.setting}) seed {task.seed}"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _seeds(text: str) -> list[int]:
    """Return the seeds of `3` (the first three) or `0,4,5`."""
    words = _words(text)
    if not words or not all(word.isdecimal() for word in words) or text.strip() == "0":
        raise ModelError(f"--seeds must be a number, or seeds with commas, got '{text}'.")
    numbers = [int(word) for word in words]
    return numbers if "," in text else list(range(numbers[0]))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
