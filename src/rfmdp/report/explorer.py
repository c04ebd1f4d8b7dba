"""The policy explorer of a page: the part of a model that a policy reaches, packed for a browser.

Numbers go as typed arrays, one after the other, compressed; the browser unpacks them. Actions that
the policy does not take are listed with their values, and can be followed as well as long as they
lead to states on the page.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rfmdp.model.arrays import Variable
from rfmdp.objective import MAX
from rfmdp.outer.solution import Solution
from rfmdp.policies.decisions import Decisions, decisions, reached, values_after
from rfmdp.policies.induced import without_budget
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.types import AnyArray, FloatArray, IntArray

STATES = 20_000  # on a page
ROWS = 200_000  # of all steps of a finite horizon together; of a larger one the first step is shown
ENTRIES = 1_500_000  # successors on a page


def explorer(solution: Solution) -> str:
    """Return the explorer's data of a solution as text: compressed, then base 64."""
    solution = without_budget(solution)
    states = reached(solution, STATES, ENTRIES)
    steps = shown_steps(solution)
    options = [decisions(solution, states, step) for step in range(steps)]
    values = [step.value for step in options]
    if solution.spec.objective.span[1] is not None:  # what is left after the last step shown
        low, high = values_after(solution, steps)
        values.append((low[states], high[states]))
    arrays = {
        **_of_states(solution, states, values),
        **_of_rows(solution, options[0]),
        **_of_steps(options),
    }
    model = solution.explicit_model
    variables = model.variables or (Variable("state", 0, model.states - 1),)
    header: dict[str, Any] = {
        "agent": "max" if solution.spec.agent is MAX else "min",
        "nature": "max" if solution.spec.nature is MAX else "min",
        "variables": [[v.name, v.low, v.high, v.boolean] for v in variables],
        "actions": list(model.actions),
        "marginals": [model.marginal_name(j) for j in range(len(model.marginals))],
        "outcomes": list(model.outcome_names),
        "labels": list(model.labels),
        "initial": int(model.initial[0]),
        "total": model.states,
        "steps": steps,
        "layers": len(values),
    }
    return _packed(header, arrays)


def shown_steps(solution: Solution) -> int:
    """Return how many steps of a solution an explorer shows: all of a horizon that is not large."""
    steps = solution.spec.objective.span[1] or 1
    return steps if steps * solution.model.rows <= ROWS else 1


def _of_states(
    solution: Solution, states: IntArray, values: Sequence[tuple[FloatArray, FloatArray]]
) -> dict[str, AnyArray]:
    """Return valuations, labels, and the bounds of one step after the other."""
    model = solution.explicit_model
    lower, upper = (np.concatenate(side) for side in zip(*values, strict=True))
    marks = [model.labels[name][states] for name in model.labels]
    return {
        "state": states.astype(np.int32),
        "valuation": (model.valuations[states] if model.variables else states).astype("i4").ravel(),
        "lower": np.where(np.isneginf(lower), np.nan, lower),  # nan: not proven
        "upper": np.where(np.isposinf(upper) & ~np.isposinf(lower), np.nan, upper),
        "label": np.array(marks, dtype=np.uint8).ravel(),
    }


def _of_rows(solution: Solution, options: Decisions) -> dict[str, AnyArray]:
    model, rows = solution.explicit_model, options.rows
    place = np.full(model.states, -1, dtype=np.int32)
    place[options.states] = np.arange(len(options.states))
    on_policy = np.isin(rows, options.chosen)
    widths = segment_lengths(model.successor_ptr)[rows]
    if widths.sum() > ENTRIES:  # then only the policy's own rows can be followed
        widths = np.where(on_policy, widths, 0)
    followed = rows[widths > 0]
    ids = entries(model.marginal_ptr, rows)
    return {
        "row_ptr": options.row_ptr.astype(np.int32),
        "action": model.row_actions[rows].astype(np.int32),
        "marginal_ptr": starts(segment_lengths(model.marginal_ptr)[rows]).astype(np.int32),
        "marginal": model.row_marginals[ids].astype(np.int32),
        "outcome_ptr": model.marginals.outcome_ptr.astype(np.int32),
        "nominal": model.marginals.nominal.astype(np.float32),
        "set_lower": model.marginals.lower.astype(np.float32),
        "set_upper": model.marginals.upper.astype(np.float32),
        "nature_ptr": options.outcome_ptr.astype(np.int32),
        "successor_ptr": starts(widths).astype(np.int32),
        "successor": place[model.successors[entries(model.successor_ptr, followed)]],
    }


def _of_steps(options: Sequence[Decisions]) -> dict[str, AnyArray]:
    """Return what differs between steps, of one after the other."""
    on_policy = [np.isin(step.rows, step.chosen) for step in options]
    return {
        "row_lower": _single(np.concatenate([step.lower for step in options]), -1.0),
        "row_upper": _single(np.concatenate([step.upper for step in options]), 1.0),
        "taken": np.concatenate(on_policy).astype(np.uint8),
        "nature": np.concatenate([step.nature for step in options]).astype(np.float32),
    }


def _packed(header: dict[str, Any], arrays: dict[str, AnyArray]) -> str:
    """Return a header and arrays as one compressed text."""
    blocks, offset, table = [], 0, {}
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 8)  # typed arrays start at multiples of their size
        table[name] = [array.dtype.str[1:], offset, len(array)]
        blocks.append(data)
        offset += len(data)
    head = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    head += b" " * (-(len(head) + 4) % 8)
    raw = len(head).to_bytes(4, "little") + head + b"".join(blocks)
    return base64.b64encode(zlib.compress(raw, 7)).decode()


def _single(bound: FloatArray, side: float) -> AnyArray:
    """Return bounds in single precision that are bounds still: below (-1) or above (+1)."""
    near = bound.astype(np.float32)
    fits = near <= bound if side < 0.0 else near >= bound
    return np.where(fits, near, np.nextafter(near, np.float32(side * np.inf)))
