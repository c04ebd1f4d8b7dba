"""`rfmdp report`: one page with saved results that works without a network."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    results: Annotated[
        list[str],
        typer.Argument(help="Files that `rfmdp solve -o` or `rfmdp learn -o` wrote."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The page to write.", metavar="FILE")
    ] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "",
) -> None:
    """Write one page with results: bounds, tables, curves and an explorer of every policy."""
    from rfmdp.formats.files import load
    from rfmdp.report.page import write_report
    from rfmdp.writing import check_writable

    check_writable(output)
    words = shlex.join(["rfmdp", *sys.argv[1:]])
    write_report([load(result) for result in results], output, title=title, command=words)
    print(f"wrote {output}; open it in a browser")
