"""`rfmdp learn`: learn a policy and its guarantee from samples of a hidden model."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import rfmdp as rf
from rfmdp.cli import arguments as args, terminal
from rfmdp.cli.models import command_line, property_and_blueprint
from rfmdp.domains import find
from rfmdp.errors import AssumptionAlarm, ModelError
from rfmdp.learning.run import Progress
from rfmdp.model.lattice import written
from rfmdp.policies.explain import IdentifierGain
from rfmdp.writing import check_writable

LENGTH = 100  # steps of a trajectory, if nothing says otherwise
REWARDS = ("known", "LOW:HIGH")
LEAST = 0.01  # seconds that are left for learning, whatever reading took


@args.command
def learn(
    model: args.Model,
    props: args.Props = None,
    prop: args.Prop = (),
    const: args.Const = (),
    beta: Annotated[float, "--beta", "Largest probability that the guarantee is wrong."] = 1e-4,
    p_min: Annotated[
        float | None, "--p-min", "Assumed least probability of declared outcomes."
    ] = None,
    trajectories: Annotated[int, "--trajectories", "Trajectories, at most."] = 100_000,
    target: Annotated[
        float | None, "--target", "Stop when the guarantee is at least (costs: at most) this."
    ] = None,
    gap: Annotated[
        float | None, "--gap", "Stop when guarantee and optimistic bound are this close."
    ] = None,
    timeout: Annotated[float | None, "--timeout", "Seconds per seed, reading included."] = None,
    method: Annotated[
        str, "--method", "Method: anytime, tied, or a baseline of the paper (docs/learning.md)."
    ] = "anytime",
    rewards: Annotated[
        str, "--rewards", f"Rewards: {', '.join(REWARDS)}; learned ones lie in the range."
    ] = "known",
    length: Annotated[
        int | None, "--length", "Steps of a trajectory; default: of the domain, or 100."
    ] = None,
    env: Annotated[
        str | None,
        "--env",
        "Learn from a Gymnasium environment, of which MODEL is the structure: "
        "NAME or NAME(OPTION=VALUE, ...).",
    ] = None,
    actions: Annotated[
        str | None,
        "--actions",
        "Names of the environment's actions, in its order: left,down,right,up.",
    ] = None,
    data: Annotated[
        tuple[str, ...],
        "--data",
        "Learn from recorded transitions: .parquet, .csv, .arrow, or a folder of these; "
        "repeatable.",
    ] = (),
    selection: Annotated[
        str,
        "--selection",
        "Whether rows were left out for their outcome: none, unknown, outcome. Only none "
        "gives a guarantee.",
    ] = "unknown",
    column: Annotated[
        tuple[str, ...],
        "--column",
        "x=NAME, x'=NAME, action=NAME, episode=NAME, time=NAME, ...; repeatable.",
    ] = (),
    seed: Annotated[int, "--seed", "First seed."] = 0,
    seeds: Annotated[int, "--seeds", "Number of seeds."] = 1,
    jobs: args.Jobs = None,
    scheduler: args.Scheduler = None,
    as_json: args.Json = False,
    output: Annotated[
        str | None,
        "-o",
        "--output",
        "Run file, saved at every evaluation; several seeds: NAME-SEED.",
    ] = None,
    resume: Annotated[
        bool, "--resume", "Continue the run file; give the same options as before."
    ] = False,
) -> int:
    """Learn a policy with a guarantee, from samples or recorded data.

    The probabilities of the model are hidden and only sampled; with recorded data it is the known
    structure. A domain's learning instance is used unless constants are given. Exit code 0: done,
    2: an alarm, so that nothing is guaranteed. docs/learning.md explains all words.
    """
    started = time.monotonic()
    from rfmdp.learning.learn import learn_seeds, seed_file

    chosen, paid = rf.find_method(method), _rewards(rewards)
    args.check_positive(
        trajectories=trajectories, length=length, timeout=timeout, seeds=seeds, jobs=jobs, gap=gap
    )
    if target is not None and not math.isfinite(target):
        raise ModelError(f"--target must be a finite number, got {target}.")
    many = seeds > 1 or scheduler is not None  # they learn in other processes
    if resume and output is None:
        raise ModelError("--resume needs the run file: give it with -o FILE.")
    if (data or env) and (many or (data and env)):
        raise ModelError(
            "--data is read once, and --env is one source; leave out --seeds and --scheduler, and "
            "give one of them."
        )
    check_writable(output)
    values = args.constants(const)
    request, blueprint = property_and_blueprint(model, props, prop, values)
    setup = find(blueprint.name).learning if blueprint.is_domain else None
    if setup is not None and not values:
        values = {"instance": "learning"}
    with terminal.spoken_warnings():
        hidden = written(blueprint.build_for(None, values, also_known=set(request.constants)))
        hidden = hidden.with_provenance(command=command_line())
    source: rf.FactoredMDP | rf.Log | rf.GymSource = hidden
    if data:
        source = read_data(hidden, data, selection, column)
    elif env is not None:
        source = rf.GymSource(env, hidden, actions=actions.split(",") if actions else None)
    patience = math.inf if timeout is None else timeout
    seconds = max(patience - (time.monotonic() - started), LEAST)
    numbers = range(seed, seed + seeds)
    listed = ", ".join(f"{name}={value}" for name, value in values.items())
    try:
        with terminal.showing_progress("learning") as show:

            def done(result: rf.TaskResult) -> None:
                show.clear()
                _print_result(seeds > 1, source if data else None, as_json, result)

            results = learn_seeds(
                source,
                request,
                numbers,
                jobs=jobs,
                scheduler=scheduler,
                patience=patience,
                file=output,
                progress=None if many else partial(_show_progress, show, trajectories),
                done=done,
                method=chosen,
                rewards=paid,
                beta=beta,
                stop=rf.StopWhen(trajectories, guarantee=target, gap=gap, seconds=seconds),
                length=length or (LENGTH if setup is None else setup.length),
                local={} if setup is None else setup.local_states,
                p_min=p_min,
                resume=resume,
                name=f"{env or model} ({listed})" if listed else env or model,
            )
    except KeyboardInterrupt:
        files = () if output is None else (seed_file(output, n, numbers) for n in numbers)
        if any(Path(file).exists() for file in files):
            terminal.complain(
                "the same command with --resume continues at the last evaluation.", kind="note"
            )
        raise
    errors = [result.error for result in results if result.error is not None]
    if not all(isinstance(error, AssumptionAlarm) for error in errors):
        return terminal.USER_ERROR
    alarmed = errors or any(result.value.alarms for result in results)
    return terminal.NOT_CERTIFIED if alarmed else terminal.CERTIFIED


def _rewards(text: str) -> rf.RewardRange | None:
    """Return the range of rewards that are learned, None if they are known."""
    if text == "known":
        return None
    ends = [end for end in map(args.finite_number, text.split(":")) if end is not None]
    if len(ends) != 2 or text.count(":") != 1:
        raise ModelError(f"--rewards must be one of {', '.join(REWARDS)}; got '{text}'.")
    try:
        return rf.RewardRange(*ends)
    except ModelError as error:
        raise ModelError(f"--rewards {text}: {error}") from None


def read_data(
    model: rf.FactoredMDP, files: Sequence[str], selection: str, columns: Sequence[str]
) -> rf.Log:
    """Return recorded data, read and checked."""
    places: dict[str, str | None] = {}
    for text in columns:
        name, equals, column = text.partition("=")
        if not equals or not name:
            raise ModelError(f"--column must be NAME=COLUMN, got '{text}'.")
        places[name] = column or None
    with terminal.showing_progress("reading data") as show:
        return rf.read_log(
            model, *files, selection=selection, columns=places,
            progress=lambda rows, _: show.say(f"{rows:,} rows"),
        )  # fmt: skip


def _print_result(many: bool, data: Any, as_json: bool, result: rf.TaskResult) -> None:
    """Print the run of a seed, and what is to be said about recorded data; several may go on."""
    seed, error = result.task.seed, result.error
    if error is not None and many:
        if as_json:
            print(json.dumps({"seed": seed, "error": str(error).partition("\n")[0]}), flush=True)
        terminal.complain(f"seed {seed}: {error}")
        return
    run: rf.Run = result.require()
    gains = [] if data is None or run.alarms else rf.collect_next(run)
    if as_json:
        record = _run_record(run, seed)
        if data is not None:
            next_ = [asdict(one) for one in gains]
            record["data"] = {"steps": data.steps, "collect_next": next_}
        print(json.dumps(record))
    else:
        print("\n".join([*_run_lines(run, seed), *(_data_lines(run, gains) if data else ())]))
    sys.stdout.flush()


def _run_lines(run: rf.Run, seed: int) -> Iterator[str]:
    """Give the table of a run, its statement, and the line `Result: GUARANTEE`."""
    yield f"seed {seed}: {run.stopped}"
    yield f"{'trajectories':>12} {'guarantee':>11} {'true value':>11} {'bound':>11} replans"
    for p in run.history:
        yield (
            f"{p.trajectories:12d} {p.guarantee:11.6g} {_number_text(p.performance):>11} "
            f"{p.optimistic:11.6g} {p.replans:7d}"
        )
    yield run.statement()
    if not run.alarms:
        yield f"Result: {run.guarantee}"


def _run_record(run: rf.Run, seed: int) -> dict[str, Any]:
    """Return a run as one JSON object; nan is null, infinity the string "Infinity".

    `guarantee` is that of the run: after an alarm it is infinite, and says nothing.
    """
    mean = run.mean_guarantee  # over random starts
    points = [asdict(point).items() for point in run.history]
    history = [
        {k: None if math.isnan(v) else args.json_number(v) for k, v in point} for point in points
    ]
    return {
        "seed": seed,
        **history[-1],
        "guarantee": args.json_number(run.guarantee),
        "mean_guarantee": None if math.isnan(mean) else args.json_number(mean),
        "alarms": list(run.alarms),
        "checks": list(run.checks),
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
        "history": history,
    }


def _number_text(performance: float) -> str:
    return "unknown" if math.isnan(performance) else f"{performance:.6g}"


def _show_progress(show: terminal.ShownProgress, trajectories: int, _: int, now: Progress) -> None:
    point = now.point
    if point is None:
        show.say(f"{now.phase}, {now.trajectories} trajectories")
        return
    rate = point.steps / max(point.seconds, 1e-9)
    remaining = point.seconds * (trajectories / max(point.trajectories, 1) - 1.0)
    show.say(
        f"{point.trajectories} trajectories, guarantee {point.guarantee:.5g}, true value "
        f"{_number_text(point.performance)}, {rate:.3g} steps/s, at most {remaining:.0f} s left"
    )


def _data_lines(run: rf.Run, gains: Sequence[IdentifierGain]) -> Iterator[str]:
    """Give what data cover, and what to collect next."""
    samples = np.add.reduceat(run.counts, run.model.marginals.outcome_ptr[:-1])
    yield (
        f"Coverage: {len(samples)} identifiers, {np.count_nonzero(samples == 0)} without samples, "
        f"{samples.sum()} samples."
    )
    helpful = [one for one in gains if one.gain > 0.0]
    if helpful:
        yield "Collect these next: the guarantee would improve by so much if one were known."
        yield f"{'gain':>10} {'samples':>10} {'width':>9}  identifier"
        yield from map(str, helpful)
