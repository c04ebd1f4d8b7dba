"""The learning loop: sample, plan, evaluate, until the guarantee is good enough.

    run = learn(model, spec, ANYTIME, stop=StopWhen(trajectories=100_000), length=15, seed=7)
    run.guarantee, run.statement(), run.policy, run.model

The model's nominal probabilities are the hidden truth: the loop sees them only through counts of
simulated outcomes (and, to report it, in the performance of a policy). Its structure and rewards
are known. Everything random is a function of the seed and the number of a trajectory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.files import load, save
from rfmdp.inner.protocol import Inner
from rfmdp.learn.budget import Ledger, Shares
from rfmdp.learn.confidence import ConfidenceSet, Validity
from rfmdp.learn.explore import Context, Exploration
from rfmdp.learn.identifiers import Granularity, Identifiers, LocalStates, identify
from rfmdp.learn.methods import ANYTIME, Method
from rfmdp.learn.planner import Planner
from rfmdp.learn.rollouts import Rollouts
from rfmdp.learn.run import KIND, Point, Run
from rfmdp.learn.schedule import LogSpaced, Points, Schedule
from rfmdp.learn.simulate import Behaviour, Simulator
from rfmdp.learn.spending import Budget
from rfmdp.learn.stop import StopWhen
from rfmdp.learn.store import SetStore
from rfmdp.learn.tally import Tally
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Solution
from rfmdp.solve import evaluate, solve
from rfmdp.types import AnyArray, IntArray

Progress = Callable[[Point], None]
PRODUCT = "the marginals of a row are drawn independently of each other"
SHARED = "rows that share an identifier draw from the same distribution"
STRUCTURE = "states, actions, successors of outcomes and rewards of the model are as declared"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run is about, apart from its method."""

    spec: Spec
    method: Method
    beta: float
    stop: StopWhen
    points: Points
    length: int
    seed: int
    outer: Limits
    p_min: float = 0.0


