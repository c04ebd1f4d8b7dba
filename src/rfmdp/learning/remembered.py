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
from rfmdp.objective import Cumulative, Discounted, ReachReward, Spec, Total
from rfmdp.outer.problem import where
from rfmdp.ragged import entries, owners, starts
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
    if not isinstance(goal, Cumulative | Discounted | ReachReward | Total) or not model.variables:
        raise UnsupportedError(
            "with_transition_rewards: must be a goal with rewards that are collected (C, F) and a "
            f"model with variables, found {asked} and {len(model.variables)} variables."
        )
    paid = reward.of(model, owners(model.successor_ptr), model.successors)
    target = where(model, goal.target) if isinstance(goal, ReachReward) else None
    states = _Remembering(model, paid, target)
    changed: dict[str, Any] = {"reward": goal.reward or next(iter(model.rewards))}
    if isinstance(goal, Cumulative):
        changed["steps"] = goal.steps + 1
    if target is not None:
        changed["target"] = target[states.home] & (states.amount == 0.0)
    late = states.amount / getattr(goal, "discount", 1.0)
    built = states.model(changed["reward"], late)
    return built, replace(asked, objective=replace(goal, **changed))


class _Remembering:
    """The pairs of a state and what was paid on the way into it, ascending."""

    def __init__(self, model: FactoredMDP, paid: FloatArray, target: BoolArray | None) -> None:
        self._model, self._target = model, target
        self._amounts, kind = np.unique(np.append(paid, 0.0), return_inverse=True)
        count, nothing = len(self._amounts), int(kind[-1])
        self._keys: IntArray = model.successors * np.int64(count) + kind[:-1]
        self._plain = np.arange(model.states) * count + nothing  # of every state with nothing paid
        ends = np.empty(0, dtype=np.int64) if target is None else np.flatnonzero(target)
        begins = np.concatenate([model.initial, ends])
        self._pairs = np.unique(np.concatenate([self._keys, self._plain[begins]]))
        self.home: IntArray = self._pairs // count
        self._kind = self._pairs % count
        self.amount: FloatArray = self._amounts[self._kind]

    def model(self, name: str, late: FloatArray) -> FactoredMDP:
        """Return the model over pairs, which pay `late` (S,) as the reward `name`."""
        old, home = self._model, self.home
        sizes = np.add.reduceat(np.diff(old.successor_ptr), old.row_ptr[:-1])
        require_memory(16.0 * sizes[home].sum(), "A model that remembers what transitions paid")
        rows = entries(old.row_ptr, home)
        row_ptr = starts(np.diff(old.row_ptr)[home])
        owner = np.repeat(owners(row_ptr), np.diff(old.successor_ptr)[rows])
        keys = self._keys[entries(old.successor_ptr, rows)]
        if self._target is not None:  # what was paid on the way into the target is collected there
            keys = np.where(self._target[home][owner], self._plain[home][owner], keys)
        others = {k: Rewards(r.state[home], r.row[rows]) for k, r in old.rewards.items()}
        return replace(
            old,
            row_ptr=row_ptr,
            successors=np.searchsorted(self._pairs, keys).astype(np.int32),
            initial=np.searchsorted(self._pairs, self._plain[old.initial]),
            labels={k: v[home] for k, v in old.labels.items()},
            rewards={**others, name: Rewards(late, np.zeros(len(rows)))},
            variables=(*old.variables, self._variable()),
            valuations=np.column_stack([old.valuations[home], self._numbers()[self._kind]]),
            **row_arrays(old, rows),
        )

    def _numbers(self) -> Int32Array:
        """Return how amounts are told apart: by themselves if they are whole, else by number."""
        whole = np.all((self._amounts == np.rint(self._amounts)) & (np.abs(self._amounts) < 2**31))
        numbers = np.rint(self._amounts) if whole else np.arange(len(self._amounts))
        return numbers.astype(np.int32)

    def _variable(self) -> Variable:
        taken, name, numbers = {v.name for v in self._model.variables}, NAME, self._numbers()
        while name in taken:
            name += "_"
        return Variable(name, int(numbers[0]), int(numbers[-1]))
