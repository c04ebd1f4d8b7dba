"""Models made of others: flat, restricted, unrolled in time, unfolded by a budget.

A flat model has one marginal per row over its successor states. What is certain stays exact: known
marginals become their joint probabilities. Uncertain ones become intervals by interval arithmetic,
as PRISM and Storm compose them: the bounds of a branch are the products of its marginals' bounds
(as a text states them, if one does), branches that meet in one state add up (at most 1), and a set
that is no box counts as its enclosing box. Nature's set grows by that: a flat interval model is a
*relaxation* of the factored one, and its robust value lies on the pessimistic side.

A restricted model has one row per state. An unrolled one has a state per number of steps gone and
state: what changes with time in the model (a policy with a rule per step, nature's answers to it, a
target that counts from some step on) depends on the state alone there. One that is unfolded by a
budget has a state per amount paid and state: state `s` after paying `n` is `n * S + s`, row `r`
there is `n * R + r`, and a row that would pay more leads to the last state, which nobody leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.kernels.explorer import fill_keys
from rfmdp.kernels.machine import DISTRIBUTION, ENTRIES, SIZE
from rfmdp.kernels.products import distributions
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.validate import require_valid
from rfmdp.ragged import chunks, entries, segment_lengths, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, FloatArray, Int32Array, IntArray

FACTOR = "joint"  # the one factor of a flat model
CHUNK = 1 << 22  # transitions that are multiplied out before equal rows are joined
ENTRY = 40  # bytes that a successor takes while a model is unrolled or unfolded, about

Boxes: TypeAlias = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""N boxes of different sizes: pointers (N + 1,); lower, upper and nominal numbers of all (E,)."""


def same_segments(ptr: IntArray, values: AnyArray) -> tuple[IntArray, IntArray]:
    """Return the number of every segment (N,) among the different ones, and the first of each.

    values : 64-bit integers, or floats, which are compared by their bits
    """
    count, sizes = len(ptr) - 1, segment_lengths(ptr)
    ends = starts(sizes + ENTRIES)
    keys, inside = np.zeros(ends[-1], dtype=np.int64), np.ones(ends[-1], dtype=np.bool_)
    inside[np.add.outer(ends[:-1], np.arange(ENTRIES))] = False
    keys[inside] = values.view(np.int64)
    keys[ends[:-1] + SIZE], keys[ends[:-1] + DISTRIBUTION] = sizes, np.arange(count)
    fill_keys(np.zeros(1 << max(4, int(2 * count).bit_length()), np.int64), keys, 0, len(keys))
    first, ids = np.unique(keys[ends[:-1] + DISTRIBUTION], return_inverse=True)
    return ids, first


def shared(boxes: Boxes) -> tuple[IntArray, Boxes]:
    """Return, for every box, its number among the different boxes, (N,); and these boxes."""
    pointers, *numbers = boxes
    ids, first = same_segments(3 * pointers, np.stack(numbers, axis=1).reshape(-1))
    return ids, take(boxes, first)


def take(boxes: Boxes, chosen: IntArray) -> Boxes:
    """Return some of the boxes."""
    pointers, lower, upper, nominal = boxes
    at = entries(pointers, chosen)
    return starts(segment_lengths(pointers)[chosen]), lower[at], upper[at], nominal[at]


def flat_model(
    row_ptr: IntArray, successors: Int32Array, ids: IntArray, boxes: Boxes, **fields: Any
) -> FactoredMDP:
    """Return a checked model whose row r has the box `ids[r]` over its successors.

    A row with one successor is a certain move and gets no marginal. `fields` are those of the
    model that are no transitions; what is None is left out.
    """
    sizes = segment_lengths(boxes[0])[ids]
    uncertain = sizes > 1
    used, numbers = np.unique(ids[uncertain], return_inverse=True)
    model = FactoredMDP(
        row_ptr=row_ptr,
        marginal_ptr=starts(uncertain.astype(np.int64)),
        row_marginals=numbers.astype(np.int32),
        successor_ptr=starts(sizes),
        successors=np.ascontiguousarray(successors, dtype=np.int32),
        marginals=Marginals.from_boxes(*take(boxes, used)),
        row_actions=np.ascontiguousarray(fields.pop("row_actions"), dtype=np.int32),
        actions=tuple(fields.pop("actions")),
        factors=(FACTOR,),
        row_factors=np.zeros(int(uncertain.sum()), dtype=np.int32),
        **{name: value for name, value in fields.items() if value is not None},
    )
    require_valid(model)
    return model


