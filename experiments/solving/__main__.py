"""`python -m experiments.solving`: the published solving table again, beside what was printed.

Runs may be killed at any time: what is finished stays, and the same command goes on from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import rfmdp as rf
from experiments.command import DIFFERENT, DONE, WRONG, ending, options, records_file, say, words
from experiments.published import RADII
from experiments.records import LeftOut, Plan, RecordTable, make_folder
from experiments.solving.report import SolvingTable, differences, summary, write_table
from experiments.solving.runs import (
    METHODS,
    SolvingRecord,
    SolvingTask,
    find_method,
    model_digest,
    run_task,
)
from rfmdp.domains import DOMAINS, find
from rfmdp.errors import ModelError

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
) -> Plan[SolvingTask]:
    """Return the runs of the table.

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
    methods_run = [find_method(word).word for word in methods] or list(METHODS)
    sizes = list(radii) or ([QUICK_RADIUS] if quick else list(RADII))
    if not all(0.0 < radius < 1.0 for radius in sizes):
        raise ModelError(f"Radii must lie between 0 and 1, got {sizes}.")
    tasks: list[SolvingTask] = []
    left_out: list[LeftOut] = []
    for name in names:
        for word in methods_run:
            reason = "" if name in domains and word in methods else _reason(name, word, quick)
            if reason:
                left_out.append(LeftOut(name, word, reason))
                continue
            tasks += [SolvingTask(name, radius, word, timeout) for radius in sorted(sizes)]
    return Plan(tuple(tasks), tuple(left_out))


def _reason(name: str, word: str, quick: bool) -> str:
    """Return why a method is not run on a domain unless both are named; empty if it is."""
    if quick and word not in QUICK_METHODS and name not in QUICK_LPS:
        return "not part of --quick"
    return METHODS[word].left_out.get(name, "")


def report_solving(
    file: str | Path, folder: str | Path, left_out: Sequence[LeftOut] = ()
) -> SolvingTable:
    """Write what the records of a file say into a folder, and return it as a table.

    Files: `solving.csv`, `solving.md`, `solving.svg` and `solving.png`. Records of models that
    have changed since are passed over.
    """
    every = RecordTable(file, SolvingRecord).read().values()
    records = [r for r in every if r.model == model_digest(r.domain)]
    domains, methods = list(DOMAINS), list(METHODS)
    records.sort(key=lambda r: (domains.index(r.domain), methods.index(r.method), r.radius))
    table = SolvingTable(tuple(records), tuple(left_out))
    if table.records:
        write_table(table, make_folder(folder))
    return table


def main(arguments: Sequence[str]) -> int:
    """Run what is missing, write the files, and print a summary."""
    parser = options("solving", "Solve the published table again and compare.", TIMEOUT)
    parser.add_argument("--radii", default="", help="0.01,0.025,...; default: the published")
    given = parser.parse_args(arguments)
    file = records_file(given, "solving")
    plan = solving_plan(
        domains=words(given.domains),
        radii=[float(word) for word in words(given.radii)],
        methods=words(given.methods),
        quick=given.quick,
        timeout=given.timeout,
    )
    failed = []
    if not given.report:
        make_folder(file.parent)
        failed = RecordTable(file, SolvingRecord).run_missing(
            plan.tasks, run_task, _say_solved, jobs=given.jobs, scheduler=given.scheduler
        )
    table = report_solving(file, given.output, plan.left_out)
    print("\n".join(summary(table)))
    print("\nDifferences:\n" + "\n".join(f"- {text}" for text in differences(table)))
    for left in plan.left_out:
        print(f"Left out: {left}.")
    if table.records:
        print(f"\nWritten: {given.output}/solving.md, .csv, .svg, .png")
    if failed:
        return WRONG
    return DONE if table.fine else DIFFERENT


def _say_solved(result: rf.TaskResult, number: int, tasks: int) -> None:
    """Say what a run gave, in one line."""
    if result.error is not None:
        say(f"[{number}/{tasks}] {result.task.key}: {str(result.error).partition(chr(10))[0]}")
        return
    record = result.value
    value = "no value" if record.value is None else f"{record.value:.6f}"
    one_sided = record.status == "GAP_OPEN" and record.relative_width is None
    status = "one side proven" if one_sided else record.status.lower().replace("_", " ")
    say(
        f"[{number}/{tasks}] {record.key}: {value}, {record.seconds_solve:.2f} s, "
        f"{record.message or status}"
    )


if __name__ == "__main__":
    sys.exit(ending(lambda: main(sys.argv[1:])))
