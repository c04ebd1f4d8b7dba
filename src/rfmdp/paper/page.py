"""The frame of a campaign's page: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rfmdp import __version__
from rfmdp.paper.domains.table import DOMAINS
from rfmdp.paper.plan import LeftOut

STYLE = """
:root { --ink: #1c2430; --soft: #647084; --line: #dfe4ea; --good: #1d7a3a; --note: #a35a00; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; padding: 2rem;
  max-width: 104rem; background: #fff; }
h1 { font-size: 1.6rem; margin: 0 0 .4rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 60rem; } .soft { color: var(--soft); }
figure { margin: 1.5rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .84rem; }
th, td { padding: .28rem .5rem; text-align: right; white-space: nowrap; }
thead th { font-weight: 600; border-bottom: 2px solid var(--ink); vertical-align: bottom; }
thead tr:first-child th { border-bottom: 1px solid var(--line); text-align: center; }
tbody tr { border-bottom: 1px solid var(--line); }
.group { border-left: 1px solid var(--line); }
td small { display: block; color: var(--soft); font-size: .72rem; }
.yes { color: var(--good); font-weight: 700; } .no { color: var(--note); font-weight: 700; }
"""


def document(title: str, body: Iterable[str]) -> str:
    """Return a page with a title."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *body,
        f'<p class="soft">rfmdp {escape(__version__)}</p></body></html>',
    ]
    return "\n".join(parts) + "\n"


def picture(svg: bytes, label: str) -> str:
    """Return a figure that stands in the page."""
    inside = svg.decode().partition("<svg")[2]
    return f'<figure role="img" aria-label="{escape(label)}"><svg{inside}</figure>'


def bullets(texts: Iterable[str]) -> str:
    """Return a list; nothing if there is nothing to list."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def left_out(runs: Sequence[LeftOut]) -> str:
    """Return the section of runs that are not part of a campaign."""
    if not runs:
        return ""
    texts = [f"{DOMAINS[x.domain].title}, {x.method}: {x.reason}" for x in runs]
    return f"<h2>Left out</h2>{bullets(texts)}"
