"""Results and policies: `verify`, `explain`, `policy`, `evaluate`, `simulate` and `report`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rfmdp import __version__
from rfmdp.cli.arguments import check_positive, constants, one_of, solution_in, state_number
from rfmdp.cli.commands.models import ENDINGS as MODEL_FILES, write_model
from rfmdp.cli.output import (
    CERTIFIED,
    NOT_CERTIFIED,
    USER_ERROR,
    complain,
    showing_progress,
    spoken_warnings,
)
from rfmdp.cli.signature import (
    Const,
    Json,
    Model,
    Precision,
    Prop,
    Props,
    Quiet,
    Radius,
    Result,
    command,
)
from rfmdp.errors import FileError, ModelError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.answers.property import Property
    from rfmdp.learning.simulation import Simulation
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.objective import Spec
    from rfmdp.outer.solution import Policy


@command
def explain(
    result: Result,
    state: Annotated[
        str | None,
        "--state",
        "Values of all variables, x=1,y=2, or a number; default: the initial.",
    ] = None,
    step: Annotated[
        int, "--step", "Steps gone, for finite horizons; what was paid, for budgets."
    ] = 0,
    as_json: Json = False,
) -> None:
    """Explain a decision: values of actions, nature's answers.

    It says what happens next, too.
    """
    import rfmdp

    solution = solution_in(result)
    explanation = rfmdp.explain(solution, state_number(solution.model, state), step=step)
    provenance = solution.model.provenance
    origin = [] if provenance is None else provenance.lines()
    if as_json:
        print(json.dumps(asdict(explanation) | {"origin": dict(origin)}))
        return
    print(explanation)
    for word, text in origin:
        print(f"{word:10}{text}")


@command
def policy(
    result: Result,
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
    import rfmdp
    from rfmdp.policies.induced import NatureChoice

    check_writable(output)
    choices = {"sets": None} | {choice.value: choice for choice in NatureChoice}
    choice = one_of("--nature", nature, choices)
    if Path(output).suffix in MODEL_FILES:
        write_model(rfmdp.induced_model(solution_in(result), choice), Path(output))
        return
    if choice is not None:
        raise FileError(f"{output}: --nature needs a model file ({', '.join(MODEL_FILES)}).")
    rfmdp.write_policy(solution_in(result), output)
    print(f"wrote {output}")


@command
def evaluate(
    model: Model,
    policy: Annotated[
        str, "--policy", "File of `solve -o`, `learn -o` or `policy -o`: .rfmdp, .csv, ..."
    ],
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
    precision: Precision = 1e-6,
    as_json: Json = False,
    radius: Radius = None,
) -> int:
    """Evaluate a policy with the worst, best and nominal nature.

    Prints proven bounds of its value for each. The result is that of the property's nature, as in
    `solve`: Pmaxmin has the worst one, Pmax the best. Exit code 0: all certified, 2: not all.
    """
    import rfmdp
    from rfmdp.cli.answers import as_json as plain, proven_side
    from rfmdp.cli.models import property_and_model
    from rfmdp.policies.files import read_policy
    from rfmdp.temporal.solve import on_product

    request, subject = property_and_model(model, props, prop, const, radius)
    spec = request.spec(subject, settled=not subject.uncertain)
    subject, spec = on_product(subject, spec)
    chosen = read_policy(policy, subject)
    worst = spec.agent.opposite
    rows: dict[str, Any] = {}
    with showing_progress("evaluating"):
        for name, world, nature in (
            ("worst", subject, worst), ("best", subject, worst.opposite),
            ("nominal", subject.nominal(), worst),
        ):  # fmt: skip
            solution = rfmdp.evaluate(
                world, chosen, spec, nature=nature, limits=rfmdp.Limits(precision)
            )
            bounds = solution.at_initial()
            ends = {"lower": plain(bounds.lower), "upper": plain(bounds.upper)}
            rows[name] = ends | {"status": solution.status.name.lower()}
            if name == ("worst" if spec.robust else "best"):
                result = proven_side(bounds, spec.agent)
    if as_json:
        print(json.dumps({"property": request.text, "policy": policy, **rows}))
    else:
        print(f"property  {request.text}")
        for name, row in rows.items():
            print(f"{name:9} [{row['lower']!r}, {row['upper']!r}]  {row['status']}")
        print(f"Result: {result}")
    certified = all(row["status"] == "certified" for row in rows.values())
    return CERTIFIED if certified else NOT_CERTIFIED


@command
def simulate(
    model: Model,
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
    policy: Annotated[
        str, "--policy", "uniform, optimal, or a file of `solve`, `learn` or `policy`."
    ] = "uniform",
    nature: Annotated[
        str, "--nature", "Probabilities: nominal, worst or best members of the sets."
    ] = "nominal",
    trajectories: Annotated[int, "--trajectories", "Number of trajectories."] = 10_000,
    length: Annotated[int, "--length", "Steps of a trajectory, at most."] = 100,
    seed: Annotated[int, "--seed", "Fixes all randomness."] = 0,
    as_json: Json = False,
    record: Annotated[
        str | None,
        "--record",
        "File for all transitions, for `learn --data`: .parquet, .csv, .arrow.",
    ] = None,
    radius: Radius = None,
) -> None:
    """Simulate a policy, to estimate what a property measures.

    Probabilities are the nominal ones of the model, or others of its sets. Prints the mean with a
    95 % confidence interval of what trajectories of this length give, and the steps per second.
    """
    from rfmdp.cli.models import property_and_model
    from rfmdp.learning.simulation import scene_of
    from rfmdp.objective import BudgetUntil
    from rfmdp.outer.budget import unfolded
    from rfmdp.policies.induced import NatureChoice, resolved
    from rfmdp.sources.log.tables import check_ending, write_log
    from rfmdp.temporal.solve import on_product

    check_positive(trajectories=trajectories, length=length)
    check_writable(record)
    if record is not None:
        check_ending(record)
    choice = one_of("--nature", nature, {choice.value: choice for choice in NatureChoice})
    question, subject = property_and_model(model, props, prop, const, radius)
    settled = choice is NatureChoice.NOMINAL and (
        policy != "optimal" or subject.rows == subject.states
    )
    subject, spec = on_product(subject, question.spec(subject, settled=settled))
    chosen = _policy(policy, subject, spec)
    if chosen is not None and isinstance(spec.objective, BudgetUntil):
        subject, chosen, spec = unfolded(subject, chosen, spec)
    if choice is NatureChoice.NOMINAL:
        scene = scene_of(subject, chosen, spec)
    elif chosen is None:
        raise ModelError("--nature needs a policy; give one with --policy.")
    else:
        with showing_progress("finding nature's choice"):
            fixed, spec = resolved(subject, chosen, spec, choice)
        scene = scene_of(fixed.model, None, spec)  # there is one row per state now
        scene = scene.made_from(subject, fixed.states, fixed.rows)
    with showing_progress("simulating"):
        simulation = scene.simulate(length, trajectories, seed)
    _say_what_is_missing(question, simulation, scene.measured.discount)
    if record is not None:
        data = scene.record(simulation.length, simulation.trajectories, seed)
        write_log(scene.behind, data, record)
    about = {"property": question.text, "policy": policy, "nature": nature}
    if as_json:
        file = {} if record is None else {"record": record}
        print(json.dumps(about | _numbers(simulation, seed) | file))
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
        "speed": f"{simulation.steps / max(simulation.seconds, 1e-9) / 1e6:.3g} million steps per "
        f"second ({simulation.seconds:.6f} s)",
    }
    for word, text in (lines if record is None else lines | {"record": record}).items():
        print(f"{word:<14}{text}")
    print(f"Result: {simulation.estimate}")


def _say_what_is_missing(question: Property, simulation: Simulation, discount: float) -> None:
    """Say that a threshold is not decided, and that trajectories were cut off.

    Where rewards after the last step would count next to nothing, nothing is cut off; nor where
    the target cannot be reached any more.
    """
    bound = getattr(question.parsed.expression, "bound", None)
    if bound is not None:
        from rfmdp.language.write import write_expression

        complain(
            f"'{bound.operator} {write_expression(bound.value)}' is left open: a simulation "
            "estimates the value of one policy; `solve` decides thresholds.",
            kind="note",
        )
    cut = round((1.0 - simulation.ended - simulation.lost) * simulation.trajectories)
    if cut and discount**simulation.length > 1e-6:
        complain(
            f"{100 * cut / simulation.trajectories:.4g} % of the trajectories were cut off after "
            f"{simulation.length} steps; what would have followed is not counted. "
            "Try a larger --length.",
            kind="note",
        )


def _policy(word: str, model: FactoredMDP, spec: Spec) -> Policy | None:
    """Return the policy that a word or file names; None is uniform."""
    import rfmdp
    from rfmdp.policies.files import read_policy

    if word == "uniform":
        return None
    if word == "optimal":
        return rfmdp.solve(model.nominal(), spec).policy
    if "." not in word and not Path(word).exists():
        raise ModelError(f"--policy must be uniform, optimal or a file, got '{word}'.")
    return read_policy(word, model)


def _numbers(simulation: Simulation, seed: int) -> dict[str, Any]:
    words = ("lower", "upper", "confidence", "interval", "trajectories", "steps", "ended", "lost")
    return {
        "mean": simulation.estimate,
        **{word: getattr(simulation, word) for word in words},
        "seed": seed,
        "seconds": round(simulation.seconds, 6),
        "steps_per_second": round(simulation.steps / max(simulation.seconds, 1e-9)),
        "version": __version__,
    }


@command
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
    from rfmdp.outer.solution import Solution
    from rfmdp.report.page import write_report

    if Path(output).suffix not in (".html", ".htm"):
        raise FileError(f"{output}: the page must be an .html file; a browser prints it as PDF.")
    check_writable(output)
    loaded = [load(path) for path in results]
    loaded = [x.explicit() if isinstance(x, Solution) else x for x in loaded]
    write_report(loaded, output, title=title, command=command_line())
    print(f"wrote {output}; open it in a browser")


@command
def verify(
    result: Result,
    model: Annotated[
        str | None, "--model", "Model file or domain: it is built again and compared."
    ] = None,
    const: Const = (),
    quiet: Quiet = False,
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
    from rfmdp.verification.solution import verify

    built = None
    if model is not None:
        from rfmdp.cli.models import rebuilt

        with spoken_warnings():
            built = rebuilt(model, constants(const), result)
    with showing_progress("verifying", quiet=quiet) as show:
        verdict = verify(result, show.say, model=built)
    lines = [
        *verdict.claims,
        *(("checked", check) for check in verdict.checked),
        *(("FAILED", failure) for failure in verdict.failed),
        *(("OPEN", doubt) for doubt in verdict.unproven),
    ]
    for word, text in () if quiet else lines:
        print(f"{word:<10}{text}")
    word = "valid" if verdict.valid else "INVALID" if verdict.failed else "not proven"
    print(f"Result: {word}")
    return CERTIFIED if verdict.valid else USER_ERROR if verdict.failed else NOT_CERTIFIED
