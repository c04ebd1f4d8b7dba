"""`rfmdp learn`: learn a policy and its guarantee from samples of a hidden model."""

from __future__ import annotations

from typing import Annotated

import typer

from rfmdp.cli.options import Const, Model, Prop, Props


def command(
    model: Model,
    props: Props = None,
    prop: Prop = [],  # noqa: B006
    const: Const = [],  # noqa: B006
    method: Annotated[
        str, typer.Option(help="Method; `rfmdp learn MODEL --method list` prints all.")
    ] = "anytime",
    inner: Annotated[
        str | None,
        typer.Option(help="How sets are composed, in place of the method's; as in `solve`."),
    ] = None,
    beta: Annotated[
        float, typer.Option(help="Most probability that the guarantee is wrong.")
    ] = 1e-4,
    trajectories: Annotated[int, typer.Option(help="Trajectories, at most.")] = 100_000,
    length: Annotated[
        int | None, typer.Option(help="Steps of a trajectory; default: of the domain, or 100.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Stop when the guarantee is at least (costs: at most) this."),
    ] = None,
    gap: Annotated[
        float | None, typer.Option(help="Stop when guarantee and optimistic bound are this close.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds per seed.")] = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            help="mixture, kt, grid, kl, subsets, by-size, clopper-pearson, hoeffding, weissman."
        ),
    ] = None,
    explore: Annotated[
        str | None,
        typer.Option(
            help="optimistic[:OTHER], gap, greedy[:OTHER], uniform; OTHER: chance of any action."
        ),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="When to plan again: doubling, geometric[:FACTOR].")
    ] = None,
    granularity: Annotated[
        str | None, typer.Option(help="What is counted together: tied, effect, local, flat.")
    ] = None,
    tie: Annotated[
        list[str], typer.Option(help="NAME=NAME: marginals that are the same; repeatable.")
    ] = [],  # noqa: B006
    support: Annotated[
        str | None, typer.Option(help="Possible outcomes: declared, domain, pmin:P.")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(help="Rewards: known, fixed:LOW:HIGH, random:LOW:HIGH.")
    ] = None,
    p_min: Annotated[
        float | None, typer.Option(help="Assumed least probability of declared outcomes.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Learn from a file of `simulate --record` instead of sampling."),
    ] = None,
    per_decade: Annotated[int, typer.Option(help="Evaluations per decade of trajectories.")] = 8,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per seed, a line each.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(help="File for the learning curve: .png, .pdf, .svg.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="Run file, saved at every evaluation; several seeds: NAME-SEED."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run file; same words as before.")
    ] = False,
) -> None:
    """Learn a policy with a guarantee, by sampling a hidden model.

    The probabilities of the model are hidden and only sampled. A domain's learning instance is used
    unless constants are given. Exit code 0: done. docs/learning.md explains all words.
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