def learn(
    model: FactoredMDP,
    spec: Spec,
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
    outer: Limits | None = None,
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
    outer
        Precision of the robust values.
    progress
        Called with every evaluation.
    file, resume
        Where to save the run after every evaluation; `resume` continues a saved one.

    Raises
    ------
    AssumptionAlarm
        If the samples contradict an assumption of the guarantee.

    Examples
    --------
    >>> from rfmdp.objective import Reach
    >>> from rfmdp.uncertainty.sets import Singleton
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
    setup = Setup(
        spec, chosen, beta, stop or StopWhen(), points or LogSpaced(), length, seed,
        outer or Limits(), p_min or 0.0,
    )  # fmt: skip
    if length < 1:
        raise ModelError(f"learn: the length of a trajectory must be at least 1, found {length}.")
    ids = identify(model, chosen.granularity, local=local, ties=ties)
    learner = Learner(setup, ids, declared_ties=len(ties))
    if resume and file is not None and Path(file).exists():
        learner.restore(load(file, KIND))
    return learner.go(progress, file)


class Learner:
    """The state of a run between evaluations."""

    def __init__(self, setup: Setup, ids: Identifiers, declared_ties: int = 0) -> None:
        self.setup, self.ids, self.truth = setup, ids, ids.model
        method, sets = setup.method, ids.model.marginals
        self.ledger: Ledger = method.budget.ledger(
            Shares(setup.beta * (1.0 - method.rollout), rollout=setup.beta * method.rollout),
            method.confidence, ids,
        )  # fmt: skip
        self.guard = SetStore(method.confidence, sets.outcome_ptr, self.ledger.delta, setup.p_min)
        self.simulator = Simulator(self.truth)
        self.context = Context(
            planner=Planner(self.truth, setup.spec),
            sets=method.exploration.sets(sets.outcome_ptr, method.confidence, self.ledger.delta),
            seen=Tally.empty(self.truth),
            plans=0, length=setup.length, robust=None,
        )  # fmt: skip
        self.behaviour: Behaviour | None = None
        self.limits = np.zeros(len(sets), dtype=np.int64)
        self.due = 0  # trajectories at which a new plan is due
        self.done, self.steps, self.seconds = 0, 0, 0.0
        self.history: list[Point] = []
        self.best: IntArray | None = None  # rows of the policy of the reported guarantee
        self.last: Solution | None = None
        self.evaluated = np.full(len(sets.nominal), -1, dtype=np.int64)
        self.rollouts = Rollouts(setup.spec, self.ledger.shares.rollout)
        self.ties = declared_ties

    @property
    def anytime(self) -> bool:
        """Whether earlier guarantees stay true together with later ones."""
        return self.setup.method.confidence.validity is Validity.ANYTIME

    def go(self, progress: Progress | None, file: str | os.PathLike[str] | None) -> Run:
        """Run until it is time to stop."""
        stop = self.setup.stop
        reason = self._reason() if self.history else None
        while reason is None:
            started = time.perf_counter()
            goal = min(self.setup.points.next(self.done), stop.trajectories)
            self._sample(goal)
            self.rollouts.maybe(self)
            self._evaluate(started)
            reason = self._reason()
            if progress is not None:
                progress(self.history[-1])
            if file is not None:
                save(self.run(reason), file)
        return self.run(reason)

    def _reason(self) -> str | None:
        point, stop = self.history[-1], self.setup.stop
        return stop.reason(
            self.setup.spec.agent, self.done, self.steps, point.guarantee, point.optimistic,
            self.seconds,
        )  # fmt: skip

    def _sample(self, goal: int) -> None:
        """Run trajectories up to number `goal`, planning anew when it is due."""
        setup, context = self.setup, self.context
        schedule = setup.method.schedule
        while self.done < goal:
            if self.behaviour is None or self.done >= self.due or self._doubled():
                self.behaviour = setup.method.exploration.plan(context)
                context.plans += 1
                self.limits = schedule.limits(context.seen.totals)
                self.due = schedule.next(self.done)
            done, steps = self.simulator.run_until(
                self.behaviour, setup.length, self.done, min(goal, self.due) - self.done,
                setup.seed, self.limits, context.seen,
            )  # fmt: skip
            self.done += done
            self.steps += steps

    def absorb(self, counts: IntArray) -> None:
        """Count samples of rollouts for the model as well."""
        seen = self.context.seen
        seen.counts[:] += counts
        if len(seen.totals):
            seen.totals[:] += np.add.reduceat(counts, self.guard.ptr[:-1])

    def _doubled(self) -> bool:
        return bool(np.any(self.context.seen.totals >= self.limits))

    def _evaluate(self, started: float) -> None:
        """Solve the learned model robustly and optimistically; append a point."""
        setup, context = self.setup, self.context
        previous = self.history[-1] if self.history else None
        if previous is not None and np.array_equal(self.evaluated, context.seen.counts):
            fresh, optimistic = previous.fresh, previous.optimistic
        else:
            fresh, optimistic = self._bounds()
            self.evaluated = context.seen.counts.copy()
        guarantee = fresh
        improved = True
        if previous is not None and self.anytime:
            sign = setup.spec.agent.sign
            improved = self.best is None or sign * fresh > sign * previous.guarantee
            guarantee = fresh if improved else previous.guarantee
            optimistic = (min if sign > 0 else max)(optimistic, previous.optimistic)
        performance = previous.performance if previous is not None else float("nan")
        if improved and context.robust is not None:
            self.best = context.robust
            performance = self._performance(self.best)
        self.seconds += time.perf_counter() - started
        point = Point(
            self.done, self.steps, guarantee, fresh, performance, optimistic,
            self.rollouts.best_bound, context.plans, int(np.count_nonzero(context.seen.totals)),
            self.seconds,
        )  # fmt: skip
        self.history.append(point)

    def _bounds(self) -> tuple[float, float]:
        """Return (guarantee, optimistic bound) of the sets as they are now."""
        setup, spec = self.setup, self.setup.spec
        self.guard.refresh(self.context.seen.counts)
        learned = self.truth.with_marginals(self.guard.marginals())
        inner, outer = setup.method.inner, setup.outer
        self.last = solve(learned, spec, inner=inner, outer=outer)
        self.context.robust = self.last.policy.rows
        friendly = solve(learned, replace(spec, nature=spec.agent), inner=inner, outer=outer)
        bounds, friend = self.last.at_initial(), friendly.at_initial()
        if spec.agent is MAX:
            return bounds.lower, friend.upper
        return bounds.upper, friend.lower

    def _performance(self, rows: IntArray) -> float:
        """Return the value of a policy on the truth."""
        found = evaluate(self.truth, Policy(rows), self.setup.spec, outer=self.setup.outer)
        return float(found.value[self.truth.initial[0]])

    def settings(self) -> dict[str, str]:
        """Return what determines the course of the run, in words."""
        setup, method = self.setup, self.setup.method
        return {
            "method": method.name,
            "objective": type(setup.spec.objective).__name__,
            "agent": setup.spec.agent.name,
            "confidence": method.confidence.label,
            "budget": self.ledger.scheme,
            "exploration": repr(method.exploration),
            "schedule": repr(method.schedule),
            "granularity": method.granularity.value,
            "inner": method.inner.name,
            "beta": repr(setup.beta),
            "points": repr(setup.points),
            "length": str(setup.length),
            "seed": str(setup.seed),
            "p_min": repr(setup.p_min),
            "identifiers": str(len(self.truth.marginals)),
        }

    def assumptions(self) -> tuple[str, ...]:
        """Return everything the guarantee rests on."""
        found = [*self.setup.method.confidence.assumptions, *self.ledger.assumptions]
        found += [SHARED, PRODUCT, STRUCTURE]
        if self.setup.p_min > 0.0:
            found.append(f"p_min: every declared outcome has probability >= {self.setup.p_min:g}")
        if self.ties:
            found.append(f"{self.ties} declared ties: tied marginals are the same distribution")
        return tuple(dict.fromkeys(found))

    def run(self, reason: str | None) -> Run:
        """Return the run as it is now."""
        rows = self.best if self.best is not None else self.truth.row_ptr[None, :-1]
        return Run(
            settings=self.settings(),
            validity=self.setup.method.confidence.validity.value,
            assumptions=self.assumptions(),
            agent=self.setup.spec.agent,
            ledger=self.ledger,
            history=list(self.history),
            policy=Policy(rows),
            model=self.truth.with_marginals(self.guard.marginals()),
            counts=self.context.seen.counts.copy(),
            stopped=reason or "running",
            rollouts=list(self.rollouts.certificates),
            rollout_policy=self.rollouts.best_policy,
            state=self._state(),
        )

    def _state(self) -> dict[str, AnyArray]:
        """Return all that decides how the run goes on."""
        context = self.context
        state: dict[str, AnyArray] = {
            "limits": self.limits, "evaluated": self.evaluated,
            "numbers": np.array([context.plans, self.due, self.done, self.steps]),
            "seconds": np.array([self.seconds]), "choice": context.planner.choice.copy(),
            "epoch": np.array([self.rollouts.epoch, self.rollouts.due]),
        }  # fmt: skip
        optional = {"robust": context.robust, "best": self.best, "value": context.value}
        if self.behaviour is not None:
            optional["rows"] = self.behaviour.rows
            state["other"] = np.array([self.behaviour.other])
        state.update({k: v for k, v in optional.items() if v is not None})
        parts = (("guard", self.guard), ("explore", context.sets), ("seen", context.seen))
        for prefix, store in parts:
            state.update({f"{prefix}/{k}": v for k, v in store.state().items()})
        return state

    def restore(self, run: Run) -> None:
        """Go on where a saved run was, with the same random sequence."""
        asked = self.settings()
        other = [k for k, v in run.settings.items() if asked.get(k) != v]
        if other:
            raise ModelError(
                "Resume: the run must be asked for with its own settings; these differ: "
                + ", ".join(f"{k} ({run.settings[k]}, now {asked.get(k)})" for k in other)
            )
        state, context = run.state, self.context
        context.planner.choice[:] = state["choice"]
        context.robust, self.best = state.get("robust"), state.get("best")
        context.value = state.get("value")
        context.plans, self.due, self.done, self.steps = (int(x) for x in state["numbers"])
        self.limits, self.evaluated = state["limits"], state["evaluated"]
        self.seconds = float(state["seconds"][0])
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
        parts = (("guard/", self.guard), ("explore/", context.sets), ("seen/", context.seen))
        for prefix, store in parts:
            cut = len(prefix)
            store.restore({k[cut:]: v for k, v in state.items() if k.startswith(prefix)})
        self.history = list(run.history)
        self.rollouts.restore(run, state)
