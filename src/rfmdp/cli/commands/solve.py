"""`rfmdp solve`: answer properties of a model, with proven bounds."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import Annotated

from rfmdp.cli.arguments import check_positive, experiments, inner_method
from rfmdp.cli.signature import (
    INNER,
    SETS,
    Floor,
    Jobs,
    Model,
    Nominal,
    Option,
    OtherSet,
    Prop,
    Props,
    Scheduler,
    command,
)
from rfmdp.errors import ModelError
from rfmdp.writing import check_writable


@command
def solve(
    model: Model,
    props: Props = None,
    prop: Prop = (),
    const: Annotated[
        tuple[str, ...],
        Option("Constants: A=1,B=0.5; a range C=1:3 or p=0:0.1:1 is a run per value."),
    ] = (),
    radius: Annotated[
        str | None,
        Option(
            "Radius of boxes around all probabilities; a range is a run per value.", section=SETS
        ),
    ] = None,
    set_: OtherSet = None,
    floor: Floor = 0.0,
    nominal: Nominal = False,
    inner: Annotated[
        str,
        Option(
            f"How nature's choice in a row is found: {INNER}.",
            section="Method and limits",
        ),
    ] = "exact",
    precision: Annotated[
        float, Option("Wanted width of the bounds, relative to the value.")
    ] = 1e-6,
    absolute: Annotated[bool, Option("The wanted width is absolute.")] = False,
    automaton: Annotated[
        str | None, Option("HOA file of a deterministic parity automaton for the path formula.")
    ] = None,
    timeout: Annotated[
        float | None, Option("Seconds per property, building included; default: no limit.")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Annotated[
        bool,
        Option("Print one JSON object per property, a line each.", "--json", section="Output"),
    ] = False,
    as_csv: Annotated[
        bool, Option("Print one table with a line per property and run.", "--csv")
    ] = False,
    export_policy: Annotated[str | None, Option("CSV file to write the policy to.")] = None,
    output: Annotated[
        str | None,
        Option("File to write the solution to, for `verify` and other commands.", "-o --output"),
    ] = None,
    verbose: Annotated[bool, Option("Print seconds by phase as well.", "-v --verbose")] = False,
    quiet: Annotated[bool, Option("Print results only, and no progress.", "-q --quiet")] = False,
) -> int:
    """Answer properties of a model, with proven bounds and a policy.

    Prints a table and `Result: VALUE` per property. Exit code 0: certified, 1: an error,
    2: finished, but not certified. A domain has a property of its own.
    """
    started = time.monotonic()
    from rfmdp.answers.batch import in_blocks
    from rfmdp.cli.answers import Printer, Request, replies, replies_of_run, write_files
    from rfmdp.cli.models import Uncertainty, properties_about, read_blueprint
    from rfmdp.kernels.decorator import interpreting
    from rfmdp.outer.settings import Limits, Measure
    from rfmdp.running import run_many

    if as_json and as_csv:
        raise ModelError("--json and --csv: must not be given together; choose one.")
    runs = experiments(const, radius)
    inner_method(inner)  # a wrong word is known before the model is built
    check_positive(timeout=timeout, jobs=jobs)
    limits = Limits(
        precision,
        Measure.ABSOLUTE if absolute else Measure.RELATIVE,
        math.inf if timeout is None else timeout,
    )
    check_writable(export_policy, output)
    requests = properties_about(model, props, prop)
    solution = export_policy or output
    if len(requests) > 1 and solution:
        raise ModelError(
            f"A policy or solution file holds one property, found {len(requests)}; "
            "choose one with --prop."
        )
    if len(runs) > 1 and solution:
        raise ModelError(
            f"A policy or solution file holds one run, found {len(runs)}; give one value "
            "in place of each range, or --csv for the values of all."
        )
    blueprint = read_blueprint(model)
    if len(runs) == 1:  # reading counts as well
        remaining = max(limits.seconds - (time.monotonic() - started), 1e-9)
        limits = replace(limits, seconds=remaining)
    together = scheduler is not None and len(runs) == 1 and inner == "exact"
    together = together and in_blocks(blueprint, requests, runs[0].constants)
    if scheduler is not None and solution and not together:
        raise ModelError(
            "--scheduler: a policy or solution file is made of one model in the PRISM language and "
            "one P or R with a target, a bound of steps or a discount; leave out --scheduler."
        )
    if together and jobs is not None:
        raise ModelError("--jobs are local processes; a scheduler has its own workers.")
    request = Request(
        blueprint,
        requests,
        Uncertainty(None, set_, floor, nominal),
        inner,
        limits,
        verbose,
        automaton,
        scheduler if together else None,
    )
    printer = Printer(runs[0], as_json=as_json, as_csv=as_csv, quiet=quiet)
    with interpreting():
        if len(runs) > 1 or (scheduler is not None and not together):
            run_many(
                partial(replies_of_run, request),
                runs,
                jobs=jobs,
                scheduler=scheduler,
                patience=limits.seconds,
                done=printer.show_run,
            )
        else:
            for reply in replies(request, runs[0], quiet=quiet):
                printer.show(write_files(reply, export_policy, output))
    return printer.code
