"""Files of the solving campaign: CSV, Markdown, figure and page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rfmdp.campaign.store import replace_file
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.solving import SolvingTable, TableLine
from rfmdp.paper.solving_text import differences, summary
from rfmdp.paper.text import seconds, shown

FIELDS = (
    "domain", "radius", "method", "published_value", "value", "lower", "upper", "relative_width",
    "agrees", "published_seconds", "seconds_solve", "seconds_processor", "seconds_build", "status",
    "robust_sweeps", "cheap_sweeps", "states", "rows", "transitions", "precision", "version",
    "explanation",
)  # fmt: skip


def write_files(table: SolvingTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    from rfmdp.paper.solving_figure import figure
    from rfmdp.paper.solving_page import page

    def put(name: str, data: bytes) -> None:
        replace_file(folder / name, data)

    put("solving.csv", csv_text(table).encode())
    put("solving.md", markdown(table).encode())
    vector, pixels = figure(table)
    put("solving.svg", vector)
    put("solving.png", pixels)
    put("solving.html", page(table, vector).encode())


def csv_text(table: SolvingTable) -> str:
    """Return one line per run with all there is to know about it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows(_cells(line) for line in table.lines)
    return out.getvalue()


def _cells(line: TableLine) -> list[object]:
    record, printed = line.record, line.printed
    known = {
        "published_value": None if printed is None else printed.value,
        "published_seconds": None if printed is None else printed.seconds,
        "agrees": line.agrees,
        "explanation": line.explanation or record.message,
        "relative_width": record.relative_width,
    }
    found = [known[name] if name in known else getattr(record, name) for name in FIELDS]
    return ["" if cell is None else cell for cell in found]


def markdown(table: SolvingTable) -> str:
    """Return the summary, a table per domain, and the notes."""
    parts = ["# The published solving table, solved again", "", *summary(table), ""]
    for name in table.domains:
        parts += [f"## {DOMAINS[name].title}", "", *_domain(table, name), ""]
    parts += ["## Differences", "", *(f"- {text}" for text in differences(table)), ""]
    if table.left_out:
        parts += ["## Left out", ""]
        parts += [f"- {x.method} on {x.domain}: {x.reason}" for x in table.left_out]
        parts.append("")
    return "\n".join(parts)


def _domain(table: SolvingTable, name: str) -> Iterator[str]:
    yield "| radius | method | published | certified | bounds | agrees | published s | our s |"
    yield "|---|---|---|---|---|---|---|---|"
    for radius in table.radii:
        for method in table.methods:
            line = table.of(name, radius, method.word)
            if line is None:
                continue
            record, printed = line.record, line.printed
            cells = [
                f"{radius:g}",
                method.title,
                "" if printed is None else printed.value,
                shown(record.value),
                f"[{shown(record.lower)}, {shown(record.upper)}]",
                {True: "yes", False: "no, see below", None: ""}[line.agrees],
                "" if printed is None else seconds(printed.seconds),
                seconds(record.seconds_solve),
            ]
            yield "| " + " | ".join(cells) + " |"
