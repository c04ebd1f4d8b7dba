"""The figure of the solving table: value against radius, a panel per domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.drawing import legend, logarithmic, new_figure, plain_panel, svg_and_png
from rfmdp.domains import DOMAINS
from rfmdp.objective import MAX

if TYPE_CHECKING:
    from experiments.solving.report import SolvingTable

COLUMNS = 4
SPREAD = 3.0  # ratio of values from which an axis is logarithmic
STYLES: dict[str, dict[str, Any]] = {
    "exact": {"color": "#1b4f9c", "marker": "o", "linewidth": 2.0, "zorder": 4},
    "vertices": {"color": "#1b4f9c", "marker": "x", "linestyle": "none", "markersize": 8},
    "interval": {"color": "#c8502b", "marker": "s", "linewidth": 1.6},
    "mccormick": {"color": "#2b8a3e", "marker": "+", "linestyle": "none", "markersize": 11},
    "mccormick:simplex": {"color": "#d39a00", "marker": "^", "linestyle": ":", "linewidth": 1.4},
    "mccormick:printed": {"color": "#8a4fbf", "marker": "v", "linestyle": "--", "linewidth": 1.4},
}
PRINTED = {"color": "#444444", "marker": "_", "linestyle": "none", "markersize": 13, "zorder": 5}


def figure(table: SolvingTable) -> tuple[bytes, bytes]:
    """Return the figure as SVG and as PNG."""
    names = table.domains
    count = len(names) + 1  # the last one is the legend
    drawn, panels = new_figure(count, min(COLUMNS, count), 3.5, 2.9)
    handles: dict[str, Any] = {}
    for (axis,), name in zip(panels, names, strict=False):
        _panel(axis, table, name, handles)
    legend(panels[-1], handles, [*(m.title for m in table.methods), "printed in the paper"])
    return svg_and_png(drawn)


def _panel(axis: Any, table: SolvingTable, name: str, handles: dict[str, Any]) -> None:
    """Draw one domain."""
    domain, every = DOMAINS[name], []
    printed: dict[tuple[float, str], float] = {}
    for method in table.methods:
        records = [r for r in table.records if r.domain == name and r.method == method.word]
        points = [(r.radius, r.value) for r in records if r.value is not None]
        if points:
            style = {"markersize": 5, **STYLES[method.word]}
            (handles[method.title],) = axis.plot(*zip(*points, strict=True), **style)
            every += [value for _, value in points]
        for record in records:
            if record.printed is not None and method.column != "mccormick":
                printed[record.radius, record.printed.value] = float(record.printed.value)
    marks = [(radius, value) for (radius, _), value in printed.items()]
    if marks:
        (handles["printed in the paper"],) = axis.plot(*zip(*marks, strict=True), **PRINTED)
    if every and min(every) > 0.0 and max(every) / min(every) > SPREAD:
        logarithmic(axis, min(every), max(every))
    better = "higher is better" if domain.agent is MAX else "lower is better"
    plain_panel(axis, f"{domain.title} ({better})", "radius")
    axis.margins(x=0.08, y=0.1)
