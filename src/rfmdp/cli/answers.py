"""The answers of `rfmdp solve`: printed and saved, for one run or for many."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np

from rfmdp.answers.answer import Answer
from rfmdp.answers.batch import Answered, Built, Failed, check_all
from rfmdp.answers.property import Property
from rfmdp.cli.answer_text import AnswerRecord, answer_lines, answer_record, phases
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
from rfmdp.language.checked import Work
from rfmdp.model.blocked import BlockedMDP
from rfmdp.model.frontier import Deadlock, Progress
from rfmdp.model.lattice import AnyModel
from rfmdp.model.report import model_sizes
from rfmdp.opening import Blueprint
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution
from rfmdp.running import TaskResult
from rfmdp.temporal.hoa import read_automaton
from rfmdp.writing import replacing

BLOCK = 1 << 16  # states of a policy that are written at once
COLUMNS = (
    *("name", "property", "method", "status", "value", "lower", "upper", "states"),
    *("transitions", "seconds_build", "seconds_solve", "error"),
)  # of a table, after constants and radius


class Style(Enum):
    """How answers are printed: for people, a JSON object per answer, or one table."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class Request(NamedTuple):
    """What is asked in every run; it travels to whoever does the run."""

    blueprint: Blueprint
    properties: list[Property]
    uncertainty: Uncertainty
    inner: str
    limits: Limits
    deadlock: Deadlock
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
        limits=replace(request.limits, progress=lambda *done: shown[-1].solving(*done)),
        constants=run.constants,
        build=partial(_build, request, run),
        progress=lambda *done: shown[-1].building(*done),
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
        deadlock=request.deadlock,
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


def _failed_run(run: Experiment, error: str) -> Reply:
    """Return the reply of a run whose model cannot be built, or whose process was lost."""
    record = _which(run) | {"status": "error", "error": error.partition("\n")[0]}
    return Reply(("", str(run), "status    error"), record, USER_ERROR, error)


def write_files(reply: Reply, policy: str | None, solution: str | None) -> Reply:
    """Write the files of an answer; if that fails, the answer is still to be printed."""
    if reply.answer is None or (policy is None and solution is None):
        return reply
    try:
        if reply.answer.solution is None:
            raise ModelError(f"'{reply.answer.text}' has no policy: it has neither P nor R.")
        if policy is not None:
            _write_actions(reply.answer.solution, policy)
        if solution is not None:
            whole = reply.answer.whole_solution()
            save(
                replace(whole, model=whole.model.with_provenance(command=command_line())), solution
            )
    except RfmdpError as error:
        return reply._replace(code=USER_ERROR, complaint=str(error))
    return reply


def _write_actions(solution: Solution, path: str) -> None:
    """Write a policy as CSV: the variables of the state, the step if it matters, the action."""
    model, policy = solution.model, solution.policy
    if isinstance(model, BlockedMDP):  # only blocks know the actions of their rows
        model = model.written()
    names = [v.name for v in model.variables] or ["state"]
    timed = not policy.stationary
    with replacing(path) as part, part.open("x", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*names, *(["step"] if timed else []), "action"])
        for step, rule in enumerate(policy.rows):
            for first in range(0, model.states, BLOCK):
                states = np.arange(first, min(first + BLOCK, model.states))
                values = model.state_values(states) if model.variables else states[:, None]
                rows = zip(values.tolist(), model.row_actions[rule[states]].tolist(), strict=True)
                now = [step] if timed else []
                table.writerows([*x, *now, model.actions[action]] for x, action in rows)


class Printer:
    """Prints replies as they come, remembers the worst exit code, writes the records at the end."""

    def __init__(
        self, file: str | None, style: Style = Style.TEXT, *, quiet: bool, run: Experiment
    ) -> None:
        self.code = CERTIFIED
        self._style, self._quiet, self._file = style, quiet, file
        columns = [*run.constants, *(["radius"] if run.radius is not None else []), *COLUMNS]
        self._table = csv.DictWriter(
            sys.stdout, columns, extrasaction="ignore", lineterminator="\n"
        )
        self._records: list[AnswerRecord] = []
        self._said = ""  # the last complaint

    def __enter__(self) -> Printer:
        if self._style is Style.CSV:
            self._table.writeheader()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is not None and (kind is None or self._records):
            text = "".join(json.dumps(record) + "\n" for record in self._records)
            with replacing(self._file) as part:
                part.write_text(text, encoding="utf-8")

    def show(self, reply: Reply) -> None:
        """Print a reply."""
        lines = [x for x in reply.lines if not self._quiet or x.startswith("Result:")]
        if lines and self._style is Style.TEXT:
            print("\n".join(lines), flush=True)
        if reply.record is not None:
            self._records.append(reply.record)
            if self._style is Style.JSON:
                print(json.dumps(reply.record), flush=True)
            elif self._style is Style.CSV:
                self._table.writerow(reply.record | reply.record.get("constants", {}))
                sys.stdout.flush()
        if reply.complaint and reply.complaint != self._said:
            complain(reply.complaint)
            self._said = reply.complaint
        # an error outweighs an open gap
        worst = (CERTIFIED, NOT_CERTIFIED, USER_ERROR)
        self.code = max(self.code, reply.code, key=worst.index)

    def show_run(self, result: TaskResult) -> None:
        """Print the replies of a run."""
        failed = result.error is not None
        for reply in [_failed_run(result.task, str(result.error))] if failed else result.value:
            self.show(reply)
