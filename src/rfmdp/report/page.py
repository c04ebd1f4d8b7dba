"""The report page: results, curves, an explorer of every policy, in one file that needs no net.

An explorer has the part of a model that the policy reaches: typed arrays, one after the other,
compressed; the browser unpacks them. Actions that the policy does not take are listed with their
values, and can be followed as long as they lead to states on the page.
"""

from __future__ import annotations

import base64
import json
import math
import os
import platform
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias

import numpy as np

from rfmdp import __version__
from rfmdp.errors import UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.learning.setup import in_words
from rfmdp.model.arrays import Variable
from rfmdp.model.derived import reached
from rfmdp.objective import MAX
from rfmdp.outer.solution import Solution, Status, proven, written
from rfmdp.policies.explain import Decisions, decisions, values_after
from rfmdp.policies.induced import without_budget
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.types import AnyArray, FloatArray
from rfmdp.writing import replacing

EXPLORERS = 3  # on one page, the first results
AUTOMATON = 12  # states of an automaton that are listed
LONG = 8  # lines of a table that is not folded

# Of an explorer
STATES = 20_000
ROWS = 200_000  # of all steps of a finite horizon together; of a larger one the first step is shown
ENTRIES = 1_500_000  # successors

SIDES = {"at least": -1.0, "at most": 1.0}  # columns of bounds, which stay so when rounded

CURVES = {"guarantee": "guarantee", "performance": "true value"}  # columns of a run's history
Cells: TypeAlias = dict[str, str | float]


