"""`rfmdp evaluate`: what a given policy is worth, against several natures."""

from __future__ import annotations

import json
from typing import Annotated, Any

from rfmdp.cli.options import Const, Floor, Json, Model, OtherSet, Prop, Props, Radius, RadiusOf
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, showing_progress
from rfmdp.cli.signature import Option, command


@command
def evaluate(
    model: Model,
    policy: Annotated[
        str, Option("File of `solve -o`, `learn -o` or `policy -o`: .rfmdp, .csv, ...")
    ],
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
    precision: Annotated[float, Option("Wanted relative width of the bounds.")] = 1e-6,
    as_json: Json = False,
    radius: Radius = None,
    set_: OtherSet = None,
    radius_of: RadiusOf = (),
    floor: Floor = 0.0,
) -> int:
    """Evaluate a policy with the worst, best and nominal nature.

    Prints proven bounds of its value for each. The result is that of the property's nature, as in
    `solve`: Pmaxmin has the worst one, Pmax the best. Exit code 0: all certified, 2: not all.
    """
    import rfmdp
    from rfmdp.cli.answer_text import as_json as plain, proven_side
    from rfmdp.cli.models import Uncertainty, property_and_model
    from rfmdp.policies.files import open_policy

    uncertainty = Uncertainty(radius, set_, radius_of, floor)
    asked, subject = property_and_model(model, props, prop, const, uncertainty)
    chosen = open_policy(policy, subject)
    spec = asked.spec(subject, settled=not subject.uncertain)
    limits = rfmdp.Limits(precision)
    worst = spec.agent.opposite
    rows: dict[str, Any] = {}
    with showing_progress("evaluating"):
        for name, world, nature in (
            ("worst", subject, worst), ("best", subject, worst.opposite),
            ("nominal", subject.nominal(), worst),
        ):  # fmt: skip
            solution = rfmdp.evaluate(world, chosen, spec, nature=nature, limits=limits)
            bounds = solution.at_initial()
            rows[name] = {
                "lower": plain(bounds.lower),
                "upper": plain(bounds.upper),
                "status": solution.status.name.lower(),
            }
            if name == ("worst" if spec.robust else "best"):
                result = proven_side(bounds, spec.agent)
    if as_json:
        print(json.dumps({"property": asked.text, "policy": policy, **rows}))
    else:
        print(f"property  {asked.text}")
        for name, row in rows.items():
            print(f"{name:9} [{row['lower']!r}, {row['upper']!r}]  {row['status']}")
        print(f"Result: {result}")
    certified = all(row["status"] == "certified" for row in rows.values())
    return CERTIFIED if certified else NOT_CERTIFIED
