"""The solving table in sentences, as CSV, Markdown and figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.document import Document, seconds, shown, write_files
from experiments.records import LeftOut, Method
from experiments.solving.figure import figure
from experiments.solving.runs import METHODS, SolvingRecord
from rfmdp.domains import DOMAINS
from rfmdp.model.arrays import counted
from rfmdp.objective import MAX

FIELDS = (
    "domain", "radius", "method", "published_value", "value", "lower", "upper", "relative_width",
    "agrees", "published_seconds", "seconds_solve", "seconds_processor", "seconds_build", "status",
    "robust_sweeps", "cheap_sweeps", "states", "rows", "transitions", "precision", "version",
    "explanation",
)  # fmt: skip
HEADS = ("radius", "method", "paper", "certified", "bounds", "agrees", "paper s", "our s")


@dataclass(frozen=True, slots=True)
class SolvingTable:
    """All records by domain, method and radius, and what was left out."""

    records: tuple[SolvingRecord, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def domains(self) -> list[str]:
        """The domains that have records, in order."""
        return list(dict.fromkeys(record.domain for record in self.records))

    @property
    def methods(self) -> list[Method]:
        """The methods that have records, in order."""
        have = {record.method for record in self.records}
        return [method for word, method in METHODS.items() if word in have]

    @property
    def fine(self) -> bool:
        """Whether all runs are finished and no value differs without a reason."""
        finished = all(record.finished for record in self.records)
        return finished and not any(r.agrees is False and not r.explanation for r in self.records)


def write_table(table: SolvingTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    drawn = figure(table)
    lines = [FIELDS, *map(_cells, table.records)]
    write_files(folder, "solving", document(table), lines, {"solving": drawn})


def _cells(record: SolvingRecord) -> list[object]:
    """Return all there is to know about a run."""
    printed = record.printed
    published = {
        "published_value": None if printed is None else printed.value,
        "published_seconds": None if printed is None else printed.seconds,
        "explanation": record.explanation or record.message,
    }
    return [published[name] if name in published else getattr(record, name) for name in FIELDS]


def document(table: SolvingTable) -> Document:
    """Return the summary, the figure, a table per domain, differences, and what was left out."""
    page = Document("The published solving table, solved again")
    page.bullets(summary(table))
    page.picture("solving.png", "Value against radius per domain")
    page.paragraph(
        "Agrees: whether the certified value, rounded, is the printed one. A side of the bounds "
        "that a relaxation does not prove is a dash. Seconds: solving on this machine, in the "
        "paper on 40 cores."
    )
    for name in table.domains:
        domain = DOMAINS[name]
        goal = "maximise" if domain.agent is MAX else "minimise"
        page.heading(domain.title)
        page.paragraph(
            f"{domain.about} {domain.prop}, {goal}; {domain.published.states:,} states, "
            f"{domain.published.transitions:,} transitions."
        )
        records = [record for record in table.records if record.domain == name]
        records.sort(key=lambda record: record.radius)
        page.table(HEADS, map(_line, records))
    page.heading("Differences")
    page.bullets(differences(table))
    if table.left_out:
        page.heading("Left out")
        page.bullets(map(str, table.left_out))
    return page


def _line(record: SolvingRecord) -> list[str]:
    """Return the line of a run in the table of its domain."""
    printed = record.printed
    return [
        f"{record.radius:g}",
        record.title,
        "" if printed is None else printed.value,
        shown(record.value),
        f"[{shown(record.lower)}, {shown(record.upper)}]",
        {True: "yes", False: "no, see below", None: ""}[record.agrees],
        "" if printed is None else seconds(printed.seconds),
        seconds(record.seconds_solve),
    ]


def summary(table: SolvingTable) -> Iterator[str]:
    """Give the results in a few sentences."""
    compared = [record for record in table.records if record.agrees is not None]
    agree = [record for record in compared if record.agrees]
    explained = [record for record in compared if record.explanation]
    yield (
        f"{len(agree)} of {len(compared)} printed values agree to the last digit; "
        f"{len(explained)} differ for a known reason; "
        f"{len(compared) - len(agree) - len(explained)} differ without one."
    )
    widths = [r.relative_width for r in table.records if r.method == "exact"]
    if proven := [width for width in widths if width is not None]:
        yield f"Widest certified interval of the exact method: {max(proven):.1e} of its value."
    for method in table.methods:
        timed = [
            (record.seconds_solve, record.printed.seconds)
            for record in table.records
            if record.method == method.word and record.printed is not None and record.finished
        ]
        ours, theirs = (sum(times) for times in zip(*timed, strict=True)) if timed else (0.0, 0.0)
        if ours > 0.0:
            yield (
                f"{method.heading}: {counted(len(timed), 'run')} in {seconds(ours)} s; "
                f"published on 40 cores: {seconds(theirs)} s (x{theirs / ours:.0f})."
            )


def differences(table: SolvingTable) -> Iterator[str]:
    """Give one sentence per value that differs from the printed one."""
    none = True
    for record in table.records:
        where = f"{DOMAINS[record.domain].title}, radius {record.radius:g}, {record.title}"
        if record.agrees is False and record.printed is not None:
            none = False
            yield (
                f"{where}: printed {record.printed.value}, certified {shown(record.value)}. "
                f"{record.explanation or 'No reason is known.'}"
            )
        elif not record.finished:
            none = False
            reason = record.message or record.status.lower().replace("_", " ")
            yield f"{where}: not finished ({reason})."
    if none:
        yield "None."
