"""Known rewards of a transition, r(s, a, s'): to learn with, and to solve.

The mean reward of a row is the expectation of what its transitions pay, so it depends on what
nature chooses. Its least and its largest value are inner problems, with payments in place of
values. They are solved with the sets as they are now. For a guarantee a row pays what is worse for
the agent, for an optimistic bound what is better. So a reward counts in the step that pays it, for
all objectives; the step into a target is included.

Nature chooses twice, once for what a row pays and once for where it leads. That makes nature
stronger, never weaker, so a guarantee still holds. As the sets become small both choices become the
truth.

To solve a model from both sides nature must choose once. Then a state remembers what was paid on
the way into it, and pays it in the next step (`with_transition_rewards`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.learning.rewards import paying, reward_of
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.description import States
from rfmdp.model.expander import numbers, seeing_arrays
from rfmdp.model.restrict import row_arrays
from rfmdp.objective import MAX, MIN, Cumulative, Spec
from rfmdp.outer.problem import where
from rfmdp.ragged import entries, owners, segment_lengths, starts
from rfmdp.record import Assumption
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import as_spec
from rfmdp.sources.recorded import digest_of
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from rfmdp.answers.property import Property

NAME = "paid"  # the variable that remembers
PAID = Assumption("transition-rewards")


@dataclass(frozen=True, slots=True, eq=False)
class TransitionReward:
    """A known reward of state, action and successor.

    Parameters
    ----------
    paid
        `paid(states, action, successors)`: what N transitions of an action pay, (N,) numbers or
        one for all. Where a state has no action, nothing is paid.

    Examples
    --------
    >>> arriving = TransitionReward(lambda s, action, t: (t.x == 4) & (s.x < 4))
    """

    paid: Callable[[States, str, States], ArrayLike]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is paid is the user's claim."""
        return (PAID,)

    def of(self, model: FactoredMDP, rows: IntArray, successors: AnyArray) -> FloatArray:
        """Return what transitions pay, given by their rows (N,) and successors (N,).

        Raises
        ------
        ModelError
            If the function gives other things than finite numbers.
        """
        found = np.zeros(len(rows))
        own = model.row_states[rows]
        stuck = model.label("deadlock")
        actions = np.where(stuck[own], -1, model.row_actions[rows])
        for action in np.unique(actions[actions >= 0]):
            at = np.flatnonzero(actions == action)
            name = model.actions[action]
            before, after = (
                States(model.variables, model.valuations, states[at])
                for states in (own, successors)
            )
            with seeing_arrays("TransitionReward"):
                paid = self.paid(before, name, after)
            found[at] = numbers(paid, before, f"TransitionReward, action {name!r}")
        wrong = np.flatnonzero(~np.isfinite(found))
        if len(wrong):
            raise ModelError(
                f"TransitionReward: must be finite, found {found[wrong[0]]} from "
                f"{model.row_name(int(rows[wrong[0]]))} to "
                f"{model.state_name(int(successors[wrong[0]]))}."
            )
        return found


class TransitionRewardBounds:
    """Rewards of transitions that are known, and bounds of what rows pay on average.

    `model` is the learning model, the objective of `spec` says which rewards count, and `inner`
    finds nature's choice.
    """

    def __init__(
        self, reward: TransitionReward, model: FactoredMDP, spec: Spec, inner: Inner
    ) -> None:
        if not model.variables:
            raise UnsupportedError(
                "TransitionReward: the model must have variables, as those of `build` and of PRISM "
                "files; this one has numbered states only."
            )
        self.reward = reward
        self.name = reward_of(model, spec)
        self._inner = inner
        paid = reward.of(model, owners(model.successor_ptr), model.successors)
        self.settings = {"kind": "transitions", "digest": digest_of(paid)[:16]}
        self._amounts, place = np.unique(paid, return_inverse=True)
        self._least = np.minimum.reduceat(paid, model.successor_ptr[:-1])
        self._most = np.maximum.reduceat(paid, model.successor_ptr[:-1])
        self._varying = np.flatnonzero(self._least < self._most)
        self._paying = replace(model, successors=place.astype(np.int32))  # lead to amounts

    @property
    def least(self) -> float:
        """What any transition pays at least."""
        return float(np.min(self._amounts, initial=0.0))

    def evidence(self) -> dict[str, AnyArray]:
        """Return what all transitions pay, (K,)."""
        return {"transitions": self._amounts[self._paying.successors]}

    def bounds(self, sets: Marginals, low: bool) -> FloatArray:
        """Return what rows pay on average at least, or at most, under all members of sets, (R,)."""
        nature, found = (MIN, self._least.copy()) if low else (MAX, self._most.copy())
        if not len(self._varying):
            return found
        below, above = np.empty(len(found)), np.empty(len(found))
        prepared = self._inner.prepare(self._paying.with_marginals(sets), nature)
        prepared.backup(self._amounts, self._varying, below, above)
        at = self._varying
        if low:
            found[at] = np.maximum(found[at], below[at])
        else:
            found[at] = np.minimum(found[at], above[at])
        return found

    def apply(self, model: FactoredMDP, low: bool) -> FactoredMDP:
        """Return a model whose rows pay the least, or the most, under all members of its sets."""
        return paying(model, self.name, self.bounds(model.marginals, low))


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
