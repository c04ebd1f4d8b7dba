"""The state of a learning run, and its loop: sample, look at the counts, evaluate."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import numpy as np

from rfmdp.formats.files import save
from rfmdp.learning.budget import Ledger
from rfmdp.learning.confidence import Validity
from rfmdp.learning.evaluation import Evaluator, at_initial, trivial
from rfmdp.learning.explore import ExplorationState
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.learned_model import LearnedModel
from rfmdp.learning.planner import Planner
from rfmdp.learning.rewards import UnknownRewards
from rfmdp.learning.rollout import Rollouts
from rfmdp.learning.run import Point, Progress, Run
from rfmdp.learning.schedule import NEVER
from rfmdp.learning.setup import Setup, assumptions_of, require_same, settings_of
from rfmdp.learning.store import AssumptionAlarm, SetStore
from rfmdp.learning.support import Discovery
from rfmdp.learning.transition_rewards import TransitionReward, TransitionRewards
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN
from rfmdp.outer.problem import row_rewards
from rfmdp.outer.solution import Policy, Solution
from rfmdp.ragged import segment_sum
from rfmdp.sources.simulator import Behaviour, Trajectories
from rfmdp.sources.source import Episodes, Records
from rfmdp.sources.tally import Tally
from rfmdp.types import AnyArray, IntArray

CHUNK = 2_000_000  # steps between two looks at the clock
OFTEN = 0.5  # seconds between two reports of progress


class Learner:
    """The state of a run between evaluations.

    Parameters
    ----------
    setup
        What was asked for.
    ids
        The identifiers of the source's structure.
    progress
        Called about once a second, and with every evaluation.
    started
        When `learn` was called, by `time.monotonic()`.
    """

    def __init__(
        self,
        setup: Setup,
        ids: Identifiers,
        progress: Callable[[Progress], None] | None,
        started: float,
    ) -> None:
        self.setup, method = setup, setup.method
        self.records, self.episodes = setup.records, setup.episodes
        self._started = self._told = started  # by time.monotonic()
        self._processor = time.process_time()
        self.deadline = self._started + setup.stop.seconds
        self._progress, self._ids = progress, ids
        self.learned = LearnedModel(setup, ids)
        self.counted, self.spec = self.learned.worst
        payments = self.learned.payments
        self._unknown = payments if isinstance(payments, UnknownRewards) else None
        self.truth = None if self.episodes is None else self._truth(self.episodes)
        self.confidence = setup.confidence
        self.ledger: Ledger = method.budget.ledger(
            setup.shares(), self.confidence, self.learned.ids
        )
        pointers = self.counted.marginals.outcome_ptr
        seen = Tally.empty(self.counted, visits=self._unknown is not None)
        self.sets = SetStore(
            self.confidence, pointers, self.ledger.delta, setup.floors(ids), first=seen.first,
            prior=self.learned.ids.prior,
        )  # fmt: skip
        self.exploration = ExplorationState(
            planner=Planner(*self.learned.best),
            sets=method.exploration.sets(pointers, method.confidence, self.ledger.delta),
            seen=seen, plans=0, length=setup.length, robust=None,
        )  # fmt: skip
        self.exploration.planner.deadline = self.deadline
        self.chunk = max(1, CHUNK // setup.length)
        self.behaviour: Behaviour | None = None
        self.limits = np.zeros(len(pointers) - 1, dtype=np.int64)
        self.due = self.earliest = 0  # trajectories at which a new plan is due, and may be made
        self.done, self.steps = 0, 0
        self.seconds = self.processor = 0.0  # at the last evaluation
        self.history: list[Point] = []
        self.solution: Solution | None = None  # behind the guarantee that is reported
        self.best: IntArray | None = None  # rows of its policy
        self.looks: list[IntArray] = []  # counts at all evaluations
        self.proven_at = 0  # looks behind `solution`
        self.evidence: dict[str, AnyArray] = {}  # what else it was derived from
        self.alarms: list[str] = []
        self.evaluator = Evaluator(self)
        self.rollouts = Rollouts(self)
        self._sampler = None if self.episodes is None else self.episodes.sampler(self.counted)
        self._payer = None
        if self._unknown is not None:
            self._payer = setup.source.payer(self._unknown.name, self._unknown.ends)
        known, reward = setup.source.structure.model, setup.rewards
        if isinstance(reward, TransitionReward):
            setup.source.expect(lambda rows, successors: reward.of(known, rows, successors))
        elif (
            self.records is not None and reward is None and hasattr(setup.spec.objective, "reward")
        ):
            paid = row_rewards(known, setup.spec.objective.reward)
            setup.source.expect(lambda rows, successors: paid[rows])

    def _truth(self, episodes: Episodes) -> FactoredMDP | None:
        """Return the truth for reports, with what its rows pay on average."""
        truth, payments = episodes.truth(self.counted), self.learned.payments
        if truth is None or not isinstance(payments, TransitionRewards):
            return truth
        paid = payments.bounds(truth.marginals, low=True)
        return payments.apply(truth, paid, low=True)

    @property
    def anytime(self) -> bool:
        """Whether all guarantees of the run hold together, so that the best one may be kept."""
        return self.confidence.validity is Validity.ANYTIME

    def over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() > self.deadline

    def tell(self, phase: str, point: Point | None = None) -> None:
        """Report progress, now and then and after every evaluation."""
        now = time.monotonic()
        if self._progress is not None and (point is not None or now - self._told >= OFTEN):
            self._told = now
            self._progress(Progress(phase, self.done, now - self._started, point))

    def go(self, file: str | os.PathLike[str] | None) -> Run:
        """Run until it is time to stop; save at the start and after every evaluation."""
        before = (self.seconds, self.processor)
        if file is not None and not self.history and self.records is None:
            save(self.result(None), file)
        reason = self._reason() if self.history else None
        while reason is None:
            if self.records is not None:
                self._count(self.records)
            else:
                self._sample(min(self.setup.points.next(self.done), self.setup.stop.trajectories))
                self.rollouts.run_if_due(self)
            self._evaluate(before)
            reason = self._reason()
            self.tell("evaluated", self.history[-1])
            if file is not None:
                save(self.result(reason), file)
        return self.result(reason)

    def _count(self, records: Records) -> None:
        """Count all recorded transitions at once."""
        ordered = isinstance(self.confidence, Discovery)
        counted, seen = records.counts(self.counted, ordered=ordered), self.exploration.seen
        for new, old in zip(counted.arrays, seen.arrays, strict=True):
            old[:] = new[: len(old)]
        self.done, self.steps = records.trajectories, records.steps
        self._take_rewards()
        self.alarms += [str(check) for check in records.check(self.counted) if check.alarm]

    def _reason(self) -> str | None:
        """Return why to stop now, or None."""
        point, stop = self.history[-1], self.setup.stop
        if self.alarms:
            return "alarm"
        if self.records is not None:
            return "all data used"
        spent = time.monotonic() - self._started
        return stop.reason(
            self.setup.spec.agent, self.done, self.steps, point.guarantee, point.optimistic, spent
        )

    def _sample(self, goal: int) -> None:
        """Run trajectories up to number `goal`, planning anew when it is due."""
        setup, exploring = self.setup, self.exploration
        assert self._sampler is not None
        while self.done < goal and not (self.done and self.over()):
            doubled = bool(np.any(exploring.seen.totals >= self.limits))
            if self.done >= self.due or (self.done >= self.earliest and doubled):
                self._plan()
            limits, stop = self.limits, min(goal, self.due)
            if self.done < self.earliest:  # no new plan yet, whatever doubles
                limits, stop = np.full_like(limits, NEVER), min(stop, self.earliest)
            assert self.behaviour is not None
            done, steps = self._sampler.run_until(
                Trajectories(
                    self.behaviour, setup.length, min(stop - self.done, self.chunk), setup.seed,
                    self.done,
                ),
                limits,
                exploring.seen,
            )  # fmt: skip
            self.done += done
            self.steps += steps
            self._take_rewards()
            self.tell("sampling")

    def _take_rewards(self) -> None:
        """Take note of what new visits paid, if rewards are learned."""
        if self._unknown is not None and self._payer is not None:
            visits = self.exploration.seen.visits
            self._unknown.take(visits, self._payer, self.setup.seed, self.done)

    def _plan(self) -> None:
        """Plan anew what to sample."""
        setup, exploring = self.setup, self.exploration
        self.tell("planning")
        low = setup.spec.agent is not MAX
        exploring.planner.pay(self.learned.paid(self.sets.marginals(), low))
        self.behaviour = setup.method.exploration.plan(exploring)
        exploring.plans += 1
        schedule = setup.method.schedule
        self.limits = schedule.limits(exploring.seen.totals)
        self.due = schedule.next(self.done)
        self.earliest = min(schedule.earliest(self.done), self.due)

    def count_rollouts(self, counts: IntArray) -> None:
        """Count samples of rollouts (O,) for the model as well.

        With an unknown support they are not counted: when their outcomes were first seen is not
        known. All rollouts are left out then, whatever they showed, so nothing is selected.
        """
        if isinstance(self.confidence, Discovery):
            return
        seen = self.exploration.seen
        seen.counts[:] += counts
        seen.totals[:] += segment_sum(counts.astype(np.float64), self.sets.ptr).astype(np.int64)

    def _evaluate(self, before: tuple[float, float]) -> None:
        """Solve the learned model robustly and optimistically; append a point.

        `before` are the seconds of earlier sessions, by the clock and of the processor.
        """
        self.tell("evaluating")
        agent, counts = self.setup.spec.agent, self.exploration.seen.counts
        previous = self.history[-1] if self.history else self._nothing_known()
        fresh, optimistic, solution = previous.fresh, previous.optimistic, None
        if not (self.looks and np.array_equal(self.looks[-1], counts)):
            self._look(counts)
            lasting = previous if self.anytime else self._nothing_known()
            solution = self.evaluator.guarantee(lasting.guarantee)
            fresh = lasting.guarantee
            if solution is not None:
                fresh = at_initial(solution, upper=agent is not MAX)
            optimistic = self.evaluator.optimistic(lasting.optimistic)
        guarantee, improved = fresh, solution is not None
        if self.anytime:
            improved &= self.best is None or agent.sign * (fresh - previous.guarantee) > 0.0
            guarantee = fresh if improved else previous.guarantee
            optimistic = (min if agent is MAX else max)(optimistic, previous.optimistic)
        elif fresh == self._nothing_known().guarantee != previous.guarantee:
            # nothing was seen at this look, so the guarantee of the last one stays as it was
            guarantee, improved = previous.guarantee, False
        elif solution is None and not np.array_equal(self.looks[-1], counts):
            self.solution = self.best = None
            self.looks = [counts.copy()]
        performance = previous.performance
        if solution is not None:
            self.exploration.robust = solution.policy.rows
        if improved and solution is not None:
            performance = self._adopt(solution, performance)
        self.seconds = before[0] + time.monotonic() - self._started
        self.processor = before[1] + time.process_time() - self._processor
        self.history.append(
            Point(
                self.done, self.steps, guarantee, fresh, performance, optimistic,
                self.rollouts.best_bound, self.exploration.plans,
                int(np.count_nonzero(self.exploration.seen.totals)), self.seconds, self.processor,
            )
        )  # fmt: skip
        if agent.sign * guarantee > agent.sign * optimistic:
            self.alarms.append(
                f"the guarantee {guarantee:.6g} lies beyond the optimistic bound {optimistic:.6g} "
                f"after {self.done} trajectories, so the data contradict an assumption; nothing "
                "is guaranteed. Check that the source is stationary and the one that was declared."
            )

    def _adopt(self, solution: Solution, performance: float) -> float:
        """Report a solution from now on; return the performance of its policy on the truth.

        `performance` is that of the last policy: the same one is not evaluated again.
        """
        if not self.sets.nested:
            self.looks = [self.exploration.seen.counts.copy()]
        rows, self.proven_at = solution.policy.rows, len(self.looks)
        if self.best is None or math.isnan(performance) or not np.array_equal(rows, self.best):
            performance = self.evaluator.performance(rows)
        self.solution, self.best = solution, rows
        self.evidence = self._evidence()
        return performance

    def _evidence(self) -> dict[str, AnyArray]:
        """Return what sets and rewards are derived from beside the counts, as it is now."""
        unknown = isinstance(self.confidence, Discovery)
        first = {"first": self.exploration.seen.first.copy()} if unknown else {}
        payments = self.learned.payments
        return {**first, **({} if payments is None else payments.evidence())}

    def _look(self, counts: IntArray) -> None:
        """Bring the sets to the counts (O,) as they are now, and remember these.

        Sets of a single look forget the look before, unless the guarantee rests on it.
        """
        if self.sets.nested:
            self.looks.append(counts.copy())
        elif self.solution is None:
            self.looks = [counts.copy()]
        try:
            self.sets.refresh(counts)
        except AssumptionAlarm as alarm:
            first, last = self.sets.ptr[alarm.identifier : alarm.identifier + 2]
            name, seen = self.counted.marginal_name(alarm.identifier), counts[first:last]
            raise alarm.named(f"{name}, with counts {', '.join(map(str, seen))}") from None

    def _nothing_known(self) -> Point:
        """Return the point before all others: what holds without any data."""
        spec = self.setup.spec
        worst, best = (trivial(spec, side, self.learned.least) for side in (MIN, MAX))
        if spec.agent is not MAX:
            worst, best = best, worst
        return Point(0, 0, worst, worst, math.nan, best, math.nan, 0, 0, 0.0)

    def settings(self) -> dict[str, str]:
        """Return what was asked for, in words."""
        payments = self.learned.payments
        paid = "known" if payments is None else payments.words
        return settings_of(self.setup, self._ids, self.ledger, paid)

    def result(self, reason: str | None) -> Run:
        """Return the run as it is now."""
        rows = self.best if self.best is not None else self.counted.row_ptr[None, :-1]
        if self.solution is None:
            model, _ = self.learned.pessimistic(self.sets.marginals())
        else:
            model = self.solution.model
        looks = self.looks[: self.proven_at] if self.solution is not None else self.looks
        prior = self.learned.ids.prior
        return Run(
            settings=self.settings(),
            validity=self.confidence.validity.value,
            assumptions=assumptions_of(self.setup, self._ids, self.ledger),
            agent=self.setup.spec.agent,
            ledger=self.ledger,
            history=list(self.history),
            policy=Policy(rows[:, : self.learned.states]),
            model=model,
            counts=self.exploration.seen.counts.copy(),
            looks=np.array(looks, dtype=np.int64).reshape(len(looks), len(self.sets.counts)),
            floors=self.sets.floors,
            prior=None if prior is None else np.stack([prior.lower, prior.upper]),
            solution=self.solution,
            evidence={} if self.solution is None else self.evidence,
            shared=self._ids.shared,
            alarms=tuple(self.alarms),
            stopped=reason or "running",
            rollouts=list(self.rollouts.certificates),
            rollout_policy=self.rollouts.best_policy,
            question=str(self.setup.spec),
            name=self.setup.name,
            state=self._state(),
        )

    def _state(self) -> dict[str, AnyArray]:
        """Return everything that decides how the run goes on, as arrays."""
        exploring = self.exploration
        state: dict[str, AnyArray] = {
            "limits": self.limits,
            "numbers": np.array(
                [exploring.plans, self.due, self.earliest, self.done, self.steps, self.proven_at]
            ),
            "seconds": np.array([self.seconds, self.processor]),
            "choice": exploring.planner.choice.copy(),
            "epoch": np.array([self.rollouts.epoch, self.rollouts.due]),
            "later": np.array(self.looks[self.proven_at :], dtype=np.int64),
        }
        optional = {"robust": exploring.robust, "best": self.best, "value": exploring.value}
        if self.behaviour is not None:
            optional["rows"] = self.behaviour.rows
            state["other"] = np.array([self.behaviour.other])
        state.update({k: v for k, v in optional.items() if v is not None})
        state.update({f"warm/{side}": value for side, value in self.evaluator.warm.items()})
        for prefix, store in self._stores().items():
            state.update({f"{prefix}/{k}": v for k, v in store.state().items()})
        return state

    def _stores(self) -> dict[str, SetStore | Tally | UnknownRewards]:
        """Return the parts that keep their own state."""
        stores: dict[str, SetStore | Tally | UnknownRewards] = {
            "sets": self.sets, "explore": self.exploration.sets, "seen": self.exploration.seen
        }  # fmt: skip
        if self._unknown is not None:
            stores["rewards"] = self._unknown
        return stores

    def restore(self, run: Run, place: str) -> None:
        """Go on where a saved run was, with the same random sequence."""
        require_same(run.settings, self.settings(), place)
        state, exploring = run.state, self.exploration
        exploring.planner.choice[:] = state["choice"]
        exploring.robust, self.best = state.get("robust"), state.get("best")
        exploring.value, self.solution = state.get("value"), run.solution
        numbers = (int(x) for x in state["numbers"])
        exploring.plans, self.due, self.earliest, self.done, self.steps, self.proven_at = numbers
        self.looks = [*run.looks, *state["later"]] if self.solution is not None else [*run.looks]
        self.limits, self.evidence = state["limits"], dict(run.evidence)
        self.seconds, self.processor = (float(x) for x in state["seconds"])
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
        for prefix, store in self._stores().items():
            cut = len(prefix) + 1
            store.restore({k[cut:]: v for k, v in state.items() if k.startswith(f"{prefix}/")})
        warm = {k[5:]: np.array(v) for k, v in state.items() if k.startswith("warm/")}
        self.evaluator.warm.update(warm)
        self.history, self.alarms = list(run.history), list(run.alarms)
        self.rollouts.restore(run, state)
