"""The page of the learning campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from rfmdp.objective import MAX
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.learning_curves import LearningTable
from rfmdp.paper.learning_files import TITLE
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
from rfmdp.paper.page import bullets, document, left_out, picture


def page(table: LearningTable, figures: Mapping[str, bytes]) -> str:
    """Return the page with the figures, by setting, inside."""
    parts = [bullets(summary(table))]
    for setting, svg in figures.items():
        parts.append(f"<h2>The experiments {escape(SETTINGS[setting].title)}</h2>")
        parts.append(picture(svg, "Guarantee, performance and runtime against trajectories"))
        parts.append(
            '<p class="soft">Dashed: guarantees; solid: the policy on the hidden truth; dotted: '
            "rollout certificates, which are separate guarantees; bands: one standard deviation "
            "over seeds; red: the guarantee that was printed for flat learning. Trajectories are "
            "those of the first evaluation (sixteen per decade) at which the mean over seeds "
            "reaches the target; all trajectories count, those of rollouts too. Seconds: of one "
            "core, in the paper on 40 cores. Ratio: to the printed trajectories of the same "
            "method, ours to those of McCormick.</p>"
        )
        parts += _overview(table, setting)
        for name in table.domains:
            parts += _domain(table, name, setting)
        parts.append(bullets([*order(table, setting), *costs(table, setting)]))
    parts.append(f"<h2>What is known about the differences</h2>{bullets(NOTES)}")
    unfinished = list(short(table))
    if unfinished:
        parts.append(f"<h2>Shorter runs</h2>{bullets(unfinished)}")
    return document(TITLE, [*parts, left_out(table.left_out)])


def _overview(table: LearningTable, setting: str) -> Iterator[str]:
    """Give the published table beside ours."""
    heads, lines = overview(table, setting)
    yield "<p>Trajectories and seconds to the printed guarantee; in brackets the printed ones.</p>"
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    for first, *rest in lines:
        pairs = [cell.partition(" (") for cell in rest]
        cells = "".join(
            f"<td>{escape(ours)}<small>{escape(bracket.strip() + paper)}</small></td>"
            for ours, bracket, paper in pairs
        )
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _domain(table: LearningTable, name: str, setting: str) -> Iterator[str]:
    """Give the section of one domain: heading and table."""
    curves = [c for m in table.methods(setting) if (c := table.of(name, m.word, setting))]
    if not curves:
        return
    domain = DOMAINS[name]
    goal = "maximise" if domain.agent is MAX else "minimise"
    version = domain.versions["learning"]
    yield f"<h2>{escape(domain.title)}</h2>"
    yield (
        f'<p>{escape(domain.about)} <span class="soft">{escape(domain.prop)}, {goal}; '
        f"{version.states:,} states, optimum {version.optimum:g}, trajectories of "
        f"{curves[0].records[0].length} steps, beta {curves[0].records[0].beta:g}.</span></p>"
    )
    described = groups(table, name, setting)
    yield '<div class="scroll"><table><thead><tr><th></th>'
    for title, heads in described:
        yield f'<th colspan="{len(heads)}" class="group">{escape(title)}</th>'
    yield '</tr><tr><th scope="col">method</th>'
    first = [head == heads[0] for _, heads in described for head in heads]
    for begins, head in zip(first, (h for _, heads in described for h in heads), strict=True):
        yield f'<th scope="col"{_group(begins)}>{escape(head)}</th>'
    yield "</tr></thead><tbody>"
    for curve in curves:
        for column, title in certificates(curve):
            yield f'<tr><th scope="row">{escape(title)}</th>'
            for begins, cell in zip(first, cells(table, curve, column), strict=True):
                yield f"<td{_group(begins)}>{escape(cell)}</td>"
            yield "</tr>"
    yield "</tbody></table></div>"


def _group(begins: bool) -> str:
    return ' class="group"' if begins else ""
