"""`rfmdp learn`: learn a policy and its guarantee from samples of a hidden model."""

from __future__ import annotations

import json
import math
import textwrap
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rfmdp.cli.arguments import check_positive, constants, inner_method
from rfmdp.cli.options import (
    MODEL,
    RUNS,
    Const,
    Jobs,
    Prop,
    Props,
    Scheduler,
    part_option,
)
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, USER_ERROR, complain, spoken_warnings
from rfmdp.cli.signature import Option, command
from rfmdp.errors import AssumptionAlarm, ModelError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.learning.run import Run
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.running import TaskResult
    from rfmdp.sources.source import Source

LENGTH = 100  # steps of a trajectory, if nothing says otherwise
LEAST = 0.01  # seconds that are left for learning, whatever reading took


@command
def learn(
    model: Annotated[str | None, MODEL] = None,
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
    beta: Annotated[float, Option("Largest probability that the guarantee is wrong.")] = 1e-4,
    p_min: Annotated[
        float | None, Option("Assumed least probability of declared outcomes.")
    ] = None,
    trajectories: Annotated[int, Option("Trajectories, at most.", section="Stopping")] = 100_000,
    target: Annotated[
        float | None, Option("Stop when the guarantee is at least (costs: at most) this.")
    ] = None,
    gap: Annotated[
        float | None, Option("Stop when guarantee and optimistic bound are this close.")
    ] = None,
    timeout: Annotated[float | None, Option("Seconds per seed, reading included.")] = None,
    method: Annotated[
        str,
        Option(
            "Method; `rfmdp learn --method list` prints all.",
            section="Method",
        ),
    ] = "anytime",
    inner: Annotated[
        str | None,
        Option("How sets are composed, in place of the method's; as in `solve`."),
    ] = None,
    confidence: Annotated[str | None, part_option("--confidence", "Confidence sets")] = None,
    explore: Annotated[
        str | None,
        part_option("--explore", "What to sample", "; OTHER: chance of any action"),
    ] = None,
    schedule: Annotated[str | None, part_option("--schedule", "When to plan again")] = None,
    granularity: Annotated[
        str | None, part_option("--granularity", "What is counted together")
    ] = None,
    tie: Annotated[
        tuple[str, ...], Option("NAME=NAME: marginals that are the same; repeatable.")
    ] = (),
    rewards: Annotated[str | None, part_option("--rewards", "Rewards")] = None,
    length: Annotated[
        int | None,
        Option("Steps of a trajectory; default: of the domain, or 100.", section="Samples"),
    ] = None,
    env: Annotated[
        str | None,
        Option(
            "Learn from a Gymnasium environment, of which MODEL is the structure: "
            "NAME or NAME(OPTION=VALUE, ...)."
        ),
    ] = None,
    actions: Annotated[
        str | None,
        Option("Names of the environment's actions, in its order: left,down,right,up."),
    ] = None,
    data: Annotated[
        tuple[str, ...],
        Option(
            "Learn from recorded transitions: .parquet, .csv, .arrow, or a folder of these; "
            "repeatable."
        ),
    ] = (),
    manifest: Annotated[
        str | None, Option("JSON file about the data: selection, columns, actions, values.")
    ] = None,
    selection: Annotated[
        str | None,
        Option(
            "Whether rows were left out for their outcome: none, unknown, outcome. Only none "
            "gives a guarantee."
        ),
    ] = None,
    column: Annotated[
        tuple[str, ...],
        Option("x=NAME, x'=NAME, action=NAME, episode=NAME, time=NAME, ...; repeatable."),
    ] = (),
    seed: Annotated[int, Option("First seed.", section=RUNS)] = 0,
    seeds: Annotated[int, Option("Number of seeds.")] = 1,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    per_decade: Annotated[
        int, Option("Evaluations per decade of trajectories.", section="Output")
    ] = 8,
    as_json: Annotated[
        bool, Option("Print one JSON object per seed, a line each.", "--json")
    ] = False,
    plot: Annotated[str | None, Option("File for the learning curve: .png, .pdf, .svg.")] = None,
    output: Annotated[
        str | None,
        Option("Run file, saved at every evaluation; several seeds: NAME-SEED.", "-o --output"),
    ] = None,
    resume: Annotated[
        bool, Option("Continue the run file; give the same options as before.")
    ] = False,
) -> int:
    """Learn a policy with a guarantee, from samples or recorded data.

    The probabilities of the model are hidden and only sampled; with recorded data it is the known
    structure. A domain's learning instance is used unless constants are given. Exit code 0: done,
    2: an alarm, so that nothing is guaranteed. docs/learning.md explains all words.
    """
    started = time.monotonic()
    if method == "list":
        print("\n".join(_method_lines()))
        return CERTIFIED
    if model is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    import rfmdp
    from rfmdp.cli import learn_words as words
    from rfmdp.cli.answer_text import run_progress
    from rfmdp.cli.models import command_line, property_and_blueprint
    from rfmdp.domains.table import find
    from rfmdp.learning.methods import find_method
    from rfmdp.learning.schedule import LogSpaced
    from rfmdp.learning.seeds import learn_seeds, seed_file
    from rfmdp.report.plots import FORMATS, figure_class, save_learning_curve

    settings = {
        "method": find_method(method),
        "inner": None if inner is None else inner_method(inner),
        "confidence": words.part("--confidence", confidence),
        "exploration": words.part("--explore", explore),
        "schedule": words.part("--schedule", schedule),
        "granularity": words.part("--granularity", granularity),
        "rewards": words.part("--rewards", rewards),
        "ties": [words.tie(text) for text in tie],
    }
    check_positive(
        trajectories=trajectories, length=length, timeout=timeout, seeds=seeds, jobs=jobs,
        per_decade=per_decade, beta=beta, gap=gap,
    )  # fmt: skip
    _check_numbers(beta, p_min, target)
    _check_together(data, env, seeds > 1 or scheduler is not None, resume, output)
    check_writable(output, plot)
    if plot is not None and Path(plot).suffix not in FORMATS:
        raise ModelError(f"--plot must end in one of {', '.join(FORMATS)}; got '{plot}'.")
    if plot is not None:
        figure_class()  # before the work

    given = constants(const)
    request, blueprint = property_and_blueprint(model, props, prop, given)
    setup = find(blueprint.name).learning if blueprint.is_domain else None
    if setup is not None and not given:
        given = {"instance": "learning"}
    with spoken_warnings():
        hidden = blueprint.build(given, also_known=set(request.constants))
        hidden = hidden.with_provenance(command=command_line())
    source: FactoredMDP | Source = hidden
    if data:
        source = words.read_data(hidden, data, manifest, selection, column)
    elif env is not None:
        source = rfmdp.GymSource(env, hidden, actions=actions.split(",") if actions else None)
    seconds = math.inf if timeout is None else timeout - (time.monotonic() - started)
    numbers = range(seed, seed + seeds)
    try:
        results = learn_seeds(
            source,
            request,
            numbers,
            jobs=jobs,
            scheduler=scheduler,
            patience=math.inf if timeout is None else timeout,
            file=output,
            progress=run_progress(getattr(source, "trajectories", trajectories), seeds > 1),
            done=partial(_print_result, seeds > 1, source if data else None, as_json),
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
        files = () if output is None else (seed_file(output, n, numbers) for n in numbers)
        if any(Path(file).exists() for file in files):
            complain(
                "the same command with --resume continues at the last evaluation.", kind="note"
            )
        raise
    runs = [result.value for result in results if result.error is None]
    if plot is not None and runs:
        save_learning_curve({method: runs}, plot)
    errors = [result.error for result in results if result.error is not None]
    if not all(isinstance(error, AssumptionAlarm) for error in errors):
        return USER_ERROR
    return NOT_CERTIFIED if errors or any(run.alarms for run in runs) else CERTIFIED


def _check_numbers(beta: float, p_min: float | None, target: float | None) -> None:
    """Refuse numbers out of range."""
    for option, chance in (("--beta", beta), ("--p-min", p_min)):
        if chance is not None and not 0.0 <= chance < 1.0:
            raise ModelError(f"{option} must be a probability below 1, got {chance}.")
    if target is not None and not math.isfinite(target):
        raise ModelError(f"--target must be a finite number, got {target}.")


def _check_together(
    data: tuple[str, ...], env: str | None, many: bool, resume: bool, output: str | None
) -> None:
    """Refuse options that do not go together; `many` are several seeds, or a cluster."""
    if resume and output is None:
        raise ModelError("--resume needs the run file: give it with -o FILE.")
    if data and many:
        raise ModelError("--data is read once; leave out --seeds and --scheduler.")
    if env and (data or many):
        raise ModelError("--env is one source; leave out --data, --seeds and --scheduler.")


def _print_run(run: Run, seed: int, data: Any, as_json: bool) -> None:
    """Print a run, and what is to be said about recorded data, if it was learned from any."""
    from rfmdp.cli.answer_text import data_lines, data_record, run_lines, run_record

    if as_json:
        extra = {} if data is None else {"data": data_record(data, run)}
        print(json.dumps(run_record(run, seed) | extra), flush=True)
    else:
        about = () if data is None else data_lines(run)
        print("\n".join([*run_lines(run, seed), *about]), flush=True)


def _print_result(many: bool, data: Any, as_json: bool, result: TaskResult) -> None:
    """Print the run of a seed; of several, one may have failed, and the others go on."""
    seed, error = result.task.seed, result.error
    if error is None or not many:
        _print_run(result.require(), seed, data, as_json)
        return
    if as_json:
        print(json.dumps({"seed": seed, "error": str(error).partition("\n")[0]}), flush=True)
    complain(f"seed {seed}: {error}")


def _name(system: str, given: dict[str, str]) -> str:
    """Return the model or environment with its constants, for people."""
    values = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"{system} ({values})" if values else system


def _method_lines() -> Iterator[str]:
    from rfmdp.learning.methods import METHODS

    for name, method in METHODS.items():
        head, *rest = textwrap.wrap(method.about, 59)
        yield f"{name:<20} {head}"
        yield from (f"{'':<20} {line}" for line in rest)
