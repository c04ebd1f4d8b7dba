"""A learning run as a record for machines, as lines for people, and while it goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from rfmdp.cli.answer_text import as_json
from rfmdp.cli.output import PATIENCE, ProgressLines
from rfmdp.learning.coverage import coverage
from rfmdp.learning.run import Progress, Run
from rfmdp.learning.seeds import SeedProgress
from rfmdp.policies.collect import IdentifierGain, collect_next
from rfmdp.sources.checks import Check
from rfmdp.sources.source import Records


def run_lines(run: Run, seed: int) -> Iterator[str]:
    """Give the table of a run, its statement, and the line `Result: GUARANTEE`."""
    yield f"seed {seed}: {run.stopped}"
    yield f"{'trajectories':>12} {'guarantee':>11} {'true value':>11} {'bound':>11} replans"
    for p in run.history:
        yield (
            f"{p.trajectories:12d} {p.guarantee:11.6g} {_known(p.performance):>11} "
            f"{p.optimistic:11.6g} {p.replans:7d}"
        )
    yield run.statement()
    if not run.alarms:
        yield f"Result: {run.guarantee}"


def run_record(run: Run, seed: int) -> dict[str, Any]:
    """Return a run as one JSON object; nan is null, infinity the string "Infinity".

    `guarantee` is that of the run: after an alarm it is infinite, and says nothing.
    """
    mean = run.mean_guarantee  # over random starts
    points = [asdict(point).items() for point in run.history]
    history = [{k: None if math.isnan(v) else as_json(v) for k, v in point} for point in points]
    return {
        "seed": seed,
        **history[-1],
        "guarantee": as_json(run.guarantee),
        "mean_guarantee": None if math.isnan(mean) else as_json(mean),
        "alarms": list(run.alarms),
        "checks": list(run.checks),
        "beta": run.beta,
        "ledger": {
            "scheme": run.ledger.scheme,
            **asdict(run.ledger.shares),
            "spent_on_model": run.ledger.spent_on_model(),
            "events": int(run.ledger.events.sum()),
        },
        "validity": run.validity,
        "stopped": run.stopped,
        "property": run.question,
        "model": run.name,
        "settings": run.settings,
        "assumptions": list(run.assumptions),
        "rollouts": [c.summary() for c in run.rollouts],
        "history": history,
    }


def _known(performance: float) -> str:
    return "unknown" if math.isnan(performance) else f"{performance:.6g}"


def run_progress(trajectories: int, many: bool) -> SeedProgress:
    """Return what prints how the run of a seed goes on, with so many trajectories at most.

    Of many seeds at once each prints a line now and then, also at a terminal.
    """
    return partial(_print_progress, ProgressLines(PATIENCE, every=not many), trajectories)


def _print_progress(lines: ProgressLines, trajectories: int, seed: int, now: Progress) -> None:
    point = now.point
    if point is None:
        text = f"seed {seed}: {now.phase}, {now.trajectories} trajectories, {now.seconds:.0f} s"
        lines.show(text, now.seconds, passing=True)
        return
    rate = point.steps / max(point.seconds, 1e-9)
    left = point.seconds * (trajectories / max(point.trajectories, 1) - 1.0)
    text = (
        f"seed {seed}: {point.trajectories} trajectories, guarantee {point.guarantee:.5g}, true "
        f"value {_known(point.performance)}, {rate:.3g} steps/s, at most {left:.0f} s left"
    )
    lines.show(text, now.seconds, passing=False)


def data_lines(run: Run) -> Iterator[str]:
    """Give what data cover, and what to collect next."""
    yield str(coverage(run))
    helpful = [found for found in _gains(run) if found.gain > 0.0]
    if helpful:
        yield "Collect these next: the guarantee would improve by so much if one were known."
        yield f"{'gain':>10} {'samples':>10}  identifier"
        yield from (str(found) for found in helpful)


def data_record(data: Records, run: Run) -> dict[str, Any]:
    """Return checks of assumptions, coverage and what to collect next, as plain data."""
    checks = data.check(run.model)
    return {
        "steps": data.steps,
        "checks": [_check_record(check) for check in checks],
        "coverage": [asdict(c) for c in coverage(run).identifiers],
        "collect_next": [asdict(found) for found in _gains(run)],
    }


def _check_record(check: Check) -> dict[str, Any]:
    fields = {k: as_json(v) if isinstance(v, float) else v for k, v in asdict(check).items()}
    return fields | {"alarm": check.alarm}


def _gains(run: Run) -> list[IdentifierGain]:
    return [] if run.alarms else collect_next(run)
