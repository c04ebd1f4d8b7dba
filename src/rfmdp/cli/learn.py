"""`rfmdp learn`: learn a policy and its guarantee from samples of a hidden model."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    model: Annotated[str, typer.Argument(help="File (.prism ... .rfmdp), or a domain.")],
    props: Annotated[str | None, typer.Argument(help="File of properties.")] = None,
    prop: Annotated[list[str], typer.Option(help="Property: TEXT, NAME or NUMBER.")] = [],  # noqa: B006
    const: Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5.")] = [],  # noqa: B006
    method: Annotated[str, typer.Option(help="Method; `list` prints all.")] = "anytime",
    inner: Annotated[str | None, typer.Option(help="Other inner solver.")] = None,
    beta: Annotated[float, typer.Option(help="Probability of a wrong guarantee.")] = 1e-4,
    trajectories: Annotated[int, typer.Option(help="Trajectories, at most.")] = 100_000,
    length: Annotated[int | None, typer.Option(help="Steps of a trajectory.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this guarantee.")] = None,
    gap: Annotated[float | None, typer.Option(help="Stop at this gap.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds per seed.")] = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
    confidence: Annotated[str | None, typer.Option(help="Other confidence sets.")] = None,
    explore: Annotated[
        str | None, typer.Option(help="optimistic, uniform, greedy, gap; OTHER after a colon.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help="doubling, geometric[:FACTOR].")] = None,
    granularity: Annotated[str | None, typer.Option(help="tied, effect, local, flat.")] = None,
    tie: Annotated[list[str], typer.Option(help="NAME=NAME: marginals that are the same.")] = [],  # noqa: B006
    support: Annotated[str | None, typer.Option(help="declared, domain, pmin:P.")] = None,
    rewards: Annotated[
        str | None, typer.Option(help="known, fixed:LOW:HIGH, random:LOW:HIGH.")
    ] = None,
    p_min: Annotated[
        float | None, typer.Option(help="Assumed least probability of declared outcomes.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Transitions of `simulate --record`.")] = None,
    per_decade: Annotated[int, typer.Option(help="Evaluations per decade.")] = 8,
    json: Annotated[bool, typer.Option("--json", help="One object per seed.")] = False,
    plot: Annotated[str | None, typer.Option(help="File for the learning curve.")] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Run file; of several seeds NAME-SEED.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run file.")] = False,
) -> None:
    """Learn a policy and a guarantee for it by sampling a model with hidden probabilities.

    A domain's learning instance is used unless constants are given. Exit code 0: done.
    """
    from rfmdp.cli.learning import Learning

    asked = Learning(
        model=model, file=props, wanted=tuple(prop), const=tuple(const), method=method,
        inner=inner, beta=beta, trajectories=trajectories, length=length, target=target, gap=gap,
        timeout=timeout, seed=seed, seeds=seeds, jobs=jobs, confidence=confidence, explore=explore,
        schedule=schedule, granularity=granularity, tie=tuple(tie), support=support,
        rewards=rewards, p_min=p_min, data=data, per_decade=per_decade,
        json=json, plot=plot, output=output, resume=resume,
    )  # fmt: skip
    raise typer.Exit(asked.run())
