"""The run of `rfmdp check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rfmdp.cli.main import CERTIFIED, USER_ERROR, complain
from rfmdp.cli.models import Stopwatch, open_model, spoken_warnings
from rfmdp.cli.output import watching
from rfmdp.cli.questions import own_constants, questions
from rfmdp.cli.words import constants
from rfmdp.errors import RfmdpError
from rfmdp.language.model_scope import model_type
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.validate import validate


def inspect(name: str, file: str | None, wanted: Sequence[str], const: Sequence[str]) -> int:
    """Print what a model and properties are, and return the exit code."""
    given = constants(const)
    asked = questions(file, wanted)
    watch = Stopwatch()
    with spoken_warnings(), watching("building") as show:
        model = open_model(name, given, also_known=own_constants(asked), progress=show.building)
    print("\n".join(_facts(model, watch.seconds)))
    report = validate(model)
    print(report)
    code = CERTIFIED if report.valid else USER_ERROR
    for prop in asked:
        try:
            kind = prop.bind(model, given).type.value
        except RfmdpError as error:
            complain(str(error))
            kind, code = "error", USER_ERROR
        print(f"property    {kind:<8}{prop.text}")
    return code


def _facts(model: FactoredMDP, seconds: float) -> Iterator[str]:
    marginals = model.marginals
    sizes = np.diff(marginals.outcome_ptr)
    facts = {
        "type": model_type(model).value,
        "states": f"{model.states:,} ({len(model.initial)} initial)",
        "rows": f"{model.rows:,}",
        "transitions": f"{model.transitions:,}",
        "marginals": f"{len(marginals):,} (up to {int(np.max(sizes, initial=0))} outcomes)",
        "factors": ", ".join(model.factors) or "none",
        "actions": ", ".join(name for name in model.actions if name) or "none",
        "variables": ", ".join(f"{v.name}:[{v.low}..{v.high}]" for v in model.variables) or "none",
        "labels": ", ".join(sorted(model.labels)) or "none",
        "rewards": ", ".join(name or "(unnamed)" for name in model.rewards) or "none",
        "built in": f"{seconds:.3f} s",
    }
    for name, fact in facts.items():
        yield f"{name:<12}{fact}"
