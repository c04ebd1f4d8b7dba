"""Results and policies: `verify`, `explain`, `policy`, `evaluate`, `simulate` and `report`."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rfmdp as rf
from rfmdp.cli import arguments as args, terminal
from rfmdp.errors import FileError, ModelError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.answers.property import Property

# of a simulation, in its record
NUMBERS = ("lower", "upper", "confidence", "interval", "trajectories", "steps", "ended", "lost")


@args.command
def explain(
    result: args.Result,
    state: Annotated[
        str | None,
        "--state",
        "Values of all variables, x=1,y=2, or a number; default: the initial.",
    ] = None,
    step: Annotated[
        int, "--step", "Steps gone, for finite horizons; what was paid, for budgets."
    ] = 0,
    as_json: args.Json = False,
) -> None:
    """Explain a decision: values of actions, nature's answers.

    It says what happens next, too.
    """
    solution = args.solution_in(result)
    explanation = rf.explain(solution, args.state_number(solution.model, state), step=step)
    provenance = solution.model.provenance
    origin = [] if provenance is None else provenance.lines()
    if as_json:
        print(json.dumps(asdict(explanation) | {"origin": dict(origin)}))
        return
    print(explanation)
    for word, text in origin:
        print(f"{word:10}{text}")


@args.command
def policy(
    result: args.Result,
    output: Annotated[
        str,
        "-o",
        "--output",
        "File to write: .csv has the policy; .umb, .tra and .rfmdp have the model with the "
        "policy fixed.",
    ],
    nature: Annotated[
        str, "--nature", "In a model: sets, or what nature takes: worst, best, nominal."
    ] = "sets",
) -> None:
    """Write the policy of a result, or the model with it fixed.

    Tables have variables, action and proven bounds of every state. They are read again by
    `evaluate` and `simulate`, for any model with the same variables. A model has one row per state;
    nature keeps its sets, or its choice is fixed. Steps and payments that the policy counts become
    a variable.
    """
    from rfmdp.cli.models import ENDINGS, write_model

    check_writable(output)
    choices = {"sets": None} | {choice.value: choice for choice in rf.NatureChoice}
    choice = args.one_of("--nature", nature, choices)
    if Path(output).suffix in ENDINGS:
        write_model(rf.induced_model(args.solution_in(result), choice), Path(output))
        return
    if choice is not None:
        raise FileError(f"{output}: --nature needs a model file ({', '.join(ENDINGS)}).")
    rf.write_policy(args.solution_in(result), output)
    print(f"wrote {output}")


@args.command
def evaluate(
    model: args.Model,
    policy: Annotated[
        str, "--policy", "File of `solve -o`, `learn -o` or `policy -o`: .rfmdp, .csv, ..."
    ],
    props: args.Props = None,
    prop: args.Prop = (),
    const: args.Const = (),
    precision: args.Precision = 1e-6,
    as_json: args.Json = False,
    radius: args.Radius = None,
) -> int:
    """Evaluate a policy with the worst, best and nominal nature.

    Prints proven bounds of its value for each. The result is that of the property's nature, as in
    `solve`: Pmaxmin has the worst one, Pmax the best. Exit code 0: all certified, 2: not all.
    """
    from rfmdp.cli.models import property_and_model
    from rfmdp.temporal.product import on_product

    request, subject = property_and_model(model, props, prop, const, radius)
    spec = request.spec(subject, settled=not subject.uncertain)
    subject, spec = on_product(subject, spec)
    chosen = rf.read_policy(policy, subject)
    worst = spec.agent.opposite
    rows: dict[str, Any] = {}
    with terminal.showing_progress("evaluating"):
        for name, world, nature in (
            ("worst", subject, worst), ("best", subject, worst.opposite),
            ("nominal", subject.nominal(), worst),
        ):  # fmt: skip
            solution = rf.evaluate(world, chosen, spec, nature=nature, limits=rf.Limits(precision))
            bounds = solution.at_initial()
            low, high = map(args.json_number, (bounds.lower, bounds.upper))
            status = solution.status.name.lower()
            rows[name] = {"lower": low, "upper": high, "status": status}
            if name == ("worst" if spec.robust else "best"):
                side = bounds.lower if spec.agent is rf.MAX else bounds.upper
                proven = math.isfinite(side) or bounds.width == 0.0
                result = args.shown(side) if proven else "nothing proven"
    if as_json:
        print(json.dumps({"property": request.text, "policy": policy, **rows}))
    else:
        print(f"property  {request.text}")
        for name, row in rows.items():
            print(f"{name:9} [{row['lower']!r}, {row['upper']!r}]  {row['status']}")
        print(f"Result: {result}")
    certified = all(row["status"] == "certified" for row in rows.values())
    return terminal.CERTIFIED if certified else terminal.NOT_CERTIFIED


@args.command
def simulate(
    model: args.Model,
    props: args.Props = None,
    prop: args.Prop = (),
    const: args.Const = (),
    policy: Annotated[
        str, "--policy", "uniform, optimal, or a file of `solve`, `learn` or `policy`."
    ] = "uniform",
    nature: Annotated[
        str, "--nature", "Probabilities: nominal, worst or best members of the sets."
    ] = "nominal",
    trajectories: Annotated[int, "--trajectories", "Number of trajectories."] = 10_000,
    length: Annotated[int, "--length", "Steps of a trajectory, at most."] = 100,
    seed: Annotated[int, "--seed", "Fixes all randomness."] = 0,
    as_json: args.Json = False,
    record: Annotated[
        str | None,
        "--record",
        "File for all transitions, for `learn --data`: .parquet, .csv, .arrow.",
    ] = None,
    radius: args.Radius = None,
) -> None:
    """Simulate a policy, to estimate what a property measures.

    Probabilities are the nominal ones of the model, or others of its sets. Prints the mean with a
    95 % confidence interval of what trajectories of this length give, and the steps per second.
    """
    from rfmdp.cli.models import property_and_model
    from rfmdp.policies.simulation import scene_of
    from rfmdp.sources.log.source import check_ending, write_log
    from rfmdp.temporal.product import on_product

    args.check_positive(trajectories=trajectories, length=length)
    check_writable(record)
    if record is not None:
        check_ending(record)
    choice = args.one_of("--nature", nature, {choice.value: choice for choice in rf.NatureChoice})
    question, subject = property_and_model(model, props, prop, const, radius)
    settled = choice is rf.NatureChoice.NOMINAL and (
        policy != "optimal" or subject.rows == subject.states
    )
    subject, spec = on_product(subject, question.spec(subject, settled=settled))
    chosen = None
    if policy == "optimal":
        chosen = rf.solve(subject.nominal(), spec).policy
    elif policy != "uniform":
        if "." not in policy and not Path(policy).exists():
            raise ModelError(f"--policy must be uniform, optimal or a file, got '{policy}'.")
        chosen = rf.read_policy(policy, subject)
    if chosen is None and choice is not rf.NatureChoice.NOMINAL:
        raise ModelError("--nature needs a policy; give one with --policy.")
    with terminal.showing_progress("finding nature's choice"):
        scene = scene_of(subject, chosen, spec, choice)
    with terminal.showing_progress("simulating"):
        simulation = scene.simulate(length, trajectories, seed)
    _say_what_is_missing(question, simulation, scene.discount)
    if record is not None:
        data = scene.record(simulation.length, simulation.trajectories, seed)
        write_log(scene.behind, data, record)
    speed = simulation.steps / max(simulation.seconds, 1e-9)
    if as_json:
        found = {
            "property": question.text, "policy": policy, "nature": nature,
            "mean": simulation.estimate, **{word: getattr(simulation, word) for word in NUMBERS},
            "seed": seed, "seconds": round(simulation.seconds, 6),
            "steps_per_second": round(speed), "version": rf.__version__,
        }  # fmt: skip
        print(json.dumps(found if record is None else found | {"record": record}))
        return
    lost = simulation.lost
    never = f", {100 * lost:.4g} % can never reach the target" if lost else ""
    lines = {
        "property": question.text,
        "policy": f"{policy}, nature {nature}",
        "trajectories": f"{simulation.trajectories} ({simulation.steps} steps, "
        f"{100 * simulation.ended:.4g} % ended by themselves{never})",
        "interval": f"[{simulation.lower:.6g}, {simulation.upper:.6g}] "
        f"({100 * simulation.confidence:g} %, {simulation.interval})",
        "speed": f"{speed / 1e6:.3g} million steps per second ({simulation.seconds:.6f} s)",
    }
    for word, text in (lines if record is None else lines | {"record": record}).items():
        print(f"{word:<14}{text}")
    print(f"Result: {simulation.estimate}")


def _say_what_is_missing(question: Property, simulation: rf.Simulation, discount: float) -> None:
    """Say that a threshold is not decided, and that trajectories were cut off.

    Where rewards after the last step would count next to nothing, nothing is cut off; nor where
    the target cannot be reached any more.
    """
    bound = getattr(question.parsed.expression, "bound", None)
    if bound is not None:
        terminal.complain(
            f"the bound '{bound.operator}' of '{question.text}' is left open: a simulation "
            "estimates the value of one policy; `solve` decides thresholds.",
            kind="note",
        )
    cut = round((1.0 - simulation.ended - simulation.lost) * simulation.trajectories)
    if cut and discount**simulation.length > 1e-6:
        terminal.complain(
            f"{100 * cut / simulation.trajectories:.4g} % of the trajectories were cut off after "
            f"{simulation.length} steps; what would have followed is not counted. "
            "Try a larger --length.",
            kind="note",
        )


@args.command
def report(
    results: Annotated[tuple[str, ...], "Files that `rfmdp solve -o` or `rfmdp learn -o` wrote."],
    output: Annotated[str, "-o", "--output", "The page to write."] = "report.html",
    title: Annotated[str, "--title", "Heading of the page."] = "",
) -> None:
    """Write one page with results and an explorer of every policy.

    It has bounds, tables and curves, and works without a network.
    """
    from rfmdp.cli.models import command_line
    from rfmdp.formats.files import load

    if Path(output).suffix not in (".html", ".htm"):
        raise FileError(f"{output}: the page must be an .html file; a browser prints it as PDF.")
    check_writable(output)
    loaded = [load(path) for path in results]
    loaded = [x.explicit() if isinstance(x, rf.Solution) else x for x in loaded]
    rf.write_report(loaded, output, title=title, command=command_line())
    print(f"wrote {output}; open it in a browser")


@args.command
def verify(
    result: args.Result,
    model: Annotated[
        str | None, "--model", "Model file or domain: it is built again and compared."
    ] = None,
    const: args.Const = (),
    quiet: args.Quiet = False,
) -> int:
    """Prove a saved result again, by an independent checker.

    What is proven are the bounds and the policy, or the statement of a learning run. With --model,
    also that it is about that model: constants that --const does not give, and the radius, are
    those that the file names. Prints what the file claims, what was checked, and
    `Result: valid`, `INVALID` or `not proven`.
    Exit code 0: all is proven again, 1: something does not hold, or the file cannot be checked,
    2: nothing wrong was found, but not all could be proven.
    """
    # before NumPy is there: the products are many and small, threads only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    built = None
    if model is not None:
        from rfmdp.cli.models import rebuilt

        with terminal.spoken_warnings():
            built = rebuilt(model, args.constants(const), result)
    with terminal.showing_progress("verifying", quiet=quiet) as show:
        verdict = rf.verify(result, show.say, model=built)
    lines = [
        *verdict.claims,
        *(("checked", check) for check in verdict.checked),
        *(("FAILED", failure) for failure in verdict.failed),
        *(("OPEN", doubt) for doubt in verdict.unproven),
    ]
    for word, text in () if quiet else lines:
        print(f"{word:<10}{text}")
    word, code = "not proven", terminal.NOT_CERTIFIED
    if verdict.valid or verdict.failed:
        word, code = ("valid", 0) if verdict.valid else ("INVALID", terminal.USER_ERROR)
    print(f"Result: {word}")
    return code
