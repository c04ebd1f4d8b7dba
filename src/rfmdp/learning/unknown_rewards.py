"""Unknown rewards in the learning loop: every row's mean reward is learned beside its marginals.

The hidden reward of a row is the model's. Under `DeterministicReward` it is seen as it is, so the
first visit settles it. Under `MixtureReward` every visit pays one end of the declared range, with
the model's reward as mean. The sum of a batch of visits is then drawn at once from a binomial
distribution that depends on the seed and the number of the batch's last trajectory only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.rewards import DeterministicReward, MixtureReward
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import Cumulative, Discounted, ReachReward, Spec, Total
from rfmdp.outer.problem import pose, row_rewards
from rfmdp.types import AnyArray, FloatArray, IntArray

RewardFamily: TypeAlias = DeterministicReward | MixtureReward
SHARE = 0.5  # of the error probability of the model and its rewards, for random rewards


class UnknownRewards:
    """What was seen of the rewards of all rows that matter.

    Parameters
    ----------
    family
        What is assumed about rewards.
    model, spec
        The truth, and the objective that says which rewards count.
    """

    def __init__(self, family: RewardFamily, model: FactoredMDP, spec: Spec) -> None:
        if not isinstance(spec.objective, ReachReward | Cumulative | Discounted | Total):
            raise UnsupportedError(
                "Unknown rewards: the objective must be a reward to a target, of some steps, "
                f"discounted or total; found {type(spec.objective).__name__}."
            )
        self.family = family
        self._name = spec.objective.reward or next(iter(model.rewards))
        self._truth = row_rewards(model, self._name)
        open_states = ~pose(model, spec).terminal
        self._open = np.flatnonzero(np.repeat(open_states, np.diff(model.row_ptr)))
        family.range.scale(self._truth[self._open])  # the range must hold, or no guarantee does
        self.visits = np.zeros(model.rows, dtype=np.int64)
        self.sums = np.zeros(model.rows)

    @property
    def random(self) -> bool:
        """Whether rewards have to be estimated."""
        return isinstance(self.family, MixtureReward)

    @property
    def identifiers(self) -> int:
        """Rows whose rewards are learned."""
        return len(self._open)

    def draw(self, visits: IntArray, seed: int, trajectory: int) -> None:
        """Take note of all visits so far (R or more,); draw what the new ones paid."""
        fresh = visits[: len(self.visits)] - self.visits
        self.visits += fresh
        if isinstance(self.family, DeterministicReward):
            return
        span, at = self.family.range, np.flatnonzero(fresh)
        at = np.intersect1d(at, self._open, assume_unique=True)
        generator = np.random.default_rng([seed, trajectory])
        chance = span.scale(self._truth[at])
        high = generator.binomial(fresh[at], chance)
        self.sums[at] += span.low * fresh[at] + (span.high - span.low) * high

    def lower(self, delta: float) -> FloatArray:
        """Return lower bounds of the mean rewards of all rows, (R,)."""
        return self._filled(delta, 1.0)

    def upper(self, delta: float) -> FloatArray:
        """Return upper bounds; the same events as those of `lower`."""
        return self._filled(delta, -1.0)

    def apply(self, model: FactoredMDP, paid: FloatArray, low: bool) -> FactoredMDP:
        """Return a model whose rows pay what is given, or the end of the range behind them."""
        span, own = self.family.range, row_rewards(model, self._name)
        end = np.minimum(own, span.low) if low else np.maximum(own, span.high)
        row = np.append(paid, end[len(paid) :])
        rewards = Rewards(np.zeros(model.states), row)
        return replace(model, rewards={**model.rewards, self._name: rewards})

    def state(self) -> dict[str, AnyArray]:
        """Return what `restore` reads."""
        return {"visits": self.visits, "sums": self.sums}

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from a saved state."""
        self.visits, self.sums = np.array(state["visits"]), np.array(state["sums"])

    def _filled(self, delta: float, sign: float) -> FloatArray:
        """Return lower bounds of sign * reward, times sign."""
        paid, at = self._truth.copy(), self._open
        n, level = self.visits[at], np.full(len(at), delta)
        if isinstance(self.family, DeterministicReward):
            pointers = np.concatenate([[0], np.cumsum(n > 0)])
            seen = self._truth[at][n > 0]
            bound = self.family.lower if sign > 0 else self.family.upper
            paid[at] = bound(pointers, seen, level)
        elif sign > 0:
            paid[at] = self.family.from_sums(self.sums[at], n, level)
        else:
            mirrored = MixtureReward(self.family.range.mirrored())
            paid[at] = -mirrored.from_sums(-self.sums[at], n, level)
        return paid