def transition_bounds(flat: FactoredMDP) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probabilities of a flat model's transitions, lower and upper (K,)."""
    sets, sizes = flat.marginals, segment_lengths(flat.successor_ptr)
    first = np.full(flat.rows, len(sets.nominal), dtype=np.int64)  # of certain moves
    first[segment_lengths(flat.marginal_ptr) == 1] = sets.outcome_ptr[flat.row_marginals]
    outcome = np.arange(flat.transitions) + np.repeat(first - flat.successor_ptr[:-1], sizes)
    return np.append(sets.lower, 1.0)[outcome], np.append(sets.upper, 1.0)[outcome]


def flatten(model: FactoredMDP) -> FactoredMDP:
    """Return the flat model: one marginal per row, branches to one successor merged.

    Successors of a row are ascending; those that cannot happen are dropped. States, rows, actions,
    labels, rewards and variables stay; rows with equal distributions share a marginal. The result
    takes four bytes per merged transition; a ResourceError comes before more than there is.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> coin = Interval([0.4, 0.4], [0.6, 0.6])
    >>> two = FactoredMDP.from_rows([[([0, 0], [0, 1, 1, 1])], [([], [1])]], [coin])
    >>> flat = flatten(two)
    >>> flat.successors.tolist(), flat.marginals.lower.round(2).tolist()
    ([0, 1, 1], [0.16, 0.64])
    """
    pieces = []
    ids = [np.empty(0, np.int64)]
    targets = [np.empty(0, np.int32)]
    count = 0
    for begin, end in chunks(model.successor_ptr, CHUNK):
        successors, boxes = _multiply(model, begin, end)
        numbers, different = shared(boxes)
        pieces.append(different)
        ids.append(numbers + count)
        count += len(different[0]) - 1
        targets.append(successors)
    ends = starts(np.concatenate([segment_lengths(piece[0]) for piece in pieces]))
    lower, upper, nominal = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 2, 3))
    numbers, boxes = shared((ends, lower, upper, nominal))
    names = ("initial", "row_actions", "actions", "labels", "rewards", "variables", "valuations")
    fields = {name: getattr(model, name) for name in names}
    row_boxes = numbers[np.concatenate(ids)]
    return flat_model(model.row_ptr, np.concatenate(targets), row_boxes, boxes, **fields)


def flatten_note(model: FactoredMDP) -> str:
    """Return what `flatten` does to a model, in one sentence for people; empty if nothing."""
    several = int(np.count_nonzero(segment_lengths(model.marginal_ptr) > 1))
    curved = int(np.count_nonzero(model.marginals.kind > Kind.BOX))
    if not several and not curved:
        return ""
    if not model.uncertain:
        return f"{several} rows multiplied out to joint probabilities."
    return (
        f"{several} rows with several marginals flattened by interval arithmetic (products of "
        f"bounds, added where branches meet) and {curved} sets that are no boxes replaced by their "
        "enclosing boxes. This is a relaxation: robust values become pessimistic."
    )


def _multiply(model: FactoredMDP, begin: int, end: int) -> tuple[Int32Array, Boxes]:
    """Return successors and boxes of the rows begin..end - 1, multiplied out."""
    sets, rows = model.marginals.as_stated(), np.arange(begin, end)
    length = int(model.successor_ptr[end] - model.successor_ptr[begin])
    require_memory(3 * 28 * length, f"Multiplying out {model.transitions} transitions")
    size, targets, upper = joint_successors(model, rows, sets.upper)
    lower, nominal = (joint_successors(model, rows, p)[2] for p in (sets.lower, sets.nominal))
    row = np.repeat(rows - begin, size)
    order = np.lexsort((targets, row))
    order = order[upper[order] > 0.0]
    size = np.bincount(row[order], minlength=len(rows))
    targets, nominal = targets[order], nominal[order]
    lower, upper = (np.minimum(bound[order], 1.0) for bound in (lower, upper))
    # whatever the rounding of the sum: the only successor of a row is certain
    single = np.repeat(size == 1, size)
    lower[single] = upper[single] = nominal[single] = 1.0
    return targets, (starts(size), lower, upper, nominal)


