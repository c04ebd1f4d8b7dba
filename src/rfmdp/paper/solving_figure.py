"""The figure of the solving campaign: value against radius, a panel per domain."""

from __future__ import annotations

import io
from typing import Any

from rfmdp.objective import MAX
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.solving import SolvingTable

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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = table.domains
    panels = len(names) + 1  # the last one is the legend
    columns = min(COLUMNS, panels)
    rows = -(-panels // columns)
    drawn = Figure(figsize=(3.5 * columns, 2.9 * rows), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(rows, columns, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axis, name in zip(axes, names, strict=False):
        _panel(axis, table, name, handles)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    if handles:
        order = [*(m.title for m in table.methods), "printed in the paper"]
        known = [title for title in order if title in handles]
        axes[len(names)].legend(
            [handles[title] for title in known],
            known,
            loc="center left",
            frameon=False,
            fontsize=10,
            labelspacing=0.9,
        )
    return _bytes(drawn, "svg"), _bytes(drawn, "png")


def _panel(axis: Any, table: SolvingTable, name: str, handles: dict[str, Any]) -> None:
    """Draw one domain."""
    domain, every = DOMAINS[name], []
    printed: dict[tuple[float, str], float] = {}
    for method in table.methods:
        lines = [x for x in table.lines if x.record.domain == name and x.method is method]
        points = [(x.record.radius, x.record.value) for x in lines if x.record.value is not None]
        if points:
            style = {"markersize": 5, **STYLES[method.word]}
            (handles[method.title],) = axis.plot(*zip(*points, strict=True), **style)
            every += [value for _, value in points]
        for x in lines:
            if x.printed is not None and x.method.column != "mccormick":
                printed[x.record.radius, x.printed.value] = float(x.printed.value)
    marks = [(radius, value) for (radius, _), value in printed.items()]
    if marks:
        (handles["printed in the paper"],) = axis.plot(*zip(*marks, strict=True), **PRINTED)
    if every and min(every) > 0.0 and max(every) / min(every) > SPREAD:
        _logarithmic(axis, min(every), max(every))
    better = "higher is better" if domain.agent is MAX else "lower is better"
    axis.set_title(f"{domain.title} ({better})", fontsize=10)
    axis.set_xlabel("radius", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.margins(x=0.08, y=0.1)


def _logarithmic(axis: Any, low: float, high: float) -> None:
    """Make the axis of values logarithmic, with plain numbers at 1, 2, 5 of every decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    steps = (1.0, 2.0, 5.0) if high / low < 30.0 else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def _bytes(drawn: Any, kind: str) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    # text stays text, and equal figures are equal files
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rfmdp"}):
        meta = {"Date": None} if kind == "svg" else None
        drawn.savefig(out, format=kind, dpi=150, metadata=meta)
    return out.getvalue()
