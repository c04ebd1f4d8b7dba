"""The report page: results, curves, an explorer of every policy, in one file that needs no net."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import TypeAlias

import numpy as np

from rfmdp import __version__
from rfmdp.errors import UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.learning.setup import in_words
from rfmdp.objective import MAX
from rfmdp.outer.solution import Solution, Status, proven, written
from rfmdp.record import Provenance
from rfmdp.report.explorer import explorer, shown_steps
from rfmdp.writing import replacing

EXPLORERS = 3  # on one page, the first results
AUTOMATON = 12  # states of an automaton that are listed
LONG = 8  # lines of a table that is not folded

SIDES = {"at least": -1.0, "at most": 1.0}  # columns of bounds, which stay so when rounded

CURVES = {  # column of a run's history: name, dashed or not
    "guarantee": ("guarantee", True),
    "performance": ("true value", False),
}
Cells: TypeAlias = dict[str, str | float]


@dataclass(slots=True)
class Section:
    """What one result brings to a page."""

    title: str
    card: str  # HTML of its summary
    cells: Cells = field(default_factory=dict)  # its line of the table of results
    explorer: Solution | None = None
    run: Run | None = None  # for the chart of all runs
    made: str = ""  # how the result was found
    origin: Provenance | None = None  # where its model comes from


def write_report(
    results: Solution | Run | Iterable[object],
    path: str | os.PathLike[str],
    *,
    title: str = "",
    command: str = "",
) -> None:
    """Write one page with results that works without a network.

    Parameters
    ----------
    results
        Solutions of `solve`, runs of `learn`, or what `load` returns of them; one may be given as
        it is, several in a list.
    title
        Of the page; by default the first result's.
    command
        How to make the results again, shown at the end.
    """
    listed = [results] if isinstance(results, Solution | Run) else results
    sections = [_section(result) for result in listed] if isinstance(listed, Iterable) else []
    if not sections:
        raise UnsupportedError(
            f"write_report: must be a list with a result at least, got {results!r:.60}."
        )
    text = _page(sections, title, command)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _page(sections: Sequence[Section], title: str, command: str) -> str:
    """Return the page of some sections."""
    heading = title or sections[0].title
    charts = _charts([s.run for s in sections if s.run is not None])
    explored = [s for s in sections if s.explorer is not None]
    left_out = explored[EXPLORERS:]
    explored = explored[:EXPLORERS]
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(heading)}</title><style>{_asset('page.css')}</style></head><body>",
        f"<h1>{escape(heading)}</h1>",
        f'<div class="cards">{"".join(s.card for s in sections)}</div>',
    ]
    if charts:
        lines.append('<h2>Curves</h2><div id="curves" class="card"></div>')
        lines.append(f'<script type="application/json" id="charts">{_json(charts)}</script>')
    for number, chosen in enumerate(explored):
        assert chosen.explorer is not None
        lines.append(
            f"<h2>Policy explorer: {escape(chosen.title)}</h2>{_scope(chosen.explorer)}"
            f'<div id="place-{number}">unpacking ...</div><script type="application/x-explorer" '
            f'data-place="place-{number}">{explorer(chosen.explorer)}</script>'
        )
    if left_out:
        titles = "; ".join(escape(s.title) for s in left_out)
        lines.append(
            f'<p class="soft" data-role="left-out">A page has {EXPLORERS} policy explorers. Make '
            f"another page for: {titles}.</p>"
        )
    if results := [s.cells for s in sections if s.cells]:
        lines.append(f"<h2>Results</h2>{_table(results)}")
    lines += _models(sections)
    lines.append(f"<h2>Made with</h2>{_environment(command, [s.made for s in sections if s.made])}")
    lines.append(f"<script>{_asset('page.js')}</script></body></html>")
    return "\n".join(lines) + "\n"


def _section(result: object) -> Section:
    """Return what a result brings to a page."""
    if isinstance(result, Run):
        return _run_section(result)
    if isinstance(result, Solution):
        return _solution_section(result)
    raise UnsupportedError(
        f"A report shows solutions and learning runs, not a {type(result).__name__}; give files "
        "that `rfmdp solve -o` or `rfmdp learn -o` wrote."
    )


def _solution_section(solution: Solution) -> Section:
    model, title, status = solution.model, str(solution.spec), solution.status
    first = int(model.initial[0])
    bounds, side = solution.at(first), _one_side(solution)
    card = (
        f'<section class="card"><h3>{escape(title)}</h3><div class="big">'
        f"{escape(proven(bounds.lower, bounds.upper, -float(solution.spec.agent.sign)))}</div>"
        f'<p><span class="badge {status.name.lower()}">{escape(side or status.value)}</span></p>'
        f'<p class="soft">proven bounds [{bounds.lower!r}, {bounds.upper!r}] in the initial state '
        f"{escape(model.state_name(first))}{_nature(solution)}; method "
        f"{escape(solution.method)}</p></section>"
    )
    cells: Cells = {
        "result": title, "method": solution.method, "at least": bounds.lower,
        "at most": bounds.upper, "status": side or status.name.lower().replace("_", " "),
        "states": model.states, "rows": model.rows, "transitions": model.transitions,
        "marginals": len(model.marginals), "seconds": sum(solution.stats.seconds.values()),
    }  # fmt: skip
    precision = f"{solution.measure.lower()} precision {solution.precision:g}"
    made = f"solved: {title}, method {solution.method}, {precision}"
    return Section(title, card, cells, explorer=solution, made=made, origin=model.provenance)


def _run_section(run: Run) -> Section:
    method = run.settings.get("method", "learning")
    side = "at least" if run.agent is MAX else "at most"
    last = run.history[-1] if run.history else None
    holds = _holds(run)
    alarm = bool(run.alarms)
    claim = "nothing is guaranteed" if alarm else f"{side} {run.guaranteed}"
    card = (
        f'<section class="card"><h3>Learned: {escape(method)}</h3>'
        f'<div class="big">{claim}</div>'
        f'<p class="soft">{escape(run.subject)}: {escape(holds)}</p>'
        f"<details><summary>statement and assumptions</summary>"
        f"<pre>{escape(run.statement())}</pre></details></section>"
    )
    cells: Cells = {"result": f"learned: {method}", "method": method}
    cells |= {} if alarm else {side: run.guarantee}
    cells |= {"status": holds, "seconds": last.seconds if last else 0.0}
    words = ("source", "method", "confidence", "exploration", "schedule", "beta", "length", "seed")
    told = [f"{word} {in_words(run.settings[word])}" for word in words if word in run.settings]
    made = ", ".join([f"learned: {run.question}", run.name, *told])
    shown = None if alarm else run.solution  # its bounds are void
    return Section(
        f"Learned: {method}", card, cells, explorer=shown, run=run, made=made,
        origin=run.model.provenance,
    )  # fmt: skip


def _charts(runs: Sequence[Run]) -> list[dict[str, object]]:
    """Return the curves of runs, the seeds of a method together; none if nothing was evaluated."""
    methods: dict[str, list[Run]] = {}
    for run in runs:
        methods.setdefault(run.settings.get("method", "learning"), []).append(run)
    curves = [_curve(name, same, column) for name, same in methods.items() for column in CURVES]
    lines = [line for line in curves if line["points"]]
    title = "Learning: guarantee (dashed) and true value of the policy (solid)"
    if any(line["band"] for line in lines):
        title += ", mean and standard deviation over seeds"
    if any(run.alarms for run in runs):
        title += "; after an alarm nothing is guaranteed"
    chart = {"title": title, "x": "trajectories", "y": "value", "log": True, "lines": lines}
    return [chart] if lines else []


def _curve(name: str, runs: Sequence[Run], column: str) -> dict[str, object]:
    """Return the mean of a column over runs where all were evaluated, with a band of deviations."""
    common = set.intersection(*({p.trajectories for p in run.history} for run in runs))
    points, band = [], []
    for x in sorted(common - {0}):
        at = (
            dict(zip(run.column("trajectories"), run.column(column), strict=True)) for run in runs
        )
        values = np.array([values[x] for values in at])
        if np.all(np.isfinite(values)):
            mean, deviation = float(values.mean()), float(values.std())
            points.append((float(x), mean))
            band.append((mean - deviation, mean + deviation))
    note, dashed = CURVES[column]
    band = band if len(runs) > 1 else []
    return {"name": name, "points": points, "note": note, "dashed": dashed, "band": band}


def _nature(solution: Solution) -> str:
    """Return which nature the bounds are for."""
    if not solution.model.uncertain:
        return ""
    if solution.spec.robust:
        return ", for every choice of nature from its sets"
    return ", with a nature that helps the agent"


def _one_side(solution: Solution) -> str:
    """Return which side a method proves, if it is one that proves one side only; else nothing."""
    bounds = solution.at(int(solution.model.initial[0]))
    sides = math.isfinite(bounds.lower), math.isfinite(bounds.upper)
    if solution.status is not Status.GAP_OPEN or all(sides) or not any(sides):
        return ""
    return "lower bound" if sides[0] else "upper bound"


def _models(sections: Sequence[Section]) -> list[str]:
    """Return where the models come from, and the text of each once."""
    origins = [s.origin for s in sections if s.origin is not None]
    texts = {origin.digest: origin for origin in origins if origin.text}
    said = ("<br>".join(f"{word}: {escape(text)}" for word, text in o.lines()) for o in origins)
    shown = [f'<p class="soft" data-role="origin">{lines}</p>' for lines in dict.fromkeys(said)]
    shown += [
        f'<details class="card"><summary>text of {escape(origin.name)}</summary>'
        f"<pre>{escape(origin.text)}</pre></details>"
        for origin in texts.values()
    ]
    return [f"<h2>{'Models' if len(shown) > 1 else 'Model'}</h2>", *shown] if shown else []


def _holds(run: Run) -> str:
    """Return how far the guarantee of a run can be relied on."""
    if run.alarms:
        return "ALARM, nothing is guaranteed"
    if run.solution is None:
        return "nothing is proven"
    return f"holds with probability {1.0 - run.beta:g} ({run.validity})"


def _table(lines: Sequence[Cells]) -> str:
    """Return a table with the columns that occur in its lines; a long one is folded."""
    columns = list(dict.fromkeys(name for cells in lines for name in cells))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(_cell(name, cells.get(name, "")) for name in columns) + "</tr>"
        for cells in lines
    )
    table = (
        f'<div class="scroll card"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    if len(lines) <= LONG:
        return table
    return f"<details><summary>table of {len(lines)} lines</summary>{table}</details>"


def _cell(name: str, content: str | float) -> str:
    if isinstance(content, str):
        return f"<td>{escape(content)}</td>"
    if isinstance(content, float) and math.isinf(content):
        return f'<td data-value="{content!r}">none proven</td>'
    shown = f"{content:,}" if isinstance(content, int) else f"{content:.6g}"
    if name in SIDES:
        shown = written(content, SIDES[name])
    return f'<td data-value="{content!r}">{shown}</td>'


def _scope(solution: Solution) -> str:
    """Return a line that says what the explorer shows, and what an automaton's states mean."""
    memory = ""
    if solution.product is not None:
        names = solution.product.table.names
        listed = "; ".join(f"{number} is {name}" for number, name in enumerate(names[:AUTOMATON]))
        more = f"; and {len(names) - AUTOMATON} more" if len(names) > AUTOMATON else ""
        variable = solution.explicit_model.variables[-1].name
        memory = f" The variable {variable} is the state of the automaton: {escape(listed)}{more}."
    last = solution.spec.objective.span[1] or 1
    steps = " A slider chooses the step of the finite horizon."
    if shown_steps(solution) < last:
        steps = f" The horizon is finite: decisions are those of the first of {last} steps."
    return (
        '<p class="soft">States that the policy can reach, the nearest first. Values are proven '
        "bounds; that of a state is at least as good as the bound of the action that is taken "
        f"there, so it can be better than the guarantee above.{steps if last > 1 else ''}"
        f"{memory}</p>"
    )


def _environment(command: str, results: Sequence[str]) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{platform.system()} {platform.machine()}"
    again = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(results))
    again = f'<ul class="soft" data-role="made">{again}</ul>' if results else ""
    again += f"<pre>{escape(command)}</pre>" if command else ""
    return (
        f'{again}<p class="soft">rfmdp {escape(__version__)}, Python {platform.python_version()}, '
        f"NumPy {np.__version__}, {escape(machine)}, {made}</p>"
    )


def _asset(name: str) -> str:
    return (files("rfmdp.report") / "assets" / name).read_text(encoding="utf-8")


def _json(content: object) -> str:
    """Return JSON that may stand inside of a script element."""
    return json.dumps(content, allow_nan=False).replace("<", "\\u003c")
