"""`rfmdp verify`: check a saved result again, by an independent implementation."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    result: Annotated[str, typer.Argument(help="File that `rfmdp solve -o` wrote.")],
) -> None:
    """Check bounds, policy and witness of a saved result again."""
    from importlib import import_module

    from rfmdp.errors import UnsupportedError

    try:
        verify = import_module("rfmdp.verify").verify
    except ModuleNotFoundError:
        raise UnsupportedError("This version of rfmdp has no verifier.") from None
    report = verify(result)
    print(report)
    raise typer.Exit(0 if getattr(report, "valid", report) else 1)
