"""Files of the learning campaign: CSV, Markdown, figures and page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rfmdp.campaign.store import replace_file
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.learning_curves import LearningTable
from rfmdp.paper.learning_notes import NOTES
from rfmdp.paper.learning_settings import SETTINGS
from rfmdp.paper.learning_text import (
    cells,
    certificates,
    costs,
    groups,
    order,
    overview,
    short,
    summary,
)

KEY = ("domain", "method", "setting", "seed")
POINT = (
    "trajectories", "steps", "guarantee", "fresh", "performance", "optimistic", "rollout",
    "replans", "visited", "seconds", "processor",
)  # fmt: skip
TITLE = "The published learning curves, learned again"


def write_files(table: LearningTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    from rfmdp.paper.learning_figure import figure
    from rfmdp.paper.learning_page import page

    def put(name: str, data: bytes) -> None:
        replace_file(folder / name, data)

    figures: dict[str, bytes] = {}
    for setting in table.settings:
        figures[setting], pixels = figure(table, setting)
        put(f"learning-{setting}.svg", figures[setting])
        put(f"learning-{setting}.png", pixels)
    put("learning.csv", csv_text(table).encode())
    put("learning.md", markdown(table).encode())
    put("learning.html", page(table, figures).encode())


def csv_text(table: LearningTable) -> str:
    """Return one line per evaluation of every run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*KEY, *POINT])
    for curve in table.curves:
        for record in curve.records:
            key = [getattr(record, name) for name in KEY]
            writer.writerows([*key, *(point[name] for name in POINT)] for point in record.history)
    return out.getvalue()


def markdown(table: LearningTable) -> str:
    """Return the summary, a table per domain and setting, and the notes."""
    parts = [f"# {TITLE}", "", *(f"- {text}" for text in summary(table)), ""]
    for setting in table.settings:
        parts += [f"## The experiments {SETTINGS[setting].title}", ""]
        parts += [
            "Trajectories and seconds to the printed guarantee; in brackets the printed ones.",
            "",
        ]
        parts += [*_lines(*overview(table, setting)), ""]
        for name in table.domains:
            parts += [*_domain(table, name, setting), ""]
        parts += [*(f"- {text}" for text in [*order(table, setting), *costs(table, setting)]), ""]
    parts += ["## What is known about the differences", "", *(f"- {text}" for text in NOTES), ""]
    unfinished = list(short(table))
    if unfinished:
        parts += ["## Shorter runs", "", *(f"- {text}" for text in unfinished), ""]
    if table.left_out:
        parts += ["## Left out", ""]
        parts += [f"- {x.method} on {x.domain}: {x.reason}" for x in table.left_out]
        parts.append("")
    return "\n".join(parts)


def _domain(table: LearningTable, name: str, setting: str) -> Iterator[str]:
    curves = [c for m in table.methods(setting) if (c := table.of(name, m.word, setting))]
    if not curves:
        return
    columns, letters = [DOMAINS[name].title], ("", "A: ", "B: ")
    described = groups(table, name, setting)
    for letter, (_, heads) in zip(letters, described, strict=True):
        columns += [f"{letter}{head}" for head in heads]
    yield f"**{DOMAINS[name].title}.** A: {described[1][0]}; B: {described[2][0]}."
    yield ""
    yield from _lines(
        columns,
        [
            [title, *cells(table, curve, column)]
            for curve in curves
            for column, title in certificates(curve)
        ],
    )


def _lines(heads: list[str], lines: list[list[str]]) -> Iterator[str]:
    """Give a table in Markdown."""
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for line in lines:
        yield "| " + " | ".join(line) + " |"
