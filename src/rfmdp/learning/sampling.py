"""Samples of a run: trajectories under plans that are made anew when it is time, or records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rfmdp.learning.planner import Planner
from rfmdp.learning.schedule import NEVER, Watch
from rfmdp.learning.setup import LearnedModel, Setup
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX, MIN
from rfmdp.outer.problem import Form, row_rewards
from rfmdp.sources.checks import Check, Evidence
from rfmdp.sources.log.source import Log
from rfmdp.sources.simulator import Behaviour, Trajectories
from rfmdp.sources.transitions import Tally
from rfmdp.types import AnyArray, FloatArray, IntArray

GROWTH = 1.1  # sets to plan with are made anew when the visits grew by this factor
CHUNK = 2_000_000  # steps between two looks at the clock


class Sampling:
    """What was sampled, in `done` trajectories and `steps`, and what to sample next.

    An exploration plans with it; nothing of it is the hidden truth. `guard` are the sets of the
    guarantee.
    """

    def __init__(self, setup: Setup, learned: LearnedModel, guard: SetStore, watch: Watch) -> None:
        self.setup, self.learned, self._watch = setup, learned, watch
        counted, source = learned.model, setup.source
        self.unknown, self._payer = learned.payments, None
        self.seen = Tally.empty(
            counted, visits=self.unknown is not None, starts=source.random_start
        )
        self.planner = Planner(counted, learned.spec, watch.deadline)
        self.sets = setup.method.exploration.sets(guard)  # to plan with
        self.behaviour: Behaviour | None = None
        self.value: FloatArray | None = None  # (S,) of the last optimistic plan
        self.robust: IntArray | None = None  # rows (steps, S) of the last robust policy
        self.limits = np.zeros(len(guard.ptr) - 1, dtype=np.int64)
        self.plans = self.earliest = 0  # next plan: after how many trajectories, or later
        self.done = self.steps = 0
        self.evidence: Evidence | None = None  # what is checked; records bring theirs
        if source.observed:
            self.evidence = Evidence(counted)
        self._sampler = None
        if setup.records is None:
            self._sampler = source.sampler(counted, self.evidence)
        if self.unknown is not None:
            self._payer = source.payer(self.unknown.name)

    def count(self, records: Log) -> None:
        """Count all recorded transitions at once."""
        objective, declared = self.setup.spec.objective, None
        if self.unknown is None and objective.rewarded:
            declared = row_rewards(records.model, objective.reward_name)
        tally, self.evidence = records.tally(self.learned.model, declared)
        for new, old in zip(tally.kernel, self.seen.kernel, strict=True):
            old[:] = new[: len(old)]
        self.done, self.steps = records.trajectories, records.steps
        self._take_rewards()

    def checks(self) -> tuple[Check, ...]:
        """Return what the samples say about the assumptions.

        A false alarm of samples that are drawn has at most the probability beta, that of records
        the one that their source says.
        """
        records = self.setup.records
        level = self.setup.beta if records is None else records.level
        return () if self.evidence is None else self.evidence.checks(level)

    def run(self, goal: int) -> None:
        """Run trajectories up to number `goal`, planning anew when it is due."""
        setup = self.setup
        assert self._sampler is not None  # the source draws
        chunk = max(1, CHUNK // setup.length)
        while self.done < goal and not (self.done and self._watch.over()):
            waits = self.done < self.earliest  # no new plan yet, whatever doubles
            if not waits and (not self.plans or np.any(self.seen.totals >= self.limits)):
                self._plan()
                waits = self.done < self.earliest
            limits = np.full_like(self.limits, NEVER) if waits else self.limits
            stop = min(goal, self.earliest) if waits else goal
            assert self.behaviour is not None
            some = min(stop - self.done, chunk)
            request = Trajectories(self.behaviour, setup.length, some, setup.seed, self.done)
            done, steps = self._sampler(request, limits, self.seen)
            self.done += done
            self.steps += steps
            self._take_rewards()
            self._watch.tell("sampling", self.done)

    def _plan(self) -> None:
        """Plan anew what to sample."""
        method = self.setup.method
        self._watch.tell("planning", self.done)
        self.planner.pay(self.learned.paid(low=self.setup.spec.agent is not MAX))
        self.behaviour = method.exploration.plan(self)
        self.plans += 1
        self.limits = method.schedule.limits(self.seen.totals)
        self.earliest = method.schedule.earliest(self.done)

    def refresh(self) -> None:
        """Bring the sets to plan with up to date where visits grew enough."""
        grown = np.flatnonzero(self.seen.totals >= GROWTH * np.maximum(self.sets.totals, 0.5))
        self.sets.refresh(self.seen.counts, grown)

    def optimistic_rows(self) -> IntArray:
        """Return the rows of the best policy with nature on the agent's side.

        With more data optimistic costs grow, so sweeps may start from the last ones. Optimistic
        probabilities fall: the last ones lie above the value, and would be a wrong start.
        """
        self.refresh()
        problem = self.planner.problem
        grows = problem.agent is MIN and problem.form is not Form.REACH
        start = self.value if grows or problem.form is Form.DISCOUNTED else None
        self.value, rows = self.planner.plan(self.sets.marginals(), problem.agent, start)
        return rows

    def _take_rewards(self) -> None:
        """Take note of what new visits paid, if rewards are learned."""
        if self.unknown is not None and self._payer is not None:
            self.unknown.take(self.seen.visits, self._payer)
            last = np.array(sorted(self.setup.source.last), dtype=np.int64)
            self.unknown.check_ends(self.learned.model, last)

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that `restore` needs."""
        state = {
            "numbers": np.array([self.plans, self.earliest, self.done, self.steps]),
            "limits": self.limits,
            "choice": self.planner.choice.copy(),
        }
        if self.behaviour is not None:
            state["rows"] = self.behaviour.rows
            state["other"] = np.array([self.behaviour.other])
        optional = {"robust": self.robust, "value": self.value}
        return state | {name: array for name, array in optional.items() if array is not None}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved state."""
        self.plans, self.earliest, self.done, self.steps = state["numbers"].tolist()
        self.limits = state["limits"]
        self.planner.choice[:] = state["choice"]
        self.robust, self.value = state.get("robust"), state.get("value")
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
