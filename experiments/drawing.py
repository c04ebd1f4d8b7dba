"""What the figures share: how they are made, and how they become files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any


def new_figure(panels: int, columns: int, width: float, height: float, rows: int = 1) -> Any:
    """Return a figure, and the axes of its panels (panels, rows), one above the other in each.

    Width and height are those of one of the axes.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = -(-panels // columns)
    drawn = Figure(figsize=(width * columns, height * rows * lines), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(rows * lines, columns, squeeze=False)
    by_panel = axes.reshape(lines, rows, columns).swapaxes(1, 2).reshape(-1, rows)
    for axis in by_panel[panels:].ravel():
        axis.set_axis_off()
    return drawn, by_panel[:panels]


def plain_panel(axis: Any, title: str, label: str) -> None:
    """Give a panel its title, the label of its horizontal axis, and a grid."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(label, fontsize=9)
    axis.tick_params(labelsize=8, which="both")
    axis.grid(color="#dddddd", linewidth=0.6)


def legend(panel: Any, handles: Mapping[str, Any], order: Iterable[str]) -> None:
    """Turn the axes of a panel into the legend of those titles that have a handle."""
    for axis in panel:
        axis.set_axis_off()
    drawn = [title for title in order if title in handles]
    if drawn:
        panel[0].legend(
            [handles[title] for title in drawn],
            drawn,
            loc="center left",
            frameon=False,
            fontsize=9,
            labelspacing=0.6,
        )


def logarithmic(axis: Any, low: float, high: float) -> None:
    """Make the axis of values logarithmic, with plain numbers at 1, 2, 5 of every decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    steps = (1.0, 2.0, 5.0) if high / low < 30.0 else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def svg_and_png(drawn: Any) -> tuple[bytes, bytes]:
    """Return a figure as SVG and as PNG; text stays text, and equal figures are equal files."""
    import matplotlib as mpl

    def written(kind: str, metadata: dict[str, None] | None) -> bytes:
        out = io.BytesIO()
        drawn.savefig(out, format=kind, dpi=150, metadata=metadata)
        return out.getvalue()

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rfmdp"}):
        return _short(written("svg", {"Date": None})), written("png", None)


def _short(svg: bytes) -> bytes:
    """Return an SVG whose paths go to tenths of a point: half of its size.

    >>> _short(b'<path d="M 1.234567 8.9 "/>1.234567')
    b'<path d="M 1.2 8.9 "/>1.234567'
    """
    path = re.compile(rb' d="[^"]*"')
    return path.sub(lambda found: re.sub(rb"(\.\d)\d+", rb"\1", found[0]), svg)
