"""`rfmdp convert`: write a model in another format."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    model: Annotated[str, typer.Argument(help="File (.prism .nm .tra .drn .rfmdp), or a domain.")],
    target: Annotated[str, typer.Argument(help="File to write: .drn, .tra or .rfmdp.")],
    const: Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5.")] = [],  # noqa: B006
    radius: Annotated[float | None, typer.Option(help="L-infinity radius.")] = None,
    set_: Annotated[str | None, typer.Option("--set", help="Sets: l1:R, linf:R, lp2:R.")] = None,
    radius_of: Annotated[list[str], typer.Option(help="MODULE=R or ACTION=R.")] = [],  # noqa: B006
    floor: Annotated[float, typer.Option(help="Least probability of every outcome.")] = 0.0,
    nominal: Annotated[bool, typer.Option("--nominal", help="Drop the model's sets.")] = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    from rfmdp.cli.converting import convert
    from rfmdp.cli.words import Radii

    convert(model, target, const, Radii(radius, set_, tuple(radius_of), floor, nominal))