def joint_successors(
    model: FactoredMDP, rows: IntArray, values: FloatArray
) -> tuple[IntArray, Int32Array, FloatArray]:
    """Return what rows (N,) lead to, as one distribution over successors each.

    That is how many different successors every row has, (N,), these successors, row after row, and
    their mass: `values` (O,), probabilities of outcomes or bounds of them, are multiplied for the
    marginals of a row, and added up where they lead to the same successor.
    """
    lengths = segment_lengths(model.successor_ptr)[rows]
    length = int(lengths.sum())
    sizes = np.empty(len(rows), dtype=np.int64)
    targets, mass = np.empty(length, dtype=np.int32), np.empty(length)
    work = np.full(model.states, -1), np.empty(int(lengths.max(initial=1)))
    entries = np.ascontiguousarray(values)
    used = distributions(rows, model.structure, entries, work, sizes, targets, mass)
    return sizes, targets[:used], mass[:used]


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
            layer = reached(model, rule[None], layer)
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
        successors.append(place + begin)
        layers.append(layer)
        rows.append(layer_rows)
        counts.append(count)
        begin += len(layer)
        layer = following.astype(np.int64)
    first = starts([len(states) for states in layers])
    origin, origin_rows = np.concatenate(layers), np.concatenate(rows)
    unrolled = taking(
        model, origin, origin_rows, np.concatenate(counts), np.concatenate(successors),
        initial=np.arange(len(model.initial)),
    )  # fmt: skip
    gone = np.repeat(np.arange(steps + 1), segment_lengths(first))
    return Unrolled(unrolled, origin, origin_rows, gone, first)


def reached(
    model: FactoredMDP,
    rules: IntArray,
    states: IntArray,
    most: float = math.inf,
    successors: float = math.inf,
) -> IntArray:
    """Return some states, and all others that rules (T, S) may lead to from them, nearest first.

    Rules are those of `unroll`.

    most : states to return at the most; what is left out is farther than what is in
    successors : entries that their chosen rows may have together
    """
    seen = np.zeros(model.states, dtype=np.bool_)
    seen[states] = True
    layers, frontier, step, size = [np.array(states)], np.array(states), 0, 0
    while len(frontier) and sum(map(len, layers)) < most and size < successors:
        rows, _ = _rows_of(model, rules[min(step, len(rules) - 1)], frontier)
        places = entries(model.successor_ptr, rows)
        after = np.unique(model.successors[places]).astype(np.int64)
        fresh = after[~seen[after]]
        size += len(places) if len(fresh) else 0
        seen[fresh] = True
        layers.append(fresh)
        step += 1
        frontier = after if step < len(rules) else fresh  # a later rule may leave a state otherwise
    found = np.concatenate(layers).astype(np.int64)
    return found[: int(min(most, len(found)))]


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
    successors = model.successors[entries(model.successor_ptr, rows)]
    return taking(model, slice(None), rows, np.ones(model.states), successors)


def taking(
    model: FactoredMDP,
    states: IntArray | slice,
    rows: IntArray,
    counts: ArrayLike,
    successors: IntArray | Int32Array,
    **fields: Any,
) -> FactoredMDP:
    """Return a model of copies of states (S',) and of rows (R',), `counts` (S',) of them per state.

    The successors of all rows are new. `fields` are those that are not copied.
    """
    marginals, factors = entries(model.marginal_ptr, rows), model.row_factors
    copied: dict[str, Any] = {
        "row_ptr": starts(counts),
        "marginal_ptr": starts(segment_lengths(model.marginal_ptr)[rows]),
        "row_marginals": model.row_marginals[marginals],
        "successor_ptr": starts(segment_lengths(model.successor_ptr)[rows]),
        "successors": successors.astype(np.int32),
        "row_actions": model.row_actions[rows],
        "row_factors": factors[marginals] if len(factors) else factors,
        "labels": {name: holds[states] for name, holds in model.labels.items()},
        "rewards": {k: Rewards(r.state[states], r.row[rows]) for k, r in model.rewards.items()},
        "valuations": model.valuations[states] if model.variables else model.valuations,
        "provenance": None,
    }
    return replace(model, **copied | fields)


def bare(model: FactoredMDP) -> FactoredMDP:
    """Return a model about whose states nothing is said: no labels, rewards or variables."""
    nothing = np.empty((0, 0), dtype=np.int32)
    return replace(model, labels={}, rewards={}, variables=(), valuations=nothing, formulas={})


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
    rows = np.append(np.tile(np.arange(model.rows), layers), 0)
    counts = np.append(np.tile(segment_lengths(model.row_ptr), layers), 1)
    end = np.full(int(model.successor_ptr[1]), lost)  # a row of the model, which stays there
    return taking(bare(model), slice(None), rows, counts, np.append(moves, end))


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
        boxes = Marginals.from_boxes(starts(sizes), self.lower, self.upper)
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
