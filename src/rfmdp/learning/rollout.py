"""The rollout certificate: freeze a policy, run it, bound its value in the initial state.

The policy is fixed before the trajectories, so their results are independent draws and need no
union bound over the model: far fewer trajectories than a model guarantee, but for the initial
state and one objective only. A single certificate may spend all of its share as `delta`; of a
series the i-th spends beta/(i (i+1)) (`budget.epoch_delta`), and all of them hold together.

For horizons longer than a trajectory, score G = sum_{t<L} gamma^t r_t + gamma^L V(s_L) with a
lower value V computed *before* the rollouts; on the event that V is a lower value, E G is at most
the value of the policy that continues as V's does. The certificate then costs the model share too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.intervals import clopper_pearson_lower
from rfmdp.learning.rewards import RewardRange, betting_lower
from rfmdp.types import FloatArray

_FROZEN = "the policy and the number of trajectories were fixed before the trajectories were run"
_RESTART = "trajectories are independent and start in the initial state"


@dataclass(frozen=True, slots=True)
class RolloutCertificate:
    """`bound` is proven for the frozen policy in the initial state, with error `delta`."""

    bound: float
    side: str  # "lower" or "upper"
    trajectories: int
    delta: float
    assumptions: tuple[str, ...]


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
    return RolloutCertificate(bound, "lower", trajectories, delta, (_FROZEN, _RESTART))


def certify_returns(returns: FloatArray, span: RewardRange, delta: float) -> RolloutCertificate:
    """Return a lower bound of the expected return, by betting; see `rewards.betting_lower`.

    Parameters
    ----------
    returns : FloatArray
        (m,) in the order of the trajectories, all of them.
    span : RewardRange
        Range of every possible return.
    delta : float
        Error probability of this certificate.
    """
    return _certify(returns, span, delta, "lower")


def certify_costs(costs: FloatArray, span: RewardRange, delta: float) -> RolloutCertificate:
    """Return an upper bound of the expected cost: `certify_returns` of the negated costs."""
    return _certify(-np.asarray(costs), span.mirrored(), delta, "upper")


def _certify(returns: FloatArray, span: RewardRange, delta: float, side: str) -> RolloutCertificate:
    """Betting bound of the mean, negated back for costs."""
    _check_trajectories(len(returns))
    scaled = span.scale(np.asarray(returns, dtype=np.float64))
    lower = float(span.unscale(np.asarray(betting_lower(scaled, delta, horizon=len(scaled)))))
    known = span if side == "lower" else span.mirrored()
    assumptions = (_FROZEN, _RESTART, known.assumption.replace("reward", "return"))
    bound = lower if side == "lower" else -lower
    return RolloutCertificate(bound, side, len(scaled), delta, assumptions)


def _check_trajectories(trajectories: int) -> None:
    if trajectories < 1:
        raise ModelError(
            f"Rollout certificate: at least one trajectory is needed, found {trajectories}."
        )
