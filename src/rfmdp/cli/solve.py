"""`rfmdp solve`: answer properties of a model, with proven bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rfmdp.cli.words import METHODS

if TYPE_CHECKING:
    from rfmdp.cli.asking import Asking


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
    const: Annotated[
        list[str],
        typer.Option(help="Constants: A=1,B=0.5; a range C=1:3 or p=0:0.1:1 is a run per value."),
    ] = [],  # noqa: B006
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
