"""The rollout certificate: freeze a policy, run it, bound its value in the initial state.

The policy is fixed before its trajectories are run, so their results are independent draws of one
number, and no union bound over the model is needed. That takes far fewer trajectories than a
guarantee from the model, but holds for the initial state and one objective only. The i-th
certificate of a run spends beta / (i (i+1)) (`budget.epoch_delta`), so all of them hold together.

"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.budget import epoch_delta
from rfmdp.learning.explore import smoothed
from rfmdp.learning.intervals import betting_lower, clopper_pearson_lower
from rfmdp.learning.rewards import RewardRange
from rfmdp.objective import MAX
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.sources.measure import measure
from rfmdp.sources.simulator import Behaviour, DrawnTrajectories, Trajectories
from rfmdp.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.learner import Learner
    from rfmdp.learning.run import Run

FIRST = 200  # trajectories before the first epoch

_FROZEN = "the policy and the number of trajectories were fixed before the trajectories were run"
_RESTART = "trajectories are independent and start in the initial state"


@dataclass(frozen=True, slots=True, eq=False)
class RolloutCertificate:
    """The frozen policy is worth at least `bound` in the initial state, with error `delta`."""

    bound: float
    trajectories: int
    delta: float
    assumptions: tuple[str, ...]
    successes: int | None = None  # trajectories that won
    returns: FloatArray | None = None  # (m,) what they earned, in their order, if that is measured

    def summary(self) -> dict[str, Any]:
        """Return all but the returns, by name, as JSON can write it."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "returns"}


def certify_successes(successes: int, trajectories: int, delta: float) -> RolloutCertificate:
    """Return the lower bound B(delta; s, m-s+1) of a success probability (exact, one-sided).

    Success is decided inside a trajectory (reaching a goal within its length, say), which bounds
    unbounded reachability from below as well.

    Parameters
    ----------
    successes, trajectories : int
        s of m.
    delta : float
        Error probability of this certificate.

    Examples
    --------
    >>> print(f"{certify_successes(95, 100, 1e-4).bound:.4f}")
    0.8181
    """
    _check_trajectories(trajectories)
    bound = float(clopper_pearson_lower(successes, trajectories, delta))
    return RolloutCertificate(bound, trajectories, delta, (_FROZEN, _RESTART), successes)


def certify_returns(returns: FloatArray, span: RewardRange, delta: float) -> RolloutCertificate:
    """Return a lower bound of the expected return, by betting; see `intervals.betting_lower`.

    Parameters
    ----------
    returns : FloatArray
        (m,) in the order of the trajectories, all of them.
    span : RewardRange
        Range of every possible return.
    delta : float
        Error probability of this certificate.
    """
    _check_trajectories(len(returns))
    earned = np.asarray(returns, dtype=np.float64)
    scaled = span.scale(earned)
    bound = float(span.unscale(np.asarray(betting_lower(scaled, delta, horizon=len(scaled)))))
    known = span.assumption.replace("reward", "return")
    return RolloutCertificate(bound, len(scaled), delta, (_FROZEN, _RESTART, known), returns=earned)


def _check_trajectories(trajectories: int) -> None:
    if trajectories < 1:
        raise ModelError(
            f"Rollout certificate: at least one trajectory is needed, found {trajectories}."
        )


class Rollouts:
    """The certificates of a run, each after twice as many trajectories as the one before.

    Half of all trajectories are rollouts; all of them are counted for the model, too. A trajectory
    that is cut off shows a lower bound of what it would reach or earn. So the agent must maximise,
    and rewards must be >= 0 unless the objective ends within a trajectory.
    """

    def __init__(self, learner: Learner) -> None:
        self.share = learner.ledger.shares.rollout
        self.epoch, self.due = 0, FIRST
        self.certificates: list[RolloutCertificate] = []
        self.best_policy: Policy | None = None
        if self.share > 0.0:
            self._prepare(learner)

    def _prepare(self, learner: Learner) -> None:
        """Make ready, or raise UnsupportedError if nothing can be certified."""
        if learner.spec.agent is not MAX:
            raise UnsupportedError(
                "Rollout certificates: the agent must maximise; the cost of a trajectory that is "
                "cut off bounds no expected cost. Learn without them."
            )
        if len(learner.counted.initial) > 1:
            raise UnsupportedError(
                "Rollout certificates: there must be one initial state, found "
                f"{len(learner.counted.initial)}. Learn without them."
            )
        if learner.setup.rewards is not None:
            raise UnsupportedError(
                "Rollout certificates: rewards must be those of the model, known and paid by "
                "state and action. Learn without them."
            )
        model, length = learner.counted, learner.setup.length
        self._measured = seen = measure(model, learner.spec)
        self._length = length if seen.steps is None else min(length, seen.steps)
        if seen.whole:
            raise UnsupportedError(
                "Rollout certificates: trajectories that are cut off, by their source or by "
                f"--length, do not show {type(learner.spec.objective).__name__}. Learn without "
                "them."
            )
        assert learner.episodes is not None  # `learn` refuses records
        self._sampler = learner.episodes.sampler(model, seen.stop)
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

    def run_if_due(self, learner: Learner) -> None:
        """Run an epoch if there is a share for it and it is due."""
        limit = learner.setup.stop.trajectories
        if self.share <= 0.0 or learner.done < self.due:
            return
        trajectories = min(learner.done, limit - learner.done)
        if trajectories < 1:
            return
        self.epoch += 1
        planner = learner.exploration.planner
        _, rows = planner.plan(smoothed(learner.exploration), planner.problem.nature)
        batch = self._rolled_out(learner, rows, trajectories)
        learner.done += len(batch.final)
        learner.steps += batch.steps
        learner.count_rollouts(batch.counts)
        if len(batch.final) < trajectories:
            return  # time is over; a certificate needs all of them
        certificate = self._certify(batch)
        if not self.certificates or certificate.bound > self.best_bound:
            self.best_policy = Policy(rows[:, : learner.learned.states])
        self.certificates.append(certificate)
        self.due = 2 * learner.done

    def _rolled_out(self, learner: Learner, rows: IntArray, trajectories: int) -> DrawnTrajectories:
        """Run the frozen policy, some trajectories at a time, until all are run or time is over."""
        parts: list[DrawnTrajectories] = []
        done = 0
        while done < trajectories and not (parts and learner.over()):
            some = min(trajectories - done, learner.chunk)
            parts.append(
                self._sampler.run(
                    Trajectories(
                        Behaviour(rows), self._length, some, learner.setup.seed, learner.done + done
                    ),
                    reward=self._reward, discount=self._measured.discount,
                )
            )  # fmt: skip
            done += some
            learner.tell("sampling")
        return DrawnTrajectories(
            np.sum([part.counts for part in parts], axis=0),
            np.concatenate([part.returns for part in parts]),
            np.concatenate([part.final for part in parts]),
            sum(part.steps for part in parts),
        )

    def _certify(self, batch: DrawnTrajectories) -> RolloutCertificate:
        """Return what the trajectories of a frozen policy prove about the initial state."""
        delta, target = epoch_delta(self.share, self.epoch), self._measured.target
        if target is not None:
            reached = int(np.count_nonzero(target[batch.final]))
            return certify_successes(reached, len(batch.final), delta)
        return certify_returns(batch.returns, self._range, delta)

    def restore(self, run: Run, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved run."""
        self.epoch, self.due = (int(x) for x in state["epoch"])
        self.certificates = list(run.rollouts)
        self.best_policy = run.rollout_policy
