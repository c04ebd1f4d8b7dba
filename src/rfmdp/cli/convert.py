"""`rfmdp convert`: write a model in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from rfmdp.cli.options import Const, Floor, Model, Nominal, OtherSet, Radius, RadiusOf


def command(
    model: Model,
    target: Annotated[str, typer.Argument(help="File to write: .drn, .tra or .rfmdp.")],
    const: Const = [],  # noqa: B006
    radius: Radius = None,
    set_: OtherSet = None,
    radius_of: RadiusOf = [],  # noqa: B006
    floor: Floor = 0.0,
    nominal: Nominal = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    from rfmdp.cli.converting import convert
    from rfmdp.cli.words import Radii

    convert(model, target, const, Radii(radius, set_, tuple(radius_of), floor, nominal))
