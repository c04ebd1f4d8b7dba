"""Finite horizons and discounted rewards: T does not make errors larger.

T does not expand: |T(V) - T(W)| <= discount * max |V - W|. So a computed step whose rows are known
to half a width h carries its error on by E' = discount * E + h, and V +- E are proven bounds. Where
these are too far apart (tiny probabilities, say) both sides are iterated, each a bound because T is
monotone. A solver that proves one side only iterates that side. Where nature has no choice, or that
of one box per row, both sides are iterated by one compiled loop, which passes over states whose
successors keep their bounds.

With a discount for ever T contracts, so one sweep bounds the error: here, and only here, a residual
d proves something, d / (1 - discount); it is taken from proven sides.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels.decorator import budget, expect
from rfmdp.kernels.packed import DONE, NOW, steps_back
from rfmdp.outer.graph import Graph
from rfmdp.outer.plain import pack_all, players
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.region import Region, components, no_groups
from rfmdp.outer.task import BUDGET, STOPS, Operator, StateBounds, Task, nothing_proven, status_of
from rfmdp.rounding import LAST_DIGITS, UNIT
from rfmdp.types import AnyArray, FloatArray, IntArray

ATTEMPTS = 8


class Backward:
    """Runs the backward steps of a task; `rules` are the rows that it chose."""

    def __init__(self, task: Task) -> None:
        self.task, self.problem = task, task.problem
        model = task.problem.model
        self.states, self.rows = np.arange(model.states), np.arange(model.rows)
        self._every_row = np.ones(model.rows, dtype=np.bool_)

    @cached_property
    def rules(self) -> IntArray:
        """The rows chosen, (steps, S), with 0 steps gone first."""
        return np.tile(self.problem.model.row_ptr[:-1], (max(len(self.problem.steps), 1), 1))

    def run(
        self, start: FloatArray, side: float = 0.0, policy: IntArray | None = None
    ) -> tuple[FloatArray, float]:
        """Return the value (S,) after all steps and how far it may be off.

        The bound of a side (+1 upper) is not off; side 0 has both sides in one pass. The agent
        takes its best rows or those of a policy (steps, S).
        """
        problem, task = self.problem, self.task
        value, error, done = start, 0.0, 0
        while done < len(problem.steps):
            before, width, step = value, 0.0, problem.steps[done]
            allowed = self._every_row
            if policy is not None:
                allowed = np.zeros(problem.model.rows, dtype=np.bool_)
                allowed[policy[len(policy) - 1 - done]] = True
            task.backup(value, self.rows)
            if side:
                q = task.forbid(task.side(side).copy(), self.rows, allowed)
            else:
                q = task.middle(self.rows, allowed)
                width = half_width(task, self.rows[allowed], q)
            value = np.empty(problem.model.states)
            task.choose(q, self.states, self.rules[len(problem.steps) - 1 - done], value)
            task.stats.robust_sweeps += 1
            value = np.where(step.fixed, step.given, value)
            if side and problem.probability:
                value = np.clip(value, 0.0, 1.0)
            error, done = problem.discount * error + width, done + 1
            if policy is None and np.array_equal(value, before):
                # more of the same steps change nothing; each adds at most `width` to the error
                again = self._repeat(done)
                error, done = error + again * width * (1.0 + 4.0 * UNIT), done + again
            self._tick(done, error)
        return value, error

    def run_plain(
        self, start: FloatArray, rows: tuple[AnyArray, ...]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds (S,) and their middle by packed rows, both sides iterated at once."""
        problem, model = self.problem, self.problem.model
        count = len(problem.steps)
        chain = model.rows == model.states
        if chain:
            self.rules = np.broadcast_to(model.row_ptr[:-1], (max(count, 1), model.states))
        sides = np.empty((2, model.states, 2))
        done = 0
        sides[0, :, 0], sides[0, :, 1] = start, start
        moved = np.ones((2, model.states), dtype=np.bool_)
        now = 0
        both = players(problem)
        while done < count:
            same = self._same(done)
            rules = self.rules[count - done - same : count - done]
            given = np.empty((same, 0), dtype=np.int64) if chain else rules
            place = np.array([0, now])
            step = problem.steps[done]
            while place[DONE] < same:
                before = int(place[DONE])
                steps_back(
                    model.row_ptr, rows, both, (step.fixed, step.given, problem.discount), sides,
                    moved, place, given, budget(BUDGET),
                )  # fmt: skip
                expect(BUDGET if place[DONE] < same else 0)
                self.task.stats.robust_sweeps += int(place[DONE]) - before
                now = int(place[NOW])
                error = float(np.max(sides[now, :, 1] - sides[now, :, 0], initial=0.0))
                self._tick(done + int(place[DONE]), error)
            done += same
        return sides[now, :, 0].copy(), sides[now, :, 1].copy(), sides[now].mean(axis=1)

    def _repeat(self, done: int) -> int:
        """Give the next steps the rule of the last one while they are the same; return how many."""
        steps = self.problem.steps
        end = done + self._same(done - 1) - 1
        self.rules[len(steps) - end : len(steps) - done] = self.rules[len(steps) - done]
        return end - done

    def _same(self, done: int) -> int:
        """Return how many steps in a row are the same as the next one, itself included."""
        steps, end = self.problem.steps, done
        while end < len(steps) and steps[end] is steps[done]:
            end += 1
        return end - done

    def _tick(self, done: int, error: float) -> None:
        if done < len(self.problem.steps):
            self.task.clock.tick("steps", error)


