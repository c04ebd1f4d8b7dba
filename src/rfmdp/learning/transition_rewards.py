"""Known rewards of a transition, r(s, a, s'): what a row pays at least and at most.

The mean reward of a row is the expectation of what its transitions pay, so it depends on what
nature chooses. Its least and its largest value are inner problems, with payments in place of
values. They are solved with the sets as they are now. For a guarantee a row pays what is worse for
the agent, for an optimistic bound what is better. So a reward counts in the step that pays it, for
all objectives; the step into a target is included.

Nature chooses twice, once for what a row pays and once for where it leads. That makes nature
stronger, never weaker, so a guarantee still holds. As the sets become small both choices become the
truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.inner.protocol import Inner
from rfmdp.learning.rewards import paying, reward_of
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.description import States
from rfmdp.model.expander import numbers
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.ragged import owners
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.recorded import digest_of
from rfmdp.types import AnyArray, FloatArray, IntArray

PAID = "every transition pays what was declared for its state, action and successor"


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
        self.words = f"of transitions, {digest_of(paid)[:16]}"
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
