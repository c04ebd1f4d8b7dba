"""Methods beside each other: one line of a table per way to solve nature's choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import RfmdpError
from rfmdp.inner.protocol import Inner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.validate import require_valid
from rfmdp.objective import MAX, Spec
from rfmdp.outer.settings import Limits
from rfmdp.solving import as_spec, solve

if TYPE_CHECKING:
    from rfmdp.answers.property import Property


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of a table of methods."""

    method: str
    value: float  # the guarantee at the initial state
    lower: float
    upper: float
    gap_percent: float  # distance from the first method's value
    seconds: float
    status: str


def compare(
    model: FactoredMDP,
    spec: Spec | Property | str,
    inners: Sequence[Inner],
    *,
    limits: Limits | None = None,
) -> list[Comparison]:
    """Return one record per inner solver: the row of the paper's table.

    The gap is |first - value| / |value| in percent, the first solver being the reference. A solver
    that refuses the model has its reason as status.
    """
    require_valid(model)
    specification = as_spec(spec, model)
    records: list[Comparison] = []
    for inner in inners:
        try:
            solution = solve(model, specification, inner=inner, limits=limits)
        except RfmdpError as error:
            nothing = float("nan")
            records.append(
                Comparison(inner.name, nothing, nothing, nothing, nothing, nothing, str(error))
            )
            continue
        bounds = solution.at_initial()
        value = bounds.lower if specification.agent is MAX else bounds.upper
        if not np.isfinite(value):
            value = float(solution.value[model.initial[0]])
        first = records[0].value if records else value
        gap = 100.0 * abs(first - value) / abs(value) if value else 0.0
        seconds = sum(solution.stats.seconds.values())
        records.append(
            Comparison(
                inner.name, value, bounds.lower, bounds.upper, gap, seconds, solution.status.name
            )
        )
    return records
