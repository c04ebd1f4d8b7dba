"""`rfmdp learn`: learn a policy and its guarantee from samples of a hidden model."""

from __future__ import annotations

import json
import math
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfmdp.cli.options import Const, Jobs, Prop, Props, Scheduler
from rfmdp.cli.output import PATIENCE, PLAIN

if TYPE_CHECKING:
    from rfmdp.learning.run import Progress, Run

LENGTH = 100  # steps of a trajectory, if nothing says otherwise
LEAST = 0.01  # seconds that are left for learning, whatever reading took


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="PRISM file (- for standard input), .tra, .drn, .umb, .rfmdp, or a name of "
            "`rfmdp domains`."
        ),
    ] = None,
    props: Props = None,
    prop: Prop = [],  # noqa: B006
    const: Const = [],  # noqa: B006
    method: Annotated[
        str, typer.Option(help="Method; `rfmdp learn --method list` prints all.")
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
    timeout: Annotated[
        float | None, typer.Option(help="Seconds per seed, reading included.")
    ] = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 1,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
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
        str | None, typer.Option(help="When to plan again: doubling[:SHARE], geometric[:FACTOR].")
    ] = None,
    granularity: Annotated[
        str | None, typer.Option(help="What is counted together: tied, effect, local, flat.")
    ] = None,
    tie: Annotated[
        list[str], typer.Option(help="NAME=NAME: marginals that are the same; repeatable.")
    ] = [],  # noqa: B006
    support: Annotated[
        str | None, typer.Option(help="Possible outcomes: declared, domain, pmin:P, sparse[:P].")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(help="Rewards: known, fixed:LOW:HIGH, random:LOW:HIGH.")
    ] = None,
    p_min: Annotated[
        float | None, typer.Option(help="Assumed least probability of declared outcomes.")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="Learn from a Gymnasium environment, of which MODEL is the structure: "
            "NAME or NAME(OPTION=VALUE, ...)."
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(help="Names of the environment's actions, in its order: left,down,right,up."),
    ] = None,
    data: Annotated[
        list[str],
        typer.Option(
            help="Learn from recorded transitions: .parquet, .csv, .arrow, a folder of these, or a "
            "file of `simulate --record`; repeatable."
        ),
    ] = [],  # noqa: B006
    manifest: Annotated[
        str | None,
        typer.Option(help="JSON file about the data: selection, columns, actions, values."),
    ] = None,
    selection: Annotated[
        str | None,
        typer.Option(
            help="Whether rows were left out for their outcome: none, unknown, outcome. Only none "
            "gives a guarantee."
        ),
    ] = None,
    column: Annotated[
        list[str],
        typer.Option(
            help="x=NAME, x'=NAME, action=NAME, episode=NAME, time=NAME, ...; repeatable."
        ),
    ] = [],  # noqa: B006
    bad: Annotated[
        str, typer.Option(help="Rows that cannot be read: refuse, or omit (which is then assumed).")
    ] = "refuse",
    per_decade: Annotated[int, typer.Option(help="Evaluations per decade of trajectories.")] = 8,
    as_json: Annotated[
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
    """Learn a policy with a guarantee, by sampling a hidden model or from recorded data.

    The probabilities of the model are hidden and only sampled; with recorded data it is the known
    structure. A domain's learning instance is used unless constants are given. Exit code 0: done,
    2: an alarm, so that nothing is guaranteed. docs/learning.md explains all words.
    """
    started = time.monotonic()
    if method == "list":
        print("\n".join(_method_lines()))
        return
    if model is None:
        raise typer.BadParameter("Missing argument 'MODEL'.")
    import rfmdp
    from rfmdp.campaign.runner import make_runner
    from rfmdp.campaign.seeds import learn_seeds
    from rfmdp.cli import learning_words as words
    from rfmdp.cli.data_words import DataWords, about_data
    from rfmdp.cli.output import complain, spoken_warnings
    from rfmdp.cli.questions import one_question, require_fit
    from rfmdp.cli.words import check_positive, constants, inner_method, read
    from rfmdp.learning.methods import find_method
    from rfmdp.learning.schedule import LogSpaced
    from rfmdp.paper.learning.settings import setup_of
    from rfmdp.report.learning_plot import FORMATS, save_learning_curve
    from rfmdp.writing import check_writable

    settings = {
        "method": find_method(method),
        "inner": None if inner is None else inner_method(inner),
        "confidence": words.part("--confidence", words.CONFIDENCE, confidence),
        "exploration": words.part("--explore", words.EXPLORATION, explore),
        "schedule": words.part("--schedule", words.SCHEDULES, schedule),
        "granularity": words.part("--granularity", words.GRANULARITIES, granularity),
        "support": words.part("--support", words.SUPPORTS, support),
        "rewards": words.part("--rewards", words.REWARDS, rewards),
        "ties": [words.tie(text) for text in tie],
    }
    for option, value in (
        ("--trajectories", trajectories), ("--length", length), ("--timeout", timeout),
        ("--seeds", seeds), ("--jobs", jobs), ("--per-decade", per_decade), ("--beta", beta),
        ("--gap", gap),
    ):  # fmt: skip
        check_positive(option, value)
    for option, chance in (("--beta", beta), ("--p-min", p_min)):
        if chance is not None and not 0.0 <= chance < 1.0:
            raise rfmdp.ModelError(f"{option} must be a probability below 1, got {chance}.")
    if target is not None and not math.isfinite(target):
        raise rfmdp.ModelError(f"--target must be a finite number, got {target}.")
    if resume and output is None:
        raise rfmdp.ModelError("--resume needs the run file: give it with -o FILE.")
    if data and (seeds > 1 or scheduler is not None):
        raise rfmdp.ModelError("--data is read once; leave out --seeds and --scheduler.")
    if env and (data or seeds > 1 or scheduler is not None):
        raise rfmdp.ModelError("--env is one source; leave out --data, --seeds and --scheduler.")
    read_as = DataWords(tuple(data), manifest, selection, tuple(column), bad)
    check_writable(output, plot)
    if plot is not None and Path(plot).suffix not in FORMATS:
        raise rfmdp.ModelError(f"--plot must end in one of {', '.join(FORMATS)}; got '{plot}'.")

    given = constants(const)
    asked = one_question(model, props, prop, given)
    blueprint = read(model)
    require_fit(blueprint, asked, given)
    setup = setup_of(blueprint)
    if setup is not None and not given:
        given = {"instance": "learning"}
    with spoken_warnings():
        hidden = blueprint.build(given, also_known=set(asked.constants))
    source = read_as.source(hidden) if data else hidden
    if env is not None:
        source = rfmdp.GymSource(env, hidden, actions=actions.split(",") if actions else None)
    seconds = math.inf if timeout is None else timeout - (time.monotonic() - started)
    try:
        runs = learn_seeds(
            source,
            asked,
            range(seed, seed + seeds),
            make_runner(jobs, scheduler),
            file=output,
            progress=Teller(getattr(source, "trajectories", trajectories)),
            **settings,
            beta=beta,
            stop=rfmdp.StopWhen(
                trajectories, guarantee=target, gap=gap, seconds=max(seconds, LEAST)
            ),
            points=LogSpaced(per_decade),
            length=length or (LENGTH if setup is None else setup.length),
            local={} if setup is None else setup.local_states,
            p_min=p_min,
            resume=resume,
            name=_name(env or model, given),
        )
    except KeyboardInterrupt:
        if output is not None:
            complain("the same words with --resume go on at the last evaluation.", kind="note")
        raise
    for number, run in enumerate(runs, start=seed):
        about = about_data(source, run) if data else None
        if as_json:
            extra = {} if about is None else {"data": about.record()}
            print(json.dumps(_record(run, number) | extra))
        else:
            print("\n".join([*_lines(run, number), *(about.lines() if about else ())]))
    if plot is not None:
        save_learning_curve({method: runs}, plot)
    if any(run.alarms for run in runs):
        raise typer.Exit(2)


def _name(system: str, given: dict[str, str]) -> str:
    """Return the model or environment with its constants, for people."""
    values = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"{system} ({values})" if values else system


def _lines(run: Run, seed: int) -> Iterator[str]:
    yield f"seed {seed}: {run.stopped}"
    yield f"{'trajectories':>12} {'guarantee':>11} {'true value':>11} {'bound':>11} replans"
    for p in run.history:
        known = "unknown" if math.isnan(p.performance) else f"{p.performance:.6g}"
        yield (
            f"{p.trajectories:12d} {p.guarantee:11.6g} {known:>11} "
            f"{p.optimistic:11.6g} {p.replans:7d}"
        )
    yield run.statement()
    if not run.alarms:
        yield f"Result: {run.guarantee}"


def _method_lines() -> Iterator[str]:
    from rfmdp.learning.methods import METHODS

    for name, method in METHODS.items():
        head, *rest = textwrap.wrap(method.about, 59)
        yield f"{name:<20} {head}"
        yield from (f"{'':<20} {line}" for line in rest)


class Teller:
    """Tells how a run goes on standard error: at a terminal every evaluation, else now and then."""

    def __init__(self, trajectories: int) -> None:
        self._trajectories, self._next = trajectories, PATIENCE

    def __call__(self, seed: int, now: Progress) -> None:
        """Print a line."""
        point, terminal = now.point, sys.stderr.isatty()
        if not terminal and now.seconds < self._next:
            return
        self._next = now.seconds + PLAIN
        if point is None:
            text = f"seed {seed}: {now.phase}, {now.trajectories} trajectories, {now.seconds:.0f} s"
            print(f"{text:<79}", end="\r" if terminal else "\n", file=sys.stderr)
            return
        rate = point.steps / max(point.seconds, 1e-9)
        left = point.seconds * (self._trajectories / max(point.trajectories, 1) - 1.0)
        print(
            f"seed {seed}: {point.trajectories} trajectories, guarantee "
            f"{point.guarantee:.5g}, true value {point.performance:.5g}, {rate:.3g} steps/s, "
            f"at most {left:.0f} s left",
            file=sys.stderr,
        )


def _record(run: Run, seed: int) -> dict[str, Any]:
    """Return a run as one JSON object; nan is null, infinity the string "Infinity"."""
    history = [{k: _plain(v) for k, v in asdict(p).items()} for p in run.history]
    return {
        "seed": seed,
        **history[-1],
        "beta": run.beta,
        "ledger": {
            "scheme": run.ledger.scheme,
            **asdict(run.ledger.shares),
            "spent_on_model": run.ledger.spent_on_model(),
            "events": int(run.ledger.events.sum()),
        },
        "validity": run.validity,
        "stopped": run.stopped,
        "property": run.question,
        "model": run.name,
        "settings": run.settings,
        "assumptions": list(run.assumptions),
        "rollouts": [c.summary() for c in run.rollouts],
        "history": history,
    }


def _plain(value: float) -> float | str | None:
    from rfmdp.cli.records import shown

    if math.isnan(value):
        return None
    return value if math.isfinite(value) else shown(value)
