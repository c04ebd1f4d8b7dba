"""Approach the value from the strict side only, where no wrong fixed point lies in the way.

Policy iteration can settle on a fixed point that is not the value, if somebody may linger. That
cannot happen from the strict side: from below for reach and total, beginning with 0; from above
for rewards to a target, beginning with a multiple of the expected steps to it. Every iterate is a
proven bound: T is monotone, and the first one is proven. With a factor 1 - eta (or 1 + eta) the
check stays strict, those who must leave do leave, and the chain of their answers can be evaluated
at once. What that gives is taken only if it passes the strict check itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.graph.components import no_groups
from rfmdp.outer.policy_iteration import Barrier, PolicyIteration
from rfmdp.outer.problem import Form
from rfmdp.outer.proofs.certify import Certifier
from rfmdp.outer.settings import largest
from rfmdp.outer.task import Operator
from rfmdp.types import FloatArray, IntArray

SWEEPS = 2_000  # per factor


class Approach:
    """A proven bound of the strict side that improves; `value` and `choice` are its state."""

    def __init__(self, certifier: Certifier) -> None:
        self.certifier = certifier
        self.side = certifier.strict_side
        self.states = certifier.states
        self._nodes = Nodes.alone(self.states)
        region = certifier.region
        self._barrier = Barrier(certifier.region)
        self.choice = region.choice.copy()
        self.value = np.where(region.open, 0.0, region.known)
        self.proven = self._start() if certifier.problem.form is Form.TO_TARGET else True

    def _start(self) -> bool:
        """Start from a multiple of the steps to the target; return whether that is proven."""
        certifier = self.certifier
        problem, region = certifier.problem, certifier.region
        rows = certifier.backups.open_rows[region.finite_rows[certifier.backups.open_rows]]
        most = float(np.max(problem.reward[rows], initial=0.0))
        most = max(most, 1e-3 * largest(region.known))
        unit = replace(problem, reward=np.ones(certifier.model.rows))
        known = region.known / max(most, 1e-300)
        alone = no_groups(certifier.model)
        apart = replace(region, problem=unit, known=known, groups=alone)
        counting = Operator(unit, certifier.operator.inner, certifier.task.stats)
        steps = PolicyIteration(replace(certifier.task, operator=counting), apart)
        guess = steps.start(None)
        steps.improve(guess, 1e-4)
        steps.improve(guess, 1e-3 / max(largest(guess.value[self.states]), 1.0))  # of one step
        self.choice = guess.choice
        with np.errstate(over="ignore", invalid="ignore"):  # beyond all floats: nothing is proven
            self.value = np.where(region.open, 1.01 * most * guess.value, self.value)
        self._barrier.put(self.value)
        finite = bool(np.isfinite(self.value[self.states]).all())
        return finite and self._proves(self.value)

    def _proves(self, value: FloatArray) -> bool:
        """Return whether a value is a bound; on the side of the guarantee, one of the policy."""
        certifier = self.certifier
        fixed = self.choice if self.side == certifier.guarantee else None
        return not certifier.failing(value, self.side, fixed, no_groups(certifier.model)).any()

    def run(self, eta: float) -> None:
        """Iterate with the factor 1 +- eta until little changes."""
        factor, scale, jump = 1.0 + self.side * eta, 0.0, 1
        for sweep in range(1, SWEEPS):
            self._barrier.put(self.value)
            old = self.value[self.states]
            new = self._improve(factor)
            scale = float(np.max(np.abs(new), initial=1e-300))
            change = float(np.max(np.abs(new - old), initial=0.0))
            self.certifier.clock.tick("approach", change)
            self.certifier.operator.stats.robust_sweeps += 1
            if change <= 0.1 * eta * scale:
                return
            if sweep == jump:
                self._jump(factor)
                jump += max(1, jump // 2)

    def _improve(self, factor: float) -> FloatArray:
        """Take factor * T(value), from its proven side, and the best rows where that is better.

        Elsewhere the row stays with the value that it is known to keep. Returns the values of the
        open states.
        """
        certifier, states = self.certifier, self.states
        q = certifier.backups.rows(self.value, self.side)
        best, choice = self.value.copy(), self.choice.copy()
        certifier.operator.choose(q, states, choice, best)
        better = states[self.side * (factor * best[states] - self.value[states]) < 0.0]
        self.value[better], self.choice[better] = factor * best[better], choice[better]
        return self.value[states]

    def _jump(self, factor: float) -> None:
        """Take the value of the chain at hand if it is better and proven."""
        certifier, model = self.certifier, self.certifier.model
        rows = self.choice[self.states]
        answers = certifier.operator.inner.respond(self.value, rows)
        value = self.value.copy()
        chain = Chain(
            model, self._nodes, self.choice, answers, value,
            factor * certifier.problem.reward, factor,
        )  # fmt: skip
        clock, stats = certifier.clock, certifier.operator.stats
        settled = chain.settle(clock, stats, 400, np.zeros(len(chain.x)))
        if not settled and chain.direct and chain.solve():
            np.maximum(chain.x, 0.0, out=chain.x)
        chain.put(value)
        better = np.minimum if self.side > 0.0 else np.maximum
        value[self.states] = better(value, self.value)[self.states]
        if np.isfinite(value[self.states]).all() and self._proves(value):
            self.value = value


def approach(certifier: Certifier, etas: tuple[float, ...]) -> tuple[FloatArray, IntArray] | None:
    """Return a proven bound (S,) of the strict side, near the value, and its policy (S,)."""
    result = Approach(certifier)
    if not result.proven:
        return None
    for eta in etas:
        result.run(eta)
    return result.value, result.choice
