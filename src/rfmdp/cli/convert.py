"""`rfmdp convert`: write a model in another format."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    model: Annotated[
        str, typer.Argument(help="PRISM file, .tra, .drn, .rfmdp, or a name of `rfmdp domains`.")
    ],
    target: Annotated[str, typer.Argument(help="File to write: .drn, .tra or .rfmdp.")],
    const: Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5.")] = [],  # noqa: B006
    radius: Annotated[
        float | None, typer.Option(help="Radius of boxes around all probabilities.")
    ] = None,
    set_: Annotated[
        str | None, typer.Option("--set", help="Other sets of radius R: l1:R, linf:R, lp2:R.")
    ] = None,
    radius_of: Annotated[
        list[str], typer.Option(help="Radius of one part: MODULE=R or ACTION=R; repeatable.")
    ] = [],  # noqa: B006
    floor: Annotated[
        float, typer.Option(help="Least probability of every outcome in boxes.")
    ] = 0.0,
    nominal: Annotated[
        bool,
        typer.Option(
            "--nominal", help="Drop the sets of the model: take its nominal probabilities."
        ),
    ] = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    from rfmdp.cli.converting import convert
    from rfmdp.cli.words import Radii

    convert(model, target, const, Radii(radius, set_, tuple(radius_of), floor, nominal))
