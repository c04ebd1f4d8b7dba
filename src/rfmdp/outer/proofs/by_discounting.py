"""Lower bounds of the probability to reach, of one policy, by discounting.

A play that ends with probability eta at every step reaches the target no more often than one that
goes on. With eta > 0 the operator (1 - eta) T contracts, so it has one fixed point, found from any
start, whatever lingers; and a value v with (1 - eta) T(v) >= v - r makes L = max(v - r / eta, 0)
inductive: L <= (1 - eta) T(L), hence L < T(L) where L > 0, the strict check of
`certify`. Nothing has to be known of the graph. What discounting costs is about eta
times the expected steps, so eta falls until that no longer counts.
"""

from __future__ import annotations

import numpy as np

from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import LimitReached
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Task
from rfmdp.rounding import UNIT
from rfmdp.types import FloatArray

ETAS = (1e-2, 1e-4, 1e-6, 1e-7)  # the first ends what lingers; below the last rounding counts more
ROUNDS = 60  # robust sweeps per eta
CHEAP = 200  # sweeps of a chain in between
STALLED = 4  # robust sweeps without a smaller residual: that is what rounding leaves
TRIES = 4
SHARE = 0.1  # of the gain that is looked for: what residuals may cost
LEAST = 1e-5  # smaller probabilities are proven as coarsely as this one


def fits(problem: Problem) -> bool:
    """Return whether the agent maximises a probability to reach, against nature."""
    reach = problem.form is Form.REACH and not problem.steps
    return reach and problem.agent.sign > 0.0 and problem.nature.sign < 0.0


class Discounting:
    """Lower bounds of a model with one row per state; `lower` (S,) is proven at any time."""

    def __init__(self, task: Task, warm: FloatArray | None) -> None:
        self.problem, self.operator, self._clock = task.problem, task.operator, task.clock
        problem, model = task.problem, task.problem.model
        self.states = np.flatnonzero(~problem.terminal)
        self.lower = problem.target.astype(np.float64)
        self.value = self.lower.copy()
        if warm is not None:
            self.value[self.states] = np.clip(np.nan_to_num(warm[self.states]), 0.0, 1.0)
        self._choice = np.arange(model.states)
        self._nodes = Nodes.alone(self.states)

    def run(self, gain: float) -> Status:
        """Raise `lower` until what discounting costs is about `gain` times the value.

        The cost is nearly linear in eta, so two of them tell what is left.
        """
        last = np.inf
        for eta in ETAS:
            status = Status.GAP_OPEN
            before = self._guaranteed()
            try:
                self._settle(eta, gain)
            except LimitReached as reached:
                status = reached.status
            self._prove(eta)
            now = self._guaranteed()
            left = (now - before) * eta / (last - eta)
            if status is not Status.GAP_OPEN or (np.isfinite(last) and 0.0 < left <= gain * now):
                break
            last = eta
        return status

    def _guaranteed(self) -> float:
        """Return what is proven in the initial state, of several ones the worst."""
        return float(self.lower[self.problem.model.initial].min())

    def _settle(self, eta: float, gain: float) -> None:
        """Bring the value close to the fixed point of (1 - eta) T: nature answers, and again."""
        value, states, operator = self.value, self.states, self.operator
        least, stalled = np.inf, 0
        for _ in range(ROUNDS):
            image = self._image(value, eta)
            change = float(np.max(np.abs(image - value[states]), initial=0.0))
            self._clock.tick("solve", change)
            operator.stats.robust_sweeps += 1
            scale = float(value[self.problem.model.initial].min())
            enough = SHARE * gain * eta * max(scale, LEAST)
            stalled = 0 if change < 0.9 * least else stalled + 1
            least = min(least, change)
            if change <= enough or stalled == STALLED:
                return
            value[states] = image
            answers = operator.inner.respond(value, states)
            target = np.full(len(states), max(1e-2 * change, 0.1 * enough))
            chain = Chain(
                self.problem.model, self._nodes, self._choice, answers, value,
                self.problem.reward, 1.0 - eta,
            )  # fmt: skip
            chain.settle(self._clock, operator.stats, CHEAP, target)
            chain.put(value)

    def _prove(self, eta: float) -> None:
        """Take the value, lowered so that it is inductive, where that raises the bound."""
        value, states, initial = self.value, self.states, self.problem.model.initial
        residual = float(np.max(value[states] - self._image(value, eta), initial=0.0))
        for _ in range(TRIES):  # margins of rounding are those of the bound, not of the value
            residual = 2.0 * max(residual, UNIT)
            bound = value.copy()
            bound[states] = np.clip(value[states] - residual / eta, 0.0, 1.0)
            if not bound[initial].min() > self._guaranteed():
                return
            image = self._image(bound, eta)
            strict = bound[states] < self.operator.below[states]
            if np.all((bound[states] == 0.0) | (strict & (bound[states] <= image))):
                self.lower = bound
                return

    def _image(self, value: FloatArray, eta: float) -> FloatArray:
        """Return (1 - eta) T(value) in the open states, never above."""
        self.operator.backup(value, self.states)
        return (1.0 - eta) * np.maximum(self.operator.below[self.states], 0.0)
