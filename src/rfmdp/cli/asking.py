"""The run of `rfmdp solve`: build once, ask every property, go on after one that fails."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from rfmdp.answers.answer import Answer, check
from rfmdp.answers.property import Property
from rfmdp.cli.main import CERTIFIED, NOT_CERTIFIED, USER_ERROR, complain
from rfmdp.cli.models import Stopwatch, default_properties, open_model, spoken_warnings
from rfmdp.cli.output import watching, write_policy, written
from rfmdp.cli.questions import own_constants, questions
from rfmdp.cli.records import Record, lines, record
from rfmdp.cli.words import Radii, check_positive, experiments, inner_method
from rfmdp.errors import ModelError, RfmdpError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock
from rfmdp.outer.settings import Limits, Measure, Progress
from rfmdp.outer.solution import Solution
from rfmdp.writing import check_writable


@dataclass(frozen=True, slots=True)
class Asking:
    """The words of one `rfmdp solve`."""

    model: str
    file: str | None
    wanted: tuple[str, ...]
    const: tuple[str, ...]
    radii: Radii
    inner: str
    precision: float
    absolute: bool
    timeout: float | None
    json: bool
    policy: str | None
    output: str | None
    deadlock: Deadlock

    def run(self) -> int:
        """Print all answers and return the exit code."""
        runs = experiments(self.const)
        inner_method(self.inner)  # a wrong word is known before the model is built
        check_positive("--timeout", self.timeout)
        self._limits(None)
        check_writable(self.policy, self.output)
        asked = questions(self.file, self.wanted)
        if not asked and self.file is None:
            asked = default_properties(self.model)
        count = len(asked) * len(runs)
        if count > 1 and (self.policy or (self.output and not self._records)):
            raise ModelError(
                f"A policy or solution file must be that of one property, found {count}; "
                "pick one with --prop."
            )
        records: list[Record] = []
        code = _worst([self._run(asked, given, len(runs) > 1, records) for given in runs])
        if self._records and self.output is not None:
            with written(self.output) as out:
                out.write("".join(json.dumps(found) + "\n" for found in records))
        return code

    def _run(
        self, asked: list[Property], given: dict[str, str], many: bool, records: list[Record]
    ) -> int:
        """Print the answers for one choice of constants; with many runs each says which it is."""
        watch = Stopwatch()
        with spoken_warnings(), watching("building") as show:
            known = own_constants(asked)
            model = open_model(
                self.model,
                given,
                also_known=known,
                progress=show.building,
                deadlock=self.deadlock,
            )
            model = self.radii.apply(model)
        seconds = watch.seconds
        if many and not self.json:
            print(f"\nconstants {', '.join(f'{name}={value}' for name, value in given.items())}")
        if not self.json:
            print("\n".join(_sizes(model, seconds)))
        codes = []
        for prop in asked:
            found, code = self._ask(model, prop, given, seconds)
            if many:
                found = {"constants": given, **found}
            self._tell(found)
            records.append(found)
            codes.append(code)
        return _worst(codes)

    @property
    def _records(self) -> bool:
        return self.output is not None and self.output.endswith(".json")

    def _limits(self, progress: Progress | None) -> Limits:
        return Limits(
            self.precision,
            Measure.ABSOLUTE if self.absolute else Measure.RELATIVE,
            math.inf if self.timeout is None else self.timeout,
            progress=progress,
        )

    def _ask(
        self, model: FactoredMDP, prop: Property, given: dict[str, str], build: float
    ) -> tuple[Record, int]:
        """Ask one property; an error is an answer too."""
        watch = Stopwatch()
        try:
            with spoken_warnings(), watching("solving") as show:
                answer = check(
                    model,
                    prop,
                    inner=inner_method(self.inner),
                    limits=self._limits(show.solving),
                    constants=given,
                )
        except RfmdpError as error:
            if not self.json:
                print(f"\nproperty  {prop.text}\nError: {str(error).partition(chr(10))[0]}")
            found: Record = {"property": prop.text, "error": str(error).partition("\n")[0]}
            complain(str(error))
            return found, USER_ERROR
        found = record(answer, model, self.inner, build, watch.seconds)
        if not self.json:
            print("\n" + "\n".join(lines(answer, self.inner, watch.seconds)))
        return found, self._saved(answer)

    def _tell(self, found: Record) -> None:
        if self.json:
            print(json.dumps(found), flush=True)

    def _saved(self, answer: Answer) -> int:
        """Write the files and return the exit code; if that fails, the answer was printed."""
        try:
            self._save(answer)
        except RfmdpError as error:
            complain(str(error))
            return USER_ERROR
        return CERTIFIED if answer.certified else NOT_CERTIFIED

    def _save(self, answer: Answer) -> None:
        if self.policy is not None:
            write_policy(_solution(answer), self.policy)
        if self.output is not None and not self._records:
            from rfmdp.formats.files import save

            save(_solution(answer), self.output)


def _solution(answer: Answer) -> Solution:
    if answer.solution is None:
        raise ModelError(f"'{answer.text}' has no policy: it has neither P nor R.")
    return answer.solution


def _worst(codes: list[int]) -> int:
    if USER_ERROR in codes:
        return USER_ERROR
    return NOT_CERTIFIED if NOT_CERTIFIED in codes else CERTIFIED


def _sizes(model: FactoredMDP, seconds: float) -> Iterator[str]:
    counts = [
        f"{number:,} {what}"
        for number, what in (
            (model.states, "states"),
            (model.rows, "rows"),
            (model.transitions, "transitions"),
            (len(model.marginals), "marginals"),
        )
    ]
    yield f"model     {', '.join(counts)}, built in {seconds:.3f} s"
