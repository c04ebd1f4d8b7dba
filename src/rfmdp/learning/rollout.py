"""Rollout certificates of a run: freeze a policy, run it, bound its value in the initial state.

The policy is fixed before its trajectories are run, so their results are independent draws of one
number, and no union bound over the model is needed. That takes far fewer trajectories than a
guarantee from the model, but holds for the initial state and one objective only. The i-th
certificate of a run spends beta / (i (i+1)) (`budget.epoch_delta`), so all of them hold together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.learning.budget import epoch_delta
from rfmdp.learning.explore import smoothed
from rfmdp.learning.intervals import betting_lower, clopper_pearson_lower
from rfmdp.learning.rewards import RewardRange
from rfmdp.learning.run import RolloutCertificate, Run
from rfmdp.learning.sampling import Sampling
from rfmdp.learning.schedule import Watch
from rfmdp.learning.setup import Setup
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.record import Assumption
from rfmdp.sources.simulator import Behaviour, DrawnTrajectories, Trajectories, measure
from rfmdp.types import AnyArray, FloatArray, IntArray

FIRST = 200  # trajectories before the first epoch

_FROZEN = Assumption("frozen")
_RESTART = Assumption("restart")


class Rollouts:
    """The certificates of a run, each after twice as many trajectories as the one before.

    Half of all trajectories are rollouts; all of them are counted for the model, too. A trajectory
    that is cut off shows a lower bound of what it would reach or earn. So the agent must maximise,
    and rewards must be >= 0 unless the objective ends within a trajectory.
    """

    def __init__(self, sampling: Sampling, share: float, watch: Watch) -> None:
        self._sampling, self._watch, self.share = sampling, watch, share
        self.epoch, self.due = 0, FIRST
        self.certificates: list[RolloutCertificate] = []
        self.best_policy: Policy | None = None
        if self.share > 0.0:
            self._prepare(sampling.setup, sampling.learned.model, sampling.learned.spec)

    def _prepare(self, setup: Setup, model: FactoredMDP, spec: Spec) -> None:
        """Make ready, or raise UnsupportedError if nothing can be certified."""
        if spec.agent is not MAX:
            raise UnsupportedError(
                "Rollout certificates: the agent must maximise; the cost of a trajectory that is "
                "cut off bounds no expected cost. Learn without them."
            )
        if len(model.initial) > 1:
            raise UnsupportedError(
                "Rollout certificates: there must be one initial state, found "
                f"{len(model.initial)}. Learn without them."
            )
        if setup.rewards is not None:
            raise UnsupportedError(
                "Rollout certificates: rewards must be those of the model, known and paid by "
                "state and action. Learn without them."
            )
        self._measured = seen = measure(model, spec)
        self._length = setup.length if seen.steps is None else min(setup.length, seen.steps)
        if seen.whole:
            raise UnsupportedError(
                "Rollout certificates: trajectories that are cut off, by their source or by "
                f"`length=`, do not show {type(spec.objective).__name__}. Learn without "
                "them."
            )
        assert setup.episodes is not None  # `learn` refuses records
        evidence = self._sampling.evidence
        self._sampler = setup.episodes.sampler(model, seen.stop, evidence)
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

    def run_if_due(self) -> None:
        """Run an epoch if there is a share for it and it is due."""
        sampling = self._sampling
        if self.share <= 0.0 or sampling.done < self.due:
            return
        trajectories = min(sampling.done, sampling.setup.stop.trajectories - sampling.done)
        if trajectories < 1:
            return
        self.epoch += 1
        planner = sampling.exploration.planner
        _, rows = planner.plan(smoothed(sampling.exploration), planner.problem.nature)
        batch = self._rolled_out(rows, trajectories)
        sampling.done += len(batch.final)
        sampling.steps += batch.steps
        sampling.count_rollouts(batch.counts)
        if len(batch.final) < trajectories:
            return  # time is over; a certificate needs all of them
        certificate = self._certify(batch)
        if not self.certificates or certificate.bound > self.best_bound:
            self.best_policy = Policy(rows)
        self.certificates.append(certificate)
        self.due = 2 * sampling.done

    def _rolled_out(self, rows: IntArray, trajectories: int) -> DrawnTrajectories:
        """Run the frozen policy, some trajectories at a time, until all are run or time is over."""
        sampling = self._sampling
        behaviour = Behaviour(rows)
        batches: list[DrawnTrajectories] = []
        done = 0
        while done < trajectories and not (batches and self._watch.over()):
            some = min(trajectories - done, sampling.chunk)
            first = sampling.done + done
            request = Trajectories(behaviour, self._length, some, sampling.setup.seed, first)
            batches.append(
                self._sampler.run(request, reward=self._reward, discount=self._measured.discount)
            )
            done += some
            self._watch.tell("sampling", sampling.done)
        return DrawnTrajectories(
            np.sum([drawn.counts for drawn in batches], axis=0),
            np.concatenate([drawn.returns for drawn in batches]),
            np.concatenate([drawn.final for drawn in batches]),
            sum(drawn.steps for drawn in batches),
        )

    def _certify(self, batch: DrawnTrajectories) -> RolloutCertificate:
        """Return what the trajectories of a frozen policy prove about the initial state."""
        delta = epoch_delta(self.share, self.epoch)
        target = self._measured.target
        if target is not None:
            reached = int(np.count_nonzero(target[batch.final]))
            return certify_successes(reached, len(batch.final), delta)
        return certify_returns(batch.returns, self._range, delta)

    def restore(self, run: Run, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved run."""
        self.epoch, self.due = (int(x) for x in state["epoch"])
        self.certificates = list(run.rollouts)
        self.best_policy = run.rollout_policy


def certify_successes(successes: int, trajectories: int, delta: float) -> RolloutCertificate:
    """Return the lower bound B(delta; s, m-s+1) of a success probability: s of m, error delta.

    It is exact and one-sided. Success is decided inside a trajectory (reaching a goal within its
    length, say), which bounds unbounded reachability from below as well.

    Examples
    --------
    >>> print(f"{certify_successes(95, 100, 1e-4).bound:.4f}")
    0.8181
    """
    bound = float(clopper_pearson_lower(successes, trajectories, delta))
    return RolloutCertificate(bound, trajectories, delta, (_FROZEN, _RESTART), successes)


def certify_returns(returns: FloatArray, span: RewardRange, delta: float) -> RolloutCertificate:
    """Return a lower bound of the expected return, by betting; see `intervals.betting_lower`.

    `returns` (m,) are those of all trajectories, in their order; every possible one lies in `span`.
    """
    earned = np.asarray(returns, dtype=np.float64)
    scaled = span.scale(earned)
    bound = float(span.unscale(np.asarray(betting_lower(scaled, delta, horizon=len(scaled)))))
    within = Assumption("return-range", low=span.low, high=span.high)
    stated = (_FROZEN, _RESTART, within)
    return RolloutCertificate(bound, len(scaled), delta, stated, returns=earned)
