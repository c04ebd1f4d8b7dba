"""Bounds of a specification on a lattice.

Values are one array and two errors that hold in all states: T does not expand, so a step passes
the errors on and adds its own. Over a finite horizon that is all. A discounted value is iterated
until one more step moves it so little that it is closer than wanted to the only fixed point.

To reach a target, there is only one fixed point if every play ends, whatever the players do. A play
has also ended where no player can ever lead it to the target. So the largest
probability q that a play goes on for K steps is computed first (`_endurance`). If q < 1, then T^K
contracts by q, and a value that a step moves by no more than r is at most K r / (1 - q) away from
the fixed point; so is what the policy of that step is worth. Otherwise a play may last for ever;
what holds then is in `lingering`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.memory import require_memory
from rfmdp.model.lattice import LatticeMDP
from rfmdp.model.lattice_order import Clock, clock_of
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.outer.lattice.lingering import Lingering, LingeringRewards, Ways
from rfmdp.outer.lattice.sweep import Errors, Payments, Sweep
from rfmdp.outer.lattice.trie import Trie
from rfmdp.outer.problem import BackwardStep, Form, Problem, until, where, without_aims
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.task import STOPS, Clock as Watch, Limits, status_of
from rfmdp.rounding import UNIT, one_minus
from rfmdp.types import AnyArray, BoolArray, FloatArray

LASTING = 0.5  # probability that a play lasts, below which its steps need not be counted on


_Result: TypeAlias = tuple[FloatArray, Errors, AnyArray]  # a value, its errors, rules of a policy


def solve_lattice(model: LatticeMDP, spec: Spec, limits: Limits, interest: BoolArray) -> Solution:
    """Return bounds of a specification in all states of a lattice, with a policy.

    A row of the policy is the number of an action.
    """
    stats = Stats()
    with stats.phase("prepare"):
        problem, payments = _posed(model, spec)
        run = _Run(model, problem, payments, Watch(limits), stats, interest)
    probability, flipped, negated, span = (
        problem.probability, problem.flipped, run.negated, run.span()
    )  # fmt: skip
    with stats.phase("solve"):
        value, errors, rules = run.solve()
    stopped, witness, proven = run.stopped, run.witness, run.proven
    del problem, payments, run  # their arrays are as large as those that follow
    if negated:
        value, errors = 0.0 - value, Errors(errors.below, errors.above)  # no zero is negative
    lower, upper = value - errors.above, value + errors.below
    np.clip(lower, *span, out=lower)
    np.clip(upper, *span, out=upper)
    if proven is not None:
        lower, upper = proven
    if flipped:
        lower, upper, value = one_minus(upper, -1.0), one_minus(lower, 1.0), 1.0 - value
    close = limits.excess(lower, upper, interest, float(probability)) <= 1.0
    status = Status.CERTIFIED if close else stopped or Status.GAP_OPEN
    precision = limits.reached(lower, upper, interest) if close else limits.precision
    return Solution(
        model, spec, "exact", status, lower, upper, np.clip(value, lower, upper), Policy(rules),
        precision, stats, witness, measure=limits.measure.name, interest=interest,
    )  # fmt: skip


def _posed(model: LatticeMDP, spec: Spec) -> tuple[Problem, Payments]:
    """Bring a specification into normal form; what is paid stands beside it."""
    objective, form = spec.objective, Form.STEPS
    first, last = objective.span
    if last is None:
        discounted = objective.rewarded and objective.factor < 1.0
        form = Form.DISCOUNTED if discounted else Form.TO_TARGET
    aims = "target" in objective.sets or objective.complement
    if (
        not objective.plain
        or objective.endless
        or (form is Form.TO_TARGET and (first > 0 or not aims))
    ):
        raise UnsupportedError(
            f"A model that is not written out ({model.states:,} states) is solved for horizons, "
            f"discounts and targets, not for {spec}. Ask with a bound of steps, as in F<=100."
        )
    require_memory(float(model.states) * (last or 1), f"A policy with a rule per step ({last})")
    problem = without_aims(model, spec, 0)
    if not objective.rewarded:
        return until(objective, problem), Payments.nothing(model)
    rewards, steps = model.reward(objective.reward_name), last or 0
    problem = replace(
        problem, form=form, discount=objective.factor,
        steps=(BackwardStep(problem.target, problem.start),) * steps,
    )  # fmt: skip
    if not objective.summed:
        start = problem.start if rewards.state is None else model.evaluate(rewards.state)
        return replace(problem, start=start), Payments.nothing(model)
    if "target" in objective.sets:
        problem = replace(problem, target=where(model, objective.sets["target"]))
    return problem, Payments.of(model, rewards)


class _Run:
    """A solve under way. Its methods return a value, its errors, and the rules of a policy.

    Nature minimises: where she maximises, all numbers have the other sign (`negated`).
    """

    def __init__(
        self, model: LatticeMDP, problem: Problem, payments: Payments, watch: Watch, stats: Stats,
        interest: BoolArray,
    ) -> None:  # fmt: skip
        self.model, self.problem, self.watch, self.stats = model, problem, watch, stats
        self.interest, self.negated = interest, problem.nature is MAX
        self.agent = problem.agent.opposite if self.negated else problem.agent
        self.payments = payments.negated() if self.negated else payments
        self.sweep = Sweep(model, self.agent, self.payments, problem.discount)
        self.stopped: Status | None = None
        self.witness: tuple[FloatArray, FloatArray] | None = None  # inductive bounds, `Lingering`
        self.proven: tuple[FloatArray, FloatArray] | None = None  # what they say

    def solve(self) -> _Result:
        """Go the way of the form."""
        match self.problem.form:
            case Form.STEPS:
                return self.steps()
            case Form.DISCOUNTED:
                return self.discounted()
        return self.to_target()

    def span(self) -> tuple[float, float]:
        """Return what values can be; no less than 0 if nothing below it is ever paid."""
        if self.problem.probability:
            return 0.0, 1.0
        paid = self.payments.idle, self.payments.pays
        least = min(-x.max() if self.negated else x.min() for x in paid)
        least = min(float(least), float(np.min(self.problem.start)))
        return (0.0 if least >= 0.0 else -np.inf), np.inf

    def signed(self, value: FloatArray) -> FloatArray:
        """Return values with the sign of this run."""
        return -value if self.negated else value

    def back(self, value: FloatArray, *trie: Trie) -> tuple[FloatArray, AnyArray, Errors]:
        """Return a step back, see `Sweep.back`, and count it."""
        step = self.sweep.back(value, *trie)
        self.stats.robust_sweeps += 1
        self.stats.rows += self.sweep.rows
        self.stats.rows_branched += self.sweep.mixed
        return step

    def close(self, value: FloatArray, errors: Errors) -> bool:
        """Return whether bounds are as close as wanted, with something to spare."""
        low, high = value - errors.above, value + errors.below
        probability = float(self.problem.probability)
        return self.watch.limits.excess(low, high, self.interest, probability) <= 0.5

    def steps(self) -> _Result:
        """Step back from the start; after a stop nothing is known."""
        problem, count = self.problem, len(self.problem.steps)
        rules = np.zeros((max(count, 1), self.model.states), dtype=np.uint8)
        value, errors = self.signed(problem.start), Errors()
        done = 0
        try:
            for step in problem.steps:
                after, choice, more = self.back(value)
                np.copyto(after, self.signed(step.given), where=step.fixed)
                rules[count - 1 - done] = choice
                # one assignment: an interrupt finds all three of the same step
                value, errors, done = after, errors.after(problem.discount, more), done + 1
                if done < count:
                    self.watch.tick("steps", errors.above + errors.below)
        except STOPS as stop:
            self.stopped = status_of(stop)
            rules[: count - done] = self.model.some_rule()
            errors = Errors(np.inf, np.inf)
        return value, errors, rules

    def discounted(self) -> _Result:
        """Iterate until a step moves the value so little that the fixed point is close."""
        value, errors = np.zeros(self.model.states), Errors(np.inf, np.inf)
        rule = self.model.some_rule()
        try:
            while True:
                after, choice, more = self.back(value)
                around = _around_fixed_point(value, after, more, self.problem.discount)
                value, errors, rule = after, around, choice  # one assignment, see `steps`
                if self.close(value, errors):
                    break
                self.watch.tick("discounted", errors.above + errors.below)
        except STOPS as stop:
            self.stopped = status_of(stop)
        return value, errors, rule[None]

    def to_target(self) -> _Result:
        """Iterate until a step moves the value so little that the fixed point is close."""
        ends, clock = self.problem.terminal, clock_of(self.model)
        won = (self.problem.target & self.problem.probability).astype(np.float64)
        given = self.signed(won)
        if clock is not None and clock.factor == 0 and ends[clock.lasting(self.model)].all():
            return self.level_by_level(ends, given, clock)
        value = given
        # a value, its errors, and the policy of a step back from it
        proven = value, Errors(np.inf, np.inf), self.model.some_rule()
        try:
            if self.problem.probability:
                ends = ends | Ways(self.model).hopeless(won != 0.0, ends, self.watch)
            steps, lasts = _endurance(self.model, ends, self.watch)
            if lasts.max() == 1.0:
                return self.lingering(ends, won)
            factor = max(steps, 1) / (1.0 - float(lasts.max())) * (1.0 + 8.0 * UNIT)
            while True:
                after, choice, more = self.back(value)
                np.copyto(after, given, where=ends)
                slack = 8.0 * UNIT * float(np.max(np.abs(after)))  # of a checker's own roundings
                rise = max(float(np.max(after - value)) + more.below + slack, 0.0)
                fall = max(float(np.max(value - after)) + more.above + slack, 0.0)
                around = Errors(factor * fall, factor * rise)
                proven = value, around, choice
                if self.close(value, around) or np.array_equal(after, value):
                    break
                value = after
                self.watch.tick("to the target", around.above + around.below)
        except STOPS as stop:
            self.stopped = status_of(stop)
        value, errors, rule = proven
        return value, errors, rule[None]

    def lingering(self, ends: BoolArray, won: FloatArray) -> _Result:
        """Bound least fixed points by induction, as plays may last for ever."""
        limits, probability = self.watch.limits, self.problem.probability
        rule, maximises = self.model.some_rule(), self.problem.agent is MAX
        begin = self.model, self.back, self.negated, maximises, ends, won
        if probability:
            bounds = Lingering(*begin, np.where(ends, won, 1.0), rule, self.watch)
        else:
            if self.span()[0] < 0.0:  # steps prove nothing of such rewards
                return won, Errors(np.inf, np.inf), rule[None]
            unpaid = Sweep(self.model, self.agent, Payments.nothing(self.model)).back
            bounds = LingeringRewards(
                *begin, np.where(ends, won, np.inf), rule, self.watch,
                unpaid=unpaid, most=self.payments.most,
            )  # fmt: skip
        try:
            bounds.run(lambda low, high: limits.excess(low, high, self.interest, probability))
        except STOPS as stop:
            self.stopped = status_of(stop)
        self.witness = bounds.claimed, bounds.upper
        self.proven = bounds.claimed_value, bounds.upper
        value = np.clip(bounds.lower, *self.proven)
        return self.signed(value), Errors(), bounds.rule[None]

    def level_by_level(self, ends: BoolArray, value: FloatArray, clock: Clock) -> _Result:
        """Step back once per level of a clock; states of a level lead to lower ones only."""
        rule, errors = self.model.some_rule(), Errors()
        try:
            for level in range(1, int(clock.level.max()) + 1):
                after, choice, more = self.back(value, self.sweep.level(clock, level))
                here = clock.states(self.model, level) & ~ends
                value[here], rule[here] = after[here], choice[here]
                errors = errors.after(1.0, more)
                self.watch.tick("level by level", errors.above + errors.below)
        except STOPS as stop:
            errors, self.stopped = Errors(np.inf, np.inf), status_of(stop)
        return value, errors, rule[None]


def _endurance(model: LatticeMDP, ends: BoolArray, watch: Watch) -> tuple[int, FloatArray]:
    """Return a number of steps, and the largest probabilities (S,) that a play lasts longer.

    One of them is 1 if the players can let it last for ever.
    """
    sweep = Sweep(model, MIN, Payments.nothing(model))  # both maximise, so all signs are turned
    lasts = (~ends).astype(np.float64)
    steps = 0
    while lasts.max() > LASTING:
        after, _, more = sweep.back(-lasts)
        after = more.above - after
        np.clip(after, 0.0, 1.0, out=after)
        after[ends] = 0.0
        steps += 1
        endless = lasts == 1.0
        if endless.any() and np.array_equal(endless, after == 1.0):
            break
        lasts = after
        watch.tick("how long plays last", float(lasts.max()))
    return steps, lasts


def _around_fixed_point(
    before: FloatArray, after: FloatArray, errors: Errors, discount: float
) -> Errors:
    """Return how far the fixed point may be from `after` = T(before), computed with errors.

    V* - T(before) <= discount / (1 - discount) * max(T(before) - before), and the other way round.
    """
    rise = float(np.max(after - before)) + errors.below
    fall = float(np.max(before - after)) + errors.above
    ratio = discount / (1.0 - discount) * (1.0 + 8.0 * UNIT)
    slack = 4.0 * UNIT * float(np.max(np.abs(after)))
    return Errors(
        max(ratio * (fall + slack), 0.0) + errors.above + slack,
        max(ratio * (rise + slack), 0.0) + errors.below + slack,
    )
