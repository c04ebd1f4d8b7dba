"""Estimates by simulation: what a policy is worth on a known model, with an interval.

found = simulate(model, solution.policy, 'Pmaxmin=? [ F "goal" ]', trajectories=10_000, seed=7)
found.estimate, found.lower, found.upper
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.intervals import clopper_pearson
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy
from rfmdp.solving import as_spec
from rfmdp.sources.measure import Measured, measure
from rfmdp.sources.simulator import Batch, Behaviour, Simulator, behaviour_of
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.answers.property import Property

EXACT, APPROXIMATE = "Clopper-Pearson", "normal approximation"


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """An estimate from independent trajectories, and an interval around it."""

    estimate: float  # of the objective, as far as trajectories show it
    lower: float
    upper: float
    confidence: float
    interval: str  # EXACT for probabilities; rewards have an APPROXIMATE one, which proves nothing
    trajectories: int
    length: int  # most steps of a trajectory
    steps: int
    ended: float  # share of trajectories that the objective ended; the others were cut off
    returns: FloatArray  # (trajectories,)
    final: IntArray  # (trajectories,) last states
    seconds: float


def simulate(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    spec: Spec | Property | str,
    *,
    length: int = 100,
    trajectories: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    threads: int | None = None,
) -> Simulation:
    """Return an estimate of the value of a policy, with a confidence interval.

    Parameters
    ----------
    model
        Probabilities are the nominal ones.
    policy
        A policy, a behaviour, or None: every choice with the same probability.
    spec
        What is measured: reaching, or a reward.
    length
        Most steps of a trajectory, unless the objective has a number of steps of its own. What
        would follow is not counted; `ended` says how many trajectories were not cut off.
    confidence
        Of the interval: exact for probabilities, approximate for rewards.
    threads
        Parts to run side by side; the result does not depend on it.

    Raises
    ------
    UnsupportedError
        For objectives that trajectories do not show, and policies of other models.

    Examples
    --------
    >>> from rfmdp.objective import Reach
    >>> from rfmdp.sets.families import Singleton
    >>> coin = FactoredMDP.from_rows(
    ...     [[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])],
    ...     labels={"tails": [False, True]})
    >>> found = simulate(coin, None, Spec(Reach("tails")), length=1, trajectories=1000)
    >>> found.lower < 0.5 < found.upper, found.interval
    (True, 'Clopper-Pearson')
    """
    if length < 1 or trajectories < 1 or not 0.0 < confidence < 1.0:
        raise ModelError(
            "simulate: length and trajectories must be at least 1 and confidence within (0, 1), "
            f"found {length}, {trajectories} and {confidence:g}."
        )
    measured = measure(model, as_spec(spec, model))
    behaviour = behaviour_of(model, policy)
    steps = length if measured.steps is None else measured.steps
    paid = None if measured.target is not None else row_rewards(model, measured.reward)
    started = time.perf_counter()
    batch = Simulator(model, measured.stop).run(
        behaviour, steps, 0, trajectories, seed,
        reward=paid, discount=measured.discount, threads=threads,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    estimate, lower, upper, interval = _interval(batch, measured, 1.0 - confidence)
    ended = 0.0 if measured.stop is None else float(np.mean(measured.stop[batch.final]))
    return Simulation(
        estimate, lower, upper, confidence, interval, trajectories, steps, batch.steps, ended,
        batch.returns, batch.final, seconds,
    )  # fmt: skip


def _interval(batch: Batch, measured: Measured, error: float) -> tuple[float, float, float, str]:
    """Return estimate, ends and the name of the interval."""
    count = len(batch.final)
    if measured.target is not None:
        won = int(np.count_nonzero(measured.target[batch.final]))
        low, high = clopper_pearson(won, count, error)
        return won / count, float(low), float(high), EXACT
    from scipy.special import ndtri

    mean = float(np.mean(batch.returns))
    deviation = float(np.std(batch.returns, ddof=1)) if count > 1 else math.inf
    half = float(ndtri(1.0 - error / 2.0)) * deviation / math.sqrt(count)
    return mean, mean - half, mean + half, APPROXIMATE
