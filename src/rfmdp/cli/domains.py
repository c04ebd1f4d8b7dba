"""`rfmdp domains`: the benchmark domains that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[str | None, typer.Argument(help="Domain to describe; all if left out.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the PRISM text of NAME.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One object per version.")] = False,
) -> None:
    """List the domains that MODEL may name; describe one."""
    from rfmdp.cli.domain_list import describe, listing, prism_text, records

    if text:
        print(prism_text(name), end="")
    elif json:
        print(records(name))
    else:
        print(listing() if name is None else describe(name))
