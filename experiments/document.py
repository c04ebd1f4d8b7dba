"""The document of an experiment in Markdown, and its files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rfmdp.writing import replacing


class Document:
    """Markdown that grows part by part."""

    def __init__(self, title: str) -> None:
        self._parts = [f"# {title}"]

    def heading(self, text: str, level: int = 2) -> None:
        """Begin a section."""
        self._parts.append(f"{'#' * level} {text}")

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(text)

    def bullets(self, texts: Iterable[str]) -> None:
        """Add a list; nothing if there is nothing to list."""
        if items := [f"- {text}" for text in texts]:
            self._parts.append("\n".join(items))

    def picture(self, file: str, label: str) -> None:
        """Add a figure: a link to its file."""
        self._parts.append(f"![{label}]({file})")

    def table(self, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
        """Add a table."""
        first, *others = (f"| {' | '.join(row)} |" for row in [heads, *lines])
        self._parts.append("\n".join([first, "|---" * len(heads) + "|", *others]))

    def text(self) -> str:
        """Return the document."""
        return "\n\n".join(self._parts) + "\n"


def write_files(
    folder: Path,
    name: str,
    document: Document,
    lines: Iterable[Iterable[object]],
    figures: Mapping[str, tuple[bytes, bytes]],
) -> None:
    """Write all files of an experiment.

    Parameters
    ----------
    document
        For NAME.md.
    lines
        Of NAME.csv, with the heads; None is an empty cell.
    figures
        SVG and PNG by the names of their files.
    """
    data = io.StringIO()
    csv.writer(data, lineterminator="\n").writerows(lines)
    contents = {f"{name}.csv": data.getvalue().encode(), f"{name}.md": document.text().encode()}
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
