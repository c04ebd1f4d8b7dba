"""`rfmdp report`: one page with saved results that works without a network."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

from rfmdp.cli.arguments import require_result
from rfmdp.cli.signature import Argument, Option, command
from rfmdp.errors import FileError
from rfmdp.writing import check_writable


@command
def report(
    results: Annotated[
        tuple[str, ...],
        Argument(
            "Files that `rfmdp solve -o` or `rfmdp learn -o` wrote; of a .json of `solve` "
            "with ranges (--radius 0.01:0.01:0.1) the values are drawn against the radius."
        ),
    ],
    output: Annotated[str, Option("The page to write.", "-o --output")] = "report.html",
    title: Annotated[str, Option("Heading of the page.")] = "",
) -> None:
    """Write one page with results and an explorer of every policy.

    It has bounds, tables and curves, and works without a network.
    """
    from rfmdp.report.page import write_report

    if Path(output).suffix not in (".html", ".htm"):
        raise FileError(f"{output}: a page must be an .html file; name it so and print it as PDF.")
    check_writable(output)
    words = shlex.join(["rfmdp", *sys.argv[1:]])
    write_report([_read(result) for result in results], output, title=title, command=words)
    print(f"wrote {output}; open it in a browser")


def _read(path: str) -> object:
    """Return a saved result, or the records of a `.json` file."""
    from rfmdp.formats.files import load

    if not path.endswith(".json"):
        require_result(path)
        return load(path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: must have one JSON record per line ({error}).") from error
