"""The state of a learning run between evaluations, and how it goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.formats.files import save
from rfmdp.learning.budget import Ledger, Shares
from rfmdp.learning.confidence import ConfidenceSet, Validity
from rfmdp.learning.counts import count_transitions
from rfmdp.learning.explore import Context
from rfmdp.learning.identifiers import Granularity, Identifiers
from rfmdp.learning.methods import Method
from rfmdp.learning.planner import Planner
from rfmdp.learning.rewards import MixtureReward
from rfmdp.learning.rollouts import Rollouts
from rfmdp.learning.run import Point, Run
from rfmdp.learning.schedule import Points
from rfmdp.learning.stop import StopWhen
from rfmdp.learning.store import SetStore
from rfmdp.learning.support import DeclaredSupport, Discovery, Support
from rfmdp.learning.tally import Tally
from rfmdp.learning.unknown_rewards import SHARE, RewardFamily, UnknownRewards
from rfmdp.learning.views import Views
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Solution
from rfmdp.solving import evaluate, solve
from rfmdp.sources.recorded import Transitions
from rfmdp.sources.simulator import Behaviour, Simulator
from rfmdp.types import AnyArray, FloatArray, IntArray

Progress = Callable[[Point], None]
PRODUCT = "the marginals of a row are drawn independently of each other"
SHARED = "rows that share an identifier draw from the same distribution"
STRUCTURE = "states, actions and successors of outcomes of the model are as declared"
REWARDS = "rewards of the model are as declared"
TIED = "marginals with equal probabilities in the model are the same unknown distribution"
DECLARED = DeclaredSupport()


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
    limits: Limits
    p_min: float = 0.0
    support: Support = DECLARED
    rewards: RewardFamily | None = None
    data: Transitions | None = None  # what to learn from instead of simulating
    ties: int = 0  # groups of identifiers that were declared to be the same

    @property
    def confidence(self) -> ConfidenceSet | Discovery:
        """The sets of the guarantee."""
        base = self.method.confidence
        if isinstance(self.support, DeclaredSupport):
            return base
        if self.p_min > 0.0:
            raise UnsupportedError("p_min: with an unknown support, use FloorSupport(p_min).")
        return Discovery(base, self.support)  # type: ignore[arg-type]  # checked there

    def shares(self) -> Shares:
        """Return how beta is divided."""
        rollout = self.beta * self.method.rollout
        rest = self.beta - rollout
        reward = SHARE * rest if isinstance(self.rewards, MixtureReward) else 0.0
        return Shares(rest - reward, reward, rollout)


class Learner:
    """The state of a run between evaluations."""

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.setup, method = setup, setup.method
        self.views = Views(ids, setup.spec, setup.support, setup.rewards)
        self.truth, self.spec = self.views.truth
        sets = self.truth.marginals
        self.confidence = setup.confidence
        self.ledger: Ledger = method.budget.ledger(setup.shares(), self.confidence, self.views.ids)
        seen = Tally.empty(self.truth, visits=setup.rewards is not None)
        self.guard = SetStore(
            self.confidence, sets.outcome_ptr, self.ledger.delta, setup.p_min, first=seen.first
        )
        self.simulator = Simulator(self.truth)
        self.context = Context(
            planner=Planner(*self.views.hope),
            sets=method.exploration.sets(sets.outcome_ptr, method.confidence, self.ledger.delta),
            seen=seen, plans=0, length=setup.length, robust=None,
        )  # fmt: skip
        self.behaviour: Behaviour | None = None
        self.limits = np.zeros(len(sets), dtype=np.int64)
        self.due = 0  # trajectories at which a new plan is due
        self.done, self.steps, self.seconds = 0, 0, 0.0
        self.history: list[Point] = []
        self.best: IntArray | None = None  # rows of the policy of the reported guarantee
        self.warm: dict[str, FloatArray] = {}  # values of the last evaluation, by side
        self.evaluated = np.full(len(sets.nominal), -1, dtype=np.int64)
        self.rollouts = Rollouts(self)

    @property
    def anytime(self) -> bool:
        """Whether earlier guarantees stay true together with later ones."""
        return self.confidence.validity is Validity.ANYTIME

    def go(self, progress: Progress | None, file: str | os.PathLike[str] | None) -> Run:
        """Run until it is time to stop."""
        stop = self.setup.stop
        if self.setup.data is not None:
            return self._look_once(self.setup.data, file)
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

    def _look_once(self, data: Transitions, file: str | os.PathLike[str] | None) -> Run:
        """Learn from recorded transitions, all of them at once."""
        started = time.perf_counter()
        count_transitions(self.views.ids, data.rows, data.successors, self.context.seen)
        self.done, self.steps = len(data.lengths), len(data.rows)
        self._evaluate(started)
        run = self.run("all data used")
        if file is not None:
            save(run, file)
        return run

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
                context.planner.pay(self.views.paid(self.ledger, setup.spec.agent is not MAX))
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
            if self.views.rewards is not None:
                self.views.rewards.draw(context.seen.visits, setup.seed, self.done)

    def absorb(self, counts: IntArray) -> None:
        """Count samples of rollouts for the model as well.

        Not with an unknown support: the order of their outcomes was not kept. Whole epochs are
        left out, whatever they brought, so the others remain what they are.
        """
        if isinstance(self.confidence, Discovery):
            return
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
        self.guard.refresh(self.context.seen.counts)
        sets = self.guard.marginals()
        robust = self._solve("guard", *self.views.guarded(sets, self.ledger))
        friend = self._solve("hope", *self.views.hoped(sets, self.ledger)).at_initial()
        self.context.robust = robust.policy.rows
        bounds = robust.at_initial()
        if self.spec.agent is MAX:
            return bounds.lower, friend.upper
        return bounds.upper, friend.lower

    def _solve(self, side: str, model: FactoredMDP, spec: Spec) -> Solution:
        """Solve from the value of the last evaluation; bounds are proven anew."""
        found = solve(
            model, spec, inner=self.setup.method.inner, limits=self.setup.limits,
            warm=self.warm.get(side),
        )  # fmt: skip
        if np.all(np.isfinite(found.value)):
            self.warm[side] = found.value
        return found

    def _performance(self, rows: IntArray) -> float:
        """Return the value of a policy on the truth; nan if that is not known."""
        if self.setup.data is not None:
            return float("nan")
        found = evaluate(self.truth, Policy(rows), self.spec, limits=self.setup.limits)
        return float(found.value[self.truth.initial[0]])

    def settings(self) -> dict[str, str]:
        """Return what determines the course of the run, in words."""
        setup, method = self.setup, self.setup.method
        return {
            "method": method.name,
            "objective": type(setup.spec.objective).__name__,
            "agent": setup.spec.agent.name,
            "confidence": self.confidence.label,
            "support": repr(setup.support),
            "rewards": "known" if setup.rewards is None else repr(setup.rewards),
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
            "source": "simulation" if setup.data is None else "recorded transitions",
            "identifiers": str(len(self.truth.marginals)),
        }

    def assumptions(self) -> tuple[str, ...]:
        """Return everything the guarantee rests on."""
        found = [*self.confidence.assumptions, *self.ledger.assumptions]
        found += [SHARED, PRODUCT, STRUCTURE]
        rewards = self.setup.rewards
        found += [REWARDS] if rewards is None else rewards.assumptions
        if self.setup.data is not None:
            found += self.setup.data.assumptions
        if self.setup.p_min > 0.0:
            found.append(f"p_min: every declared outcome has probability >= {self.setup.p_min:g}")
        if self.setup.method.granularity is Granularity.TIED:
            found.append(TIED)
        if self.setup.ties:
            found.append(
                f"{self.setup.ties} declared ties: tied marginals are the same distribution"
            )
        return tuple(dict.fromkeys(found))

    def run(self, reason: str | None) -> Run:
        """Return the run as it is now."""
        rows = self.best if self.best is not None else self.truth.row_ptr[None, :-1]
        model, _ = self.views.guarded(self.guard.marginals(), self.ledger)
        return Run(
            settings=self.settings(),
            validity=self.confidence.validity.value,
            assumptions=self.assumptions(),
            agent=self.setup.spec.agent,
            ledger=self.ledger,
            history=list(self.history),
            policy=Policy(rows[:, : self.views.states]),
            model=model,
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
        state.update({f"warm/{side}": value for side, value in self.warm.items()})
        for prefix, store in self._stores().items():
            state.update({f"{prefix}/{k}": v for k, v in store.state().items()})
        return state

    def _stores(self) -> dict[str, SetStore | Tally | UnknownRewards]:
        """Return the parts that keep their own state."""
        stores: dict[str, SetStore | Tally | UnknownRewards] = {
            "guard": self.guard, "explore": self.context.sets, "seen": self.context.seen
        }  # fmt: skip
        if self.views.rewards is not None:
            stores["rewards"] = self.views.rewards
        return stores

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
        for prefix, store in self._stores().items():
            cut = len(prefix) + 1
            store.restore({k[cut:]: v for k, v in state.items() if k.startswith(f"{prefix}/")})
        self.warm = {k[5:]: np.array(v) for k, v in state.items() if k.startswith("warm/")}
        self.history = list(run.history)
        self.rollouts.restore(run, state)
