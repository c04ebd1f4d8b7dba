"""`rfmdp solve`: answer properties of a model, with proven bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rfmdp.cli.options import Floor, Model, Nominal, OtherSet, Prop, Props, Radius, RadiusOf
from rfmdp.cli.words import METHODS

if TYPE_CHECKING:
    from rfmdp.cli.asking import Asking


def command(
    model: Model,
    props: Props = None,
    prop: Prop = [],  # noqa: B006
    const: Annotated[
        list[str],
        typer.Option(help="Constants: A=1,B=0.5; a range C=1:3 or p=0:0.1:1 is a run per value."),
    ] = [],  # noqa: B006
    radius: Radius = None,
    set_: OtherSet = None,
    radius_of: RadiusOf = [],  # noqa: B006
    floor: Floor = 0.0,
    nominal: Nominal = False,
    inner: Annotated[
        str, typer.Option(help=f"How nature's choice in a row is found: {METHODS}.")
    ] = "exact",
    precision: Annotated[
        float, typer.Option(help="Wanted width of the bounds, relative to the value.")
    ] = 1e-6,
    absolute: Annotated[
        bool, typer.Option("--absolute", help="The wanted width is absolute.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds per property; default: no limit.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per property, a line each.")
    ] = False,
    export_policy: Annotated[
        str | None, typer.Option(help="CSV file to write the policy to.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write: .json has the records, any other the solution for `verify`.",
        ),
    ] = None,
    no_fix_deadlocks: Annotated[
        bool,
        typer.Option("--nofixdl", help="Refuse states without choice instead of looping there."),
    ] = False,
) -> None:
    """Answer properties of a model, with proven bounds and a policy.

    Prints a table and `Result: VALUE` per property. Exit code 0: certified, 1: an error,
    2: finished, but not certified. A domain has a property of its own.
    """
    from rfmdp.cli.asking import Asking
    from rfmdp.cli.words import Radii
    from rfmdp.model.frontier import Deadlock

    asking: Asking = Asking(
        model,
        props,
        tuple(prop),
        tuple(const),
        Radii(radius, set_, tuple(radius_of), floor, nominal),
        inner,
        precision,
        absolute,
        timeout,
        json,
        export_policy,
        output,
        Deadlock.ERROR if no_fix_deadlocks else Deadlock.LOOP,
    )
    raise typer.Exit(asking.run())
