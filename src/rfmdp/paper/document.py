"""The document of a campaign: its parts are put down once, for Markdown and for HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from rfmdp import __version__
from rfmdp.writing import replacing

STYLE = """
:root { --ink: #1c2430; --soft: #647084; --line: #dfe4ea; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; padding: 2rem;
  max-width: 104rem; background: #fff; }
h1 { font-size: 1.6rem; margin: 0 0 .4rem; } h2 { font-size: 1.25rem; margin: 2.4rem 0 .5rem; }
h3 { font-size: 1.1rem; margin: 1.8rem 0 .4rem; }
p, li { max-width: 60rem; } .soft { color: var(--soft); }
figure { margin: 1.5rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .84rem; }
th, td { padding: .28rem .5rem; text-align: right; white-space: nowrap; }
thead th { font-weight: 600; border-bottom: 2px solid var(--ink); vertical-align: bottom; }
thead tr:not(:last-child) th { border-bottom: 1px solid var(--line); text-align: center; }
tbody tr { border-bottom: 1px solid var(--line); }
.group { border-left: 1px solid var(--line); }
"""


class ColumnGroup(NamedTuple):
    """Columns of a table that stand under one title, which may be empty."""

    title: str
    heads: tuple[str, ...]


class Document:
    """A document that grows part by part, and is written as Markdown and as one HTML file."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._markdown: list[str] = [f"# {title}"]
        self._html: list[str] = [f"<h1>{escape(title)}</h1>"]

    def heading(self, text: str, level: int = 2) -> None:
        """Begin a section."""
        self._add(f"{'#' * level} {text}", f"<h{level}>{escape(text)}</h{level}>")

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._add(text, f"<p>{escape(text)}</p>")

    def bullets(self, texts: Iterable[str]) -> None:
        """Add a list; nothing if there is nothing to list."""
        if listed := list(texts):
            items = "".join(f"<li>{escape(text)}</li>" for text in listed)
            self._add("\n".join(f"- {text}" for text in listed), f"<ul>{items}</ul>")

    def picture(self, svg: bytes, file: str, label: str) -> None:
        """Add a figure: in Markdown as a link to its file, in HTML as it is."""
        inside = svg.decode().partition("<svg")[2]
        self._add(
            f"![{label}]({file})",
            f'<figure role="img" aria-label="{escape(label)}"><svg{inside}</figure>',
        )

    def table(self, groups: Sequence[ColumnGroup], lines: Iterable[Sequence[str]]) -> None:
        """Add a table; in Markdown the columns of a group with a title begin with its letter."""
        cells = list(lines)
        titled = [group for group in groups if group.title]
        letters = dict(zip(titled, "ABCDEFGH", strict=False))
        heads = [
            f"{letters[group]}: {head}" if group.title else head
            for group in groups
            for head in group.heads
        ]
        first, *others = (f"| {' | '.join(row)} |" for row in [heads, *cells])
        text = "\n".join([first, "|---" * len(heads) + "|", *others])
        if titled:
            text = "; ".join(f"{letters[g]}: {g.title}" for g in titled) + ".\n\n" + text
        self._add(text, _html_table(groups, cells))

    def _add(self, markdown: str, html: str) -> None:
        self._markdown.append(markdown)
        self._html.append(html)

    def markdown(self) -> str:
        """Return the document in Markdown."""
        return "\n\n".join(self._markdown) + "\n"

    def html(self) -> str:
        """Return the document as a page that needs nothing else."""
        parts = [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(self._title)}</title>",
            f"<style>{STYLE}</style></head><body>",
            *self._html,
            f'<p class="soft">rfmdp {escape(__version__)}</p></body></html>',
        ]
        return "\n".join(parts) + "\n"


def _html_table(groups: Sequence[ColumnGroup], lines: Sequence[Sequence[str]]) -> str:
    """Return a table with a line of titles, if any, above the heads of its columns."""
    titles = "".join(
        f'<th colspan="{len(group.heads)}" class="group">{escape(group.title)}</th>'
        for group in groups
    )
    begins = [place == 0 for group in groups for place in range(len(group.heads))]
    columns = _cells([head for group in groups for head in group.heads], begins, 'th scope="col"')
    body = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{_cells(line[1:], begins[1:], "td")}</tr>'
        for line in lines
    )
    above = f"<tr>{titles}</tr>" if any(group.title for group in groups) else ""
    return (
        f'<div class="scroll"><table><thead>{above}<tr>{columns}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(texts: Sequence[str], begins: Sequence[bool], tag: str) -> str:
    """Return cells; those that begin a group are told apart."""
    marks = {True: ' class="group"', False: ""}
    return "".join(
        f"<{tag}{marks[begin]}>{escape(text)}</{tag.partition(' ')[0]}>"
        for text, begin in zip(texts, begins, strict=True)
    )


def write_files(
    folder: Path,
    name: str,
    document: Document,
    lines: Iterable[Iterable[object]],
    figures: Mapping[str, tuple[bytes, bytes]],
) -> None:
    """Write all files of a campaign.

    Parameters
    ----------
    document
        For NAME.md and NAME.html.
    lines
        Of NAME.csv, with the heads; None is an empty cell.
    figures
        SVG and PNG by the names of their files.
    """
    data = io.StringIO()
    csv.writer(data, lineterminator="\n").writerows(lines)
    contents = {
        f"{name}.csv": data.getvalue().encode(),
        f"{name}.md": document.markdown().encode(),
        f"{name}.html": document.html().encode(),
    }
    for title, (svg, png) in figures.items():
        contents |= {f"{title}.svg": svg, f"{title}.png": png}
    for file, content in contents.items():
        with replacing(folder / file) as part:
            part.write_bytes(content)


def shown(value: float | None, digits: int = 6) -> str:
    """Return a value for people; what nobody proved is a dash.

    >>> shown(331.34029033567003), shown(None)
    ('331.340290', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def seconds(value: float) -> str:
    """Return seconds with two or three digits.

    >>> seconds(0.0123), seconds(2535.8)
    ('0.012', '2536')
    """
    if value < 0.1:
        return f"{value:.3f}"
    if value < 10.0:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100.0 else f"{value:.0f}"
