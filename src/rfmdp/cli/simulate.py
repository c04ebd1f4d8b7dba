"""`rfmdp simulate`: run a policy on a model and see what happens."""

from __future__ import annotations

from typing import Annotated

import typer

from rfmdp.cli.options import Const, Model, Prop, Props


def command(
    model: Model,
    props: Props = None,
    prop: Prop = [],  # noqa: B006
    const: Const = [],  # noqa: B006
    policy: Annotated[
        str, typer.Option(help="uniform, optimal, or a file of `solve -o` or `learn -o`.")
    ] = "uniform",
    trajectories: Annotated[int, typer.Option(help="Number of trajectories.")] = 10_000,
    length: Annotated[int, typer.Option(help="Steps of a trajectory, at most.")] = 100,
    seed: Annotated[int, typer.Option(help="Fixes all randomness.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all cores.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    record: Annotated[
        str | None, typer.Option(help="File for all transitions, for `learn --data`.")
    ] = None,
) -> None:
    """Simulate a policy with the nominal probabilities of a model.

    Prints the mean of what the property measures with a 95 % confidence interval of what
    trajectories of this length give, and the steps per second.
    """
    from rfmdp.cli.simulating import Simulating

    asked = Simulating(
        model=model, file=props, wanted=tuple(prop), const=tuple(const), policy=policy,
        trajectories=trajectories, length=length, seed=seed, threads=threads, json=json,
        record=record,
    )  # fmt: skip
    raise typer.Exit(asked.run())
