"""Rollout certificates during learning: freeze the best estimate's policy, run it, bound it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.budget import epoch_delta
from rfmdp.learning.explore import smoothed
from rfmdp.learning.measure import measure
from rfmdp.learning.rewards import RewardRange
from rfmdp.learning.rollout import RolloutCertificate, certify_returns, certify_successes
from rfmdp.objective import MAX
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.sources.simulator import Behaviour, Simulator
from rfmdp.types import AnyArray

if TYPE_CHECKING:
    from rfmdp.learning.learner import Learner
    from rfmdp.learning.run import Run

FIRST = 200  # trajectories before the first epoch


class Rollouts:
    """Certificates at doubling numbers of trajectories; half of all trajectories certify.

    What a trajectory reaches or earns within its length is a lower bound of what it would reach
    or earn for ever, so agents that maximise are served; with rewards >= 0, unless the objective
    ends within a trajectory. Every trajectory is also counted for the model.
    """

    def __init__(self, learner: Learner) -> None:
        self.share = learner.ledger.shares.rollout
        self.epoch, self.due = 0, FIRST
        self.certificates: list[RolloutCertificate] = []
        self.best_policy: Policy | None = None
        if self.share > 0.0:
            self._prepare(learner)

    def _prepare(self, learner: Learner) -> None:
        """Refuse what cannot be certified, before any work."""
        if learner.spec.agent is not MAX:
            raise UnsupportedError(
                "Rollout certificates: the agent must maximise; the cost of a trajectory that is "
                "cut off bounds no expected cost. Learn without them."
            )
        if learner.views.rewards is not None:
            raise UnsupportedError(
                "Rollout certificates: rewards must be known. Learn without them."
            )
        model, length = learner.truth, learner.setup.length
        self._measured = seen = measure(model, learner.spec)
        self._length = length if seen.steps is None else min(length, seen.steps)
        self._simulator = Simulator(model, seen.stop)
        self._reward = np.zeros(model.rows)
        if seen.target is None:
            self._reward = row_rewards(model, seen.reward)
            least = float(self._reward.min(initial=0.0))
            if least < 0.0 and seen.steps != self._length:
                raise UnsupportedError(
                    "Rollout certificates: rewards must be at least 0 where trajectories are cut "
                    f"off, found {least:g}. Learn without them, or with longer trajectories."
                )
            most = float(self._reward.max(initial=0.0))
            self._range = RewardRange(least * self._length, max(most, 1e-300) * self._length)

    @property
    def best_bound(self) -> float:
        """The best bound so far; nan before the first."""
        return max((c.bound for c in self.certificates), default=math.nan)

    def maybe(self, learner: Learner) -> None:
        """Run an epoch if there is a share for it and it is due."""
        limit = learner.setup.stop.trajectories
        if self.share <= 0.0 or learner.done < self.due:
            return
        trajectories = min(learner.done, limit - learner.done)
        if trajectories < 1:
            return
        self.epoch += 1
        planner, context = learner.context.planner, learner.context
        _, rows = planner.plan(smoothed(context), planner.problem.nature)
        certificate = self._certify(learner, rows, trajectories)
        if not self.certificates or certificate.bound > self.best_bound:
            self.best_policy = Policy(rows[:, : learner.views.states])
        self.certificates.append(certificate)
        learner.done += trajectories
        self.due = 2 * learner.done

    def _certify(self, learner: Learner, rows: AnyArray, trajectories: int) -> RolloutCertificate:
        """Run the frozen policy and bound its value in the initial state."""
        seen = self._measured
        batch = self._simulator.run(
            Behaviour(rows), self._length, learner.done, trajectories, learner.setup.seed,
            reward=self._reward, discount=seen.discount,
        )  # fmt: skip
        learner.steps += batch.steps
        learner.absorb(batch.counts)
        delta = epoch_delta(self.share, self.epoch)
        if seen.target is not None:
            reached = int(np.count_nonzero(seen.target[batch.final]))
            return certify_successes(reached, trajectories, delta)
        return certify_returns(batch.returns, self._range, delta)

    def restore(self, run: Run, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved run."""
        self.epoch, self.due = (int(x) for x in state["epoch"])
        self.certificates = list(run.rollouts)
        self.best_policy = run.rollout_policy
