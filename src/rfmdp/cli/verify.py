"""`rfmdp verify`: check a saved result again, by an independent implementation."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def command(
    result: Annotated[str, typer.Argument(help="File that `rfmdp solve -o` wrote.")],
) -> None:
    """Check bounds, policy and witness of a saved result again.

    Every product of vertices of the sets is looked at; models with more than 2^24 of them in a row
    are refused. Exit code 0: all checks hold, 1: one does not, or the file cannot be checked.
    """
    # before NumPy is there: the products are many and small, threads only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rfmdp.cli.output import watching
    from rfmdp.verification.solution import verify

    with watching("verifying") as show:
        verdict = verify(result, show.verifying)
    for check in verdict.checked:
        print(f"checked   {check}")
    for failure in verdict.failed:
        print(f"FAILED    {failure}")
    print(f"Result: {'valid' if verdict.valid else 'INVALID'}")
    raise typer.Exit(0 if verdict.valid else 1)
