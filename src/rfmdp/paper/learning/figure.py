"""The figure of the learning campaign: guarantee, performance and runtime over trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.drawing import legend, new_figure, plain_panel, svg_and_png
from rfmdp.paper.learning.curves import GUARANTEE, ROLLOUT, LearningTable
from rfmdp.paper.published import published_learning

COLOURS = {
    "paper-flat": "#7a7f87",
    "paper-l1": "#d39a00",
    "paper-interval": "#c8502b",
    "paper-mccormick": "#1b4f9c",
    "anytime": "#2b8a3e",
    "tied": "#8a4fbf",
    "rollout": "#0f8b8d",
}
OTHER = "#b0578d"
PRINTED = {"color": "#d11a2a", "linewidth": 0.9}
OPTIMUM = {"color": "#9aa1ab", "linewidth": 0.9, "linestyle": (0, (1, 1))}
COLUMNS = 3
ROOM = 2.5  # costs above this many times the printed guarantee are not shown


def figure(table: LearningTable, setting: str) -> tuple[bytes, bytes]:
    """Return the figure of a setting as SVG and as PNG.

    Above: guarantees dashed, performance on the truth solid, rollout certificates dotted, bands of
    one standard deviation over seeds; red: the printed guarantee. Below: processor seconds.
    """
    names = [n for n in table.domains if table.in_domain(n, setting)]
    panels = len(names) + 1  # values above runtimes; the last is the legend
    columns = 2 if panels == 4 else min(COLUMNS, panels)
    blocks = -(-panels // columns)
    drawn, axes = new_figure(2 * blocks, columns, 3.5, 2.6)
    handles: dict[str, Any] = {}
    for place, name in enumerate(names):
        block, column = divmod(place, columns)
        _values(axes[2 * block, column], table, name, setting, handles)
        _runtimes(axes[2 * block + 1, column], table, name, setting)
    for place in range(len(names), blocks * columns):
        block, column = divmod(place, columns)
        for row in (2 * block, 2 * block + 1):
            axes[row, column].set_axis_off()
    lines = ["guarantee", "true performance", "rollout certificate", "printed guarantee", "optimum"]
    block, column = divmod(len(names), columns)
    titles = [*(m.title for m in table.methods(setting)), *lines]
    legend(axes[2 * block, column], handles, titles)
    return svg_and_png(drawn)


def _values(
    axis: Any, table: LearningTable, name: str, setting: str, handles: dict[str, Any]
) -> None:
    """Draw guarantees and performance of one domain."""
    from matplotlib.lines import Line2D

    styles = {GUARANTEE: ("guarantee", "--"), "performance": ("true performance", "-")}
    styles[ROLLOUT] = ("rollout certificate", ":")
    for curve in table.in_domain(name, setting):
        colour = COLOURS.get(curve.method.word, OTHER)
        handles.setdefault(curve.method.title, Line2D([], [], color=colour, linewidth=3.0))
        for column, (title, style) in styles.items():
            where, mean, spread, _ = curve.points(column)
            if not np.isfinite(mean).any():
                continue
            width = 0.8 if column == "performance" else 1.5
            axis.plot(where, mean, style, color=colour, linewidth=width)
            if curve.seeds > 1:
                axis.fill_between(
                    where, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
                )
            handles.setdefault(title, Line2D([], [], color="#444444", linestyle=style))
    domain, target = DOMAINS[name], published_learning()[name].target
    handles["printed guarantee"] = axis.axhline(target, **PRINTED)
    optimum = domain.versions["learning"].optimum
    assert optimum is not None  # of every learning instance
    handles["optimum"] = axis.axhline(optimum, **OPTIMUM)
    axis.set_xscale("log")
    maximises = all(curve.maximises for curve in table.in_domain(name, setting))
    if not maximises:  # the best above, as in the paper; early guarantees are infinite or nearly so
        axis.set_ylim(ROOM * target, optimum - 0.05 * (ROOM * target - optimum))
    better = "higher is better" if maximises else "lower is better, axis inverted"
    plain_panel(axis, f"{domain.title} ({better})", "trajectories")


def _runtimes(axis: Any, table: LearningTable, name: str, setting: str) -> None:
    """Draw the processor seconds of one domain."""
    for curve in table.in_domain(name, setting):
        where, mean, _, _ = curve.points("processor")
        colour = COLOURS.get(curve.method.word, OTHER)
        axis.plot(where, mean, "-", color=colour, linewidth=1.2)
    axis.set_xscale("log")
    axis.set_yscale("log")
    plain_panel(axis, f"{DOMAINS[name].title}: processor seconds", "trajectories")
