"""`rfmdp reproduce`: the published tables and figures again."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    what: Annotated[str, typer.Argument(help="Which table: solving.")],
    domains: Annotated[str, typer.Option(help="Domains: chain,herman,... All by default.")] = "",
    radii: Annotated[
        str, typer.Option(help="Radii: 0.01,0.025,... The published by default.")
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Methods: exact,interval,vertices,mccormick,mccormick-simplex,mccormick-printed."
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Radius 0.025 and fast methods only.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds per run, at most.")] = 900.0,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Folder to write to.")
    ] = "reproduced",
) -> None:
    """Solve the published table again and compare.

    Writes one record per run, and CSV, Markdown, HTML and a figure. Started again on the same
    folder it goes on where it was. Exit code 2 if a printed value differs without explanation.
    """
    from rfmdp.cli.reproducing import reproduce

    raise typer.Exit(reproduce(what, domains, radii, methods, quick, timeout, output))