@dataclass(slots=True)
class Section:
    """What one result brings to a page."""

    result: Solution | Run
    title: str
    card: str  # HTML of its summary
    cells: Cells  # its line of the table of results
    explorer: Solution | None
    made: str  # how the result was found


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
    results : Solutions of `solve`, runs of `learn`, or what `load` returns of them; one may be
        given as it is, several in a list.
    title : Of the page; by default the first result's.
    command : How to make the results again, shown at the end.
    """
    listed = [results] if isinstance(results, Solution | Run) else results
    found: list[Any] = list(listed) if isinstance(listed, Iterable) else []
    wrong = [type(result).__name__ for result in found if not isinstance(result, Solution | Run)]
    if wrong or not found:
        raise UnsupportedError(
            "write_report: must be solutions or learning runs, or files that `rfmdp solve -o` or "
            f"`rfmdp learn -o` wrote; got {', '.join(wrong) or repr(results)[:60]}."
        )
    sections = [
        _run_section(result) if isinstance(result, Run) else _solution_section(result)
        for result in found
    ]
    text = _page(sections, title, command)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _page(sections: Sequence[Section], title: str, command: str) -> str:
    charts = _charts([s.result for s in sections if isinstance(s.result, Run)])
    data = json.dumps(charts, allow_nan=False).replace("<", "\\u003c")
    curves = (
        '<h2>Curves</h2><div id="curves" class="card"></div>'
        f'<script type="application/json" id="charts">{data}</script>'
    )
    explored = [(s.title, s.explorer) for s in sections if s.explorer is not None]
    explorers = [
        f"<h2>Policy explorer: {escape(name)}</h2>{_scope(solution)}"
        f'<div id="place-{number}">unpacking ...</div><script type="application/x-explorer" '
        f'data-place="place-{number}">{explorer(solution)}</script>'
        for number, (name, solution) in enumerate(explored[:EXPLORERS])
    ]
    if left_out := "; ".join(escape(name) for name, _ in explored[EXPLORERS:]):
        explorers.append(
            f'<p class="soft" data-role="left-out">A page has {EXPLORERS} policy explorers. Make '
            f"another page for: {left_out}.</p>"
        )
    return Template(_asset("page.html")).substitute(
        title=escape(title or sections[0].title),
        style=_asset("page.css"),
        cards="".join(s.card for s in sections),
        curves=curves if charts else "",
        explorers="\n".join(explorers),
        table=_table([s.cells for s in sections]),
        models="\n".join(_models(sections)),
        made=_environment(command, [s.made for s in sections]),
        script=_asset("page.js"),
    )


def _solution_section(solution: Solution) -> Section:
    model, title, status = solution.model, str(solution.spec), solution.status
    first = int(model.initial[0])
    bounds, side, nature = solution.at(first), "", ""
    ends = math.isfinite(bounds.lower), math.isfinite(bounds.upper)
    if status is Status.GAP_OPEN and ends[0] != ends[1]:  # the method proves one side only
        side = "lower bound" if ends[0] else "upper bound"
    if model.uncertain:
        nature = ", with a nature that helps the agent"
        nature = ", for every choice of nature from its sets" if solution.spec.robust else nature
    card = (
        f'<section class="card"><h3>{escape(title)}</h3><div class="big">'
        f"{escape(proven(bounds.lower, bounds.upper, -float(solution.spec.agent.sign)))}</div>"
        f'<p><span class="badge {status.name.lower()}">{escape(side or status.value)}</span></p>'
        f'<p class="soft">proven bounds [{bounds.lower!r}, {bounds.upper!r}] in the initial state '
        f"{escape(model.state_name(first))}{nature}; method "
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
    return Section(solution, title, card, cells, solution, made)


def _run_section(run: Run) -> Section:
    method = run.settings.get("method", "learning")
    side = "at least" if run.agent is MAX else "at most"
    last = run.history[-1] if run.history else None
    alarm = bool(run.alarms)
    claim = "nothing is guaranteed" if alarm else f"{side} {run.guaranteed}"
    holds = f"holds with probability {1.0 - run.beta:g} ({run.validity})"
    if alarm or run.solution is None:
        holds = "ALARM, nothing is guaranteed" if alarm else "nothing is proven"
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
    return Section(run, f"Learned: {method}", card, cells, shown, made)


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
    tables = [{p.trajectories: getattr(p, column) for p in run.history} for run in runs]
    points, band = [], []
    for x in sorted(set.intersection(*map(set, tables)) - {0}):
        values = np.array([table[x] for table in tables])
        if np.all(np.isfinite(values)):
            mean, deviation = float(values.mean()), float(values.std())
            points.append((float(x), mean))
            band.append((mean - deviation, mean + deviation))
    line = {"name": name, "points": points, "band": band if len(runs) > 1 else []}
    return line | {"note": CURVES[column], "dashed": column == "guarantee"}


def _models(sections: Sequence[Section]) -> list[str]:
    """Return where the models come from, and the text of each once."""
    known = (s.result.model.provenance for s in sections)
    origins = [origin for origin in known if origin is not None]
    texts = {origin.digest: origin for origin in origins if origin.text}
    said = ("<br>".join(f"{word}: {escape(text)}" for word, text in o.lines()) for o in origins)
    shown = [f'<p class="soft" data-role="origin">{lines}</p>' for lines in dict.fromkeys(said)]
    shown += [
        f'<details class="card"><summary>text of {escape(origin.name)}</summary>'
        f"<pre>{escape(origin.text)}</pre></details>"
        for origin in texts.values()
    ]
    return [f"<h2>{'Models' if len(shown) > 1 else 'Model'}</h2>", *shown] if shown else []


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
    again = f'<ul class="soft" data-role="made">{again}</ul>'
    again += f"<pre>{escape(command)}</pre>" if command else ""
    return (
        f'{again}<p class="soft">rfmdp {escape(__version__)}, Python {platform.python_version()}, '
        f"NumPy {np.__version__}, {escape(machine)}, {made}</p>"
    )


def _asset(name: str) -> str:
    return (files("rfmdp.report") / "assets" / name).read_text(encoding="utf-8")


def explorer(solution: Solution) -> str:
    """Return the explorer's data of a solution as text: compressed, then base 64."""
    solution = without_budget(solution)
    model, steps = solution.explicit_model, shown_steps(solution)
    states = reached(model, solution.policy.rows, model.initial, STATES, ENTRIES)
    options = [decisions(solution, states, step) for step in range(steps)]
    values = [step.value for step in options]
    if solution.spec.objective.span[1] is not None:  # what is left after the last step shown
        low, high = values_after(solution, steps)
        values.append((low[states], high[states]))
    lower, upper = (np.concatenate(side) for side in zip(*values, strict=True))
    marks = [model.labels[name][states] for name in model.labels]
    valuation = model.valuations[states] if model.variables else states
    arrays = _of_rows(solution, options[0]) | {
        "state": states.astype(np.int32),
        "valuation": valuation.astype(np.int32).ravel(),
        "lower": np.where(np.isneginf(lower), np.nan, lower),  # nan: not proven
        "upper": np.where(np.isposinf(upper) & ~np.isposinf(lower), np.nan, upper),
        "label": np.array(marks, dtype=np.uint8).ravel(),
    }
    taken = [np.isin(step.rows, step.chosen) for step in options]
    arrays |= {  # what differs between steps, of one after the other
        "row_lower": _single(np.concatenate([step.lower for step in options]), -1.0),
        "row_upper": _single(np.concatenate([step.upper for step in options]), 1.0),
        "taken": np.concatenate(taken).astype(np.uint8),
        "nature": np.concatenate([step.nature for step in options]).astype(np.float32),
    }
    variables = model.variables or (Variable("state", 0, model.states - 1),)
    header: dict[str, Any] = {
        "agent": "max" if solution.spec.agent is MAX else "min",
        "nature": "max" if solution.spec.nature is MAX else "min",
        "variables": [[v.name, v.low, v.high, v.boolean] for v in variables],
        "actions": list(model.actions),
        "marginals": [model.marginal_name(j) for j in range(len(model.marginals))],
        "outcomes": list(model.outcome_names),
        "labels": list(model.labels),
        "initial": int(model.initial[0]),
        "total": model.states,
        "steps": steps,
        "layers": len(values),
    }
    return _packed(header, arrays)


