"""Models made of others: policy or sets restricted, unrolled in time, unfolded by a budget.

A restricted model has one row per state. An unrolled one has a state per number of steps gone and
state: what changes with time in the model (a policy with a rule per step, nature's answers to it, a
target that counts from some step on) depends on the state alone there. One that is unfolded by a
budget has a state per amount paid and state: state `s` after paying `n` is `n * S + s`, row `r`
there is `n * R + r`, and a row that would pay more leads to the last state, which nobody leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.sets.boxes import box_centres
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, Int32Array, IntArray

ENTRY = 40  # bytes that a successor takes while a model is unrolled or unfolded, about


@dataclass(frozen=True, slots=True, eq=False)
class Unrolled:
    """The unrolled model, and what its states and rows stand for."""

    model: FactoredMDP
    states: IntArray  # (S',) the state that every state stands for
    rows: IntArray  # (R',) likewise the row
    steps: IntArray  # (S',) steps gone; in the last layer that many or more
    layers: IntArray  # (layers + 1,) where the states of every number of steps begin


def unroll(model: FactoredMDP, rules: IntArray, latest: int | None, earliest: int = 0) -> Unrolled:
    """Return a model unrolled over some steps, as far as it is reachable under the rules.

    Parameters
    ----------
    rules : (T, S)
        The row of every state when 0, 1, ... steps are gone; the last rule repeats. -1 keeps all
        rows of a state.
    latest
        Steps after which all is over: in that layer states stay as they are. None: there is no
        last step; where nothing changes with time any more it goes on without counting.
    earliest
        Steps that are told apart even if there is no last one.
    """
    steps = max(earliest, len(rules) - 1) if latest is None else latest
    layer: IntArray = np.array(model.initial, dtype=np.int64)
    layers, rows, counts, successors = [], [], [], []
    size = begin = 0  # successors and states so far
    for number in range(steps + 1):
        rule = rules[min(number, len(rules) - 1)]
        if number == steps and latest is None:
            layer = _closed(model, rule, layer)
        layer_rows, count = _rows_of(model, rule, layer)
        after = model.successors[entries(model.successor_ptr, layer_rows)]
        size += len(after)
        require_memory(ENTRY * size, f"A model unrolled over {steps} steps")
        following = layer
        if number < steps:
            following, place = np.unique(after, return_inverse=True)
            place += len(layer)
        elif latest is None:
            order = np.argsort(layer)
            place = order[np.searchsorted(layer, after, sorter=order)]
        else:
            places = np.repeat(np.arange(len(layer)), count)
            place = np.repeat(places, segment_lengths(model.successor_ptr)[layer_rows])
        successors.append((place + begin).astype(np.int32))
        layers.append(layer)
        rows.append(layer_rows)
        counts.append(count)
        begin += len(layer)
        layer = following.astype(np.int64)
    first = starts([len(states) for states in layers])
    origin, origin_rows = np.concatenate(layers), np.concatenate(rows)
    unrolled = replace(
        model,
        row_ptr=starts(np.concatenate(counts)),
        successors=np.concatenate(successors),
        initial=np.arange(len(model.initial)),
        labels={name: where[origin] for name, where in model.labels.items()},
        rewards={k: Rewards(r.state[origin], r.row[origin_rows]) for k, r in model.rewards.items()},
        valuations=model.valuations[origin] if model.variables else model.valuations,
        **row_arrays(model, origin_rows),
        provenance=None,
    )
    gone = np.repeat(np.arange(steps + 1), segment_lengths(first))
    return Unrolled(unrolled, origin, origin_rows, gone, first)


def _closed(model: FactoredMDP, rule: IntArray, states: IntArray) -> IntArray:
    """Return the states, and then all others that can follow them."""
    seen = np.zeros(model.states, dtype=np.bool_)
    seen[states] = True
    layers, new = [states], states
    while len(new):
        after = model.successors[entries(model.successor_ptr, _rows_of(model, rule, new)[0])]
        new = np.unique(after[~seen[after]]).astype(np.int64)
        seen[new] = True
        layers.append(new)
    return np.concatenate(layers)


def _rows_of(model: FactoredMDP, rule: IntArray, states: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of some states under a rule, and their number in every state."""
    one = rule[states] >= 0
    count = np.where(one, 1, segment_lengths(model.row_ptr)[states])
    begin = starts(count)
    first = np.where(one, rule[states], model.row_ptr[states])
    rows: IntArray = np.arange(begin[-1]) + np.repeat(first - begin[:-1], count)
    return rows, count


