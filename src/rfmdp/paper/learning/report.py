"""Files of the learning campaign: CSV, Markdown, figures and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rfmdp.domains.table import DOMAINS
from rfmdp.objective import MAX
from rfmdp.paper.document import ColumnGroup, Document, write_files
from rfmdp.paper.learning.curves import LearningTable
from rfmdp.paper.learning.figure import figure
from rfmdp.paper.learning.settings import SETTINGS
from rfmdp.paper.learning.text import (
    NOTES,
    column_groups,
    full_cost,
    lines,
    method_order,
    overview,
    shorter_runs,
    summary,
)

KEY = ("domain", "method", "setting", "seed")
POINT = (
    "trajectories", "steps", "guarantee", "fresh", "performance", "optimistic", "rollout",
    "replans", "visited", "seconds", "processor",
)  # fmt: skip


def write_table(table: LearningTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    figures = {setting: figure(part) for setting, part in table.by_setting.items()}
    found = document(table, {setting: svg for setting, (svg, _) in figures.items()})
    named = {f"learning-{setting}": drawn for setting, drawn in figures.items()}
    write_files(folder, "learning", found, _lines(table), named)


def _lines(table: LearningTable) -> Iterator[list[object]]:
    """Give the heads, and one line per evaluation of every run."""
    yield [*KEY, *POINT]
    for curve in table.curves:
        for record in curve.records:
            key = [getattr(record, name) for name in KEY]
            yield from ([*key, *(point[name] for name in POINT)] for point in record.history)


def document(table: LearningTable, figures: Mapping[str, bytes]) -> Document:
    """Return the summary, figure and tables of every setting, and the notes.

    Parameters
    ----------
    figures
        SVG by setting.
    """
    found = Document("The published learning curves, learned again")
    found.bullets(summary(table))
    for setting, part in table.by_setting.items():
        found.heading(f"The experiments {SETTINGS[setting].title}")
        label = "Guarantee, performance and runtime against trajectories"
        found.picture(figures[setting], f"learning-{setting}.png", label)
        _add_tables(found, part)
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


def _add_tables(found: Document, table: LearningTable) -> None:
    """Add all tables of a setting."""
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
    heads, cells = overview(table)
    found.table([ColumnGroup("", heads)], cells)
    for name in table.domains:
        _add_domain(found, table, name)
    found.bullets([*method_order(table), *full_cost(table)])


def _add_domain(found: Document, table: LearningTable, name: str) -> None:
    """Add the section of one domain."""
    curves, flat = table.in_domain(name), table.flat_guarantee(name)
    domain, first = DOMAINS[name], curves[0].records[0]
    goal = "maximise" if domain.agent is MAX else "minimise"
    version = domain.versions["learning"]
    found.heading(domain.title, level=3)
    found.paragraph(
        f"{domain.about} {domain.prop}, {goal}; {version.states:,} states, optimum "
        f"{version.optimum:g}, trajectories of {first.length} steps, beta {first.beta:g}."
    )
    rows = [line for curve in curves for line in lines(curve, flat)]
    found.table(column_groups(table, name), rows)
