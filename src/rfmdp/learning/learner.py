"""The state of a learning run, and its loop: sample, evaluate.

Guarantees of sets that are valid at any time hold together, so all looks at the counts count, and
the best guarantee stands. Sets of a single look forget the look before: the last guarantee stands,
but one that proves something stands until another does.
"""

from __future__ import annotations

import math
import os
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from rfmdp.errors import AssumptionAlarm, ModelError
from rfmdp.formats.files import save
from rfmdp.learning.confidence import SetStore, Validity
from rfmdp.learning.evaluation import Evaluator, LearnedModel, initial_guarantee
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.run import Point, Run, Watch, arrays_of
from rfmdp.learning.sampling import Sampling
from rfmdp.learning.setup import Setup, assumptions_of, require_same, settings_of
from rfmdp.objective import MAX
from rfmdp.outer.solution import Policy, Solution
from rfmdp.types import AnyArray, IntArray


class Learner:
    """A run of `learn` between evaluations; `ids` are those of the source's structure."""

    def __init__(self, setup: Setup, ids: Identifiers, watch: Watch) -> None:
        self.setup, self._watch, self.learned = setup, watch, LearnedModel(setup, ids)
        confidence, model, prior = setup.method.confidence, ids.model, ids.prior
        ledger = setup.method.budget.ledger(setup.shares(), confidence, ids)
        self.sets = SetStore(
            confidence, model.marginals.outcome_ptr, ledger.delta, ids.floors(setup.p_min),
            prior=prior, name=model.marginal_name,
        )  # fmt: skip
        self.sampling = Sampling(setup, self.learned, self.sets, watch)
        self.evaluator = Evaluator(self.sets, self.sampling, watch)
        worst, best = self.learned.trivial()
        self._nothing = Point(0, 0, worst, worst, math.nan, best, 0, 0, 0.0, 0.0)
        self._anytime = confidence.validity is Validity.ANYTIME
        self._looks: list[IntArray] = []  # counts (O,) at evaluations
        self._proven_at = 0  # of these, how many the solution rests on
        self._checked = 0  # steps that were checked
        self._any_policy = Policy(model.row_ptr[None, :-1])
        seen = self.sampling.seen
        self.run = Run(
            settings=settings_of(setup, ids, ledger),
            validity=confidence.validity.value,
            assumptions=assumptions_of(setup, ids),
            agent=setup.spec.agent,
            ledger=ledger,
            history=[],
            policy=self._any_policy,
            model=model,
            counts=seen.counts,
            looks=np.empty((0, len(seen.counts)), dtype=np.int64),
            floors=self.sets.floors,
            starts=seen.starts,
            prior=None if prior is None else np.stack([prior.lower, prior.upper]),
            shared=ids.shared,
            question=str(setup.spec),
            name=setup.name,
        )

    def go(self, file: str | os.PathLike[str] | None) -> Run:
        """Run until it is time to stop; save at the start and after every evaluation.

        An event that voids the guarantee is written into the file before it is raised. After
        Ctrl-C the exception has the run as it was at the last evaluation, as `run`.
        """
        history, records = self.run.history, self.setup.records
        false_alarms = self.setup.beta if records is None else records.level
        reason = self._reason() if history or self.run.alarms else None
        run = self._result(reason)
        if file is not None and not history and records is None:
            save(run, file)
        try:
            while reason is None:
                self._sample()
                self._evaluate()
                reason = self._reason()
                if reason is not None or self.sampling.steps >= 2 * self._checked:
                    self._watch.tell("evaluating", self.sampling.done)
                    self._checked, evidence = self.sampling.steps, self.sampling.evidence
                    checks = () if evidence is None else evidence.checks(false_alarms)
                    self.run.checks = tuple(map(str, checks))
                    self.run.alarms += tuple(str(check) for check in checks if check.alarm)
                    reason = self._reason()
                run = self._result(reason)
                self._watch.tell("evaluated", self.sampling.done, history[-1])
                if file is not None:
                    save(run, file)
        except AssumptionAlarm as alarm:
            self.run.alarms += (str(alarm),)
            if file is not None:
                save(self._result("alarm"), file)
            raise
        except KeyboardInterrupt as interrupt:
            interrupt.run = run  # type: ignore[attr-defined]
            raise
        return run

    def _sample(self) -> None:
        """Sample until the next evaluation is due; AssumptionAlarm: what was sampled cannot be."""
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

    def _reason(self) -> str | None:
        setup = self.setup
        if self.run.alarms:
            return "alarm"
        if setup.records is not None:
            return "all data used"
        return setup.stop.reason(setup.spec.agent, self.run.history[-1], self._watch.left())

    def _evaluate(self) -> None:
        """Find out which guarantee stands now; append a point."""
        sampling, run, sign = self.sampling, self.run, self.setup.spec.agent.sign
        counts = sampling.seen.counts
        self._watch.tell("evaluating", sampling.done)
        last = run.history[-1] if run.history else self._nothing
        before = None if run.solution is None else run.policy.rows
        fresh, optimistic, solution = last.fresh, last.optimistic, None
        if not self._looks or not np.array_equal(self._looks[-1], counts):
            fresh, optimistic, solution = self._prove(last)
        guarantee, performance = last.guarantee, last.performance
        if solution is not None:
            sampling.robust = rows = solution.policy.rows
            better = run.solution is None or sign * (fresh - guarantee) > 0.0
            if not self._anytime:
                nothing = self._nothing.guarantee
                better = fresh != nothing or guarantee == nothing
            if better:
                guarantee = fresh
                if not self._anytime:
                    self._looks = [counts.copy()]
                self._proven_at = len(self._looks)
                run.solution, run.policy = solution, solution.policy
                run.model = solution.explicit_model
                run.evidence = deepcopy(self.learned.arrays)  # beside the counts
                if before is None or math.isnan(performance) or not np.array_equal(rows, before):
                    performance = self.evaluator.performance(rows)
        visited = int(np.count_nonzero(sampling.seen.totals))
        point = Point(
            sampling.done, sampling.steps, guarantee, fresh, performance, optimistic,
            sampling.plans, visited, *self._watch.spent(),
        )  # fmt: skip
        run.history.append(point)
        if sign * guarantee > sign * optimistic:
            run.alarms += (
                f"the guarantee {guarantee:.6g} lies beyond the optimistic bound {optimistic:.6g} "
                f"after {sampling.done} trajectories, so the data contradict an assumption; "
                "nothing is guaranteed. Check that the source is stationary and the one that was "
                "declared.",
            )

    def _prove(self, last: Point) -> tuple[float, float, Solution | None]:
        """Look at the counts: return guarantee, optimistic bound and solution that they prove."""
        agent, counts, run = self.setup.spec.agent, self.sampling.seen.counts, self.run
        if self._anytime:
            self._looks.append(counts.copy())
        elif run.solution is None or last.guarantee == self._nothing.guarantee:
            run.solution, run.policy, run.evidence = None, self._any_policy, {}
            self._looks = [counts.copy()]
        self.sets.refresh(counts)
        lasting = last if self._anytime else self._nothing
        solution = self.evaluator.guarantee(lasting.guarantee)
        fresh = lasting.guarantee if solution is None else initial_guarantee(solution)
        optimistic = self.evaluator.optimistic(lasting.optimistic)
        if self._anytime:
            optimistic = (min if agent is MAX else max)(optimistic, last.optimistic)
        return fresh, optimistic, solution

    def _result(self, reason: str | None) -> Run:
        run, seen = self.run, self.sampling.seen
        looks, model = self._looks[: self._proven_at], run.model
        if run.solution is None:
            looks, model = self._looks, self.learned.with_sets(self.sets.marginals())
        return replace(
            run,
            history=list(run.history),
            model=model,
            counts=seen.counts.copy(),
            looks=np.array(looks, dtype=np.int64).reshape(len(looks), len(seen.counts)),
            starts=seen.starts.copy(),
            stopped=reason or "running",
            state=self._state(),
        )

    def _state(self) -> dict[str, AnyArray]:
        """Return everything that decides how the run goes on, as arrays."""
        last = self.run.history[-1] if self.run.history else self._nothing
        parts = {
            "warm": self.evaluator.warm, "sampling": self.sampling.state(),
            **{prefix: deepcopy(store.arrays) for prefix, store in self._stores().items()},
        }  # fmt: skip
        return {
            "proven_at": np.array([self._proven_at]),
            "seconds": np.array([last.seconds, last.processor]),
            "later": np.array(self._looks[self._proven_at :], dtype=np.int64),
            **{f"{prefix}/{k}": v for prefix, part in parts.items() for k, v in part.items()},
        }

    def _stores(self) -> dict[str, Any]:
        """Return what keeps its state in `arrays`, which are changed in place."""
        sampling = self.sampling
        stores = {
            "sets": self.sets, "explore": sampling.sets, "seen": sampling.seen,
            "rewards": self.learned,
            # what is recorded is read anew
            "evidence": sampling.evidence if self.setup.records is None else None,
        }  # fmt: skip
        return {name: store for name, store in stores.items() if store is not None}

    def restore(self, saved: Run, place: str) -> None:
        """Go on where a saved run was, with the same random sequence."""
        require_same(saved.settings, self.run.settings, place)
        state = saved.state
        self.run = replace(saved, history=list(saved.history), state={})
        self._proven_at = int(state["proven_at"][0])
        self._looks = list(saved.looks)
        if saved.solution is not None:
            self._looks += list(state["later"])
        self._watch.before = tuple(state["seconds"].tolist())
        self.sampling.restore(arrays_of(state, "sampling"))
        for prefix, store in self._stores().items():
            for name, array in store.arrays.items():
                array[...] = state[f"{prefix}/{name}"]
        self.evaluator.warm.update(deepcopy(arrays_of(state, "warm")))
        self._checked = self.sampling.steps
