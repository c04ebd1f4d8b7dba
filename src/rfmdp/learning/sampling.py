"""Samples of a run, and the rough plans of what to sample next.

A plan proves nothing: it is one sweep over the levels of a model without cycles, and a limited
number of sweeps of one with cycles, by the sequential minimiser. Layouts are made once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.packing import PackedModel, Sets, pack_sets
from rfmdp.kernels.sweep import choose
from rfmdp.learning.confidence import ClopperPearson, SetStore
from rfmdp.learning.run import Watch
from rfmdp.learning.setup import Setup
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction, Spec
from rfmdp.outer.graph import Graph
from rfmdp.outer.policy_iteration import Chain, Nodes
from rfmdp.outer.problem import Form, Problem, pose, row_rewards
from rfmdp.outer.region import components
from rfmdp.ragged import entries
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sources.checks import Evidence
from rfmdp.sources.log.source import Log
from rfmdp.sources.trajectories import Behaviour, Tally, Trajectories
from rfmdp.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.evaluation import LearnedModel

NEVER = np.iinfo(np.int64).max

SWEEPS, FEWEST = 60, 20  # of a plan at most; of large models fewer, within
EFFORT = 2_500_000  # rows
POLICY_SWEEPS = 5  # of the chosen rows alone, between two sweeps of all rows
CHAIN_SWEEPS = 100  # the same with nature's answers fixed
CHANGE = 1e-4  # relative change of the values at which a plan is good enough
TINY = 1e-3  # of the largest value
GROWTH = 1.1  # sets to plan with are made anew when the visits grew by this factor
CHUNK = 2_000_000  # steps between two looks at the clock


class Planner:
    """Plans for one specification on a structure whose marginals change.

    `choice` (S,) are the rows of the last plan, from which the next one starts. Sweeps stop at the
    `deadline`, a time of `time.monotonic()`; a plan that is cut off is merely rougher.
    """

    def __init__(self, structure: FactoredMDP, spec: Spec, deadline: float = math.inf) -> None:
        self.problem: Problem = pose(structure, spec)
        if self.problem.form in (Form.MIXED, Form.AVERAGE):
            raise ModelError(
                "learn: the goal must be a probability to reach, a reward >= 0 to a target or in "
                f"total, a discounted one, or some steps; found a {self.problem.form.value}."
            )
        self.model = structure
        self._packed = PackedModel(structure, MIN)
        self._below, self._above = np.empty(structure.rows), np.empty(structure.rows)
        parts = components(Graph(structure), ~self.problem.terminal)
        self.cyclic = not bool(np.all(parts.trivial))
        self._levels = parts.levels()
        if self.cyclic and self._levels:
            self._levels = [np.concatenate(self._levels)]
        self._rows = [entries(structure.row_ptr, states) for states in self._levels]
        self._sweeps = min(SWEEPS, max(FEWEST, EFFORT // structure.rows)) if self.cyclic else 1
        self.choice = structure.row_ptr[:-1].copy()
        self.settled = True  # whether the last plan ended because little changed
        self.deadline = deadline

    @property
    def endless(self) -> bool:
        """Whether plays may go on for ever: states can return, and no number of steps ends them."""
        unbounded = self.problem.form in (Form.REACH, Form.TO_TARGET, Form.TOTAL)
        return self.cyclic and unbounded and not self.problem.steps

    def plan(
        self, sets: Marginals, nature: Direction, start: FloatArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Return a value (S,) and rows (steps, S): the agent's best against, or with, nature.

        Sweeps begin at `start` (S,), the value of some policy for example. If the agent maximises,
        `start` must not lie above the value: a loop could keep it there for ever.
        """
        self._packed.sets = _packed(sets)
        problem = self.problem
        if problem.form is Form.STEPS:
            return self._backward(nature)
        value = np.zeros(self.model.states)
        if start is not None:  # infinite values become large
            largest = float(np.max(np.abs(start[np.isfinite(start)]), initial=1.0))
            value[:] = np.where(problem.terminal, 0.0, np.minimum(start, 10.0 * largest))
        if problem.form is Form.REACH:
            value[problem.target] = 1.0
        for _ in range(self._sweeps):
            old = value.copy()
            for states, rows in zip(self._levels, self._rows, strict=True):
                q = self._backup(value, rows, nature)
                choose(q, self.model.row_ptr, states, problem.agent.sign, 0.0, self.choice, value)
            change = float(np.max(np.abs(value - old), initial=0.0))
            self.settled = change <= CHANGE * self._scale(value)
            if self.settled or not self.cyclic or time.monotonic() > self.deadline:
                break
            self._follow(value, nature)
        return value, self.choice[None, :].copy()

    def _scale(self, value: FloatArray) -> float:
        """Return which size of values matters: that of the initial state, unless it is tiny."""
        largest = float(np.max(np.abs(value), initial=1e-300))
        return max(float(np.max(np.abs(value[self.model.initial]))), TINY * largest)

    def _follow(self, value: FloatArray, nature: Direction) -> None:
        """Improve the values by quick sweeps over the chosen rows alone.

        Nature's answers are kept meanwhile where that cannot push values too high for good: if
        she helps (other answers are worth more), or if costs to a target are minimised (they come
        down again).
        """
        from rfmdp.kernels.products import sequential_answers

        problem, packed = self.problem, self._packed
        keeps = nature is problem.agent
        keeps |= problem.form is Form.TO_TARGET and problem.agent is MIN
        for states in self._levels:
            rows = self.choice[states]
            if keeps:
                packed.sign = 1.0 if nature is MIN else -1.0
                answers = packed.joint(sequential_answers, value, rows)
                chain = Chain(
                    self.model, Nodes.alone(states), self.choice, answers, value, problem.reward,
                    problem.discount,
                )  # fmt: skip
                enough = 0.1 * CHANGE * self._scale(value)
                chain.sweep(CHAIN_SWEEPS, np.full(len(states), enough))
                chain.put(value)
                continue
            for _ in range(POLICY_SWEEPS):
                value[states] = self._backup(value, rows, nature)[rows]

    def pay(self, reward: FloatArray | None) -> None:
        """Plan with other rewards of the rows from now on, if there are some."""
        if reward is not None:
            self.problem = replace(self.problem, reward=reward)

    def collect(self, sets: Marginals, bonus: FloatArray, steps: int) -> IntArray:
        """Return the rows (steps, S) that collect the most of a bonus (R,) within some steps.

        A trajectory goes on where the objective is decided, and still shows outcomes there.
        """
        self._packed.sets = _packed(sets)
        model = self.model
        states, rows = np.arange(model.states), np.arange(model.rows)
        value, rules = np.zeros(model.states), np.tile(model.row_ptr[:-1], (steps, 1))
        for rule in rules[::-1]:
            q = self._backup(value, rows, MIN, bonus)
            value = np.empty(model.states)
            choose(q, model.row_ptr, states, 1.0, 0.0, rule, value)
            if time.monotonic() > self.deadline:
                break
        return rules

    def _backup(
        self, value: FloatArray, rows: IntArray, nature: Direction, bonus: FloatArray | None = None
    ) -> FloatArray:
        """Return what rows pay and is expected, or their bonus; other rows keep old numbers."""
        from rfmdp.kernels.products import sequential_rows

        self._packed.sign = 1.0 if nature is MIN else -1.0
        self._packed.run(sequential_rows, value, rows, (self._below, self._above))
        q = self._below if nature is MIN else self._above
        if bonus is not None:
            q[rows] = bonus[rows] + q[rows]
        else:
            q[rows] = self.problem.reward[rows] + self.problem.discount * q[rows]
        return q

    def _backward(self, nature: Direction) -> tuple[FloatArray, IntArray]:
        problem, model = self.problem, self.model
        value = problem.start.copy()
        states, rows = np.arange(model.states), np.arange(model.rows)
        rules = np.tile(model.row_ptr[:-1], (max(len(problem.steps), 1), 1))
        for rule, step in zip(rules[::-1], problem.steps, strict=False):
            q = self._backup(value, rows, nature)
            value = np.empty(model.states)
            choose(q, model.row_ptr, states, problem.agent.sign, 0.0, rule, value)
            value = np.where(step.fixed, step.given, value)
        return value, rules


