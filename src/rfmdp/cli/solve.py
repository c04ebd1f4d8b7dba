"""`rfmdp solve`: answer properties of a model, with proven bounds; in lines, records and files."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

import rfmdp as rf
from rfmdp.answers.answer import Answer, Answered, Built, Failed, work_of
from rfmdp.answers.property import Property
from rfmdp.cli import arguments as args, models, terminal
from rfmdp.errors import ModelError, RfmdpError
from rfmdp.kernels.decorator import interpreting
from rfmdp.language.ast import Type
from rfmdp.language.check import Work
from rfmdp.model.arrays import model_sizes
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel
from rfmdp.opening import Blueprint
from rfmdp.outer.solution import shared_digits
from rfmdp.writing import check_writable


@args.command
def solve(
    model: args.Model,
    props: args.Props = None,
    prop: args.Prop = (),
    const: args.Const = (),
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
    2: finished, but not certified. A domain has a property of its own. A range in the place of a
    constant or radius is a run per value: C=1:3, p=0:0.1:1.
    """
    started = time.monotonic()
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
    requests = models.chosen_properties(model, props, prop)
    blueprint = models.read_blueprint(model)
    requests = requests or models.own_property(blueprint)
    if files and max(len(requests), len(runs)) > 1:
        raise ModelError(
            f"A file holds one property, found {len(requests)}, of one run, found {len(runs)}; "
            "choose one with --prop, give one value in place of each range, or --json for all."
        )
    if len(runs) == 1:  # reading counts as well
        remaining = max(limits.seconds - (time.monotonic() - started), 1e-9)
        limits = replace(limits, seconds=remaining)
    request: dict[str, Any] = {
        "blueprint": blueprint, "properties": requests, "nominal": nominal, "inner": inner,
        "limits": limits, "automaton": automaton, "verbose": verbose,
    }  # fmt: skip
    together = (  # can it be solved in blocks?
        (scheduler is not None and len(runs) == 1 and inner == "exact")
        and blueprint.parsed is not None
        and work_of(blueprint, requests, runs[0].constants) is not None
    )
    printer = Printer(as_json=as_json, quiet=quiet)
    with interpreting():
        if together or (len(runs) == 1 and scheduler is None):
            request |= {"scheduler": scheduler, "quiet": quiet, "files": files}
            for reply in replies(runs[0], **request):
                printer.show(reply)
            return printer.code
        if files:
            raise ModelError(
                "--scheduler: a file is made of one model in the PRISM language and one P or R "
                "with a target, a bound of steps or a discount; leave out --scheduler."
            )
        rf.run_many(
            partial(replies_of_run, **request), runs, jobs=jobs, scheduler=scheduler,
            patience=limits.seconds, done=printer.show_run,
        )  # fmt: skip
    return printer.code


class Reply(NamedTuple):
    """A piece of output: for people, for machines, as exit code."""

    lines: tuple[str, ...] = ()
    record: dict[str, Any] | None = None
    code: int = terminal.CERTIFIED
    complaint: str = ""


def replies_of_run(run: args.Experiment, **request: Any) -> list[Reply]:
    """Return the replies of one run of many."""
    return [Reply(("", str(run))), *replies(run, quiet=True, **request)]


