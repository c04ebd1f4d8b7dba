"""What `rfmdp reproduce` does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rfmdp.errors import ModelError

if TYPE_CHECKING:
    from rfmdp.campaign.records import Record, Task

CERTIFIED, NOT_CERTIFIED = 0, 2


def reproduce(
    what: str, domains: str, radii: str, methods: str, quick: bool, timeout: float, output: str
) -> int:
    """Run a campaign and return the exit code."""
    if what != "solving":
        raise ModelError(f"reproduce: must be 'solving', got '{what}'.")
    from rfmdp.paper.solving import reproduce_solving, solving_plan
    from rfmdp.paper.solving_text import differences, summary

    plan = solving_plan(
        domains=_words(domains),
        radii=_numbers(radii),
        methods=_words(methods),
        quick=quick,
        timeout=timeout,
    )
    table = reproduce_solving(plan, output, told=_tell)
    print("\n".join(summary(table)))
    print("\nDifferences:\n" + "\n".join(f"- {text}" for text in differences(table)))
    for left in plan.left_out:
        print(f"Left out: {left.method} on {left.domain}, {left.reason}.")
    print(f"\nWritten: {output}/solving.html, .md, .csv, .svg, .png")
    bad = any(x.agrees is False and not x.explanation for x in table.lines)
    open_ = any(not x.record.finished for x in table.lines)
    return NOT_CERTIFIED if bad or open_ else CERTIFIED


def _tell(task: Task, record: Record | None, number: int, tasks: int) -> None:
    """Say how far it is; one line per run, at a terminal also while it runs."""
    head = f"[{number}/{tasks}] {task.domain} {task.radius:g} {task.method}"
    if record is None:
        if sys.stderr.isatty():
            print(f"{head} ...", end="\r", file=sys.stderr, flush=True)
        return
    value = "no value" if record.value is None else f"{record.value:.6f}"
    one_sided = record.status == "GAP_OPEN" and record.relative_width is None
    status = "one side proven" if one_sided else record.status.lower().replace("_", " ")
    end = record.message or status
    print(f"{head}: {value}, {record.seconds_solve:.2f} s, {end}", file=sys.stderr, flush=True)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in _words(text)]
    except ValueError:
        raise ModelError(f"--radii must be numbers such as 0.01,0.025; got '{text}'.") from None
