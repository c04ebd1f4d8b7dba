"""`rfmdp reproduce`: the published tables and figures again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rfmdp.cli.options import Jobs, Scheduler

if TYPE_CHECKING:
    from rfmdp.paper.solving_runs import Record, Task


def command(
    what: Annotated[str, typer.Argument(help="Which table: solving.")],
    domains: Annotated[str, typer.Option(help="Domains: chain,herman,... All by default.")] = "",
    radii: Annotated[
        str, typer.Option(help="Radii: 0.01,0.025,... The published by default.")
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Methods: exact,interval,vertices,mccormick,mccormick:simplex,mccormick:printed."
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Radius 0.025 and fast methods only.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds per run, at most.")] = 900.0,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Folder to write to.")
    ] = "reproduced",
) -> None:
    """Solve the published table again and compare.

    Writes one record per run, and CSV, Markdown, HTML and a figure. Started again on the same
    folder it goes on where it was. Runs go side by side, one core each; with `--jobs 1` one after
    the other, with all cores. Exit code 2 if a printed value differs without explanation.
    """
    from rfmdp.campaign.runner import place
    from rfmdp.cli.words import check_positive, number
    from rfmdp.errors import ModelError
    from rfmdp.paper.solving import reproduce_solving, solving_plan
    from rfmdp.paper.solving_text import differences, summary

    if what != "solving":
        raise ModelError(f"reproduce: must be 'solving', got '{what}'.")
    check_positive("--timeout", timeout)
    check_positive("--jobs", jobs)
    plan = solving_plan(
        domains=_words(domains),
        radii=[number("--radii", word) for word in _words(radii)],
        methods=_words(methods),
        quick=quick,
        timeout=timeout,
    )
    table = reproduce_solving(plan, output, told=_tell, runner=place(jobs, scheduler))
    print("\n".join(summary(table)))
    print("\nDifferences:\n" + "\n".join(f"- {text}" for text in differences(table)))
    for left in plan.left_out:
        print(f"Left out: {left.method} on {left.domain}, {left.reason}.")
    print(f"\nWritten: {output}/solving.html, .md, .csv, .svg, .png")
    raise typer.Exit(0 if table.fine else 2)


def _tell(task: Task, record: Record, number: int, tasks: int) -> None:
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


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
