"""Pictures: functions that draw on axes and return them, in colours that everybody can tell apart.

Each takes `axes=None` and makes a figure of its own then; `axes.figure.savefig(...)` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    "rollout": ("rollout certificate", ":"),
}


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
