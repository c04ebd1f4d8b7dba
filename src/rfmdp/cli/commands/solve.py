"""`rfmdp solve`: answer properties of a model, with proven bounds."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import rfmdp as rf
from rfmdp.cli import arguments as args
from rfmdp.errors import ModelError
from rfmdp.writing import check_writable


@args.command
def solve(
    model: args.Model,
    props: args.Props = None,
    prop: args.Prop = (),
    const: Annotated[
        tuple[str, ...],
        "--const",
        "Constants: A=1,B=0.5; a range, of a radius too, is a run per value: C=1:3, p=0:0.1:1.",
    ] = (),
    radius: args.Radius = None,
    nominal: args.Nominal = False,
    inner: Annotated[
        str, "--inner", f"How nature's choice in a row is found: {args.INNER}."
    ] = "exact",
    precision: args.Precision = 1e-6,
    absolute: Annotated[bool, "--absolute", "The wanted width is absolute."] = False,
    automaton: Annotated[
        str | None,
        "--automaton",
        "HOA file of a deterministic parity automaton for the path formula.",
    ] = None,
    timeout: Annotated[
        float | None,
        "--timeout",
        "Seconds per property, building included; default: no limit.",
    ] = None,
    jobs: args.Jobs = None,
    scheduler: args.Scheduler = None,
    as_json: args.Json = False,
    output: Annotated[
        str | None,
        "-o",
        "--output",
        "File of the solution, for `verify` and so on; .csv: of its policy.",
    ] = None,
    export_policy: Annotated[str | None, "--export-policy", "File of the policy, .csv."] = None,
    quiet: args.Quiet = False,
    verbose: Annotated[bool, "--verbose", "Also print seconds by phase, and sweeps."] = False,
) -> int:
    """Answer properties of a model, with proven bounds and a policy.

    Prints a table and `Result: VALUE` per property. Exit code 0: certified, 1: an error,
    2: finished, but not certified. A domain has a property of its own.
    """
    started = time.monotonic()
    from rfmdp.answers.answer import work_of
    from rfmdp.cli.answers import Printer, replies, replies_of_run, write_files
    from rfmdp.cli.models import properties_about, read_blueprint
    from rfmdp.kernels.decorator import interpreting

    runs = args.experiments(const, radius)
    args.inner_method(inner)  # a wrong word is known before the model is built
    args.check_positive(timeout=timeout, jobs=jobs)
    limits = rf.Limits(
        precision,
        rf.Measure.ABSOLUTE if absolute else rf.Measure.RELATIVE,
        math.inf if timeout is None else timeout,
    )
    files = [file for file in (export_policy, output) if file is not None]
    for file in files:
        check_writable(file)
    requests = properties_about(model, props, prop)
    for count, what, choice in (
        (len(requests), "property", "choose one with --prop"),
        (len(runs), "run", "give one value in place of each range, or --json for all"),
    ):
        if count > 1 and files:
            raise ModelError(f"A file holds one {what}, found {count}; {choice}.")
    blueprint = read_blueprint(model)
    if len(runs) == 1:  # reading counts as well
        remaining = max(limits.seconds - (time.monotonic() - started), 1e-9)
        limits = replace(limits, seconds=remaining)
    request: dict[str, Any] = {
        "blueprint": blueprint, "properties": requests, "nominal": nominal, "inner": inner,
        "limits": limits, "automaton": automaton, "verbose": verbose,
    }  # fmt: skip
    together = scheduler is not None and len(runs) == 1 and inner == "exact"
    if together:  # can it be solved in blocks?
        together = blueprint.parsed is not None
        together &= work_of(blueprint, requests, runs[0].constants) is not None
    printer = Printer(as_json=as_json, quiet=quiet)
    with interpreting():
        if together or (len(runs) == 1 and scheduler is None):
            for reply in replies(runs[0], **request, scheduler=scheduler, quiet=quiet):
                printer.show(write_files(reply, files))
            return printer.code
        if files:
            raise ModelError(
                "--scheduler: a file is made of one model in the PRISM language and one P or R "
                "with a target, a bound of steps or a discount; leave out --scheduler."
            )
        work = partial(replies_of_run, **request)
        rf.run_many(work, runs, jobs=jobs, scheduler=scheduler, patience=limits.seconds,
                    done=printer.show_run)  # fmt: skip
    return printer.code
