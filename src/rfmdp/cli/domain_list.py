"""Tables of domains for `rfmdp domains`."""

from __future__ import annotations

import json
import textwrap
from itertools import zip_longest

from rfmdp.errors import ModelError
from rfmdp.language.load import read_text
from rfmdp.paper.domains import DOMAINS, domain_path
from rfmdp.paper.domains.table import find

WIDTH = 80


def listing() -> str:
    """Return one line per domain and version."""
    lines = [f"{'domain':<15}{'version':<11}{'states':>9}{'transitions':>13}  about"]
    for domain in DOMAINS.values():
        sizes = [
            f"{version:<11}{found.states:>9,}{found.transitions:>13,}"
            for version, found in domain.versions.items()
        ]
        about = textwrap.wrap(domain.about, WIDTH - 50)
        for part in zip_longest([domain.name], sizes, about, fillvalue=""):
            lines.append("{:<15}{:<33}  {}".format(*part).rstrip())
    lines += [
        "",
        "`rfmdp domains NAME` describes one, `rfmdp solve NAME --radius 0.025` solves it",
        "(textbook), `--const instance=published` and the like pick another version.",
    ]
    return "\n".join(lines)


def records(name: str | None) -> str:
    """Return one JSON object per domain and version, a line each."""
    chosen = DOMAINS.values() if name is None else [find(name)]
    return "\n".join(
        json.dumps(
            {
                "domain": domain.name,
                "version": version,
                "states": found.states,
                "transitions": found.transitions,
                "property": domain.prop,
                "constants": found.constants,
                "about": domain.about,
            }
        )
        for domain in chosen
        for version, found in domain.versions.items()
    )


def describe(name: str) -> str:
    """Return all there is to say about a domain."""
    domain = find(name)
    lines = textwrap.wrap(f"{domain.title} ({domain.name}): {domain.about}", WIDTH)
    lines += ["", f"property   {domain.prop}"]
    for version, found in domain.versions.items():
        lines += ["", f"{version:<11}{found.states:,} states, {found.transitions:,} transitions"]
        values = ",".join(f"{key}={_word(value)}" for key, value in found.constants.items())
        lines.append(f"{'':<11}--const {values}")
    if domain.differences:
        lines += ["", *textwrap.wrap(f"As published: {domain.differences}", WIDTH)]
    lines += ["", f"file       {domain_path(domain.name)}"]
    return "\n".join(lines)


def prism_text(name: str | None) -> str:
    """Return the file of a domain."""
    if name is None:
        raise ModelError("--text needs the name of a domain: rfmdp domains NAME --text.")
    return read_text(domain_path(name))


def _word(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
