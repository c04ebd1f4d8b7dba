"""The page of the solving campaign: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rfmdp.objective import MAX
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.methods import SolvingMethod
from rfmdp.paper.page import bullets, document, left_out, picture
from rfmdp.paper.solving import SolvingTable, TableLine
from rfmdp.paper.solving_runs import SolvingRecord
from rfmdp.paper.solving_text import differences, summary
from rfmdp.paper.text import seconds, shown

TITLE = "The published solving table, solved again"


def page(table: SolvingTable, figure: bytes) -> str:
    """Return the page with the figure inside."""
    parts = [
        bullets(summary(table)),
        picture(figure, "Value against radius per domain"),
        '<p class="soft">✓: the certified value, rounded, is the printed one. ✗: it is not; the '
        "reason is below the table. Below each value: the width of the proven bounds, or the "
        "side on which a relaxation bounds the exact value; hold the pointer there for the bounds. "
        "Seconds: solving on this machine, in the paper on 40 cores.</p>",
    ]
    for name in table.domains:
        parts += _domain(table, name)
    return document(TITLE, [*parts, left_out(table.left_out)])


def _domain(table: SolvingTable, name: str) -> Iterator[str]:
    """Give the section of one domain: heading, table, reasons."""
    domain = DOMAINS[name]
    own = SolvingTable(tuple(x for x in table.lines if x.record.domain == name), ())
    goal = "maximise" if domain.agent is MAX else "minimise"
    yield f"<h2>{escape(domain.title)}</h2>"
    yield (
        f'<p>{escape(domain.about)} <span class="soft">{escape(domain.prop)}, {goal}; '
        f"{domain.published.states:,} states, {domain.published.transitions:,} transitions.</span>"
        "</p>"
    )
    yield '<div class="scroll"><table><thead><tr><th></th>'
    for method in own.methods:
        span = 5 if _compared(method) else 2
        yield f'<th colspan="{span}" class="group">{escape(method.title)}</th>'
    yield '</tr><tr><th scope="col">radius</th>'
    for method in own.methods:
        titles = ["paper", "certified", "", "paper s", "our s"]
        titles = titles if _compared(method) else ["certified", "our s"]
        yield from (
            f'<th scope="col"{_group(place)}>{title}</th>' for place, title in enumerate(titles)
        )
    yield "</tr></thead><tbody>"
    for radius in own.radii:
        yield f'<tr><th scope="row">{radius:g}</th>'
        for method in own.methods:
            yield from _cells(own.of(name, radius, method.word), method)
        yield "</tr>"
    yield "</tbody></table></div>"
    yield bullets(text for text in differences(own) if text != "None.")


def _compared(method: SolvingMethod) -> bool:
    return method.word == method.column


def _cells(line: TableLine | None, method: SolvingMethod) -> Iterator[str]:
    """Give the cells of one run."""
    if line is None:
        count = 5 if _compared(method) else 2
        yield "".join(f"<td{_group(place)}></td>" for place in range(count))
        return
    record, printed = line.record, line.printed
    value = f"{shown(record.value)}<small{_bounds(record)}</small>"
    mine = seconds(record.seconds_solve)
    if not _compared(method):
        yield f"<td{_group(0)}>{value}</td><td>{mine}</td>"
        return
    sign = {True: '<span class="yes" title="agrees">✓</span>', False: '<span class="no" '
            'title="differs, see below">✗</span>', None: ""}[line.agrees]  # fmt: skip
    yield f"<td{_group(0)}>{escape(printed.value) if printed else ''}</td><td>{value}</td>"
    yield f"<td>{sign}</td><td>{seconds(printed.seconds) if printed else ''}</td><td>{mine}</td>"


def _bounds(record: SolvingRecord) -> str:
    """Return the rest of the tag with the bounds in full, and what they prove in short."""
    full = f' title="[{record.lower}, {record.upper}]">'.replace("None", "–")
    if not record.finished:
        return full + escape(record.status.lower().replace("_", " "))
    if record.lower is not None and record.upper is not None:
        return f"{full}width {record.upper - record.lower:.0e}"
    return full + ("lower bound" if record.upper is None else "upper bound")


def _group(place: int) -> str:
    return ' class="group"' if place == 0 else ""
