"""The figure of the learning curves: guarantee, performance and runtime over trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.drawing import legend, new_figure, plain_panel, svg_and_png
from experiments.learning.curves import GUARANTEE, LearningTable
from experiments.published import published_learning
from rfmdp.domains import DOMAINS

COLOURS = {
    "paper-flat": "#7a7f87",
    "paper-l1": "#d39a00",
    "paper-interval": "#c8502b",
    "paper-mccormick": "#1b4f9c",
    "anytime": "#2b8a3e",
    "tied": "#8a4fbf",
}
OTHER = "#b0578d"
PRINTED = {"color": "#d11a2a", "linewidth": 0.9}
OPTIMUM = {"color": "#9aa1ab", "linewidth": 0.9, "linestyle": (0, (1, 1))}
COLUMNS = 3
ROOM = 2.5  # costs above this many times the printed guarantee are not shown


def figure(table: LearningTable) -> tuple[bytes, bytes]:
    """Return the figure of a setting as SVG and as PNG.

    Above: guarantees dashed, performance on the truth solid, bands of one standard deviation
    over seeds; red: the printed guarantee. Below: processor seconds.
    """
    count = len(table.domains) + 1  # the last one is the legend
    columns = 2 if count == 4 else min(COLUMNS, count)
    drawn, panels = new_figure(count, columns, 3.5, 2.6, rows=2)
    handles: dict[str, Any] = {}
    for (values, runtimes), name in zip(panels, table.domains, strict=False):
        _draw_values(values, table, name, handles)
        _draw_runtimes(runtimes, table, name)
    lines = ["guarantee", "true performance", "printed guarantee", "optimum"]
    legend(panels[-1], handles, [*(method.title for method in table.methods), *lines])
    return svg_and_png(drawn)


def _draw_values(axis: Any, table: LearningTable, name: str, handles: dict[str, Any]) -> None:
    """Draw guarantees and performance of one domain."""
    from matplotlib.lines import Line2D

    styles = {GUARANTEE: ("guarantee", "--"), "performance": ("true performance", "-")}
    for curve in table.in_domain(name):
        colour = COLOURS.get(curve.method.word, OTHER)
        handles.setdefault(curve.method.title, Line2D([], [], color=colour, linewidth=3.0))
        for column, (title, style) in styles.items():
            where, mean, spread = curve.points(column)
            if not np.isfinite(mean).any():
                continue
            width = 0.8 if column == "performance" else 1.5
            axis.plot(where, mean, style, color=colour, linewidth=width)
            if curve.seeds > 1:
                axis.fill_between(
                    where, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
                )
            handles.setdefault(title, Line2D([], [], color="#444444", linestyle=style))
    domain = DOMAINS[name]
    target = published_learning()[name].target
    handles["printed guarantee"] = axis.axhline(target, **PRINTED)
    optimum = domain.versions["learning"].optimum
    assert optimum is not None  # of every learning instance
    handles["optimum"] = axis.axhline(optimum, **OPTIMUM)
    axis.set_xscale("log")
    maximises = all(curve.maximises for curve in table.in_domain(name))
    if not maximises:  # the best above, as in the paper; early guarantees are infinite or nearly so
        axis.set_ylim(ROOM * target, optimum - 0.05 * (ROOM * target - optimum))
    better = "higher is better" if maximises else "lower is better, axis inverted"
    plain_panel(axis, f"{domain.title} ({better})", "trajectories")


def _draw_runtimes(axis: Any, table: LearningTable, name: str) -> None:
    """Draw the processor seconds of one domain."""
    for curve in table.in_domain(name):
        where, mean, _ = curve.points("processor")
        colour = COLOURS.get(curve.method.word, OTHER)
        axis.plot(where, mean, "-", color=colour, linewidth=1.2)
    axis.set_xscale("log")
    axis.set_yscale("log")
    plain_panel(axis, f"{DOMAINS[name].title}: processor seconds", "trajectories")
