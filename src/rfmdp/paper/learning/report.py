"""Files of the learning campaign: CSV, Markdown, figures and page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from rfmdp.objective import MAX
from rfmdp.paper.document import ColumnGroup, Document
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.learning.curves import LearningTable
from rfmdp.paper.learning.settings import SETTINGS
from rfmdp.paper.learning.text import (
    NOTES,
    full_cost,
    groups,
    lines,
    method_order,
    overview,
    shorter_runs,
    summary,
)
from rfmdp.writing import replacing

KEY = ("domain", "method", "setting", "seed")
POINT = (
    "trajectories", "steps", "guarantee", "fresh", "performance", "optimistic", "rollout",
    "replans", "visited", "seconds", "processor",
)  # fmt: skip


def write_files(table: LearningTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    from rfmdp.paper.learning.figure import figure

    figures = {setting: figure(table, setting) for setting in table.settings}
    found = document(table, {setting: svg for setting, (svg, _) in figures.items()})
    contents = {
        "learning.csv": csv_text(table).encode(),
        "learning.md": found.markdown().encode(),
        "learning.html": found.html().encode(),
    }
    for setting, (svg, png) in figures.items():
        contents |= {f"learning-{setting}.svg": svg, f"learning-{setting}.png": png}
    for name, content in contents.items():
        with replacing(folder / name) as part:
            part.write_bytes(content)


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


def document(table: LearningTable, figures: Mapping[str, bytes]) -> Document:
    """Return the summary, figure and tables of every setting, and the notes.

    Parameters
    ----------
    figures
        SVG by setting.
    """
    found = Document("The published learning curves, learned again")
    found.bullets(summary(table))
    for setting, svg in figures.items():
        found.heading(f"The experiments {SETTINGS[setting].title}")
        _setting(found, table, setting, svg)
    found.heading("What is known about the differences")
    found.bullets(NOTES)
    for title, texts in (
        ("Shorter runs", list(shorter_runs(table))),
        ("Left out", [str(runs) for runs in table.left_out]),
    ):
        if texts:
            found.heading(title)
            found.bullets(texts)
    return found


def _setting(found: Document, table: LearningTable, setting: str, svg: bytes) -> None:
    """Add the figure and all tables of a setting."""
    label = "Guarantee, performance and runtime against trajectories"
    found.picture(svg, f"learning-{setting}.png", label)
    found.paragraph(
        "Dashed: guarantees; solid: the policy on the hidden truth; dotted: rollout certificates, "
        "which are separate guarantees; bands: one standard deviation over seeds; red: the "
        "guarantee that was printed for flat learning. Trajectories are those of the first "
        "evaluation (sixteen per decade) at which the mean over seeds reaches the target; all "
        "trajectories count, those of rollouts too. Seconds: of one core, in the paper on 40 "
        "cores. Ratio: to the printed trajectories of the same method, ours to those of McCormick."
    )
    found.paragraph(
        "Trajectories and seconds to the printed guarantee; in brackets the printed ones."
    )
    heads, cells = overview(table, setting)
    found.table([ColumnGroup("", heads)], cells)
    for name in table.domains:
        _domain(found, table, name, setting)
    found.bullets([*method_order(table, setting), *full_cost(table, setting)])


def _domain(found: Document, table: LearningTable, name: str, setting: str) -> None:
    """Add the section of one domain, if it has curves."""
    curves = table.in_domain(name, setting)
    if not curves:
        return
    domain, first = DOMAINS[name], curves[0].records[0]
    goal = "maximise" if domain.agent is MAX else "minimise"
    version = domain.versions["learning"]
    found.heading(domain.title, level=3)
    found.paragraph(
        f"{domain.about} {domain.prop}, {goal}; {version.states:,} states, optimum "
        f"{version.optimum:g}, trajectories of {first.length} steps, beta {first.beta:g}."
    )
    found.table(
        groups(table, name, setting), [line for curve in curves for line in lines(table, curve)]
    )
