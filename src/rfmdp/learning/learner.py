"""The state of a learning run, and its loop: sample, evaluate.

An evaluation looks at the counts, if there are new ones, brings the sets to them, and finds what
these prove. The best guarantee, or the last one, stands.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from rfmdp.errors import AssumptionAlarm, ModelError
from rfmdp.formats.files import save
from rfmdp.learning.budget import Ledger
from rfmdp.learning.confidence import Validity
from rfmdp.learning.evaluation import Evaluator, initial_guarantee, trivial
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.run import Point, Run, arrays_of
from rfmdp.learning.sampling import Sampling
from rfmdp.learning.schedule import Watch
from rfmdp.learning.setup import LearnedModel, Setup, assumptions_of, require_same, settings_of
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX
from rfmdp.outer.solution import Policy, Solution
from rfmdp.types import AnyArray, IntArray


class Learner:
    """A run of `learn` between evaluations; `ids` are those of the source's structure."""

    def __init__(self, setup: Setup, ids: Identifiers, watch: Watch) -> None:
        self.setup, self._ids, self._watch = setup, ids, watch
        self.learned = LearnedModel(setup, ids)
        self.counted = ids.model
        self.confidence = setup.method.confidence
        self.ledger: Ledger = setup.method.budget.ledger(setup.shares(), self.confidence, ids)
        self.sets = SetStore(
            self.confidence, self.counted.marginals.outcome_ptr, self.ledger.delta,
            ids.floors(setup.p_min), prior=ids.prior, name=self.counted.marginal_name,
        )  # fmt: skip
        self.sampling = Sampling(setup, self.learned, self.sets, watch)
        self.evaluator = Evaluator(self.sets, self.sampling, watch)
        worst, best = trivial(setup.spec, self.learned.least)  # what holds without any data
        self._nothing = Point(0, 0, worst, worst, math.nan, best, 0, 0, 0.0, 0.0)
        anytime = self.confidence.validity is Validity.ANYTIME
        self.standing = StandingGuarantee(anytime, setup.spec.agent.sign, self._nothing.guarantee)
        self.history: list[Point] = []
        self.alarms: list[str] = []
        self.checks: tuple[str, ...] = ()  # what samples said about assumptions
        self._checked = 0  # steps that were checked

    def go(self, file: str | os.PathLike[str] | None) -> Run:
        """Run until it is time to stop; save at the start and after every evaluation.

        An event that voids the guarantee is written into the file before it is raised. After
        Ctrl-C the exception has the run as it was at the last evaluation, as `run`.
        """
        reason = self._reason() if self.history or self.alarms else None
        run = self.result(reason)
        if file is not None and not self.history and self.setup.records is None:
            save(run, file)
        try:
            while reason is None:
                self._sample()
                self._evaluate()
                reason = self._reason()
                if reason is not None or self.sampling.steps >= 2 * self._checked:
                    self._check()
                    reason = self._reason()
                run = self.result(reason)
                self._watch.tell("evaluated", self.sampling.done, self.history[-1])
                if file is not None:
                    save(run, file)
        except AssumptionAlarm as alarm:
            self.alarms.append(str(alarm))
            if file is not None:
                save(self.result("alarm"), file)
            raise
        except KeyboardInterrupt as interrupt:
            interrupt.run = run  # type: ignore[attr-defined]
            raise
        return run

    def _sample(self) -> None:
        """Sample until the next evaluation is due.

        Raises
        ------
        AssumptionAlarm
            If what was sampled cannot be: it contradicts what was declared.
        """
        setup, sampling = self.setup, self.sampling
        if setup.records is not None:
            sampling.count(setup.records)
            return
        try:
            sampling.run(min(setup.points.next(sampling.done), setup.stop.trajectories))
        except AssumptionAlarm:
            raise
        except ModelError as error:  # a state, a successor, an end or a payment
            raise AssumptionAlarm(str(error)) from error

    def _check(self) -> None:
        """Ask the samples about the assumptions."""
        self._watch.tell("evaluating", self.sampling.done)
        self._checked = self.sampling.steps
        checks = self.sampling.checks()
        self.checks = tuple(map(str, checks))
        self.alarms += [str(check) for check in checks if check.alarm]

    def _reason(self) -> str | None:
        """Return why to stop now, or None."""
        setup = self.setup
        if self.alarms:
            return "alarm"
        if setup.records is not None:
            return "all data used"
        return setup.stop.reason(setup.spec.agent, self.history[-1], self._watch.seconds)

    def _evaluate(self) -> None:
        """Find out which guarantee stands now; append a point."""
        sampling, standing, agent = self.sampling, self.standing, self.setup.spec.agent
        self._watch.tell("evaluating", sampling.done)
        last = self.history[-1] if self.history else self._nothing
        policy = standing.rows
        fresh, optimistic, solution = last.fresh, last.optimistic, None
        if not standing.looked_at(sampling.seen.counts):
            fresh, optimistic, solution = self._prove(last)
        guarantee, performance = last.guarantee, last.performance
        if solution is not None:
            sampling.robust = rows = solution.policy.rows
        if solution is not None and standing.improves(fresh, guarantee):
            guarantee = fresh
            payments = self.learned.payments
            evidence = {} if payments is None else copied(payments.arrays)  # beside the counts
            standing.adopt(solution, sampling.seen.counts, evidence)
            if policy is None or math.isnan(performance) or not np.array_equal(rows, policy):
                performance = self.evaluator.performance(rows)
        self.history.append(
            Point(
                sampling.done, sampling.steps, guarantee, fresh, performance, optimistic,
                sampling.plans, int(np.count_nonzero(sampling.seen.totals)),
                *self._watch.spent(),
            )
        )  # fmt: skip
        if agent.sign * guarantee > agent.sign * optimistic:
            self.alarms.append(
                f"the guarantee {guarantee:.6g} lies beyond the optimistic bound {optimistic:.6g} "
                f"after {sampling.done} trajectories, so the data contradict an assumption; "
                "nothing is guaranteed. Check that the source is stationary and the one that was "
                "declared."
            )

    def _prove(self, last: Point) -> tuple[float, float, Solution | None]:
        """Look at the counts: return guarantee, optimistic bound and solution that they prove."""
        agent, counts = self.setup.spec.agent, self.sampling.seen.counts
        self.standing.look(counts, last.guarantee)
        self.sets.refresh(counts)
        lasting = last if self.standing.anytime else self._nothing
        solution = self.evaluator.guarantee(lasting.guarantee)
        fresh = lasting.guarantee if solution is None else initial_guarantee(solution)
        optimistic = self.evaluator.optimistic(lasting.optimistic)
        if self.standing.anytime:
            optimistic = (min if agent is MAX else max)(optimistic, last.optimistic)
        return fresh, optimistic, solution

    def settings(self) -> dict[str, Any]:
        """Return what was asked for."""
        return settings_of(self.setup, self._ids, self.ledger, self.learned.payments)

    def result(self, reason: str | None) -> Run:
        """Return the run as it is now."""
        setup, standing, prior = self.setup, self.standing, self._ids.prior
        rows = self.counted.row_ptr[None, :-1] if standing.rows is None else standing.rows
        if standing.solution is None:
            model, _ = self.learned.pessimistic(self.sets.marginals())
        else:
            model = standing.solution.explicit_model
        looks = standing.proven_looks
        return Run(
            settings=self.settings(),
            validity=self.confidence.validity.value,
            assumptions=assumptions_of(setup, self._ids),
            agent=setup.spec.agent,
            ledger=self.ledger,
            history=list(self.history),
            policy=Policy(rows),
            model=model,
            counts=self.sampling.seen.counts.copy(),
            looks=np.array(looks, dtype=np.int64).reshape(len(looks), len(self.sets.counts)),
            floors=self.sets.floors,
            starts=self.sampling.seen.starts.copy(),
            prior=None if prior is None else np.stack([prior.lower, prior.upper]),
            solution=standing.solution,
            evidence={} if standing.solution is None else standing.evidence,
            shared=self._ids.shared,
            alarms=tuple(self.alarms),
            checks=self.checks,
            stopped=reason or "running",
            question=str(setup.spec),
            name=setup.name,
            state=self._state(),
        )

    def _state(self) -> dict[str, AnyArray]:
        """Return everything that decides how the run goes on, as arrays."""
        standing = self.standing
        last = self.history[-1] if self.history else self._nothing
        parts = {
            "warm": self.evaluator.warm, "sampling": self.sampling.state(),
            **{prefix: copied(store.arrays) for prefix, store in self._stores().items()},
        }  # fmt: skip
        return {
            "proven_at": np.array([standing.proven_at]),
            "seconds": np.array([last.seconds, last.processor]),
            "later": np.array(standing.looks[standing.proven_at :], dtype=np.int64),
            **{f"{prefix}/{k}": v for prefix, part in parts.items() for k, v in part.items()},
        }

    def _stores(self) -> dict[str, Any]:
        """Return what keeps its state in `arrays`, which are changed in place."""
        sampling = self.sampling
        stores = {
            "sets": self.sets, "explore": sampling.sets, "seen": sampling.seen,
            "rewards": sampling.unknown,
            # what is recorded is read anew
            "evidence": sampling.evidence if self.setup.records is None else None,
        }  # fmt: skip
        return {name: store for name, store in stores.items() if store is not None}

    def restore(self, run: Run, place: str) -> None:
        """Go on where a saved run was, with the same random sequence."""
        require_same(run.settings, self.settings(), place)
        state, standing = run.state, self.standing
        standing.proven_at = int(state["proven_at"][0])
        standing.solution = run.solution
        standing.evidence = dict(run.evidence)
        standing.looks = list(run.looks)
        if run.solution is not None:
            standing.looks += list(state["later"])
        seconds, processor = state["seconds"]
        self._watch.before = float(seconds), float(processor)
        self.sampling.restore(arrays_of(state, "sampling"))
        for prefix, store in self._stores().items():
            for name, array in store.arrays.items():
                array[...] = state[f"{prefix}/{name}"]
        self.evaluator.warm.update(copied(arrays_of(state, "warm")))
        self.history, self.alarms = list(run.history), list(run.alarms)
        self.checks, self._checked = run.checks, self.sampling.steps


