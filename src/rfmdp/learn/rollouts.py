"""Rollout certificates during learning: freeze the best estimate's policy, run it, bound it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learn.budget import epoch_delta
from rfmdp.learn.explore import smoothed
from rfmdp.learn.rewards import RewardRange
from rfmdp.learn.rollout import RolloutCertificate, certify_returns, certify_successes
from rfmdp.learn.simulate import Behaviour, Simulator
from rfmdp.objective import MAX
from rfmdp.outer.problem import Form
from rfmdp.outer.solution import Policy
from rfmdp.types import AnyArray

if TYPE_CHECKING:
    from rfmdp.learn.learner import Learner
    from rfmdp.learn.run import Run

FIRST = 200  # trajectories before the first epoch


class Rollouts:
    """Certificates at doubling numbers of trajectories; half of all trajectories certify.

    What a trajectory reaches or earns within its length is a lower bound of what it would reach
    or earn for ever, so agents that maximise with rewards >= 0 are served. Every trajectory is
    also counted for the model.
    """

    def __init__(self, learner: Learner) -> None:
        self.share = learner.ledger.shares.rollout
        self.epoch, self.due = 0, FIRST
        self.certificates: list[RolloutCertificate] = []
        self.best_policy: Policy | None = None
        self._simulator: Simulator | None = None
        if self.share > 0.0 and learner.spec.agent is not MAX:
            raise UnsupportedError(
                "Rollout certificates: the agent must maximise; the cost of a trajectory that is "
                "cut off bounds no expected cost. Learn without them."
            )
        if self.share > 0.0 and learner.views.rewards is not None:
            raise UnsupportedError(
                "Rollout certificates: rewards must be known. Learn without them."
            )

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
        problem, length = learner.context.planner.problem, learner.setup.length
        if self._simulator is None:
            self._simulator = Simulator(learner.truth, problem.terminal)
        served = (Form.REACH, Form.TO_TARGET, Form.TOTAL, Form.DISCOUNTED)
        if problem.form not in served or problem.flipped or problem.steps:
            raise UnsupportedError(
                "Rollout certificates: the objective must be reachability or an expected reward "
                "without step bound. Learn without them."
            )
        batch = self._simulator.run(
            Behaviour(rows), length, learner.done, trajectories, learner.setup.seed,
            reward=problem.reward, discount=problem.discount,
        )  # fmt: skip
        learner.steps += batch.steps
        learner.absorb(batch.counts)
        delta = epoch_delta(self.share, self.epoch)
        if problem.form is Form.REACH:
            reached = int(np.count_nonzero(problem.target[batch.final]))
            return certify_successes(reached, trajectories, delta)
        if problem.reward.min(initial=0.0) < 0.0:
            raise UnsupportedError("Rollout certificates: rewards must be at least 0.")
        most = float(problem.reward.max(initial=0.0)) * length
        return certify_returns(batch.returns, RewardRange(0.0, most), delta)

    def restore(self, run: Run, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved run."""
        self.epoch, self.due = (int(x) for x in state["epoch"])
        self.certificates = list(run.rollouts)
        self.best_policy = run.rollout_policy
