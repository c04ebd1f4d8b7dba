"""Estimates by simulation: what a policy is worth on a known model, with an interval."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp import objective as goals
from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.confidence import clopper_pearson
from rfmdp.learning.run import Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import unroll
from rfmdp.objective import MAX, Spec
from rfmdp.outer.graph import Graph
from rfmdp.outer.problem import row_rewards, unfolded, where
from rfmdp.outer.solution import Policy, Solution
from rfmdp.policies.induced import NatureChoice, resolved, unrolled_spec
from rfmdp.ragged import segment_lengths
from rfmdp.solving import as_spec
from rfmdp.sources.trajectories import (
    Behaviour,
    DrawnTrajectories,
    Simulator,
    Trajectories,
    behaviour_of,
    record,
)
from rfmdp.temporal.product import make_product, with_memory
from rfmdp.types import BoolArray, FloatArray, IntArray

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
    ended: float  # share of trajectories that the objective ended
    lost: float  # share of those that can no longer come to its target; the others were cut off
    returns: FloatArray  # (trajectories,)
    final: IntArray  # (trajectories,) last states
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A model, possibly unrolled in time, with what to do in it and what to look at."""

    model: FactoredMDP
    behaviour: Behaviour
    behind: FactoredMDP  # the model that `model` was made from
    states: IntArray  # (S',) the state of `behind` that every state stands for
    rows: IntArray  # (R',) the row of `behind` that every row stands for
    stop: BoolArray | None  # (S',) where a trajectory ends
    target: BoolArray | None  # (S',) last states that are a success; None: a reward is measured
    reward: str | None = None
    discount: float = 1.0
    steps: int | None = None  # of the objective itself
    last: FloatArray | None = None  # (S',) what the last state pays; nothing else is paid then

    def simulate(
        self, length: int, trajectories: int, seed: int, *, confidence: float = 0.95
    ) -> Simulation:
        """Return an estimate of what is looked at; see `simulate`."""
        world, behaviour, stop, goal = self.model, self.behaviour, self.stop, self.target
        steps = length if self.steps is None else self.steps
        paid = row_rewards(world, self.reward) if goal is None and self.last is None else None
        simulator = Simulator(world, stop)
        # kernels are loaded before the clock runs
        simulator.run(Trajectories(behaviour, min(steps, 1), 1, seed))
        started = time.perf_counter()
        batch = simulator.run(
            Trajectories(behaviour, steps, trajectories, seed),
            reward=paid, discount=self.discount,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        if self.last is not None:
            batch.returns = self.last[batch.final]
        error, final = 1.0 - confidence, batch.final
        if goal is not None:
            won, interval = int(np.count_nonzero(goal[final])), EXACT
            estimate = won / trajectories
            lower, upper = map(float, clopper_pearson(won, trajectories, error))
        else:
            from scipy.special import ndtri

            estimate, interval = float(np.mean(batch.returns)), APPROXIMATE
            deviation = float(np.std(batch.returns, ddof=1)) if trajectories > 1 else math.inf
            half = float(ndtri(1.0 - error / 2.0)) * deviation / math.sqrt(trajectories)
            lower, upper = estimate - half, estimate + half
        ended, lost = float(self.steps is not None), 0.0
        if self.steps is None and stop is not None:
            ended, still = float(np.mean(stop[final])), final[~stop[final]]
            if still.size:  # only then the graph is worth its time
                goal = stop if goal is None else goal
                reached = _graph(world, behaviour).positive(goal, agent=MAX, nature=MAX)
                lost = int(np.count_nonzero(~reached[still])) / final.size
        return Simulation(
            estimate, lower, upper, confidence, interval, trajectories, steps, batch.steps,
            ended, lost, batch.returns, self.states[final], seconds,
        )  # fmt: skip

    def record(self, length: int, trajectories: int, seed: int) -> DrawnTrajectories:
        """Return all transitions of a simulation, as transitions of `behind`."""
        transitions = record(self.model, self.behaviour, length, trajectories, seed, stop=self.stop)
        return replace(
            transitions,
            rows=self.rows[transitions.rows].astype(np.int32),
            successors=self.states[transitions.successors].astype(np.int32),
        )


def simulate(
    model: FactoredMDP,
    policy: Policy | Behaviour | Solution | Run | None,
    spec: Spec | Property | str,
    *,
    length: int = 100,
    trajectories: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Simulation:
    """Return an estimate of the value of a policy, with a confidence interval.

    Parameters
    ----------
    model : Probabilities are the nominal ones.
    policy : A policy, a behaviour, a solution or a learning run with its policy, or None: every
        choice with the same probability.
    spec : What is measured: any probability or reward.
    length : Most steps of a trajectory, unless the objective has a number of steps of its own. What
        would follow is not counted; `ended` and `lost` say how many trajectories were not cut off.
    confidence : Of the interval: exact for probabilities, approximate for rewards.

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
    if not isinstance(model, FactoredMDP):
        raise UnsupportedError(
            f"simulate: must be given a model, found a {type(model).__name__}; of an environment "
            "`gym_model(env)` is one, if it shows its transitions; `learn(GymSource(env, model))` "
            "samples others."
        )
    if length < 1 or trajectories < 1 or not 0.0 < confidence < 1.0:
        raise ModelError(
            "simulate: length and trajectories must be at least 1 and confidence within (0, 1), "
            f"found {length}, {trajectories} and {confidence:g}."
        )
    if isinstance(policy, Solution | Run):
        policy = policy.policy
    spec = as_spec(spec, model, settled=True)
    if isinstance(spec.objective, goals.Temporal | goals.TemporalReward):
        product = make_product(model, spec.objective, model.label("init"))
        policy = with_memory(policy, product) if isinstance(policy, Policy) else policy
        model, spec = product.model, replace(spec, objective=product.objective(spec.objective))
    scene = scene_of(model, policy, spec)
    return scene.simulate(length, trajectories, seed, confidence=confidence)


def scene_of(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    spec: Spec,
    nature: NatureChoice = NatureChoice.NOMINAL,
) -> Scene:
    """Return what is run to estimate a specification; another nature needs a policy.

    If something counts only from some step on, the model is unrolled in time. What a policy
    remembers of a budget becomes part of the state. To stay in a set for ever is measured as
    reaching states from which it cannot be left any more: under a fixed policy every trajectory
    leaves the set or comes to such a state, sooner or later.
    """
    if isinstance(spec.objective, goals.BudgetUntil) and isinstance(policy, Policy):
        model, policy, spec = unfolded(model, policy, spec)
    behaviour, objective = behaviour_of(model, policy), spec.objective
    if nature is not NatureChoice.NOMINAL:
        assert isinstance(policy, Policy)
        unrolled, spec = resolved(model, policy, spec, nature)
    elif isinstance(objective, goals.Until | goals.Globally) and objective.earliest > 0:
        if behaviour.other > 0.0:
            raise UnsupportedError(
                "simulate: a property with a first step (F>=k, U[a,b], G[a,b]) needs a policy or "
                "None, found a behaviour that takes other actions by chance."
            )
        unrolled = unroll(model, behaviour.rows, objective.latest, objective.earliest)
        spec = unrolled_spec(model, spec, unrolled)
    else:
        states, rows = np.arange(model.states), np.arange(model.rows)
        return _looking(spec, model, behaviour, model, states, rows)
    world = unrolled.model
    behaviour = Behaviour.uniform(world)  # rows that the policy does not take are not there
    return _looking(spec, world, behaviour, model, unrolled.states, unrolled.rows)


def _looking(spec: Spec, model: FactoredMDP, behaviour: Behaviour, *behind: Any) -> Scene:
    """Return a scene with what to look at, where only rows of its behaviour are taken."""
    make: Callable[..., Scene] = partial(Scene, model, behaviour, *behind)
    match objective := spec.objective:
        case goals.Reach():
            target = where(model, objective.target)
            return make(target, target)
        case goals.Until(earliest=0):
            target = where(model, objective.target)
            return make(target | ~where(model, objective.stay), target, steps=objective.latest)
        case goals.Globally(earliest=0, latest=int()):
            stay = where(model, objective.stay)
            return make(~stay, stay, steps=objective.latest)
        case goals.Globally(latest=None):
            stay = where(model, objective.stay)
            kept = ~_graph(model, behaviour).positive(~stay, agent=MAX, nature=MAX)
            return make(kept | ~stay, kept)
        case goals.Next():
            return make(None, where(model, objective.target), steps=1)
        case goals.ReachReward():
            return make(where(model, objective.target), None, objective.reward)
        case goals.Cumulative():
            return make(None, None, objective.reward, objective.discount, objective.steps)
        case goals.Instantaneous():
            paid = np.array(model.reward(objective.reward).state, dtype=np.float64)
            return make(None, None, steps=objective.step, last=paid)
        case goals.Discounted():
            return make(None, None, objective.reward, objective.discount)
        case goals.Total():
            paid = row_rewards(model, objective.reward) != 0.0
            nowhere = np.zeros(model.states, dtype=np.bool_)
            pays = _graph(model, behaviour).positive(nowhere, agent=MAX, nature=MAX, rows=paid)
            return make(~pays, None, objective.reward)
    raise UnsupportedError(
        "A simulation must measure what finite trajectories show: no mean in the long run, no "
        "general path formula (G F a), no budget without a policy; got "
        f"{spec}. `evaluate` has proven bounds of a policy."
    )


def _graph(model: FactoredMDP, behaviour: Behaviour) -> Graph:
    """Return the graph of the moves that a behaviour makes with nominal probabilities."""
    rows = np.zeros(model.rows, dtype=np.bool_)
    rows[behaviour.rows[behaviour.rows >= 0]] = True
    free = np.any(behaviour.rows < 0, axis=0) | (behaviour.other > 0.0)
    return Graph(model.nominal()).with_rows(rows | np.repeat(free, segment_lengths(model.row_ptr)))
