"""`rfmdp check`: read, build and validate a model and its properties."""

from __future__ import annotations

import typer

from rfmdp.cli.options import Const, Model, Prop, Props


def command(
    model: Model,
    props: Props = None,
    prop: Prop = [],  # noqa: B006
    const: Const = [],  # noqa: B006
) -> None:
    """Read, build and validate a model and its properties.

    Prints sizes, problems and warnings; exit code 1 if something is wrong.
    """
    from rfmdp.cli.inspecting import inspect

    raise typer.Exit(inspect(model, props, prop, const))