def copied(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return copies of arrays, by name."""
    return {name: array.copy() for name, array in arrays.items()}


class StandingGuarantee:
    """The solution behind the guarantee, with the counts and other evidence that it rests on.

    Guarantees of sets that are valid at any time hold together, so all looks count, and the best
    guarantee stands. Sets of a single look forget the look before: the last guarantee stands, but
    one that proves something stands until another does.

    `sign` is +1 if larger guarantees are better, else -1; `nothing` is the one that holds without
    any data.
    """

    def __init__(self, anytime: bool, sign: float, nothing: float) -> None:
        self.anytime, self._sign, self._nothing = anytime, sign, nothing
        self.solution: Solution | None = None
        self.evidence: dict[str, AnyArray] = {}  # beside the counts
        self.looks: list[IntArray] = []  # counts (O,) at evaluations
        self.proven_at = 0  # of these, how many the solution rests on

    @property
    def rows(self) -> IntArray | None:
        """The policy (steps, S) that the guarantee is for."""
        return None if self.solution is None else self.solution.policy.rows

    @property
    def proven_looks(self) -> list[IntArray]:
        """The counts (O,) that the solution rests on; without one, all that were looked at."""
        return self.looks if self.solution is None else self.looks[: self.proven_at]

    def looked_at(self, counts: IntArray) -> bool:
        """Return whether these counts are those of the last look."""
        return bool(self.looks) and np.array_equal(self.looks[-1], counts)

    def look(self, counts: IntArray, guarantee: float) -> None:
        """Remember counts that are looked at; `guarantee` is the one that stands."""
        if self.anytime:
            self.looks.append(counts.copy())
        elif self.solution is None or guarantee == self._nothing:
            self.solution = None
            self.looks = [counts.copy()]

    def improves(self, fresh: float, last: float) -> bool:
        """Return whether a fresh guarantee is to stand in place of the last one."""
        if self.anytime:
            return self.solution is None or self._sign * (fresh - last) > 0.0
        return fresh != self._nothing or last == self._nothing

    def adopt(self, solution: Solution, counts: IntArray, evidence: dict[str, AnyArray]) -> None:
        """Let the guarantee of a solution stand from now on."""
        if not self.anytime:
            self.looks = [counts.copy()]
        self.solution, self.evidence = solution, evidence
        self.proven_at = len(self.looks)
