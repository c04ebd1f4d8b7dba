"""`rfmdp check`: read, build and validate a model and its properties."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    model: Annotated[
        str, typer.Argument(help="PRISM file, .tra, .drn, .rfmdp, or a name of `rfmdp domains`.")
    ],
    props: Annotated[
        str | None, typer.Argument(help="File of properties in PRISM's language.")
    ] = None,
    prop: Annotated[
        list[str], typer.Option(help="Property: TEXT, or NAME or NUMBER in PROPS; repeatable.")
    ] = [],  # noqa: B006
    const: Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5.")] = [],  # noqa: B006
) -> None:
    """Read, build and validate a model and its properties.

    Prints sizes, problems and warnings; exit code 1 if something is wrong.
    """
    from rfmdp.cli.inspecting import inspect

    raise typer.Exit(inspect(model, props, prop, const))
