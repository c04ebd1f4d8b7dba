"""Bounds of a specification on a model in blocks.

form                             how                                   proof
finite horizon                   a round per step                      errors add up, see `horizon`
discounted                       rounds of sweeps                      contraction, one check
reach, reward to target, total   rounds of sweeps, then with a push    lower: sound from 0 on;
                                                                       upper: T(U) <= U, one check

For a reward to a target T(U) < U is needed: then every play of the policy ends, in the mean after
finitely many steps. The push is a small share of the precision. If U comes out too far from L, it
is made smaller. Where a play can go on for ever without a reward (other than in one state) the
upper bound is not proven, and the status says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rfmdp.inner.protocol import Inner, PreparedInner, Side
from rfmdp.model.blocked import BlockedMDP
from rfmdp.objective import MAX, Spec
from rfmdp.outer.blocks.block import BlockOperator, Command
from rfmdp.outer.blocks.fleet import Cluster, LocalBlocks
from rfmdp.outer.horizon import around_fixed_point, distance
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Solution, Stats, Status
from rfmdp.outer.task import (
    STOPS,
    Clock,
    Limits,
    StateBounds,
    Task,
    largest,
    nothing_proven,
    status_of,
    to_solution,
)
from rfmdp.ragged import starts
from rfmdp.rounding import UNIT
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

CHECKPOINT = 5.0  # seconds between two checkpoints, about
SWEEPS = 8  # of a block between two exchanges of values
ROUNDS = 4  # between two decisions and checkpoints: the same number wherever blocks are
SETTLED = 0.1  # a round that moves values by this share of the precision is one of the last
PATIENCE = 4  # times as many rounds for the upper bound as for the lower one, at most
FEW = 16  # rounds before anything is concluded from them
SWEEPING = partial(BlockOperator.sweeps, count=SWEEPS)
STEADY = 0.9  # values that still move by this share of what they moved before grow without end


def solve_blocked(
    model: BlockedMDP, spec: Spec, inner: Inner, limits: Limits, interest: BoolArray
) -> Solution:
    """Return bounds of a specification in all states of a model in blocks, with a policy."""
    problem, stats = pose(model.frame, spec), Stats()
    nobody = PreparedInner(Side.BOTH, _no_rows, _no_rows)  # rows are those of the blocks
    task = Task(problem, nobody, stats, limits, interest, Clock(limits))
    with stats.phase("prepare"):
        blocks: LocalBlocks | Cluster
        if model.scheduler is None:
            blocks = LocalBlocks(model, spec, inner)
        else:
            blocks = Cluster(model, model.scheduler, spec, inner, limits.seconds)
    try:
        with stats.phase("solve"):
            run = _Run(task, blocks)
            result = run.solve()
            least = min((outcome.least for outcome in run.outcomes), default=0.0)
    finally:
        blocks.close()
    if least == 0.0:
        result.lower = np.maximum(result.lower, 0.0)
    return replace(to_solution(task, spec, inner.name, result), model=model)


def _no_rows(*_: object) -> Any:
    raise AssertionError("the frame of a model in blocks has no rows")


class _Run:
    """One solve: what blocks have at the last checkpoint, and what is left to do."""

    def __init__(self, task: Task, blocks: LocalBlocks | Cluster) -> None:
        self.task, self.problem, self.blocks = task, task.problem, blocks
        self.outcomes = blocks.begun
        self.first_rows = starts([outcome.rows for outcome in self.outcomes])[:-1]
        self.at_once = 1

    def solve(self) -> StateBounds:
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
        self.task.stats.robust_sweeps += len(commands)
        self.task.clock.tick(phase, width)

    def _nothing(self, stopped: Status | None) -> StateBounds:
        """Return what holds before anything is proven."""
        range_ = nothing_proven(self.problem, stopped)
        return replace(range_, value=self.values[0], choice=self.choice)

    def _horizon(self) -> StateBounds:
        count, done, error = len(self.problem.steps), 0, 0.0
        rules = np.tile(self.choice, (max(count, 1), 1))
        try:
            while done < count:
                more = min(self.at_once, count - done)
                steps = [partial(BlockOperator.step, number=done + k) for k in range(more)]
                self._rounds(steps, "steps", error)
                for k in range(more):
                    widths, sizes = zip(*(o.spreads[k] for o in self.outcomes), strict=True)
                    error = self.problem.discount * error + distance(max(widths), max(sizes))
                    rules[count - 1 - done] = self._global([o.rules[k] for o in self.outcomes])
                    done += 1
        except STOPS as stop:
            if done < count:
                return self._nothing(status_of(stop))
        value = self.values[0]
        return StateBounds(value - error, value + error, value, rules)

    def _discounted(self) -> StateBounds:
        """Sweep until one check shows that the fixed point is close."""
        stopped, result, idle = None, None, 0
        try:
            while result is None or self.task.excess(result.lower, result.upper) > 1.0:
                self._rounds(
                    [*[SWEEPING] * ROUNDS, BlockOperator.check], "discounted", _width(result)
                )
                value = self.values[0]
                fall, rise = (max(outcome.moves[k] for outcome in self.outcomes) for k in (0, 1))
                bounds = around_fixed_point(value, fall, rise, self.problem.discount)
                latest = StateBounds(*bounds, value, self.choice)
                idle = idle + 1 if _width(latest) >= _width(result) else 0
                if idle > FEW:
                    break  # rounding leaves no more
                result = latest if idle == 0 else result
        except STOPS as stop:
            stopped = status_of(stop)
        if result is None:
            return self._nothing(stopped or Status.GAP_OPEN)
        result.stopped = stopped
        return result

    def _least_fixed_point(self) -> StateBounds:
        """Raise lower bounds; then look for an inductive upper one."""
        result = self._nothing(None)
        try:
            rounds = self._raise_lower()
            self._raise_upper(result, PATIENCE * rounds + FEW)
        except STOPS as stop:
            result.stopped = status_of(stop)
        result.lower = result.value = self.values[0]
        if self.problem.agent is MAX:
            result.choice = self.choice
        return result

    def _raise_lower(self) -> int:
        """Raise lower bounds until a round moves them little; return the number of rounds.

        Where they grow without end, they are left as they are after some rounds.
        """
        rounds, change, earlier = 0, np.inf, np.inf
        while change > SETTLED * self._tolerance():
            before = self.values[0]
            self._rounds([SWEEPING] * ROUNDS, "lower bounds", change)
            change = float(np.max(self.values[0] - before, initial=0.0)) / ROUNDS
            rounds += ROUNDS
            if rounds.bit_count() == 1 and rounds >= FEW:  # at powers of two
                if change > STEADY * earlier:
                    break
                earlier = change
        return rounds

    def _raise_upper(self, result: StateBounds, patience: int) -> None:
        """Look for inductive upper values that are close enough; `result` notes them.

        patience : rounds after which a push has failed
        """
        push, rounds = 0.25 * self._tolerance() / (SWEEPS * patience), 0
        strict = self.problem.form is Form.TO_TARGET
        self._copy_lower()
        while rounds < patience:
            before = self.values[0]
            sweeps = partial(BlockOperator.sweeps, count=SWEEPS, push=push)
            self._rounds([*[sweeps] * ROUNDS, BlockOperator.check], "upper bounds", push)
            rounds += ROUNDS
            rise = max(outcome.moves[1] for outcome in self.outcomes)
            if not (rise < 0.0 if strict else rise <= 0.0):  # nor if it is no number
                continue
            lower, upper = self.values
            result.upper, result.choice = upper, self.choice
            excess = self.task.excess(lower, upper)
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
        limits, lower = self.task.limits, self.values[0]
        scale = max(largest(lower), float(self.problem.probability))
        values = lower[self.task.interest]
        positive = values[values > 0.0]
        if not len(positive):
            return limits.precision * scale
        return float(np.min(limits.tolerance(positive, scale)))


def _width(result: StateBounds | None) -> float:
    return np.inf if result is None else float(np.max(result.upper - result.lower, initial=0.0))
