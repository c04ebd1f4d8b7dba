"""The report page: results, curves and an explorer of every policy, in one file that needs no net.

What can be on a page joins by registering `section`: a function from a result to its part of it.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import singledispatch
from html import escape
from importlib.resources import files

import numpy as np

from rfmdp import __version__
from rfmdp.errors import UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.objective import MAX
from rfmdp.outer.solution import Solution
from rfmdp.report.explorer import explorer
from rfmdp.report.words import in_words, proven
from rfmdp.writing import replacing

EXPLORERS = 3  # on one page, the first results


@dataclass(slots=True)
class Line:
    """A line of a chart."""

    name: str
    points: list[tuple[float, float]]
    note: str = ""
    dashed: bool = False


@dataclass(slots=True)
class Section:
    """What one result brings to a page."""

    title: str
    card: str  # HTML of its summary
    cells: dict[str, str | float]  # its line of the table
    lines: list[Line] = field(default_factory=list)  # of the chart of learning
    explorer: Solution | None = None


def write_report(
    results: Iterable[object], path: str | os.PathLike[str], *, title: str = "", command: str = ""
) -> None:
    """Write one page with results that works without a network.

    Parameters
    ----------
    results
        Solutions of `solve` and runs of `learn`, or what `load` returns of them.
    path
        The file, replaced when all is written.
    title
        Of the page; by default the first result's.
    command
        How to make the results again, shown at the end.

    Raises
    ------
    UnsupportedError
        If something is no result.
    FileError
        If the file cannot be written.
    """
    text = page([section(result) for result in results], title, command)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def page(sections: Sequence[Section], title: str, command: str) -> str:
    """Return the page of some sections."""
    heading = title or (sections[0].title if sections else "Nothing to report")
    charts = _charts(sections)
    explored = [s for s in sections if s.explorer is not None][:EXPLORERS]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(heading)}</title><style>{_asset('page.css')}</style></head><body>",
        f"<h1>{escape(heading)}</h1>",
        f'<div class="cards">{"".join(s.card for s in sections)}</div>',
        f"<h2>Results</h2>{_table(sections)}",
    ]
    if charts:
        parts.append('<h2>Curves</h2><div id="curves" class="card"></div>')
        parts.append(f'<script type="application/json" id="charts">{_json(charts)}</script>')
    for number, chosen in enumerate(explored):
        assert chosen.explorer is not None
        parts.append(
            f"<h2>Policy explorer: {escape(chosen.title)}</h2>{_scope(chosen.explorer)}"
            f'<div id="place-{number}">unpacking ...</div><script type="application/x-explorer" '
            f'data-place="place-{number}">{explorer(chosen.explorer)}</script>'
        )
    parts.append(f"<h2>Made with</h2>{_environment(command)}")
    parts.append(f"<script>{_asset('page.js')}</script></body></html>")
    return "\n".join(parts) + "\n"


@singledispatch
def section(result: object) -> Section:
    """Return what a result brings to a page."""
    raise UnsupportedError(
        f"A report shows solutions and learning runs, not a {type(result).__name__}; give files "
        "that `rfmdp solve -o` or `rfmdp learn -o` wrote."
    )


@section.register
def _(solution: Solution) -> Section:
    model, first = solution.model, int(solution.model.initial[0])
    bounds, title = solution.at(first), in_words(solution.spec)
    status = solution.status
    card = (
        f'<section class="card"><h3>{escape(title)}</h3><div class="big">'
        f"{escape(proven(bounds.lower, bounds.upper))}</div>"
        f'<p><span class="badge {status.name.lower()}">{escape(status.value)}</span></p>'
        f'<p class="soft">proven bounds [{bounds.lower!r}, {bounds.upper!r}] in the initial state '
        f"{escape(model.state_name(first))}, for every choice of nature from its sets; method "
        f"{escape(solution.method)}</p></section>"
    )
    cells: dict[str, str | float] = {
        "result": title, "method": solution.method, "at least": bounds.lower,
        "at most": bounds.upper, "status": status.name.lower().replace("_", " "),
        "states": model.states, "rows": model.rows, "transitions": model.transitions,
        "marginals": len(model.marginals), "seconds": sum(solution.stats.seconds.values()),
    }  # fmt: skip
    return Section(title, card, cells, explorer=solution)


@section.register
def _(run: Run) -> Section:
    method = run.settings.get("method", "learning")
    side = "at least" if run.agent is MAX else "at most"
    last = run.history[-1] if run.history else None
    card = (
        f'<section class="card"><h3>Learned: {escape(method)}</h3>'
        f'<div class="big">{side} {run.guarantee:.6g}</div>'
        f"<pre>{escape(run.statement())}</pre></section>"
    )
    cells: dict[str, str | float] = {"result": f"learned: {method}", "method": method}
    cells[side] = run.guarantee
    cells |= {"status": f"holds with probability {1.0 - run.beta:g}"}
    cells |= {"seconds": last.seconds if last else 0.0}
    lines = [
        Line(method, _points(run, "guarantee"), "guarantee", dashed=True),
        Line(method, _points(run, "performance"), "true value of the policy"),
    ]
    return Section(f"Learned: {method}", card, cells, [x for x in lines if x.points])


def _points(run: Run, name: str) -> list[tuple[float, float]]:
    pairs = zip(run.column("trajectories"), run.column(name), strict=True)
    return [(float(x), float(y)) for x, y in pairs if x > 0 and math.isfinite(y)]


def _charts(sections: Sequence[Section]) -> list[dict[str, object]]:
    lines = [line for s in sections for line in s.lines]
    if not lines:
        return []
    shown = [
        {"name": x.name, "note": x.note, "dashed": x.dashed, "points": x.points} for x in lines
    ]
    title = "Learning: guarantee (dashed) and true value of the policy (solid)"
    return [{"title": title, "x": "trajectories", "y": "value", "log": True, "lines": shown}]


def _table(sections: Sequence[Section]) -> str:
    """Return the table of all results, with the columns that occur."""
    columns = list(dict.fromkeys(name for s in sections for name in s.cells))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(_cell(s.cells.get(name, "")) for name in columns) + "</tr>"
        for s in sections
    )
    return (
        f'<div class="scroll card"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(content: str | float) -> str:
    if isinstance(content, str):
        return f"<td>{escape(content)}</td>"
    shown = f"{content:,}" if isinstance(content, int) else f"{content:.6g}"
    return f'<td data-value="{content!r}">{shown}</td>'


def _scope(solution: Solution) -> str:
    """Return a line that says what the explorer shows."""
    horizon = len(solution.policy.rows)
    steps = f" The horizon is finite: decisions are those of the first of {horizon} steps."
    return (
        '<p class="soft">States that the policy can reach, the nearest first. Values are proven '
        f"bounds.{steps if horizon > 1 else ''}</p>"
    )


def _environment(command: str) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{platform.system()} {platform.machine()}"
    again = f"<pre>{escape(command)}</pre>" if command else ""
    return (
        f'{again}<p class="soft">rfmdp {escape(__version__)}, Python {platform.python_version()}, '
        f"NumPy {np.__version__}, {escape(machine)}, {made}</p>"
    )


def _asset(name: str) -> str:
    return (files("rfmdp.report") / "assets" / name).read_text(encoding="utf-8")


def _json(content: object) -> str:
    """Return JSON that may stand inside of a script element."""
    return json.dumps(content, allow_nan=False).replace("</", "<\\/")
