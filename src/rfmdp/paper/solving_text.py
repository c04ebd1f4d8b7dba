"""Sentences that the page and the Markdown file share."""

from __future__ import annotations

from collections.abc import Iterator

from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.solving import SolvingTable
from rfmdp.paper.text import seconds, shown


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
                f"{method.title[0].upper()}{method.title[1:]}: {len(own)} runs in {seconds(ours)} "
                f"s; published on 40 cores: {seconds(theirs)} s (x{theirs / ours:.0f})."
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
