"""Charts of the page: learning curves with bands over seeds, and values against a parameter.

A table has one record per solved problem: what `tabulate` returns, or what `rfmdp solve` with
ranges writes into a `.json` file. Its parameters are the fields that say what was solved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rfmdp.learning.run import Run
from rfmdp.report.plots import LINES, band

RecordList: TypeAlias = Sequence[Mapping[str, Any]]

RESULTS = {
    *("value", "lower", "upper", "gap_percent", "seconds", "status", "precision", "version"),
    *("states", "rows", "transitions", "marginals", "seconds_build", "seconds_solve", "error"),
    "name",  # of the property, which is one
}  # fields of a record that are no parameters


@dataclass(slots=True)
class Line:
    """A line of a chart.

    band : lower and upper end at every point, or nothing
    """

    name: str
    points: list[tuple[float, float]]
    note: str = ""
    dashed: bool = False
    band: list[tuple[float, float]] = field(default_factory=list)


@dataclass(slots=True)
class Chart:
    """Lines over one axis."""

    title: str
    x: str
    y: str
    log: bool
    lines: list[Line]


def learning_chart(runs: Iterable[Run]) -> list[Chart]:
    """Return the curves of runs, the seeds of a method together; none if nothing was evaluated."""
    methods: dict[str, list[Run]] = {}
    alarm = False
    for run in runs:
        alarm |= bool(run.alarms)
        methods.setdefault(run.settings.get("method", "learning"), []).append(run)
    lines = [_mean(name, same, column) for name, same in methods.items() for column in LINES]
    lines = [line for line in lines if line.points]
    title = "Learning: guarantee (dashed) and true value of the policy (solid)"
    if any(line.band for line in lines):
        title += ", mean and standard deviation over seeds"
    if alarm:
        title += "; after an alarm nothing is guaranteed"
    return [Chart(title, "trajectories", "value", True, lines)] if lines else []


def _mean(name: str, runs: Sequence[Run], column: str) -> Line:
    word, style = LINES[column]
    found = [
        (float(x), float(y), float(d))
        for x, y, d in zip(*band(runs, column), strict=True)
        if x > 0 and math.isfinite(y)
    ]
    ends = [(y - d, y + d) for _, y, d in found] if len(runs) > 1 else []
    return Line(name, [(x, y) for x, y, _ in found], word, style != "-", ends)


def table_charts(table: RecordList) -> list[Chart]:
    """Return values against the first numeric parameter that varies, by all others that do."""
    records = [flat(record) for record in table]
    names = list(dict.fromkeys(k for r in records for k in r if k not in RESULTS))
    varying = [k for k in names if len({str(r.get(k)) for r in records}) > 1]
    numeric = [k for k in varying if all(_number(r.get(k)) is not None for r in records)]
    if not numeric:
        return []
    x = numeric[0]
    others = [k for k in varying if k != x]
    lines: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        value = _number(record.get("value"))
        if value is not None:
            name = ", ".join(_word(k, record[k]) for k in others if k in record) or "value"
            lines.setdefault(name, []).append((_number(record[x]) or 0.0, value))
    drawn = [Line(name, sorted(points)) for name, points in lines.items()]
    return [Chart(f"Guaranteed value against {x}", x, "value", False, drawn)]


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose constants are fields of their own, before all others."""
    rest = {k: v for k, v in record.items() if k != "constants"}
    return {**record.get("constants", {}), **rest}


def _word(name: str, content: object) -> str:
    return str(content) if name in ("method", "property") else f"{name}={content}"


def _number(content: object) -> float | None:
    """Return a finite number, also of a text; None of all else."""
    if isinstance(content, bool) or content is None:
        return None
    try:
        number = float(content)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