def replies(
    run: args.Experiment,
    *,
    blueprint: Blueprint,
    properties: Sequence[Property],
    nominal: bool,
    inner: str,
    limits: rf.Limits,
    automaton: str | None = None,
    scheduler: str | None = None,
    verbose: bool = False,
    quiet: bool = False,
    files: Sequence[str] = (),
) -> Iterator[Reply]:
    """Build the model and give a reply to every property; an error is a reply too.

    Each record says which run it is of: the constants and the radius that were given. A quiet one
    shows no progress. The workers of a scheduler solve one model together. Answers are written to
    files, if any.
    """

    def build(also_known: Collection[str], work: Work | None, progress: Progress) -> AnyModel:
        return models.build_model(
            blueprint, run.constants, run.radius, nominal, work=work if inner == "exact" else None,
            also_known=also_known, progress=progress, scheduler=scheduler,
        )  # fmt: skip

    with terminal.showing_progress("solving", quiet=quiet) as show:
        items = rf.check_all(
            blueprint, properties, inner=args.inner_method(inner),
            limits=replace(limits, progress=show.solving), constants=run.constants, build=build,
            progress=show.building,
            automaton=None if automaton is None else rf.read_automaton(automaton),
        )  # fmt: skip
        built: Built | None = None
        while True:
            with terminal.spoken_warnings():
                item = next(items, None)
            show.clear()
            if item is None:
                return
            if isinstance(item, Built):
                built = item
                sizes = ", ".join(model_sizes(item.model))
                yield Reply((f"model     {sizes}, built in {item.seconds:.3f} s",))
            else:
                yield _reply(run.record(), item, built, inner, verbose, files)
            terminal.stop_if_interrupted()


def _reply(
    record: dict[str, Any],
    item: Answered | Failed,
    built: Built | None,
    inner: str,
    verbose: bool,
    files: Sequence[str],
) -> Reply:
    prop, title = item.prop, item.prop.text
    if prop.name is not None:
        record, title = record | {"name": prop.name}, f"{prop.name}: {title}"
    if isinstance(item, Failed):
        code = terminal.NOT_CERTIFIED if item.late else terminal.USER_ERROR
        return _failed(f"property  {title}", record | {"property": prop.text}, item.error, code)
    assert built is not None  # the model comes before all answers
    answer = item.answer
    record |= answer_record(answer, built.model, inner, built.seconds, item.seconds)
    *table, result = answer_lines(answer, inner, item.seconds, title)
    lines = ("", *table, *(phases(answer) if verbose else ()), result)
    code = terminal.CERTIFIED if answer.certified else terminal.NOT_CERTIFIED
    complaint = write_files(answer, files)
    return Reply(lines, record, terminal.USER_ERROR if complaint else code, complaint)


def _failed(
    title: str, record: dict[str, Any], error: Exception, code: int = terminal.USER_ERROR
) -> Reply:
    text = str(error)
    record = record | {"status": "error", "error": text.partition("\n")[0]}
    return Reply(("", title, "status    error"), record, code, text)


def write_files(answer: Answer, files: Sequence[str]) -> str:
    """Write the files of an answer, .csv of its policy; return what went wrong, if anything."""
    try:
        for file in files:
            if answer.solution is None:
                raise ModelError(f"'{answer.text}' has no policy: it has neither P nor R.")
            if file.endswith(".csv"):
                rf.write_policy(answer.solution, file)
                continue
            whole = answer.whole_solution()
            model = whole.model.with_provenance(command=models.command_line())
            rf.save(replace(whole, model=model), file)
    except RfmdpError as error:
        return str(error)
    return ""