def restrict(model: FactoredMDP, rows: IntArray) -> FactoredMDP:
    """Return the model with only the given row of every state, (S,)."""
    rows = np.asarray(rows, dtype=np.int64)
    inside = (rows >= model.row_ptr[:-1]) & (rows < model.row_ptr[1:])
    if rows.shape != (model.states,) or not inside.all():
        where = ""
        if rows.shape == (model.states,):
            where = f"; in {model.state_name(int(np.argmin(inside)))} it takes one of another state"
        raise ModelError(f"A policy must take one of the rows of each state{where}.")
    return replace(
        model,
        row_ptr=np.arange(model.states + 1),
        successors=model.successors[entries(model.successor_ptr, rows)],
        rewards={k: Rewards(r.state, r.row[rows]) for k, r in model.rewards.items()},
        **row_arrays(model, rows),
        provenance=None,
    )


def row_arrays(model: FactoredMDP, rows: IntArray) -> dict[str, Any]:
    """Return the fields of a model with the given rows, in this order and maybe repeatedly.

    Successors and rewards, which speak of states, are left to the caller.
    """
    marginals = entries(model.marginal_ptr, rows)
    factors = model.row_factors[marginals] if len(model.row_factors) else model.row_factors
    return {
        "marginal_ptr": starts(segment_lengths(model.marginal_ptr)[rows]),
        "row_marginals": model.row_marginals[marginals],
        "successor_ptr": starts(segment_lengths(model.successor_ptr)[rows]),
        "row_actions": model.row_actions[rows],
        "row_factors": factors,
    }


def unfold(model: FactoredMDP, paid: FloatArray, budget: int) -> FactoredMDP:
    """Return the unfolded model; it has no labels, rewards or variables.

    `paid` (R,) is what every row pays, a whole number >= 0.
    """
    wrong = np.flatnonzero(~((paid >= 0.0) & (paid == np.floor(paid))))
    if len(wrong):
        raise ModelError(
            "A bound on rewards needs whole numbers >= 0; "
            f"{model.row_name(int(wrong[0]))} pays {paid[wrong[0]]:g}. Scale the rewards, or bound "
            "the steps instead."
        )
    layers = budget + 1
    require_memory(
        ENTRY * layers * model.transitions, f"A model unfolded over a budget of {budget}"
    )
    lost = layers * model.states
    cost: IntArray = np.minimum(paid, layers).astype(np.int64)
    cost = np.repeat(cost, segment_lengths(model.successor_ptr))
    after = np.arange(layers)[:, None] + cost
    moves = np.where(after < layers, after * model.states + model.successors, lost)
    rows = row_arrays(model, np.tile(np.arange(model.rows), layers))
    for name in ("marginal_ptr", "successor_ptr"):
        rows[name] = np.append(rows[name], rows[name][-1] + (name == "successor_ptr"))
    rows["row_actions"] = np.append(rows["row_actions"], rows["row_actions"][:1])
    first = (np.arange(layers)[:, None] * model.rows + model.row_ptr[:-1]).ravel()
    nothing = np.empty((0, 0), dtype=np.int32)
    return replace(
        model,
        row_ptr=np.append(first, [layers * model.rows, layers * model.rows + 1]),
        successors=np.append(moves.ravel(), lost).astype(np.int32),
        labels={}, rewards={}, variables=(), valuations=nothing, formulas={}, provenance=None,
        **rows,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """Sets that nature keeps to, smaller than those of a model: boxes for some marginals of rows.

    They stand one after the other, by their places in `row_marginals`.
    """

    places: IntArray  # (N,)
    lower: FloatArray
    upper: FloatArray

    def on(self, model: FactoredMDP) -> FactoredMDP:
        """Return the model with these boxes in place of its sets."""
        sizes = model.marginals.sizes[model.row_marginals[self.places]]
        ptr = starts(sizes)
        boxes = Marginals.from_boxes(
            ptr, self.lower, self.upper, box_centres(ptr, self.lower, self.upper)
        )
        row_marginals = model.row_marginals.copy()
        row_marginals[self.places] = len(model.marginals) + np.arange(len(self.places))
        return replace(
            model,
            row_marginals=row_marginals,
            marginals=model.marginals.joined(boxes),
            marginal_names=(),
            outcome_names=(),
        )


def remembering(
    model: FactoredMDP, base: FactoredMDP, name: str, memory: IntArray, states: IntArray
) -> FactoredMDP:
    """Return a model with the variables of its base's states, and one for what is remembered."""
    variables, values = base.variables, base.valuations
    if not variables:
        variables = (Variable("state", 0, max(base.states - 1, 1)),)
        values = np.arange(base.states, dtype=np.int32)[:, None]
    while name in base.formulas or name in {variable.name for variable in variables}:
        name += "_"
    more: Int32Array = np.column_stack([values[states], memory]).astype(np.int32)
    last = Variable(name, 0, max(int(memory.max()), 1))
    return replace(model, variables=(*variables, last), valuations=more)
