"""Bounds of a specification on a model in blocks.

form                             how                                   proof
finite horizon                   a round per step                      errors add up, see `horizon`
discounted                       rounds of sweeps                      contraction, one check
reach, reward to target, total   rounds of sweeps, then with a push    lower: sound from 0 on;
                                                                       upper: T(U) <= U, one check

For a reward to a target T(U) < U is needed: then every play of the policy ends, in the mean after
finitely many steps. The push is a small share of the precision. If U comes out too far from L, it
is made smaller. Where a play can go on for ever without a reward (other than in one state) the
upper bound is not found, and the status says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.inner.protocol import Inner
from rfmdp.model.blocked import BlockedMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.blocks.block import Check, Command, Step, Sweeps, require_form
from rfmdp.outer.blocks.fleet import Fleet, fleet
from rfmdp.outer.horizon import distance
from rfmdp.outer.problem import Form, Problem, pose, where
from rfmdp.outer.settings import STOPS, Clock, Limits, largest, status_of
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.ragged import starts
from rfmdp.rounding import LAST_DIGITS, UNIT, one_minus
from rfmdp.state_sets import StateSet
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

CHECKPOINT = 5.0  # seconds between two checkpoints, about
SWEEPS = 8  # of a block between two exchanges of values
ROUNDS = 4  # between two decisions and checkpoints: the same number wherever blocks are
SETTLED = 0.1  # a round that moves values by this share of the precision is one of the last
PATIENCE = 4  # times as many rounds for the upper bound as for the lower one, at most
FEW = 16  # rounds before anything is concluded from them
STEADY = 0.9  # values that still move by this share of what they moved before grow without end


@dataclass(slots=True, eq=False)
class _Found:
    """What was proven; a side that was not is what every value keeps to."""

    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    value: FloatArray  # (S,)
    rules: IntArray  # (steps, S) or (1, S)
    stopped: Status | None = None
    unit: float = 0.0  # in the last place of the largest reward that was rounded, see `_paid_for`


def solve_blocked(
    model: BlockedMDP, spec: Spec, inner: Inner, limits: Limits, states: StateSet
) -> Solution:
    """Return bounds of a specification in all states of a model in blocks, with a policy."""
    problem, interest, stats = pose(model.frame, spec), where(model.frame, states), Stats()
    require_form(problem)
    with stats.phase("prepare"):
        blocks = fleet(model, spec, inner, limits.seconds)
    try:
        with stats.phase("solve"):
            run = _Run(problem, blocks, Clock(limits), stats, interest)
            found = run.solve()
            found.unit = max((outcome.unit for outcome in run.outcomes), default=0.0)
    finally:
        blocks.close()
    return _solution(model, spec, inner, limits, problem, found, stats, interest)


def _solution(
    model: BlockedMDP, spec: Spec, inner: Inner, limits: Limits, problem: Problem,
    found: _Found, stats: Stats, interest: BoolArray,
) -> Solution:  # fmt: skip
    """Return what was found, turned back if the problem was the opposite one."""
    (lower, upper), value, witness = _paid_for(problem, found), found.value, None
    if problem.probability:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    value = np.clip(value, lower, upper)
    if problem.flipped:
        witness = (lower, upper) if problem.form is Form.REACH else None
        lower, upper, value = one_minus(upper, -1.0), one_minus(lower, 1.0), 1.0 - value
    close = limits.excess(lower, upper, interest, float(problem.probability)) <= 1.0
    status = Status.CERTIFIED if close else found.stopped or Status.GAP_OPEN
    precision = limits.reached(lower, upper, interest) if close else limits.precision
    return Solution(
        model, spec, inner.name, status, lower, upper, value, Policy(found.rules), precision,
        stats, witness, limits.measure.name, interest,
    )  # fmt: skip


def _paid_for(problem: Problem, found: _Found) -> tuple[FloatArray, FloatArray]:
    """Return bounds that hold for the exact rewards, if sums of two were rounded.

    Twice what half a unit in the last place of every reward can change, as `solving` pays.
    """
    lower, upper = found.lower, found.upper
    if found.unit == 0.0:
        return lower, upper
    if problem.form in (Form.TOTAL, Form.TO_TARGET):
        below, above = 2.0 * UNIT * np.abs(lower), 2.0 * UNIT * np.abs(upper)
    else:
        endless = problem.form is Form.DISCOUNTED
        steps = 1.0 / (1.0 - problem.discount) if endless else len(problem.steps)
        below = above = np.full(len(lower), 2.0 * found.unit * steps)
    return (
        np.where(below > 0.0, np.nextafter(lower - below, -np.inf), lower),
        np.where(above > 0.0, np.nextafter(upper + above, np.inf), upper),
    )


class _Run:
    """One solve: what blocks have at the last checkpoint, and what is left to do."""

    def __init__(
        self, problem: Problem, blocks: Fleet, clock: Clock, stats: Stats, interest: BoolArray
    ) -> None:
        self.problem, self.blocks, self.clock = problem, blocks, clock
        self.stats, self.interest = stats, interest
        self.outcomes = blocks.begin()
        self.first_rows = starts([outcome.rows for outcome in self.outcomes])[:-1]
        self.at_once = 1

    def solve(self) -> _Found:
        """Find bounds by the way of the form."""
        match self.problem.form:
            case Form.STEPS:
                return self._horizon()
            case Form.DISCOUNTED:
                return self._discounted()
        return self._least_fixed_point()

    @property
    def values(self) -> FloatArray:
        """The values of all states, (C, S)."""
        return np.concatenate([outcome.values for outcome in self.outcomes], axis=1)

    @property
    def choice(self) -> IntArray:
        """The rows chosen, (1, S)."""
        return self._global([outcome.choice for outcome in self.outcomes])[None]

    def _global(self, rows: Sequence[Int32Array]) -> IntArray:
        """Return rows of blocks as rows of the model, (S,)."""
        pairs = zip(rows, self.first_rows.tolist(), strict=True)
        return np.concatenate([part.astype(np.int64) + first for part, first in pairs])

    def _rounds(self, commands: Sequence[Command], phase: str, width: float) -> None:
        """Do rounds up to the next checkpoint; as many fit into it as time tells."""
        started = time.monotonic()
        self.outcomes = self.blocks.run(self.outcomes, commands)
        gone = (time.monotonic() - started) / len(commands)
        most = self.blocks.steps_at_once
        self.at_once = max(1, min(most, 2 * self.at_once, int(CHECKPOINT / max(gone, 1e-3))))
        self.stats.robust_sweeps += len(commands)
        self.clock.tick(phase, width)

    def _nothing(self, stopped: Status) -> _Found:
        """Return what holds before anything is proven."""
        size = len(self.interest)
        least = -np.inf if self.problem.form in (Form.STEPS, Form.DISCOUNTED) else 0.0
        least = 0.0 if self.problem.probability else least
        most = 1.0 if self.problem.probability else np.inf
        return _Found(
            np.full(size, least), np.full(size, most), self.values[0], self.choice, stopped
        )

    def _horizon(self) -> _Found:
        count, done, error = len(self.problem.steps), 0, 0.0
        rules = np.tile(self.choice, (max(count, 1), 1))
        try:
            while done < count:
                more = min(self.at_once, count - done)
                self._rounds([Step(done + k) for k in range(more)], "steps", error)
                for k in range(more):
                    widths, sizes = zip(*(o.spreads[k] for o in self.outcomes), strict=True)
                    error = self.problem.discount * error + distance(max(widths), max(sizes))
                    rules[count - 1 - done] = self._global([o.rules[k] for o in self.outcomes])
                    done += 1
        except STOPS as stop:
            if done < count:
                return self._nothing(status_of(stop))
        value = self.values[0]
        return _Found(value - error, value + error, value, rules)

    def _discounted(self) -> _Found:
        """Sweep until one check shows that the fixed point is close."""
        discount, stopped, found = self.problem.discount, None, None
        idle = 0
        try:
            while found is None or self._excess(found.lower, found.upper) > 1.0:
                self._rounds([*[Sweeps(SWEEPS)] * ROUNDS, Check()], "discounted", _width(found))
                latest = self._around_fixed_point(discount)
                idle = idle + 1 if _width(latest) >= _width(found) else 0
                if idle > FEW:
                    break  # rounding leaves no more
                found = latest if idle == 0 else found
        except STOPS as stop:
            stopped = status_of(stop)
        if found is None:
            return self._nothing(stopped or Status.GAP_OPEN)
        found.stopped = stopped
        return found

    def _around_fixed_point(self, discount: float) -> _Found:
        """Return bounds from a check, as `discounted.contraction_bounds`."""
        value = self.values[0]
        slack = 8.0 * UNIT * float(np.max(np.abs(value), initial=0.0)) + LAST_DIGITS
        fall, rise = (max(o.moves[k] for o in self.outcomes) for k in (0, 1))
        below, above = (
            (max(off, 0.0) + slack) / (1.0 - discount) * (1.0 + 1e-12) for off in (fall, rise)
        )
        return _Found(value - below, value + above, value, self.choice)

    def _least_fixed_point(self) -> _Found:
        """Raise lower bounds; then look for an inductive upper one."""
        found = self._nothing(Status.GAP_OPEN)
        found.stopped = None
        try:
            rounds = self._raise_lower()
            self._raise_upper(found, PATIENCE * rounds + FEW)
        except STOPS as stop:
            found.stopped = status_of(stop)
        found.lower = found.value = self.values[0]
        if self.problem.agent is MAX:
            found.rules = self.choice
        return found

    def _raise_lower(self) -> int:
        """Raise lower bounds until a round moves them little; return the number of rounds.

        Where they grow without end, they are left as they are after some rounds.
        """
        rounds, change, earlier = 0, np.inf, np.inf
        while change > SETTLED * self._tolerance():
            before = self.values[0]
            self._rounds([Sweeps(SWEEPS)] * ROUNDS, "lower bounds", change)
            change = float(np.max(self.values[0] - before, initial=0.0)) / ROUNDS
            rounds += ROUNDS
            if rounds.bit_count() == 1 and rounds >= FEW:  # at powers of two
                if change > STEADY * earlier:
                    break
                earlier = change
        return rounds

    def _raise_upper(self, found: _Found, patience: int) -> None:
        """Look for inductive upper values that are close enough; those found are noted.

        patience : rounds after which a push has failed
        """
        push, rounds = 0.25 * self._tolerance() / (SWEEPS * patience), 0
        strict = self.problem.form is Form.TO_TARGET
        self._copy_lower()
        while rounds < patience:
            before = self.values[0]
            self._rounds([*[Sweeps(SWEEPS, push)] * ROUNDS, Check()], "upper bounds", push)
            rounds += ROUNDS
            rise = max(outcome.moves[1] for outcome in self.outcomes)
            if not (rise < 0.0 if strict else rise <= 0.0):  # nor if it is no number
                continue
            lower, upper = self.values
            found.upper, found.rules = upper, self.choice
            excess = self._excess(lower, upper)
            if excess <= 1.0:
                return
            moved = float(np.max(lower - before, initial=0.0))
            if moved <= SETTLED * self._tolerance():  # the push is too large
                push, rounds = push / (4.0 * min(excess, 64.0)), 0
                if push < 64.0 * UNIT * largest(upper):
                    return
                self._copy_lower()

    def _copy_lower(self) -> None:
        """Let upper values begin at the lower ones."""
        self.outcomes = [
            replace(outcome, values=np.tile(outcome.values[0], (2, 1))) for outcome in self.outcomes
        ]

    def _tolerance(self) -> float:
        """Return the least width that counts as closed in a state of interest, if it is not 0."""
        limits, lower = self.clock.limits, self.values[0]
        scale = max(largest(lower), float(self.problem.probability))
        values = lower[self.interest]
        positive = values[values > 0.0]
        if not len(positive):
            return limits.precision * scale
        return float(np.min(limits.tolerance(positive, scale)))

    def _excess(self, lower: FloatArray, upper: FloatArray) -> float:
        """Return how many times too wide the bounds of the answer are."""
        if self.problem.flipped:
            lower, upper = 1.0 - upper, 1.0 - lower
        least = float(self.problem.probability)
        return self.clock.limits.excess(lower, upper, self.interest, least)


def _width(found: _Found | None) -> float:
    return np.inf if found is None else float(np.max(found.upper - found.lower, initial=0.0))
