"""Rough plans: fast sweeps that prove nothing.

What to sample next, and which policy to prove next, may be computed roughly: guarantees do not rest
on it. A plan is one sweep over the levels of a model without cycles, and a limited number of sweeps
of one with cycles. The inner solver is the sequential minimiser. Layouts are made once.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.packing import PackedModel, Sets, pack_sets
from rfmdp.kernels.sweep import choose
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction, Spec
from rfmdp.outer.graph import Graph
from rfmdp.outer.policy_iteration import Chain, Nodes
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.region import components
from rfmdp.ragged import entries
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import FloatArray, IntArray

SWEEPS, FEWEST = 60, 20  # of a plan at most; of large models fewer, within
EFFORT = 2_500_000  # rows
POLICY_SWEEPS = 5  # of the chosen rows alone, between two sweeps of all rows
CHAIN_SWEEPS = 100  # the same with nature's answers fixed
CHANGE = 1e-4  # relative change of the values at which a plan is good enough
TINY = 1e-3  # of the largest value


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
        value = self._start(start)
        for _ in range(self._sweeps):
            old = value.copy()
            for states, rows in zip(self._levels, self._rows, strict=True):
                q = self._backup(value, rows, nature, problem.reward, problem.discount)
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
        problem = self.problem
        reward, discount = problem.reward, problem.discount
        keeps = nature is problem.agent
        keeps |= problem.form is Form.TO_TARGET and problem.agent is MIN
        for states in self._levels:
            rows = self.choice[states]
            if keeps:
                self._settle_chain(value, states, rows, nature)
                continue
            for _ in range(POLICY_SWEEPS):
                value[states] = self._backup(value, rows, nature, reward, discount)[rows]

    def _settle_chain(
        self, value: FloatArray, states: IntArray, rows: IntArray, nature: Direction
    ) -> None:
        """Evaluate the chain of the chosen rows and nature's answers to them, in place."""
        from rfmdp.kernels.products import sequential_answers

        model, problem = self.model, self.problem
        self._packed.sign = 1.0 if nature is MIN else -1.0
        answers = self._packed.joint(sequential_answers, value, rows)
        chain = Chain(
            model, Nodes.alone(states), self.choice, answers, value, problem.reward,
            problem.discount,
        )  # fmt: skip
        enough = 0.1 * CHANGE * self._scale(value)
        chain.sweep(CHAIN_SWEEPS, np.full(len(states), enough))
        chain.put(value)

    def pay(self, reward: FloatArray | None) -> None:
        """Plan with other rewards of the rows from now on; None: with those as they are."""
        if reward is not None:
            self.problem = replace(self.problem, reward=reward)

    def collect(self, sets: Marginals, bonus: FloatArray, steps: int) -> IntArray:
        """Return the rows (steps, S) that collect the most of a bonus (R,) within some steps.

        A trajectory goes on where the objective is decided, and still shows outcomes there.
        """
        self._packed.sets = _packed(sets)
        model = self.model
        states, rows = np.arange(model.states), np.arange(model.rows)
        value = np.zeros(model.states)
        rules = np.tile(model.row_ptr[:-1], (steps, 1))
        for step in range(steps - 1, -1, -1):
            q = self._backup(value, rows, MIN, bonus, 1.0)
            value = np.empty(model.states)
            choose(q, model.row_ptr, states, 1.0, 0.0, rules[step], value)
            if time.monotonic() > self.deadline:
                break
        return rules

    def _start(self, start: FloatArray | None) -> FloatArray:
        """Return the first value: known ones are fixed; infinite ones become large."""
        problem = self.problem
        value = np.zeros(self.model.states)
        if start is not None:
            largest = float(np.max(np.abs(start[np.isfinite(start)]), initial=1.0))
            value[:] = np.where(problem.terminal, 0.0, np.minimum(start, 10.0 * largest))
        if problem.form is Form.REACH:
            value[problem.target] = 1.0
        return value

    def _backup(
        self,
        value: FloatArray,
        rows: IntArray,
        nature: Direction,
        reward: FloatArray,
        discount: float,
    ) -> FloatArray:
        """Return reward + discount * nature's expectation; other rows keep old numbers."""
        from rfmdp.kernels.products import sequential_rows

        self._packed.sign = 1.0 if nature is MIN else -1.0
        self._packed.run(sequential_rows, value, rows, (self._below, self._above))
        q = self._below if nature is MIN else self._above
        q[rows] = reward[rows] + discount * q[rows]
        return q

    def _backward(self, nature: Direction) -> tuple[FloatArray, IntArray]:
        """Plan a finite horizon."""
        problem, model = self.problem, self.model
        value = problem.start.copy()
        count = max(len(problem.steps), 1)
        states, rows = np.arange(model.states), np.arange(model.rows)
        rules = np.tile(model.row_ptr[:-1], (count, 1))
        for number, step in enumerate(problem.steps):
            q = self._backup(value, rows, nature, problem.reward, problem.discount)
            value = np.empty(model.states)
            rule = rules[count - 1 - number]
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
