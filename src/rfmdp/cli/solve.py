"""`rfmdp solve`: answer properties of a model, with proven bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rfmdp.cli.words import METHODS

if TYPE_CHECKING:
    from rfmdp.cli.asking import Asking


def command(
    model: Annotated[str, typer.Argument(help="File (.prism .nm .tra .drn .rfmdp), or a domain.")],
    props: Annotated[str | None, typer.Argument(help="File of properties.")] = None,
    prop: Annotated[list[str], typer.Option(help="Property: TEXT, NAME or NUMBER.")] = [],  # noqa: B006
    const: Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5,C=1:3.")] = [],  # noqa: B006
    radius: Annotated[float | None, typer.Option(help="L-infinity radius.")] = None,
    set_: Annotated[str | None, typer.Option("--set", help="Sets: l1:R, linf:R, lp2:R.")] = None,
    radius_of: Annotated[list[str], typer.Option(help="MODULE=R or ACTION=R.")] = [],  # noqa: B006
    floor: Annotated[float, typer.Option(help="Least probability of every outcome.")] = 0.0,
    nominal: Annotated[bool, typer.Option("--nominal", help="Drop the model's sets.")] = False,
    inner: Annotated[str, typer.Option(help=f"Method: {METHODS}.")] = "exact",
    precision: Annotated[float, typer.Option(help="Wanted width of the bounds.")] = 1e-6,
    absolute: Annotated[bool, typer.Option("--absolute", help="Width, not relative.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds per property.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One object per property.")] = False,
    export_policy: Annotated[str | None, typer.Option(help="CSV file for the policy.")] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Save: .json records, else the solution.")
    ] = None,
    no_fix_deadlocks: Annotated[
        bool, typer.Option("--nofixdl", help="Refuse states without choice.")
    ] = False,
) -> None:
    """Answer properties of a model, with proven bounds and a policy.

    Prints a table and `Result: VALUE` per property. Exit code 0: certified, 1: an error,
    2: finished, but not certified. A constant with a range LOW:HIGH or LOW:STEP:HIGH means a run
    per value.
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
