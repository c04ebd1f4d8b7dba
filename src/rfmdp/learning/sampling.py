"""Samples of a run: trajectories under plans that are made anew when it is time, or records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rfmdp.learning.planner import Planner
from rfmdp.learning.schedule import NEVER, Watch
from rfmdp.learning.setup import LearnedModel, Setup
from rfmdp.learning.store import SetStore
from rfmdp.objective import MAX
from rfmdp.outer.problem import row_rewards
from rfmdp.sources.checks import Check, Evidence
from rfmdp.sources.log.source import Log
from rfmdp.sources.simulator import Behaviour, Trajectories
from rfmdp.sources.tally import Tally
from rfmdp.types import AnyArray, FloatArray, IntArray

CHUNK = 2_000_000  # steps between two looks at the clock


class Sampling:
    """What was sampled, in `done` trajectories and `steps`, and what to sample next.

    An exploration plans with it; nothing of it is the hidden truth. `guard` are the sets of the
    guarantee.
    """

    def __init__(self, setup: Setup, learned: LearnedModel, guard: SetStore, watch: Watch) -> None:
        self.setup, self.learned, self._watch = setup, learned, watch
        counted, episodes = learned.model, setup.episodes
        self.unknown, self._payer = learned.payments, None
        self.seen = Tally.empty(counted, visits=self.unknown is not None, starts=setup.random_start)
        self.planner = Planner(counted, learned.spec, watch.deadline)
        self.sets = setup.method.exploration.sets(guard)  # to plan with
        self.behaviour: Behaviour | None = None
        self.value: FloatArray | None = None  # (S,) of the last optimistic plan
        self.robust: IntArray | None = None  # rows (steps, S) of the last robust policy
        self.limits = np.zeros(len(guard.ptr) - 1, dtype=np.int64)
        self.plans = self.due = self.earliest = 0  # next plan: after which trajectories
        self.done = self.steps = 0
        self.evidence: Evidence | None = None  # what is checked; records bring theirs
        if episodes is not None and episodes.observed:
            self.evidence = Evidence(counted)
        self._sampler = None
        if episodes is not None:
            self._sampler = episodes.sampler(counted, self.evidence)
        if self.unknown is not None:
            self._payer = setup.source.payer(self.unknown.name)

    def count(self, records: Log) -> None:
        """Count all recorded transitions at once."""
        objective, declared = self.setup.spec.objective, None
        if self.unknown is None and objective.rewarded:
            declared = row_rewards(records.model, objective.reward_name)
        tally, self.evidence = records.tally(self.learned.model, declared)
        for new, old in zip(tally.arrays, self.seen.arrays, strict=True):
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
            doubled = bool(np.any(self.seen.totals >= self.limits))
            if self.done >= self.due or (self.done >= self.earliest and doubled):
                self._plan()
            limits = self.limits
            stop = min(goal, self.due)
            if self.done < self.earliest:  # no new plan yet, whatever doubles
                limits = np.full_like(limits, NEVER)
                stop = min(stop, self.earliest)
            assert self.behaviour is not None
            some = min(stop - self.done, chunk)
            request = Trajectories(self.behaviour, setup.length, some, setup.seed, self.done)
            done, steps = self._sampler.run_until(request, limits, self.seen)
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
        self.earliest, self.due = method.schedule.window(self.done)

    def _take_rewards(self) -> None:
        """Take note of what new visits paid, if rewards are learned."""
        if self.unknown is not None and self._payer is not None:
            self.unknown.take(self.seen.visits, self._payer)
            self.unknown.check_ends(self.learned.model, self.setup.source.last)

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that `restore` needs."""
        numbers = [self.plans, self.due, self.earliest, self.done, self.steps]
        state = {
            "numbers": np.array(numbers),
            "limits": self.limits,
            "choice": self.planner.choice.copy(),
        }
        optional = {"robust": self.robust, "value": self.value}
        if self.behaviour is not None:
            optional["rows"] = self.behaviour.rows
            state["other"] = np.array([self.behaviour.other])
        return {**state, **{k: v for k, v in optional.items() if v is not None}}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved state."""
        numbers = [int(x) for x in state["numbers"]]
        self.plans, self.due, self.earliest, self.done, self.steps = numbers
        self.limits = state["limits"]
        self.planner.choice[:] = state["choice"]
        self.robust, self.value = state.get("robust"), state.get("value")
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