def _packed(sets: Marginals) -> Sets:
    """Pack sets for the kernels, without vertices beside those that are stored.

    An L1 ball of two outcomes is the box of its bounds, which is quicker.
    """
    pairs = (sets.kind == Kind.L1) & (sets.sizes == 2)
    if pairs.any():
        sets = replace(sets, kind=np.where(pairs, Kind.BOX, sets.kind).astype(np.int8))
    return pack_sets(sets, (sets.corner_ptr, sets.corners))


class Sampling:
    """What was sampled, in `done` trajectories and `steps`, and what to sample next.

    An exploration plans with it. `guard` are the sets of the guarantee.
    """

    def __init__(self, setup: Setup, learned: LearnedModel, guard: SetStore, watch: Watch) -> None:
        self.setup, self.learned, self._watch = setup, learned, watch
        counted, source = learned.model, setup.source
        visits, start = learned.range is not None, source.random_start
        self.seen = Tally.empty(counted, visits=visits, starts=start)
        self.planner = Planner(counted, learned.spec, watch.deadline)
        self.sets = SetStore(setup.method.confidence, guard.ptr, guard.delta, nested=False)
        error = setup.method.exploration.error
        if error is not None:  # plans with boxes that share it evenly
            delta = np.full(len(guard.delta), error / max(1, int(guard.ptr[-1])))
            self.sets = SetStore(ClopperPearson(), guard.ptr, delta)
        self.behaviour: Behaviour | None = None
        self.value: FloatArray | None = None  # (S,) of the last optimistic plan
        self.robust: IntArray | None = None  # rows (steps, S) of the last robust policy
        self.limits = np.zeros(len(guard.ptr) - 1, dtype=np.int64)
        self.plans = self.earliest = 0  # next plan: after how many trajectories, or later
        self.done = self.steps = 0
        # what is checked; records bring theirs
        self.evidence = Evidence(counted) if source.observed else None
        draws = setup.records is None
        self._sampler = source.sampler(counted, self.evidence) if draws else None

    def count(self, records: Log) -> None:
        """Count all recorded transitions at once."""
        objective, declared = self.setup.spec.objective, None
        if self.learned.range is None and objective.rewarded:
            declared = row_rewards(records.model, objective.reward_name)
        tally, self.evidence = records.tally(self.learned.model, declared)
        for new, old in zip(tally.kernel, self.seen.kernel, strict=True):
            old[:] = new[: len(old)]
        self.done, self.steps = records.trajectories, records.steps
        self.learned.take(self.seen.visits)

    def run(self, goal: int) -> None:
        """Run trajectories up to number `goal`, planning anew when it is due."""
        setup = self.setup
        assert self._sampler is not None  # the source draws
        chunk = max(1, CHUNK // setup.length)
        while self.done < goal and (not self.done or self._watch.left() >= 0.0):
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
            self.learned.take(self.seen.visits)
            self._watch.tell("sampling", self.done)

    def _plan(self) -> None:
        method = self.setup.method
        self._watch.tell("planning", self.done)
        self.planner.pay(self.learned.paid(hopeful=True))
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

    def state(self) -> dict[str, AnyArray]:
        """Return the arrays that `restore` needs."""
        state = {
            "numbers": np.array([self.plans, self.earliest, self.done, self.steps]),
            "limits": self.limits, "choice": self.planner.choice.copy(),
            "robust": self.robust, "value": self.value,
        }  # fmt: skip
        if self.behaviour is not None:
            state |= {"rows": self.behaviour.rows, "other": np.array([self.behaviour.other])}
        return {name: array for name, array in state.items() if array is not None}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a saved state."""
        self.plans, self.earliest, self.done, self.steps = state["numbers"].tolist()
        self.limits = state["limits"]
        self.planner.choice[:] = state["choice"]
        self.robust, self.value = state.get("robust"), state.get("value")
        if "rows" in state:
            self.behaviour = Behaviour(state["rows"], float(state["other"][0]))
