"""The answers of `rfmdp solve`: built, asked, printed and saved, for one run or for many."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from rfmdp.answers.answer import Answer, check
from rfmdp.answers.property import Property
from rfmdp.cli.answer_text import AnswerRecord, lines, phases, record
from rfmdp.cli.arguments import Experiment, inner_method
from rfmdp.cli.interrupts import stop_if_interrupted
from rfmdp.cli.models import Uncertainty, build_with_sets
from rfmdp.cli.output import (
    CERTIFIED,
    NOT_CERTIFIED,
    USER_ERROR,
    complain,
    hiding_progress,
    showing_progress,
    spoken_warnings,
)
from rfmdp.cli.properties import misfits, open_constants
from rfmdp.errors import ModelError, NotCertifiedError, RfmdpError
from rfmdp.formats.files import save
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock, Progress
from rfmdp.model.report import model_sizes
from rfmdp.opening import Blueprint
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution
from rfmdp.writing import replacing


class Request(NamedTuple):
    """What is asked in every run; it travels to whoever does the run."""

    blueprint: Blueprint
    asked: list[Property]
    uncertainty: Uncertainty
    inner: str
    limits: Limits
    deadlock: Deadlock
    verbose: bool = False


class Reply(NamedTuple):
    """A piece of output: for people, for machines, as exit code."""

    lines: tuple[str, ...] = ()
    record: AnswerRecord | None = None
    code: int = CERTIFIED
    complaint: str = ""
    answer: Answer | None = None


def replies_of_run(request: Request, run: Experiment) -> list[Reply]:
    """Return the replies of one run of many; each record says which run it is."""
    which: AnswerRecord = {"constants": run.constants} if run.constants else {}
    if run.radius is not None:
        which["radius"] = run.radius
    found = [
        reply._replace(answer=None, record=None if reply.record is None else which | reply.record)
        for reply in replies(request, run, time.monotonic(), watch=hiding_progress)
    ]
    return [Reply(("", str(run))), *found]


def replies(
    request: Request,
    run: Experiment,
    started: float,
    watch: Callable[[str], Any] = showing_progress,
) -> Iterator[Reply]:
    """Build the model and give a reply to every property; an error is a reply too.

    Parameters
    ----------
    started
        When the time began that building and an answer have together, by `time.monotonic`.
    """
    begun = time.monotonic()
    wrong = misfits(request.blueprint, request.asked, run.constants)
    if wrong and len(wrong) == len(request.asked):  # nothing to build the model for
        for prop, error in zip(request.asked, wrong, strict=True):
            yield _failed(prop, error, USER_ERROR)
        return
    try:
        with spoken_warnings(), watch("building") as show:
            model = build_with_sets(
                request.blueprint,
                run,
                request.uncertainty,
                also_known=open_constants(request.asked),
                deadlock=request.deadlock,
                progress=_in_time(show.building, started + request.limits.seconds),
            )
        now = time.monotonic()
        seconds, left = now - begun, request.limits.seconds - (now - started)
        yield Reply((_sizes(model, seconds),))
        _require_time(left > 0.0)
    except NotCertifiedError as late:
        for prop in request.asked:
            yield _failed(prop, late, NOT_CERTIFIED)
        return
    for prop in request.asked:
        with spoken_warnings(), watch("solving") as show:
            reply = _answered(
                request._replace(
                    limits=replace(request.limits, seconds=left, progress=show.solving)
                ),
                model, prop, run.constants, seconds,
            )  # fmt: skip
        yield reply
        stop_if_interrupted()


def _answered(
    request: Request, model: FactoredMDP, prop: Property, given: dict[str, str], build: float
) -> Reply:
    started = time.monotonic()
    inner = inner_method(request.inner)
    try:
        answer = check(model, prop, inner=inner, limits=request.limits, constants=given)
    except RfmdpError as error:
        return _failed(prop, error, USER_ERROR)
    gone = time.monotonic() - started
    *table, result = lines(answer, request.inner, gone)
    more = phases(answer) if request.verbose and answer.solutions else ()
    return Reply(
        ("", *table, *more, result),
        record(answer, model, request.inner, build, gone),
        CERTIFIED if answer.certified else NOT_CERTIFIED,
        answer=answer,
    )


def _failed(prop: Property, error: RfmdpError, code: int) -> Reply:
    text = str(error)
    found = {"property": prop.text, "error": text.partition("\n")[0]}
    return Reply(("", f"property  {prop.text}", "status    error"), found, code, text)


def _in_time(progress: Progress, deadline: float) -> Progress:
    """Return progress that also ends the building when the time is over."""

    def told(states: int, transitions: int) -> None:
        _require_time(time.monotonic() < deadline)
        progress(states, transitions)

    return told


def _require_time(there_is: bool) -> None:
    if not there_is:
        raise NotCertifiedError(
            "The time was over when the model was built, nothing is proven; try a larger --timeout."
        )


def _sizes(model: FactoredMDP, seconds: float) -> str:
    return f"model     {', '.join(model_sizes(model))}, built in {seconds:.3f} s"


def write_files(reply: Reply, policy: str | None, solution: str | None) -> Reply:
    """Write the files of an answer; if that fails, the answer is still to be printed."""
    if reply.answer is None:
        return reply
    try:
        if policy is not None or solution is not None:
            if reply.answer.solution is None:
                raise ModelError(f"'{reply.answer.text}' has no policy: it has neither P nor R.")
            if policy is not None:
                _write_actions(reply.answer.solution, policy)
            if solution is not None:
                save(reply.answer.solution, solution)
    except RfmdpError as error:
        return reply._replace(code=USER_ERROR, complaint=str(error))
    return reply


def _write_actions(solution: Solution, path: str) -> None:
    """Write a policy as CSV: the variables of the state, the step if it matters, the action."""
    model, policy = solution.model, solution.policy
    names = [v.name for v in model.variables] or ["state"]
    steps = [] if policy.stationary else ["step"]
    with replacing(path) as part, part.open("x", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*names, *steps, "action"])
        for step in range(len(policy.rows)):
            when = [step] if steps else []
            for state, action in enumerate(policy.actions(model, step)):
                values = model.valuations[state].tolist() if model.variables else [state]
                table.writerow([*values, *when, action])


class Printer:
    """Prints replies as they come, remembers the worst exit code, writes the records at the end."""

    def __init__(self, file: str | None, *, as_json: bool, quiet: bool) -> None:
        self.code = CERTIFIED
        self._json, self._quiet, self._file = as_json, quiet, file
        self._records: list[AnswerRecord] = []
        self._waiting: dict[int, list[Reply]] = {}
        self._next = 0
        self._said = ""  # the last complaint

    def __enter__(self) -> Printer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        later = (reply.record for _, run in sorted(self._waiting.items()) for reply in run)
        finished = [*self._records, *(found for found in later if found is not None)]
        if self._file is not None and (kind is None or finished):
            text = "".join(json.dumps(found) + "\n" for found in finished)
            with replacing(self._file) as part:
                part.write_text(text, encoding="utf-8")

    def show(self, reply: Reply) -> None:
        """Print a reply."""
        lines = [x for x in reply.lines if not self._quiet or x.startswith("Result:")]
        if lines and not self._json:
            print("\n".join(lines), flush=True)
        if reply.record is not None:
            self._records.append(reply.record)
            if self._json:
                print(json.dumps(reply.record), flush=True)
        if reply.complaint and reply.complaint != self._said:
            complain(reply.complaint)
            self._said = reply.complaint
        # an error outweighs an open gap
        worst = (CERTIFIED, NOT_CERTIFIED, USER_ERROR)
        self.code = max(self.code, reply.code, key=worst.index)

    def in_order(self, number: int, found: list[Reply]) -> None:
        """Print the replies of a run when those of all runs before it are printed."""
        self._waiting[number] = found
        while self._next in self._waiting:
            for reply in self._waiting.pop(self._next):
                self.show(reply)
            self._next += 1