def shown_steps(solution: Solution) -> int:
    """Return how many steps of a solution an explorer shows: all of a horizon that is not large."""
    steps = solution.spec.objective.span[1] or 1
    return steps if steps * solution.model.rows <= ROWS else 1


def _of_rows(solution: Solution, options: Decisions) -> dict[str, AnyArray]:
    model, rows = solution.explicit_model, options.rows
    place = np.full(model.states, -1, dtype=np.int32)
    place[options.states] = np.arange(len(options.states))
    on_policy = np.isin(rows, options.chosen)
    widths = segment_lengths(model.successor_ptr)[rows]
    if widths.sum() > ENTRIES:  # then only the policy's own rows can be followed
        widths = np.where(on_policy, widths, 0)
    followed = rows[widths > 0]
    ids = entries(model.marginal_ptr, rows)
    return {
        "row_ptr": options.row_ptr.astype(np.int32),
        "action": model.row_actions[rows].astype(np.int32),
        "marginal_ptr": starts(segment_lengths(model.marginal_ptr)[rows]).astype(np.int32),
        "marginal": model.row_marginals[ids].astype(np.int32),
        "outcome_ptr": model.marginals.outcome_ptr.astype(np.int32),
        "nominal": model.marginals.nominal.astype(np.float32),
        "set_lower": model.marginals.lower.astype(np.float32),
        "set_upper": model.marginals.upper.astype(np.float32),
        "nature_ptr": options.outcome_ptr.astype(np.int32),
        "successor_ptr": starts(widths).astype(np.int32),
        "successor": place[model.successors[entries(model.successor_ptr, followed)]],
    }


def _packed(header: dict[str, Any], arrays: dict[str, AnyArray]) -> str:
    blocks, offset, table = [], 0, {}
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 8)  # typed arrays start at multiples of their size
        table[name] = [array.dtype.str[1:], offset, len(array)]
        blocks.append(data)
        offset += len(data)
    head = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    head += b" " * (-(len(head) + 4) % 8)
    raw = len(head).to_bytes(4, "little") + head + b"".join(blocks)
    return base64.b64encode(zlib.compress(raw, 7)).decode()


def _single(bound: FloatArray, side: float) -> AnyArray:
    """Return bounds in single precision that are bounds still: below (-1) or above (+1)."""
    near = bound.astype(np.float32)
    fits = near <= bound if side < 0.0 else near >= bound
    return np.where(fits, near, np.nextafter(near, np.float32(side * np.inf)))
