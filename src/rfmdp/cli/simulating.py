"""The run of `rfmdp simulate`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp import __version__
from rfmdp.cli.main import complain
from rfmdp.cli.models import default_properties, is_domain, open_model, spoken_warnings
from rfmdp.cli.output import watching
from rfmdp.cli.questions import own_constants, questions
from rfmdp.cli.words import check_positive, constants
from rfmdp.errors import FileError, ModelError
from rfmdp.formats.files import load, save
from rfmdp.learning.intervals import clopper_pearson
from rfmdp.learning.measure import Measured, measure
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.outer.solution import Policy, Solution
from rfmdp.sources.simulator import Simulation, simulate
from rfmdp.writing import check_writable

ERROR = 0.05  # of the printed intervals


@dataclass(frozen=True, slots=True)
class Simulating:
    """The words of one `rfmdp simulate`."""

    model: str
    file: str | None
    wanted: tuple[str, ...]
    const: tuple[str, ...]
    policy: str
    trajectories: int
    length: int
    seed: int
    threads: int | None
    json: bool
    record: str | None

    def run(self) -> int:
        """Simulate, print and return the exit code."""
        for option, value in self._counts():
            check_positive(option, value)
        check_writable(self.record)
        asked = questions(self.file, self.wanted)
        if not asked and is_domain(self.model):
            asked = default_properties(self.model)
        if len(asked) != 1:
            raise ModelError(f"Simulation is for one property, found {len(asked)}; use --prop.")
        with spoken_warnings(), watching("building") as show:
            model = open_model(
                self.model,
                constants(self.const),
                also_known=own_constants(asked),
                progress=show.building,
            )
        spec = asked[0].spec()
        measured = measure(model, spec)
        policy = chosen_policy(self.policy, model, spec)
        length = self.length if measured.steps is None else measured.steps
        with watching("simulating"):
            found = simulate(
                model, policy, length, self.trajectories, self.seed, reward=measured.reward,
                discount=measured.discount, stop=measured.stop,
                threads=self.threads or os.cpu_count() or 1,
            )  # fmt: skip
        report = {"property": asked[0].text, "policy": self.policy, **self._report(found, measured)}
        if measured.steps is None and measured.stop is not None and report["ended"] < 1.0:
            complain(
                f"{100 * (1 - report['ended']):.4g} % of the trajectories were cut off after "
                f"{length} steps; what would have followed is not counted. Try a larger --length.",
                kind="note",
            )
        if self.record is not None:
            from rfmdp.sources.recorded import record

            data = record(model, policy, length, self.trajectories, self.seed, stop=measured.stop)
            save(data, self.record)
            report["record"] = self.record
        print(json.dumps(report) if self.json else "\n".join(_lines(report)))
        return 0

    def _counts(self) -> Iterator[tuple[str, int | None]]:
        yield "--trajectories", self.trajectories
        yield "--length", self.length
        yield "--threads", self.threads

    def _report(self, found: Simulation, measured: Measured) -> dict[str, Any]:
        """Return the numbers."""
        mean, low, high = found.mean, found.mean - found.half_width, found.mean + found.half_width
        kind = "normal approximation"
        if measured.target is not None:
            won = int(np.count_nonzero(measured.target[found.final]))
            ends = clopper_pearson(won, found.trajectories, ERROR)
            mean, low, high = won / found.trajectories, float(ends[0]), float(ends[1])
            kind = "Clopper-Pearson"
        ended = 0.0
        if measured.stop is not None:
            ended = float(np.mean(measured.stop[found.final]))
        return {
            "mean": mean,
            "lower": low,
            "upper": high,
            "confidence": 1.0 - ERROR,
            "interval": kind,
            "trajectories": found.trajectories,
            "steps": found.steps,
            "ended": ended,
            "seed": self.seed,
            "seconds": round(found.seconds, 6),
            "steps_per_second": round(found.steps / max(found.seconds, 1e-9)),
            "version": __version__,
        }


def chosen_policy(word: str, model: FactoredMDP, spec: Spec) -> Policy | None:
    """Return the policy that a word or file names; None is uniform."""
    if word == "uniform":
        return None
    if word == "optimal":
        from rfmdp.solving import solve

        return solve(model.nominal(), spec).policy
    from rfmdp.learning.run import Run

    found = load(word)
    if isinstance(found, Solution | Run):
        return found.policy
    if isinstance(found, Policy):
        return found
    raise FileError(f"{word}: must hold a policy, a solution or a learning run.")


def _lines(report: dict[str, Any]) -> list[str]:
    """Return the report for people."""
    rate = report["steps_per_second"] / 1e6
    lines = [
        f"property      {report['property']}",
        f"policy        {report['policy']}",
        f"trajectories  {report['trajectories']} ({report['steps']} steps, "
        f"{100 * report['ended']:.4g} % ended by themselves)",
        f"interval      [{report['lower']:.6g}, {report['upper']:.6g}] "
        f"({100 * report['confidence']:g} %, {report['interval']})",
        f"speed         {rate:.3g} million steps per second ({report['seconds']} s)",
    ]
    if "record" in report:
        lines.append(f"record        {report['record']}")
    return [*lines, f"Result: {report['mean']}"]
