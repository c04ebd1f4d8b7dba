"""An answer as a record for machines, and as lines for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp import __version__
from rfmdp.answers.answer import Answer, Value
from rfmdp.cli.output import PATIENCE, ProgressLines
from rfmdp.language.ast import Type
from rfmdp.model.lattice import AnyModel, LatticeMDP
from rfmdp.objective import MAX, Direction
from rfmdp.outer.solution import Bounds, Status, shared_digits

if TYPE_CHECKING:  # answers of `solve` need none of these, which take a third of a start to import
    from rfmdp.learning.run import Progress, Run
    from rfmdp.learning.seeds import SeedProgress
    from rfmdp.policies.explain import IdentifierGain
    from rfmdp.sources.log.source import Log

AnswerRecord = dict[str, Any]


def answer_record(
    answer: Answer, model: AnyModel, method: str, build: float, solve: float
) -> AnswerRecord:
    """Return the fields that `--json` prints; unproven sides are null.

    The method is the one that ran: where all are the same it is the exact one. The value is null
    if nothing is proven, or a truth value is not decided; `likely` then says what holds if the
    true number is the threshold itself. Infinity, no number of JSON, is "Infinity".
    """
    likely = {} if answer.value is not None or answer.likely is None else {"likely": answer.likely}
    return likely | {
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
        if value is not None:
            return shown(value)
        likely = answer.status is Status.UNDECIDED and answer.likely is not None
        return "undecided" + (f" (likely {shown(bool(answer.likely))})" if likely else "")
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
        return [as_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value)
    return value


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
    samples = np.add.reduceat(run.counts, run.model.marginals.outcome_ptr[:-1])
    yield (
        f"Coverage: {len(samples)} identifiers, {np.count_nonzero(samples == 0)} without samples, "
        f"{samples.sum()} samples."
    )
    helpful = [one for one in _gains(run) if one.gain > 0.0]
    if helpful:
        yield "Collect these next: the guarantee would improve by so much if one were known."
        yield f"{'gain':>10} {'samples':>10} {'width':>9}  identifier"
        yield from map(str, helpful)


def data_record(data: Log, run: Run) -> dict[str, Any]:
    """Return how many transitions there are and what to collect next, as plain data."""
    return {"steps": data.steps, "collect_next": [asdict(one) for one in _gains(run)]}


def _gains(run: Run) -> list[IdentifierGain]:
    from rfmdp.policies.explain import collect_next

    return [] if run.alarms else collect_next(run)