class Printer:
    """Prints replies as they come, and remembers the worst exit code."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.code = terminal.CERTIFIED
        self._json, self._quiet, self._said = as_json, quiet, ""  # the last complaint

    def show(self, reply: Reply) -> None:
        """Print a reply."""
        if not self._json:
            for line in reply.lines:
                if not self._quiet or line.startswith("Result:"):
                    print(line)
        elif reply.record is not None:
            print(json.dumps(reply.record))
        sys.stdout.flush()
        if reply.complaint and reply.complaint != self._said:
            terminal.complain(reply.complaint)
            self._said = reply.complaint
        # an error outweighs an open gap
        worst = (terminal.CERTIFIED, terminal.NOT_CERTIFIED, terminal.USER_ERROR)
        self.code = max(self.code, reply.code, key=worst.index)

    def show_run(self, result: rf.TaskResult) -> None:
        """Print the replies of a run; its model may be impossible, or its process lost."""
        task, error = result.task, result.error
        for reply in result.value if error is None else [_failed(str(task), task.record(), error)]:
            self.show(reply)


def answer_record(
    answer: Answer, model: AnyModel, method: str, build: float, solve: float
) -> dict[str, Any]:
    """Return the fields that `--json` prints; unproven sides are null.

    The value is null if nothing is proven, or a truth value is not decided. Infinity, no number of
    JSON, is "Infinity".
    """
    return {
        "property": answer.text,
        "method": method,
        "status": answer.status.name.lower(),
        "value": args.json_number(answer.value),
        "lower": args.json_number(answer.lower),
        "upper": args.json_number(answer.upper),
        "precision": answer.precision,
        "states": model.states,
        "rows": model.rows,
        "transitions": model.transitions,
        "marginals": len(model.marginals),
        "seconds_build": round(build, 6),
        "seconds_solve": round(solve, 6),
        "version": rf.__version__,
    }


def answer_lines(answer: Answer, method: str, seconds: float, title: str = "") -> Iterator[str]:
    """Give the table of one answer, what filters list, and the line `Result: VALUE`."""
    ends = [args.shown(x) if x is not None else "not proven" for x in (answer.lower, answer.upper)]
    table = {
        "property": title or answer.text,
        "nature": answer.nature,
        "method": f"{method}, precision {answer.precision:g}",
        "bounds": f"[{ends[0]}, {ends[1]}]",
        "status": answer.status.value,
        "seconds": f"{seconds:.3f}",
    }
    if answer.lower is None and answer.upper is None and isinstance(answer.value, bool):
        del table["bounds"]
    for name, value in table.items():
        yield f"{name:<10}{value}"
    for state, x in answer.listing:
        assert answer.model is not None
        values = answer.model.state_values(np.array([state])).ravel().tolist()
        pairs = zip(answer.model.variables, values, strict=True)
        words = ",".join(args.shown(bool(n) if v.boolean else n) for v, n in pairs)
        yield f"{state}:({words})={'nothing proven' if x is None else args.shown(x)}"
    yield f"Result: {_result(answer)}"


def phases(answer: Answer) -> Iterator[str]:
    """Give the seconds of an answer by phase, and the work of its solver."""
    spent: dict[str, float] = {}
    for solution in answer.solutions:
        for phase, seconds in solution.stats.seconds.items():
            spent[phase] = spent.get(phase, 0.0) + seconds
    yield "phases    " + ", ".join(f"{phase} {seconds:.3f} s" for phase, seconds in spent.items())
    robust = sum(solution.stats.robust_sweeps for solution in answer.solutions)
    cheap = sum(solution.stats.cheap_sweeps for solution in answer.solutions)
    yield f"sweeps    {robust:,} robust, {cheap:,} with fixed choices"
    if isinstance(answer.model, rf.LatticeMDP):
        names = ", ".join(factor.name for factor in answer.model.factors)
        yield f"factors   contracted in the order {names}"


def _result(answer: Answer) -> str:
    """Return what stands after `Result:`: what is proven, or the words that nothing is.

    A certified number has the digits that are proven, rounded to the side of its guarantee.
    """
    value, low, high = answer.value, answer.lower, answer.upper
    if answer.type is Type.BOOL:
        return "undecided" if value is None else args.shown(value)
    if value is None:
        both = low is not None and high is not None
        return f"nothing proven{f' but [{low!r}, {high!r}]' if both else ''}"
    if answer.certified:
        plain = isinstance(value, float) and math.isfinite(value)
        ends = (low or 0.0, high or 0.0)
        return (shared_digits(*ends, answer.side) if plain else None) or args.shown(value)
    if answer.side == 0:
        return f"{args.shown(value)} (not certified)"
    name, other, end = ("a lower", "upper", high) if answer.side < 0 else ("an upper", "lower", low)
    rest = "side is not proven" if end is None else f"one is {args.shown(end)}"
    return f"{args.shown(value)} ({name} bound: the {other} {rest})"
