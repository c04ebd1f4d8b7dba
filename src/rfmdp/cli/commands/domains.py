"""`rfmdp domains`: the benchmark domains that come with the package."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

from rfmdp.cli.options import DomainName
from rfmdp.cli.signature import Option, command
from rfmdp.errors import ModelError

if TYPE_CHECKING:
    from rfmdp.domains.table import Domain

WIDTH = 80


@command
def domains(
    name: DomainName = None,
    text: Annotated[bool, Option("Print the PRISM text of NAME.")] = False,
    as_json: Annotated[bool, Option("One object per version.", "--json")] = False,
) -> None:
    """List the domains that MODEL may name; describe one."""
    from rfmdp.domains.table import DOMAINS, find

    chosen = list(DOMAINS.values()) if name is None else [find(name)]
    if text:
        if name is None:
            raise ModelError("--text needs the name of a domain: rfmdp domains NAME --text.")
        print(chosen[0].path.read_text(encoding="utf-8"), end="")
    elif as_json:
        print("\n".join(json.dumps(record) for record in _records(chosen)))
    elif name is None:
        print("\n".join(_listing(chosen)))
    else:
        print("\n".join([*_description(chosen[0]), "", f"file       {chosen[0].path}"]))


def _records(domains: list[Domain]) -> Iterator[dict[str, object]]:
    for domain in domains:
        for version, found in domain.versions.items():
            yield {
                "domain": domain.name,
                "version": version,
                "states": found.states,
                "transitions": found.transitions,
                "property": domain.prop,
                "constants": found.constants,
                "about": domain.about,
            }


def _listing(domains: list[Domain]) -> Iterator[str]:
    yield f"{'domain':<15}{'version':<11}{'states':>9}{'transitions':>13}  about"
    for domain in domains:
        sizes = [
            f"{version:<11}{found.states:>9,}{found.transitions:>13,}"
            for version, found in domain.versions.items()
        ]
        about = textwrap.wrap(domain.about, WIDTH - 50)
        for part in zip_longest([domain.name], sizes, about, fillvalue=""):
            yield "{:<15}{:<33}  {}".format(*part).rstrip()
    yield ""
    yield "`rfmdp domains NAME` describes one, `rfmdp solve NAME --radius 0.025` solves it"
    yield "as published, `--const instance=textbook` and the like pick another version."


def _description(domain: Domain) -> Iterator[str]:
    yield from textwrap.wrap(f"{domain.title} ({domain.name}): {domain.about}", WIDTH)
    yield from ("", f"property   {domain.prop}")
    for version, found in domain.versions.items():
        yield from ("", f"{version:<11}{found.states:,} states, {found.transitions:,} transitions")
        values = ",".join(f"{key}={_word(value)}" for key, value in found.constants.items())
        yield f"{'':<11}--const {values}"
    if domain.differences:
        yield from ("", *textwrap.wrap(f"As published: {domain.differences}", WIDTH))


def _word(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
