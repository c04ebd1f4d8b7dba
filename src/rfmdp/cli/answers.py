"""The answers of `rfmdp solve`, for one run or for many: as lines, as records, and saved."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rfmdp import __version__
from rfmdp.answers.answer import Answer, Value
from rfmdp.answers.batch import Answered, Built, Failed, check_all
from rfmdp.answers.property import Property
from rfmdp.cli.arguments import Experiment, inner_method, plain_value
from rfmdp.cli.models import Uncertainty, build_to_solve, command_line
from rfmdp.cli.output import (
    CERTIFIED,
    NOT_CERTIFIED,
    USER_ERROR,
    ShownProgress,
    complain,
    showing_progress,
    spoken_warnings,
    stop_if_interrupted,
)
from rfmdp.errors import ModelError, RfmdpError
from rfmdp.formats.files import save
from rfmdp.inner.exact import Exact
from rfmdp.language.ast import Type
from rfmdp.language.checked import Work
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel, LatticeMDP
from rfmdp.model.report import model_sizes
from rfmdp.objective import MAX, Direction
from rfmdp.opening import Blueprint
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Bounds, shared_digits
from rfmdp.policies.files import write_policy
from rfmdp.running import TaskResult
from rfmdp.temporal.hoa import read_automaton

AnswerRecord = dict[str, Any]
COLUMNS = (
    *("name", "property", "method", "status", "value", "lower", "upper", "states"),
    *("transitions", "seconds_build", "seconds_solve", "error"),
)  # of a table, after constants and radius


class Request(NamedTuple):
    """What is asked in every run; it travels to whoever does the run."""

    blueprint: Blueprint
    properties: list[Property]
    uncertainty: Uncertainty
    inner: str
    limits: Limits
    verbose: bool = False
    automaton: str | None = None  # file of what the path formula means
    scheduler: str | None = None  # of a cluster that solves one model together


class Reply(NamedTuple):
    """A piece of output: for people, for machines, as exit code."""

    lines: tuple[str, ...] = ()
    record: AnswerRecord | None = None
    code: int = CERTIFIED
    complaint: str = ""
    answer: Answer | None = None


def replies_of_run(request: Request, run: Experiment) -> list[Reply]:
    """Return the replies of one run of many; answers with their models stay where they are."""
    replies_ = replies(request, run, quiet=True)
    return [Reply(("", str(run))), *(reply._replace(answer=None) for reply in replies_)]


def replies(request: Request, run: Experiment, *, quiet: bool) -> Iterator[Reply]:
    """Build the model and give a reply to every property; an error is a reply too.

    Each record says which run it is of: the constants and the radius that were given. A quiet one
    shows no progress.
    """
    shown: list[ShownProgress] = []  # the last one is that of the step under way
    items = check_all(
        request.blueprint,
        request.properties,
        inner=inner_method(request.inner),
        limits=replace(request.limits, progress=lambda *counts: shown[-1].solving(*counts)),
        constants=run.constants,
        build=partial(_build, request, run),
        progress=lambda *counts: shown[-1].building(*counts),
        automaton=None if request.automaton is None else read_automaton(request.automaton),
    )
    built: Built | None = None
    while True:
        step = "building" if built is None else "solving"
        with spoken_warnings(), showing_progress(step, quiet=quiet) as show:
            shown.append(show)
            item = next(items, None)
        if item is None:
            return
        built = item if isinstance(item, Built) else built
        reply = _reply(request, item, built)
        record = None if reply.record is None else _which(run) | reply.record
        yield reply._replace(record=record)
        stop_if_interrupted()


def _build(
    request: Request,
    run: Experiment,
    also_known: Collection[str],
    work: Work | None,
    progress: Progress,
) -> AnyModel:
    exact = isinstance(inner_method(request.inner), Exact)
    return build_to_solve(
        request.blueprint,
        run.constants,
        replace(request.uncertainty, radius=run.radius),
        work if exact else None,
        also_known=also_known,
        progress=progress,
        scheduler=request.scheduler,
    )


def _which(run: Experiment) -> AnswerRecord:
    """Return the fields that say which run it is."""
    which: AnswerRecord = {}
    if run.constants:
        which["constants"] = {name: plain_value(text) for name, text in run.constants.items()}
    if run.radius is not None:
        which["radius"] = run.radius
    return which


def _reply(request: Request, item: Built | Answered | Failed, built: Built | None) -> Reply:
    if isinstance(item, Built):
        sizes = ", ".join(model_sizes(item.model))
        return Reply((f"model     {sizes}, built in {item.seconds:.3f} s",))
    named: AnswerRecord = {} if item.prop.name is None else {"name": item.prop.name}
    if isinstance(item, Failed):
        text = str(item.error)
        record = {"property": item.prop.text, "status": "error", "error": text.partition("\n")[0]}
        lines = ("", f"property  {_title(item.prop)}", "status    error")
        return Reply(lines, named | record, NOT_CERTIFIED if item.late else USER_ERROR, text)
    assert built is not None  # the model comes before all answers
    answer = item.answer
    *table, result = answer_lines(answer, request.inner, item.seconds, _title(item.prop))
    more = phases(answer) if request.verbose and answer.solutions else ()
    record = answer_record(answer, built.model, request.inner, built.seconds, item.seconds)
    code = CERTIFIED if answer.certified else NOT_CERTIFIED
    return Reply(("", *table, *more, result), named | record, code, answer=answer)


def _title(prop: Property) -> str:
    """Return a property as lines show it: with its name, if it has one."""
    return prop.text if prop.name is None else f"{prop.name}: {prop.text}"


def write_files(reply: Reply, policy: str | None, solution: str | None) -> Reply:
    """Write the files of an answer; if that fails, the answer is still to be printed."""
    if reply.answer is None or (policy is None and solution is None):
        return reply
    try:
        if reply.answer.solution is None:
            raise ModelError(f"'{reply.answer.text}' has no policy: it has neither P nor R.")
        if policy is not None:
            write_policy(reply.answer.solution, policy)
        if solution is not None:
            whole = reply.answer.whole_solution()
            save(
                replace(whole, model=whole.model.with_provenance(command=command_line())), solution
            )
    except RfmdpError as error:
        return reply._replace(code=USER_ERROR, complaint=str(error))
    return reply


class Printer:
    """Prints replies as they come, in one of three styles, and remembers the worst exit code."""

    def __init__(self, run: Experiment, *, as_json: bool, as_csv: bool, quiet: bool) -> None:
        self.code = CERTIFIED
        self._json, self._quiet, self._said = as_json, quiet, ""  # the last complaint
        self._table: csv.DictWriter[str] | None = None
        if as_csv:
            columns = [*run.constants, *(["radius"] if run.radius is not None else []), *COLUMNS]
            self._table = csv.DictWriter(
                sys.stdout, columns, extrasaction="ignore", lineterminator="\n"
            )
            self._table.writeheader()

    def show(self, reply: Reply) -> None:
        """Print a reply."""
        record = reply.record
        if self._json or self._table is not None:
            if record is not None and self._json:
                print(json.dumps(record))
            elif record is not None and self._table is not None:
                self._table.writerow(record | record.get("constants", {}))
        else:
            for line in reply.lines:
                if not self._quiet or line.startswith("Result:"):
                    print(line)
        sys.stdout.flush()
        if reply.complaint and reply.complaint != self._said:
            complain(reply.complaint)
            self._said = reply.complaint
        # an error outweighs an open gap
        worst = (CERTIFIED, NOT_CERTIFIED, USER_ERROR)
        self.code = max(self.code, reply.code, key=worst.index)

    def show_run(self, result: TaskResult) -> None:
        """Print the replies of a run; its model may be impossible, or its process lost."""
        if result.error is None:
            for reply in result.value:
                self.show(reply)
            return
        text = str(result.error)
        record = _which(result.task) | {"status": "error", "error": text.partition("\n")[0]}
        self.show(Reply(("", str(result.task), "status    error"), record, USER_ERROR, text))


def answer_record(
    answer: Answer, model: AnyModel, method: str, build: float, solve: float
) -> AnswerRecord:
    """Return the fields that `--json` prints; unproven sides are null.

    The method is the one that ran: where all are the same it is the exact one. The value is null
    if nothing is proven, or a truth value is not decided. Infinity, no number of JSON, is
    "Infinity".
    """
    return {
        "property": answer.text,
        "method": method if method.startswith(answer.method) else answer.method,
        "status": answer.status.name.lower(),
        "value": as_json(answer.value),
        "lower": as_json(answer.lower),
        "upper": as_json(answer.upper),
        "precision": answer.precision,
        "states": model.states,
        "rows": model.rows,
        "transitions": model.transitions,
        "marginals": len(model.marginals),
        "seconds_build": round(build, 6),
        "seconds_solve": round(solve, 6),
        "version": __version__,
    }


def answer_lines(answer: Answer, method: str, seconds: float, title: str = "") -> Iterator[str]:
    """Give the table of one answer, its listing, and the line `Result: VALUE`."""
    ends = [shown(x) if x is not None else "not proven" for x in (answer.lower, answer.upper)]
    same = "" if method.startswith(answer.method) else f" (here the same as {answer.method})"
    table = {
        "property": title or answer.text,
        "nature": answer.nature,
        "method": f"{method}{same}, precision {answer.precision:g}",
        "bounds": f"[{ends[0]}, {ends[1]}]",
        "status": answer.status.value,
        "seconds": f"{seconds:.3f}",
    }
    if answer.lower is None and answer.upper is None and isinstance(answer.value, bool):
        del table["bounds"]
    for name, value in table.items():
        yield f"{name:<10}{value}"
    yield from _listing(answer)
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
    if isinstance(answer.model, LatticeMDP):
        names = ", ".join(factor.name for factor in answer.model.factors)
        yield f"factors   contracted in the order {names}"


def _listing(answer: Answer) -> Iterator[str]:
    """Give the states and values that a filter lists, as PRISM writes them."""
    model = answer.model
    for state, value in answer.listing:
        words: list[str] = []
        if model is not None and model.variables:
            values = zip(model.variables, model.state_values(np.array([state]))[0], strict=True)
            words = [shown(bool(x)) if variable.boolean else str(x) for variable, x in values]
        place = f"{state}:({','.join(words)})"
        if value is None:
            yield f"{place} (open: the bounds do not decide it)"
        else:
            yield place if isinstance(value, bool) else f"{place}={shown(value)}"


def _result(answer: Answer) -> str:
    """Return what stands after `Result:`: what is proven, or the words that nothing is.

    A certified number has the digits that are proven, rounded to the side of its guarantee.
    """
    value, low, high = answer.value, answer.lower, answer.upper
    if answer.type is Type.BOOL:
        return "undecided" if value is None else shown(value)
    if value is None:
        both = low is not None and high is not None
        return f"nothing proven{f' but [{low!r}, {high!r}]' if both else ''}"
    if answer.certified:
        plain = isinstance(value, float) and math.isfinite(value)
        ends = (low or 0.0, high or 0.0)
        return (shared_digits(*ends, answer.side) if plain else None) or shown(value)
    if answer.side == 0:
        return f"{shown(value)} (not certified)"
    name, other, end = ("a lower", "upper", high) if answer.side < 0 else ("an upper", "lower", low)
    rest = "side is not proven" if end is None else f"one is {shown(end)}"
    return f"{shown(value)} ({name} bound: the {other} {rest})"


def proven_side(bounds: Bounds, agent: Direction) -> str:
    """Return the side that an agent is guaranteed, or the words that nothing is proven."""
    side = bounds.lower if agent is MAX else bounds.upper
    return shown(side) if math.isfinite(side) or bounds.width == 0.0 else "nothing proven"


def shown(value: Value) -> str:
    """Return a value as PRISM writes it.

    >>> shown(True), shown(0.5), shown((0.0, math.inf))
    ('true', '0.5', '[0.0,Infinity]')
    """
    if isinstance(value, tuple):
        return f"[{shown(value[0])},{shown(value[1])}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def as_json(value: Value | None) -> Any:
    """Return a value for JSON, which has no numbers for "Infinity" and "NaN"."""
    if isinstance(value, tuple):
        return [as_json(end) for end in value]
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value)
    return value
