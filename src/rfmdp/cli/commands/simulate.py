"""`rfmdp simulate`: run a policy on a model and see what happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rfmdp import __version__
from rfmdp.cli.arguments import check_positive, one_of
from rfmdp.cli.output import complain, showing_progress
from rfmdp.cli.signature import Const, Floor, Model, Option, OtherSet, Prop, Props, Radius, command
from rfmdp.errors import ModelError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.answers.property import Property
    from rfmdp.learning.simulation import Simulation
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.objective import Spec
    from rfmdp.outer.solution import Policy


@command
def simulate(
    model: Model,
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
    policy: Annotated[
        str,
        Option(
            "uniform, optimal, or a file of `solve`, `learn` or `policy`.",
        ),
    ] = "uniform",
    nature: Annotated[
        str,
        Option(
            "Probabilities: nominal, worst or best members of the sets.",
        ),
    ] = "nominal",
    trajectories: Annotated[
        int, Option("Number of trajectories.", section="Trajectories")
    ] = 10_000,
    length: Annotated[int, Option("Steps of a trajectory, at most.")] = 100,
    seed: Annotated[int, Option("Fixes all randomness.")] = 0,
    as_json: Annotated[bool, Option("Print one JSON object.", "--json", section="Output")] = False,
    record: Annotated[
        str | None,
        Option("File for all transitions, for `learn --data`: .parquet, .csv, .arrow."),
    ] = None,
    radius: Radius = None,
    set_: OtherSet = None,
    floor: Floor = 0.0,
) -> None:
    """Simulate a policy, to estimate what a property measures.

    Probabilities are the nominal ones of the model, or others of its sets. Prints the mean with a
    95 % confidence interval of what trajectories of this length give, and the steps per second.
    """
    from rfmdp.cli.models import Uncertainty, property_and_model
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
    uncertainty = Uncertainty(radius, set_, floor)
    question, subject = property_and_model(model, props, prop, const, uncertainty)
    decides = policy == "optimal" and subject.rows > subject.states
    pushes = choice in (NatureChoice.WORST, NatureChoice.BEST)
    spec = question.spec(subject, settled=not (decides or pushes))
    subject, spec = on_product(subject, spec)
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
    report = {
        "property": question.text,
        "policy": policy,
        "nature": nature,
        **_report(simulation, seed),
    }
    _say_what_is_missing(question, simulation, scene.measured.discount)
    if record is not None:
        data = scene.record(simulation.length, simulation.trajectories, seed)
        write_log(scene.behind, data, record)
        report["record"] = record
    print(json.dumps(report) if as_json else "\n".join(_lines(report)))


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
    from rfmdp.policies.files import open_policy

    if word == "uniform":
        return None
    if word == "optimal":
        return rfmdp.solve(model.nominal(), spec).policy
    if "." not in word and not Path(word).exists():
        raise ModelError(f"--policy must be uniform, optimal or a file, got '{word}'.")
    return open_policy(word, model)


def _report(simulation: Simulation, seed: int) -> dict[str, Any]:
    """Return the numbers."""
    return {
        "mean": simulation.estimate,
        "lower": simulation.lower,
        "upper": simulation.upper,
        "confidence": simulation.confidence,
        "interval": simulation.interval,
        "trajectories": simulation.trajectories,
        "steps": simulation.steps,
        "ended": simulation.ended,
        "lost": simulation.lost,
        "seed": seed,
        "seconds": round(simulation.seconds, 6),
        "steps_per_second": round(simulation.steps / max(simulation.seconds, 1e-9)),
        "version": __version__,
    }


def _lines(report: dict[str, Any]) -> Iterator[str]:
    """Give the report for people."""
    yield f"property      {report['property']}"
    yield f"policy        {report['policy']}, nature {report['nature']}"
    lost = f", {100 * report['lost']:.4g} % can never reach the target" if report["lost"] else ""
    yield (
        f"trajectories  {report['trajectories']} ({report['steps']} steps, "
        f"{100 * report['ended']:.4g} % ended by themselves{lost})"
    )
    yield (
        f"interval      [{report['lower']:.6g}, {report['upper']:.6g}] "
        f"({100 * report['confidence']:g} %, {report['interval']})"
    )
    rate = report["steps_per_second"] / 1e6
    yield f"speed         {rate:.3g} million steps per second ({report['seconds']} s)"
    if "record" in report:
        yield f"record        {report['record']}"
    yield f"Result: {report['mean']}"