def solve_steps(task: Task, policy: IntArray | None = None) -> StateBounds:
    """Solve a finite horizon: once for both sides, or side by side if that is too coarse."""
    problem, start, backward = task.problem, task.problem.start, Backward(task)
    packed = pack_all(problem) if policy is None else None
    result: StateBounds | None = None
    try:
        if packed is not None:
            bounds = backward.run_plain(start, packed)
        else:
            value, error = backward.run(start, policy=policy)
            bounds = value - error, value + error, value
        result = StateBounds(*bounds, backward.rules)
        coarse = task.proves == Side.BOTH and not task.excess(result.lower, result.upper) <= 1.0
        if packed is None and coarse:
            result.choice = result.choice.copy()  # both sides write over the rules
            result.lower, result.upper, result.choice = _both_sides(
                backward, (start, start), policy
            )
    except STOPS as stop:
        if result is None:
            result = replace(nothing_proven(problem), choice=backward.rules)
        result.stopped = status_of(stop)
    if policy is not None:
        result.choice = policy
    return result


def solve_prefix(task: Task, tail: StateBounds, policy: IntArray | None = None) -> StateBounds:
    """Run the steps before an unbounded until (`U>=k`) on the bounds of what follows them."""
    model, stopped = task.problem.model, tail.stopped
    lower, upper = np.zeros(model.states), np.ones(model.states)
    proven = (
        np.clip(tail.lower, 0.0, 1.0) if task.proves & Side.BELOW else None,
        np.clip(tail.upper, 0.0, 1.0) if task.proves & Side.ABOVE else None,
    )
    backward = Backward(task)
    rules = backward.rules
    try:
        lower, upper, rules = _both_sides(backward, proven, policy)
    except STOPS as stop:
        stopped = status_of(stop)
    value = lower if task.proves & Side.BELOW else upper
    rules = np.vstack([rules if policy is None else policy, tail.choice])
    return StateBounds(lower, upper, value, rules, stopped, witness=proven)


