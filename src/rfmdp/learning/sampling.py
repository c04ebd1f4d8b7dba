"""Samples of a run: trajectories under plans that are made anew when it is time, or records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rfmdp.learning.explore import ExplorationState, planning_sets
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
from rfmdp.types import AnyArray

CHUNK = 2_000_000  # steps between two looks at the clock


class Sampling:
    """What was sampled, `seen`, in `done` trajectories and `steps`, and what to sample next.

    `sets` are those of the guarantee, made from the counts in `seen`.
    """

    def __init__(
        self, setup: Setup, learned: LearnedModel, sets: SetStore, seen: Tally, watch: Watch
    ) -> None:
        self.setup, self.learned, self._watch = setup, learned, watch
        self.seen, method = seen, setup.method
        self.exploration = ExplorationState(
            planner=Planner(learned.model, learned.spec, watch.deadline),
            sets=planning_sets(
                method.exploration.error, sets.ptr, method.confidence, sets.delta
            ),
            seen=seen, plans=0, length=setup.length, robust=None,
        )  # fmt: skip
        self.chunk = max(1, CHUNK // setup.length)
        self.behaviour: Behaviour | None = None
        self.limits = np.zeros(len(sets.ptr) - 1, dtype=np.int64)
        self.due = self.earliest = 0  # trajectories at which a new plan is due, and may be made
        self.done, self.steps = 0, 0
        counted, episodes = learned.model, setup.episodes
        self.evidence: Evidence | None = None  # what is checked; records bring theirs
        if episodes is not None and episodes.observed:
            self.evidence = Evidence(counted)
        self._sampler = None
        if episodes is not None:
            self._sampler = episodes.sampler(counted, evidence=self.evidence)
        self.unknown, self._payer = learned.payments, None
        if self.unknown is not None:
            self._payer = setup.source.payer(self.unknown.name, self.unknown.ends)

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
            some = min(stop - self.done, self.chunk)
            request = Trajectories(self.behaviour, setup.length, some, setup.seed, self.done)
            done, steps = self._sampler.run_until(request, limits, self.seen)
            self.done += done
            self.steps += steps
            self._take_rewards()
            self._watch.tell("sampling", self.done)

    def _plan(self) -> None:
        """Plan anew what to sample."""
        setup, exploring = self.setup, self.exploration
        self._watch.tell("planning", self.done)
        low = setup.spec.agent is not MAX
        exploring.planner.pay(self.learned.paid(low))
        self.behaviour = setup.method.exploration.plan(exploring)
        exploring.plans += 1
        schedule = setup.method.schedule
        self.limits = schedule.limits(self.seen.totals)
        self.due = schedule.next(self.done)
        self.earliest = min(schedule.earliest(self.done), self.due)

    def _take_rewards(self) -> None:
        """Take note of what new visits paid, if rewards are learned."""
        if self.unknown is not None and self._payer is not None:
            self.unknown.take(self.seen.visits, self._payer, self.setup.seed, self.done)
            self.unknown.check_ends(self.learned.model, self.setup.source.last)

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that `restore` needs; the learner saves the numbers."""
        exploring = self.exploration
        state = {"limits": self.limits, "choice": exploring.planner.choice.copy()}
        optional = {"robust": exploring.robust, "value": exploring.value}
        if self.behaviour is not None:
            optional["rows"] = self.behaviour.rows
            state["other"] = np.array([self.behaviour.other])
        return {**state, **{k: v for k, v in optional.items() if v is not None}}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved state."""
        exploring, self.limits = self.exploration, state["limits"]
        exploring.planner.choice[:] = state["choice"]
        exploring.robust, exploring.value = state.get("robust"), state.get("value")
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
