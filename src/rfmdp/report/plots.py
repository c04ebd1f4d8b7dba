"""Learning curves and charts: drawn by matplotlib, and as data for the page.

Colours are those that everybody can tell apart. Charts of the page are learning curves with bands
over seeds, and values against a parameter. A table has one record per solved problem, as
`rfmdp solve` with ranges writes them into a `.json` file. Its parameters are the fields that say
what was solved.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.types import FloatArray
from rfmdp.writing import replacing

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # [OkabeIto2008]
FORMATS = (".png", ".pdf", ".svg")
LINES = {
    "guarantee": ("guarantee", "--"),
    "performance": ("true value", "-"),
}
RESULTS = {
    *("value", "lower", "upper", "gap_percent", "seconds", "status", "precision", "version"),
    *("states", "rows", "transitions", "marginals", "seconds_build", "seconds_solve", "error"),
}  # fields of a record that are no parameters

RecordList: TypeAlias = Sequence[Mapping[str, Any]]


def learning_curve(
    methods: Mapping[str, Sequence[Run]] | Run, axes: Any = None, truth: float | None = None
) -> Any:
    """Draw mean curves of several methods; returns the axes.

    Dashed: guarantees; solid: performance on the truth; bands: one standard deviation over the
    seeds. Infinite values are left out.

    Parameters
    ----------
    methods
        Runs with different seeds, by the name of their method; or one run.
    axes
        Where to draw; a new figure by default.
    truth
        Optimal value, drawn as a line.
    """
    if isinstance(methods, Run):
        methods = {str(methods.settings.get("method", "learning")): [methods]}
    if not isinstance(methods, Mapping):
        raise UnsupportedError(
            "learning_curve: must be given a run, or runs by the name of their method ({'anytime': "
            f"[run, ...]}}), found a {type(methods).__name__}."
        )
    axes = _axes(axes)
    for number, (name, runs) in enumerate(methods.items()):
        colour = COLOURS[number % len(COLOURS)]
        for column, (word, style) in LINES.items():
            where, mean, deviation = band(runs, column)
            if not np.isfinite(mean).any():
                continue
            axes.plot(where, mean, style, color=colour, label=f"{name}: {word}")
            if len(runs) > 1:
                axes.fill_between(
                    where, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
                )
    if truth is not None:
        axes.axhline(truth, color="0.5", linewidth=0.8, label="optimum")
    axes.set_xscale("log")
    axes.set_xlabel("trajectories")
    axes.set_ylabel("value in the initial state")
    axes.legend(fontsize="small")
    return axes


def band(runs: Sequence[Run], column: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return trajectories, mean and deviation of a column where all runs were evaluated."""
    common = set.intersection(*({p.trajectories for p in run.history} for run in runs))
    where = np.array(sorted(common), dtype=np.float64)
    lines = []
    for run in runs:
        at = dict(zip(run.column("trajectories"), run.column(column), strict=True))
        lines.append([at[x] for x in where])
    values = np.array(lines, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return where, values.mean(axis=0), values.std(axis=0)


def save_learning_curve(
    methods: Mapping[str, Sequence[Run]],
    path: str | os.PathLike[str],
) -> None:
    """Write the learning curve to a file; its ending, one of `FORMATS`, says the format."""
    figure = learning_curve(methods).figure
    with replacing(path) as part:
        figure.savefig(part, dpi=150, format=Path(path).suffix[1:])


def _axes(axes: Any) -> Any:
    """Return axes to draw on: the given ones, or those of a new figure."""
    if axes is not None:
        return axes
    return figure_class()(figsize=(6.4, 4.2), layout="constrained").subplots()


def figure_class() -> Any:
    """Return matplotlib's class of figures, or say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            "Pictures need matplotlib, which is not installed; install the extra: pip install "
            "'rfmdp[plots]'."
        ) from error
    return Figure


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
    points = [
        (float(x), float(y), float(d))
        for x, y, d in zip(*band(runs, column), strict=True)
        if x > 0 and math.isfinite(y)
    ]
    ends = [(y - d, y + d) for _, y, d in points] if len(runs) > 1 else []
    return Line(name, [(x, y) for x, y, _ in points], word, style != "-", ends)


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
    """Return a record with constants as fields of their own; a name stands for its property."""
    rest = {k: v for k, v in record.items() if k not in ("constants", "name")}
    named = {"property": record["name"]} if "name" in record else {}
    return {**record.get("constants", {}), **rest, **named}


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
