"""Pictures: functions that draw on axes and return them, in colours that everybody can tell apart.

Each takes `axes=None` and makes a figure of its own then; `axes.figure.savefig(...)` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.outer.solution import Solution
from rfmdp.solving import Comparison
from rfmdp.types import FloatArray
from rfmdp.writing import replacing

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # [OkabeIto2008]
FORMATS = (".png", ".pdf", ".svg")
LINES = {
    "guarantee": ("guarantee", "--"),
    "performance": ("true value", "-"),
    "rollout": ("rollout certificate", ":"),
}
MARKS = ("o", "s", "^", "D", "v", "P")


def learning_curve(
    methods: Mapping[str, Sequence[Run]] | Run, axes: Any = None, truth: float | None = None
) -> Any:
    """Draw mean curves of several methods; returns the axes.

    Dashed: guarantees; solid: performance on the truth; bands: one standard deviation over the
    seeds; dotted: best rollout certificates. Infinite values are left out.

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


def value_against_radius(records: Mapping[float, Sequence[Comparison]], axes: Any = None) -> Any:
    """Draw the value against the radius, one line per method; return the axes.

    The first methods have the broadest lines: they are seen below others that agree with them.

    Parameters
    ----------
    records
        What `compare` returns, by the radius.
    """
    axes = _axes(axes)
    methods = list(dict.fromkeys(r.method for line in records.values() for r in line))
    for k, method in enumerate(methods):
        points = [(x, r.value) for x, line in records.items() for r in line if r.method == method]
        axes.plot(
            *zip(*sorted(points), strict=True), marker=MARKS[k % 6], color=COLOURS[k % 6],
            label=method, linewidth=1.5 * (len(methods) - k), markersize=4 + 2 * (len(methods) - k),
        )  # fmt: skip
    axes.set(xlabel="radius", ylabel="guaranteed value")
    axes.legend()
    return axes


def heat_map(solution: Solution, across: str, up: str, axes: Any = None, **fixed: int) -> Any:
    """Draw the guaranteed value over two variables, with the policy's actions; return the axes.

    Parameters
    ----------
    across, up
        The variables of the two axes.
    fixed
        Values of the other variables; by default those of the initial state.
    """
    model = solution.explicit_model
    columns = {v.name: model.valuations[:, k] for k, v in enumerate(model.variables)}
    unknown = [name for name in (across, up, *fixed) if name not in columns]
    if unknown:
        raise ModelError(
            f"The model has no variable {unknown[0]}; it has: {', '.join(columns) or 'none'}."
        )
    start = model.valuations[model.initial[0]]
    others = {v.name: int(x) for v, x in zip(model.variables, start, strict=True)} | fixed
    inside = np.ones(model.states, dtype=np.bool_)
    for name, value in others.items():
        if name not in (across, up):
            inside &= columns[name] == value
    low_x, low_y = columns[across].min(), columns[up].min()
    grid = np.full((columns[up].max() - low_y + 1, columns[across].max() - low_x + 1), np.nan)
    states = np.flatnonzero(inside)
    grid[columns[up][states] - low_y, columns[across][states] - low_x] = solution.guarantee[states]
    axes = _axes(axes)
    image = axes.imshow(
        grid, origin="lower", cmap="viridis", aspect="auto",
        extent=(low_x - 0.5, low_x + grid.shape[1] - 0.5, low_y - 0.5, low_y + grid.shape[0] - 0.5),
    )  # fmt: skip
    if len(states) <= 400:
        middle = (np.nanmax(grid) + np.nanmin(grid)) / 2.0
        for state in states:
            name = model.choice_name(solution.policy.row(int(state)))
            dark = solution.guarantee[state] < middle
            axes.text(
                columns[across][state], columns[up][state], name[:5], ha="center", va="center",
                fontsize=6, color="white" if dark else "black",
            )  # fmt: skip
    axes.figure.colorbar(image, ax=axes, label="guaranteed value")
    rest = ", ".join(f"{k}={v}" for k, v in others.items() if k not in (across, up))
    axes.set(xlabel=across, ylabel=up, title=rest)
    return axes


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
