"""Models whose rewards depend on state, action and successor, made ready to be solved.

Nature knows what outcomes pay when it chooses probabilities, so one expected reward per row would
be wrong. Instead a state remembers what was paid on the way into it, and pays it in the next step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.transition_rewards import TransitionReward
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.restrict import row_arrays
from rfmdp.objective import Cumulative, Spec
from rfmdp.outer.problem import where
from rfmdp.ragged import entries, owners, segment_lengths, starts
from rfmdp.solving import as_spec
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from rfmdp.answers.property import Property

NAME = "paid"  # the variable that remembers


def with_transition_rewards(
    model: FactoredMDP, reward: TransitionReward, spec: Spec | Property | str
) -> tuple[FactoredMDP, Spec]:
    """Return a model and a specification with the values that transitions' rewards give.

    The model has a state per state and amount, with a variable `paid` more. Amounts are paid one
    step late, which the specification makes up for: one step more, a target that begins when all
    was collected, amounts divided by the discount (and rounded to floats).

    Parameters
    ----------
    model, spec
        What would be solved; the rewards that the specification asks for are replaced.
    reward
        What transitions pay.

    Raises
    ------
    UnsupportedError
        If the specification collects no rewards, or the model has no variables.

    Examples
    --------
    >>> import rfmdp as rf
    >>> coin = rf.parse_prism("mdp module m x:[0..1]; [] true -> [0.4,0.6]:(x'=0) + "
    ...                       "[0.4,0.6]:(x'=1); endmodule")
    >>> wins = TransitionReward(lambda s, action, t: 3.0 * (t.x == 1))
    >>> found = rf.solve(*with_transition_rewards(coin, wins, "Rmaxmin=? [ C<=2 ]")).at_initial()
    >>> round(found.lower, 6)
    2.4
    """
    if not model.rewards:
        nothing = Rewards(np.zeros(model.states), np.zeros(model.rows))
        model = replace(model, rewards={"reward": nothing})
    asked = as_spec(spec, model)
    goal = asked.objective
    if not (goal.rewarded and goal.summed) or not model.variables:
        raise UnsupportedError(
            "with_transition_rewards: must be a goal with rewards that are collected (C, F) and a "
            f"model with variables, found {asked} and {len(model.variables)} variables."
        )
    paid = reward.of(model, owners(model.successor_ptr), model.successors)
    target = where(model, goal.sets["target"]) if goal.sets else None
    name = goal.reward_name or next(iter(model.rewards))
    built, home, amount = _remembering(model, paid, target)
    late = amount / goal.factor
    collected = Rewards(late, np.zeros(built.rows))
    changed: dict[str, Any] = {"reward": name}
    if isinstance(goal, Cumulative):
        changed["steps"] = goal.steps + 1
    if target is not None:
        changed["target"] = target[home] & (amount == 0.0)
    built = replace(built, rewards={**built.rewards, name: collected})
    return built, replace(asked, objective=replace(goal, **changed))


def _remembering(
    model: FactoredMDP, paid: FloatArray, target: BoolArray | None
) -> tuple[FactoredMDP, IntArray, FloatArray]:
    """Return the model over pairs of a state and what was paid on the way into it, ascending.

    Behind it the state (S',) and the amount (S',) of every pair. `paid` (K,) is by transitions.
    """
    amounts, kind = np.unique(np.append(paid, 0.0), return_inverse=True)
    count = len(amounts)
    nothing = int(kind[-1])
    keys: IntArray = model.successors * np.int64(count) + kind[:-1]
    plain = np.arange(model.states) * count + nothing  # of every state with nothing paid
    ends = np.empty(0, dtype=np.int64) if target is None else np.flatnonzero(target)
    pairs = np.unique(np.concatenate([keys, plain[model.initial], plain[ends]]))
    home, own = pairs // count, pairs % count
    sizes = np.add.reduceat(segment_lengths(model.successor_ptr), model.row_ptr[:-1])
    require_memory(16.0 * sizes[home].sum(), "A model that remembers what transitions paid")
    rows = entries(model.row_ptr, home)
    row_ptr = starts(segment_lengths(model.row_ptr)[home])
    pair = np.repeat(owners(row_ptr), segment_lengths(model.successor_ptr)[rows])
    after = keys[entries(model.successor_ptr, rows)]
    if target is not None:  # what was paid on the way into the target is collected there
        after = np.where(target[home][pair], plain[home][pair], after)
    variable, numbers = _variable(model, amounts)
    built = replace(
        model,
        row_ptr=row_ptr,
        successors=np.searchsorted(pairs, after).astype(np.int32),
        initial=np.searchsorted(pairs, plain[model.initial]),
        labels={k: v[home] for k, v in model.labels.items()},
        rewards={k: Rewards(r.state[home], r.row[rows]) for k, r in model.rewards.items()},
        variables=(*model.variables, variable),
        valuations=np.column_stack([model.valuations[home], numbers[own]]),
        **row_arrays(model, rows),
    )
    return built, home, amounts[own]


def _variable(model: FactoredMDP, amounts: FloatArray) -> tuple[Variable, Int32Array]:
    """Return the variable that tells amounts apart, and its values: whole amounts, else numbers."""
    whole = np.all((amounts == np.rint(amounts)) & (np.abs(amounts) < 2**31))
    numbers = (np.rint(amounts) if whole else np.arange(len(amounts))).astype(np.int32)
    taken, name = {v.name for v in model.variables}, NAME
    while name in taken:
        name += "_"
    return Variable(name, int(numbers[0]), int(numbers[-1])), numbers
