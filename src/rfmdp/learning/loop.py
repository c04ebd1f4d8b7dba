"""The learning loop: sample, plan, evaluate, until the guarantee is good enough.

    run = learn(model, spec, ANYTIME, stop=StopWhen(trajectories=100_000), length=15, seed=7)
    run.guarantee, run.statement(), run.policy, run.model

The model's nominal probabilities are the hidden truth: the loop sees them only through counts of
simulated outcomes (and, to report it, in the performance of a policy). Its structure is known, its
rewards too unless `rewards` says otherwise. Everything random is a function of the seed and the
number of a trajectory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.files import load
from rfmdp.inner.protocol import Inner
from rfmdp.learning.confidence import ConfidenceSet
from rfmdp.learning.explore import Exploration
from rfmdp.learning.identifiers import Granularity, LocalStates, identify
from rfmdp.learning.learner import Learner, Progress, Setup
from rfmdp.learning.methods import ANYTIME, Method
from rfmdp.learning.run import KIND, Run
from rfmdp.learning.schedule import LogSpaced, Points, Schedule
from rfmdp.learning.spending import Budget
from rfmdp.learning.stop import StopWhen
from rfmdp.learning.support import DeclaredSupport, Support
from rfmdp.learning.unknown_rewards import RewardFamily
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.outer.settings import Limits
from rfmdp.sources.recorded import Transitions

if TYPE_CHECKING:
    from rfmdp.answers.property import Property


def learn(
    model: FactoredMDP,
    spec: Spec | Property,
    method: Method = ANYTIME,
    *,
    confidence: ConfidenceSet | None = None,
    budget: Budget | None = None,
    exploration: Exploration | None = None,
    schedule: Schedule | None = None,
    granularity: Granularity | None = None,
    inner: Inner | None = None,
    beta: float = 1e-4,
    stop: StopWhen | None = None,
    points: Points | None = None,
    length: int = 100,
    seed: int = 0,
    local: LocalStates = MappingProxyType({}),
    ties: Sequence[Sequence[int | str]] = (),
    p_min: float | None = None,
    support: Support | None = None,
    rewards: RewardFamily | None = None,
    data: Transitions | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Run:
    """Return what was learned about a hidden model: a policy and a guarantee for it.

    Parameters
    ----------
    model, spec
        The hidden truth (its nominal probabilities) with its known structure, and the goal.
    method
        Which parts to use; see `rfmdp.learn.methods`.
    confidence, budget, exploration, schedule, granularity, inner
        Replacements for single parts of the method.
    beta
        Probability with which some reported guarantee may be wrong.
    stop, points
        When to end, and when to evaluate.
    length, seed
        Steps of a trajectory, and the number that fixes all randomness.
    local, ties
        See `identify`.
    p_min
        Assumption, printed with the result: every declared outcome is at least so probable.
    support
        What is assumed about outcomes that were never seen; by default the declared ones are all.
    rewards
        What is assumed about rewards, if they are to be learned too; by default they are known.
    data
        Recorded transitions to learn from, in one look and without simulation; the model's
        probabilities are then ignored.
    limits
        Precision of the robust values.
    progress
        Called with every evaluation.
    file, resume
        Where to save the run after every evaluation; `resume` continues a saved one.

    Raises
    ------
    ModelError
        If the goal lets nature help the agent: then nothing would be guaranteed.
    AssumptionAlarm
        If the samples contradict an assumption of the guarantee.

    Examples
    --------
    >>> from rfmdp.objective import Reach
    >>> from rfmdp.sets.families import Singleton
    >>> coin = FactoredMDP.from_rows(
    ...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [Singleton([0.5, 0.5])],
    ...     labels={"goal": [False, True, False]})
    >>> run = learn(coin, Spec(Reach("goal")), stop=StopWhen(trajectories=10_000), length=1)
    >>> 0.4 < run.guarantee < 0.5
    True
    """
    parts = {
        "confidence": confidence, "budget": budget, "exploration": exploration,
        "schedule": schedule, "granularity": granularity, "inner": inner,
    }  # fmt: skip
    chosen = replace(method, **{k: v for k, v in parts.items() if v is not None})  # type: ignore[arg-type]
    asked = spec if isinstance(spec, Spec) else spec.spec()
    if not asked.robust:
        raise ModelError(
            "learn: what is unknown must oppose the agent, here it helps, so nothing would be "
            "guaranteed; ask with Pmaxmin, Pminmax, Rmaxmin or Rminmax."
        )
    setup = Setup(
        asked, chosen, beta, stop or StopWhen(), points or LogSpaced(), length, seed,
        limits or Limits(), p_min or 0.0, support or DeclaredSupport(), rewards, data, len(ties),
    )  # fmt: skip
    if length < 1:
        raise ModelError(f"learn: the length of a trajectory must be at least 1, found {length}.")
    if data is not None:
        data.check(model)
        if resume or rewards is not None or chosen.rollout > 0.0:
            raise UnsupportedError(
                "learn: recorded transitions are read once; they have no rewards and no rollouts. "
                "Learn without `resume`, `rewards` and rollout certificates."
            )
    ids = identify(model, chosen.granularity, local=local, ties=ties)
    learner = Learner(setup, ids)
    if resume and file is not None and Path(file).exists():
        learner.restore(load(file, KIND))
    return learner.go(progress, file)
