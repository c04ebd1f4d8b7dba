"""`rfmdp check`: read, build and validate a model and its properties."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rfmdp.cli.arguments import constants
from rfmdp.cli.options import Const, Model, Prop, Props
from rfmdp.cli.output import CERTIFIED, USER_ERROR, complain, showing_progress, spoken_warnings
from rfmdp.cli.signature import command
from rfmdp.errors import RfmdpError

if TYPE_CHECKING:
    from rfmdp.model.arrays import FactoredMDP


@command
def check(
    model: Model,
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
) -> int:
    """Read, build and validate a model and its properties.

    Prints sizes, problems and warnings; exit code 1 if something is wrong.
    """
    import rfmdp
    from rfmdp.answers.batch import open_constants
    from rfmdp.cli.models import chosen_properties, read_blueprint

    given = constants(const)
    asked = chosen_properties(model, props, prop)
    started = time.perf_counter()
    with spoken_warnings(), showing_progress("building") as show:
        built = read_blueprint(model).build(
            given, also_known=open_constants(asked), progress=show.building
        )
    print("\n".join(_facts(built, time.perf_counter() - started)))
    report = rfmdp.validate(built)
    print(report)
    failed = not report.valid
    for one in asked:
        try:
            kind = one.bind(built, given).type.value
        except RfmdpError as error:
            complain(str(error))
            kind, failed = "error", True
        print(f"property    {kind:<8}{one.text}")
    return USER_ERROR if failed else CERTIFIED


def _facts(model: FactoredMDP, seconds: float) -> Iterator[str]:
    from rfmdp.language.model_scope import model_type

    largest = int(model.marginals.sizes.max(initial=0))
    facts = {
        "type": model_type(model).value,
        "states": f"{model.states:,} ({len(model.initial)} initial)",
        "rows": f"{model.rows:,}",
        "transitions": f"{model.transitions:,}",
        "marginals": f"{len(model.marginals):,} (up to {largest} outcomes)",
        "factors": ", ".join(model.factors) or "none",
        "actions": ", ".join(name for name in model.actions if name) or "none",
        "variables": ", ".join(f"{v.name}:[{v.low}..{v.high}]" for v in model.variables) or "none",
        "labels": ", ".join(sorted(model.labels)) or "none",
        "rewards": ", ".join(name or "(unnamed)" for name in model.rewards) or "none",
        "built in": f"{seconds:.3f} s",
    }
    for name, fact in facts.items():
        yield f"{name:<12}{fact}"
