"""What is told about the solving campaign: sentences, CSV, Markdown, figure and page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rfmdp.model.report import counted
from rfmdp.objective import MAX
from rfmdp.paper.document import ColumnGroup, Document, seconds, shown
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.solving.table import SolvingTable, TableLine
from rfmdp.writing import replacing

FIELDS = (
    "domain", "radius", "method", "published_value", "value", "lower", "upper", "relative_width",
    "agrees", "published_seconds", "seconds_solve", "seconds_processor", "seconds_build", "status",
    "robust_sweeps", "cheap_sweeps", "states", "rows", "transitions", "precision", "version",
    "explanation",
)  # fmt: skip
HEADS = ("radius", "method", "paper", "certified", "bounds", "agrees", "paper s", "our s")


def write_files(table: SolvingTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    from rfmdp.paper.solving.figure import figure

    svg, png = figure(table)
    found = document(table, svg)
    for ending, content in {
        "csv": csv_text(table).encode(),
        "md": found.markdown().encode(),
        "html": found.html().encode(),
        "svg": svg,
        "png": png,
    }.items():
        with replacing(folder / f"solving.{ending}") as part:
            part.write_bytes(content)


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


def document(table: SolvingTable, svg: bytes) -> Document:
    """Return the summary, the figure, a table per domain, differences, and what was left out."""
    found = Document("The published solving table, solved again")
    found.bullets(summary(table))
    found.picture(svg, "solving.png", "Value against radius per domain")
    found.paragraph(
        "Agrees: whether the certified value, rounded, is the printed one. A side of the bounds "
        "that a relaxation does not prove is a dash. Seconds: solving on this machine, in the "
        "paper on 40 cores."
    )
    for name in table.domains:
        domain = DOMAINS[name]
        goal = "maximise" if domain.agent is MAX else "minimise"
        found.heading(domain.title)
        found.paragraph(
            f"{domain.about} {domain.prop}, {goal}; {domain.published.states:,} states, "
            f"{domain.published.transitions:,} transitions."
        )
        found.table([ColumnGroup("", HEADS)], _lines(table, name))
    found.heading("Differences")
    found.bullets(differences(table))
    if table.left_out:
        found.heading("Left out")
        found.bullets(map(str, table.left_out))
    return found


def _lines(table: SolvingTable, name: str) -> Iterator[list[str]]:
    """Give the table of a domain: a line per radius and method."""
    found = (table.of(name, radius, m.word) for radius in table.radii for m in table.methods)
    for line in found:
        if line is None:
            continue
        record, printed = line.record, line.printed
        yield [
            f"{record.radius:g}",
            line.method.title,
            "" if printed is None else printed.value,
            shown(record.value),
            f"[{shown(record.lower)}, {shown(record.upper)}]",
            {True: "yes", False: "no, see below", None: ""}[line.agrees],
            "" if printed is None else seconds(printed.seconds),
            seconds(record.seconds_solve),
        ]


def summary(table: SolvingTable) -> Iterator[str]:
    """Give the results of a campaign in a few sentences."""
    compared = table.compared
    agree = [line for line in compared if line.agrees]
    explained = [line for line in compared if line.explanation]
    yield (
        f"{len(agree)} of {len(compared)} printed values agree to the last digit; "
        f"{len(explained)} differ for a known reason; "
        f"{len(compared) - len(agree) - len(explained)} differ without one."
    )
    widths = [
        line.record.relative_width
        for line in table.lines
        if line.method.word == "exact" and line.record.relative_width is not None
    ]
    if widths:
        yield f"Widest certified interval of the exact method: {max(widths):.1e} of its value."
    for method in table.methods:
        own = [
            line
            for line in table.lines
            if line.method is method and line.printed is not None and line.record.finished
        ]
        ours = sum(line.record.seconds_solve for line in own)
        theirs = sum(line.printed.seconds for line in own if line.printed is not None)
        if own and ours > 0.0:
            yield (
                f"{method.title[0].upper()}{method.title[1:]}: {counted(len(own), 'run')} in "
                f"{seconds(ours)} s; published on 40 cores: {seconds(theirs)} s "
                f"(x{theirs / ours:.0f})."
            )


def differences(table: SolvingTable) -> Iterator[str]:
    """Give one sentence per value that differs from the printed one."""
    found = False
    for line in table.lines:
        record = line.record
        if line.agrees is False and line.printed is not None:
            found = True
            reason = line.explanation or "No reason is known."
            yield (
                f"{DOMAINS[record.domain].title}, radius {record.radius:g}, {line.method.title}: "
                f"printed {line.printed.value}, certified {shown(record.value)}. {reason}"
            )
        elif not record.finished:
            found = True
            yield (
                f"{DOMAINS[record.domain].title}, radius {record.radius:g}, {line.method.title}: "
                f"not finished ({record.message or record.status.lower().replace('_', ' ')})."
            )
    if not found:
        yield "None."
