"""Planning for exploration: fast sweeps that prove nothing.

Only the guarantee carries an error probability; what to try next may be computed roughly. A plan
is one sweep over the levels of an acyclic model, and a limited number of sweeps of a cyclic one,
with the sequential minimiser as the inner solver. Layouts are made once.
"""

from __future__ import annotations

import numpy as np

from rfmdp.inner.bound import Bound, corners_of, inputs
from rfmdp.inner.layout import Sets, Work, pack_rows, pack_sets
from rfmdp.kernels.oracle import FREE, LOWER, PLACE
from rfmdp.kernels.sweep import choose
from rfmdp.learn.store import SetStore
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction, Spec
from rfmdp.outer.components import components
from rfmdp.outer.graph import Graph
from rfmdp.outer.operator import rows_of
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.types import FloatArray, IntArray
from rfmdp.uncertainty.marginals import Marginals

SWEEPS = 200
CHANGE = 1e-4  # relative change of the values at which a plan is good enough


class Planner:
    """Plans for one specification on a structure whose marginals change.

    `value` and `choice` are those of the last plan, to start the next one from.
    """

    def __init__(self, structure: FactoredMDP, spec: Spec) -> None:
        self.problem: Problem = pose(structure, spec)
        self.model = structure
        none = corners_of(structure, np.empty(0, dtype=np.int64))
        self._bound = Bound(structure, MIN, pack_rows(structure), none)
        self._below, self._above = np.empty(structure.rows), np.empty(structure.rows)
        parts = components(Graph(structure), ~self.problem.terminal)
        self.cyclic = not bool(np.all(parts.trivial))
        self._levels = [parts.level(i) for i in range(len(parts.level_ptr) - 1)]
        if self.cyclic and self._levels:
            self._levels = [np.concatenate(self._levels)]
        self._rows = [rows_of(structure.row_ptr, states) for states in self._levels]
        self.choice = structure.row_ptr[:-1].copy()
        self._store: SetStore | None = None
        self._store_sets: Sets | None = None

    def plan(
        self, sets: Marginals | SetStore, nature: Direction, warm: FloatArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Return a value and rows (steps, S), the agent's best against (or with) nature.

        Of a store only the sets that changed since the last plan are packed again.
        """
        self._load(sets)
        if self.problem.form is Form.STEPS:
            return self._backward(nature)
        value = self._start(warm)
        for _ in range(SWEEPS if self.cyclic else 1):
            old = value.copy()
            for states, rows in zip(self._levels, self._rows, strict=True):
                q = self._backup(value, rows, nature, self.problem.reward, self.problem.discount)
                choose(
                    q, self.model.row_ptr, states, self.problem.agent.sign, 0.0,
                    self.choice, value,
                )  # fmt: skip
            scale = float(np.max(np.abs(value), initial=1e-300))
            if float(np.max(np.abs(value - old), initial=0.0)) <= CHANGE * scale:
                break
        return value, self.choice[None, :].copy()

    def collect(self, sets: Marginals, bonus: FloatArray, steps: int) -> IntArray:
        """Return the rows (steps, S) that collect the most of a bonus (R,) within some steps."""
        self._load(sets)
        model = self.model
        states, rows = np.arange(model.states), np.arange(model.rows)
        value = np.zeros(model.states)
        rules = np.tile(model.row_ptr[:-1], (steps, 1))
        for step in range(steps - 1, -1, -1):
            q = self._backup(value, rows, MIN, bonus, 1.0)
            value = np.empty(model.states)
            choose(q, model.row_ptr, states, 1.0, 0.0, rules[step], value)
            value[self.problem.terminal] = 0.0
        return rules

    def _start(self, warm: FloatArray | None) -> FloatArray:
        """Return the first value: known ones are fixed; optimistic costs only grow, so may stay."""
        problem = self.problem
        value = np.zeros(self.model.states)
        if problem.form is Form.REACH:
            value[problem.target] = 1.0
        elif warm is not None and (problem.agent is MIN or problem.form is Form.DISCOUNTED):
            value[:] = np.where(problem.terminal, 0.0, warm)
        return value

    def _load(self, sets: Marginals | SetStore) -> None:
        if isinstance(sets, Marginals):
            self._bound.sets = _packed(sets)
            return
        stale = sets.changes()
        if self._store is not sets or self._store_sets is None or not sets.boxes:
            self._store, self._store_sets = sets, _packed(sets.marginals())
        elif len(stale):
            _repack(self._store_sets, sets, stale)
        self._bound.sets = self._store_sets

    def _backup(
        self,
        value: FloatArray,
        rows: IntArray,
        nature: Direction,
        reward: FloatArray,
        discount: float,
    ) -> FloatArray:
        """Return reward + discount * nature's expectation; other rows keep old numbers."""
        from rfmdp.kernels.plain import sequential_rows

        b, sign = self._bound, 1.0 if nature is MIN else -1.0
        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            sequential_rows(
                b.sets, b.rows, work, rows[chosen], value, sign, self._below, self._above
            )

        b.run(rows, part)
        q = self._below if nature is MIN else self._above
        q[rows] = reward[rows] + discount * q[rows]
        return q

    def _backward(self, nature: Direction) -> tuple[FloatArray, IntArray]:
        """Plan a finite horizon."""
        problem, model = self.problem, self.model
        assert problem.start is not None
        value, count = problem.start.copy(), max(len(problem.steps), 1)
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
    """Pack sets for the kernels, without vertices beside those that are stored."""
    return pack_sets(sets, sets.corner_ptr, sets.corners)


def _repack(packed: Sets, store: SetStore, which: IntArray) -> None:
    """Write the boxes of some identifiers into packed sets, in the layout of `pack_sets`."""
    head, data, _ = packed
    pointers, entries = store.part(which)
    sizes = np.diff(pointers)
    place = head[which, PLACE]
    lower = store.lower[entries]
    data[place + FREE] = np.maximum(0.0, 1.0 - np.add.reduceat(lower, pointers[:-1]))
    within = np.arange(len(entries)) - np.repeat(pointers[:-1], sizes)
    at, step = np.repeat(place + LOWER, sizes) + within, np.repeat(sizes, sizes)
    data[at] = lower
    data[at + step] = store.upper[entries] - lower
    data[at + 2 * step] = store.nominal[entries]