def _both_sides(
    backward: Backward,
    start: tuple[FloatArray | None, FloatArray | None],
    policy: IntArray | None,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return both bounds after all steps, 0 and 1 where `start` has none, and rules (steps, S).

    The rules are those of the guarantee.
    """
    model, sign, (low, high) = backward.problem.model, backward.task.sign, start
    lower, upper = np.zeros(model.states), np.ones(model.states)
    rules = backward.rules
    if low is not None:
        lower, _ = backward.run(low, -1.0, policy)
        rules = backward.rules.copy()
    if high is not None:
        backward.rules = np.tile(model.row_ptr[:-1], (len(rules), 1))
        upper, _ = backward.run(high, 1.0, policy)
        if sign < 0.0 or low is None:
            rules = backward.rules
    return lower, upper, rules


def half_width(operator: Operator, rows: IntArray, q: FloatArray) -> float:
    """Return the largest distance of q (R,) from the true value of some rows.

    They were backed up last; it is 0 for a one-sided solver.
    """
    if operator.proves != Side.BOTH or not len(rows):
        return 0.0
    return distance(*spreads(operator, rows, q))


def spreads(operator: Operator, rows: IntArray, q: FloatArray) -> tuple[float, float]:
    """Return the largest half width of some rows, and the largest size of q (R,) there."""
    widths = 0.5 * (operator.above[rows] - operator.below[rows])
    return float(np.max(widths, initial=0.0)), float(np.max(np.abs(q[rows]), initial=0.0))


def distance(width: float, size: float) -> float:
    """Return how far numbers of some size may be from what they are half a width around."""
    return width * (1.0 + 4.0 * UNIT) + 2.0 * UNIT * size + (LAST_DIGITS if width > 0.0 else 0.0)


def solve_discounted(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values."""
    model, graph = task.problem.model, Graph(task.problem.model)
    everywhere, rows = np.ones(model.states, dtype=np.bool_), np.ones(model.rows, dtype=np.bool_)
    region = Region(  # in which nothing is settled by the graph
        task.problem, graph, np.zeros(model.states), everywhere, rows,
        components(graph, everywhere), no_groups(model), model.row_ptr[:-1].copy(),
    )  # fmt: skip
    iteration = PolicyIteration(task, region)
    guess = iteration.start(warm)
    stopped = None
    residual = 1e-1 * task.limits.precision * (1.0 - task.problem.discount)
    try:
        for _ in range(ATTEMPTS):
            iteration.improve(guess, residual)
            lower, upper = contraction_bounds(task, guess)
            if task.closed(lower, upper, guess.value):
                break
            residual = max(residual * 1e-2, 2.0**-52)
    except STOPS as stop:
        stopped = status_of(stop)
        lower, upper = contraction_bounds(task, guess)
    return StateBounds(lower, upper, guess.value, guess.choice, stopped)


def around_fixed_point(
    value: FloatArray, fall: float, rise: float, discount: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds (S,) of the fixed point of T.

    T lowers the value by at most `fall` and raises it by at most `rise`, as was proven.
    """
    slack = 8.0 * UNIT * float(np.max(np.abs(value), initial=0.0))
    below, above = (max(off, 0.0) + slack for off in (fall, rise))
    below, above = (
        (off + (LAST_DIGITS if off > 0.0 else 0.0)) / (1.0 - discount) * (1.0 + 1e-12)
        for off in (below, above)
    )
    return value - below, value + above


def contraction_bounds(operator: Operator, guess: Guess) -> tuple[FloatArray, FloatArray]:
    """Return bounds from one sweep: value plus or minus its one-sided residual / (1 - discount).

    The policy becomes the best rows of the guarantee's side, so that the bound there is proven for
    it: with T_p the operator of its rows, V - c <= T_p(V - c) if c (1 - discount) >= V - T_p(V).
    """
    states, rows = np.arange(operator.model.states), np.arange(operator.model.rows)
    operator.backup(guess.value, rows)
    value = guess.value
    guarantee = operator.side(-operator.sign)
    if np.isfinite(guarantee).all():
        guess.choice = guess.choice.copy()
        ignored = value.copy()
        operator.choose(guarantee, states, guess.choice, ignored)
    fall, rise = (
        float(np.max(side * (operator.best(operator.side(side), states) - value), initial=0.0))
        for side in (-1.0, 1.0)
    )
    lower, upper = around_fixed_point(value, fall, rise, operator.problem.discount)
    paid = operator.problem.reward
    if np.all(paid >= 0.0):  # no sum of such rewards is negative
        lower = np.maximum(lower, 0.0)
    if np.all(paid <= 0.0):
        upper = np.minimum(upper, 0.0)
    return lower, upper
