"""Evaluations: what the sets as they are now prove, within limits, where it can pay off.

Solving a learned model is quick once data say something. With almost none, models with cycles have
robust chains that leave their states once in millions of steps, and proofs about them take
minutes, of guarantees that nobody wants. So a rough plan is made first: a guarantee that it does
not promise to improve is not proven, and a side that takes too long stays as it was proven before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.learning.planner import Planner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import (
    MAX,
    Cumulative,
    Direction,
    Discounted,
    Instantaneous,
    ReachReward,
    Spec,
    Total,
)
from rfmdp.outer.problem import Form
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Solution, Status
from rfmdp.solving import evaluate, solve
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.learning.learner import Learner

WORTH = 1e-5  # of the scale of values: a smaller promise is not followed up
PATIENCE = 10.0  # seconds for a proof about a model with cycles; the optimistic side has half
LEAST = 0.01  # seconds that a solver is given at least
ROUGH = 1e-2  # of the scale: distance at which an optimistic bound is left as it is

Tell = Callable[[str], None]


class Evaluator:
    """Solves the learned model of a run from both sides."""

    def __init__(self, learner: Learner, tell: Tell) -> None:
        self._learner, self._tell = learner, tell
        self.warm: dict[str, FloatArray] = {}  # values of the last evaluation, by side
        problem = learner.context.planner.problem
        self._cyclic = learner.context.planner.cyclic and problem.form is not Form.STEPS
        self._planner: Planner | None = None

    def guarantee(self, known: float) -> Solution | None:
        """Return a solution against nature, None if it would not improve on what is known."""
        learner = self._learner
        model, spec = learner.learned.pessimistic(learner.sets.marginals(), learner.ledger)
        if self._over() or (self._cyclic and not self._promising(known)):
            return None
        return self._solve("pessimistic", model, spec, self._within(learner.setup.limits, PATIENCE))

    def optimistic(self, known: float) -> float:
        """Return a bound of the optimum on the other side, at worst the one that is known."""
        learner = self._learner
        if self._over() or (self._cyclic and self._close(known)):
            return known
        model, spec = learner.learned.optimistic(learner.sets.marginals(), learner.ledger)
        limits = self._within(learner.setup.limits, PATIENCE / 2.0)
        if self._cyclic and learner.setup.stop.gap is None:
            limits = replace(limits, precision=max(limits.precision, ROUGH / 10.0))
        solution = self._solve("optimistic", model, spec, limits)
        found = [solution.at(int(state)) for state in model.initial]
        return worst(spec, [b.upper if spec.agent is MAX else b.lower for b in found])

    def performance(self, rows: IntArray) -> float:
        """Return the value of a policy on the truth; nan if it is not known, or not in time."""
        learner = self._learner
        if learner.truth is None or self._over():
            return float("nan")
        limits = self._within(learner.setup.limits, PATIENCE)
        found = evaluate(learner.truth, Policy(rows), learner.spec, limits=limits)
        return worst(learner.spec, found.value[learner.truth.initial])

    def _solve(self, side: str, model: FactoredMDP, spec: Spec, limits: Limits) -> Solution:
        """Solve from the value of the last evaluation; bounds are proven anew."""
        inner = self._learner.setup.method.inner
        found = solve(model, spec, inner=inner, limits=limits, warm=self.warm.get(side))
        if found.status is Status.INTERRUPTED:  # the solver caught Ctrl-C; the run must end, too
            raise KeyboardInterrupt
        if np.all(np.isfinite(found.value)):
            self.warm[side] = found.value
        return found

    def _within(self, limits: Limits, patience: float) -> Limits:
        """Return limits that end with the time of the run, and do not try for ever."""
        left = max(self._learner.deadline - time.monotonic(), LEAST)
        seconds = min(limits.seconds, left, patience if self._cyclic else np.inf)
        return replace(limits, seconds=seconds, progress=lambda *_: self._tell("evaluating"))

    def _over(self) -> bool:
        return time.monotonic() > self._learner.deadline

    def _promising(self, known: float) -> bool:
        """Return whether a rough plan against nature is noticeably better than what is known."""
        learner = self._learner
        if not np.isfinite(known):
            return True
        if self._planner is None:
            self._planner = Planner(*learner.learned.truth)
        self._planner.deadline = learner.deadline
        self._planner.pay(learner.learned.paid(learner.ledger, learner.spec.agent is MAX))
        found, _ = self._planner.plan(learner.sets, self._planner.problem.nature)
        better = learner.spec.agent.sign * (_initial(learner.spec, self._planner, found) - known)
        return bool(better > WORTH * max(1.0, abs(known)))

    def _close(self, known: float) -> bool:
        """Return whether the last plan for exploration, an optimist's, is as good as the bound."""
        value, learner = self._learner.context.value, self._learner
        if value is None or not np.isfinite(known):
            return False
        planned = _initial(learner.spec, learner.context.planner, value)
        gap = learner.setup.stop.gap
        close = ROUGH * max(1.0, abs(known))
        return abs(known - planned) <= (close if gap is None else min(close, gap / 4.0))


def _initial(spec: Spec, planner: Planner, value: FloatArray) -> float:
    """Return the planned value of the initial state, in terms of the specification."""
    found = value[planner.model.initial]
    return worst(spec, 1.0 - found if planner.problem.flipped else found)


def worst(spec: Spec, values: Sequence[float] | FloatArray) -> float:
    """Return the value of the initial state that is the worst for the agent."""
    return float(np.min(values) if spec.agent is MAX else np.max(values))


def trivial(spec: Spec, side: Direction, paid: FloatArray | None) -> float:
    """Return what holds without data: the least (MIN) or largest (MAX) value of an objective."""
    rewards = Cumulative | Discounted | Instantaneous | ReachReward | Total
    if not isinstance(spec.objective, rewards):
        return 0.0 if side is not MAX else 1.0
    if side is MAX:
        return float("inf")
    positive = paid is not None and float(np.min(paid, initial=0.0)) >= 0.0
    return 0.0 if positive else float("-inf")
