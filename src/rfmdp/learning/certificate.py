"""What trajectories of a frozen policy prove about its value in the initial state.

The policy is fixed before its trajectories are run, so their results are independent draws of one
number, and no union bound over the model is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.intervals import betting_lower, clopper_pearson_lower
from rfmdp.learning.rewards import RewardRange
from rfmdp.types import FloatArray

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
