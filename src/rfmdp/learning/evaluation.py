"""Evaluations: what the confidence sets prove at this moment, within limits of time.

Models without cycles are solved from both sides. Models with cycles are not: with almost no data,
nature may leave some states only once in millions of steps, and a proof about that takes minutes
and gives a useless guarantee. So there are three steps: the last policy is proven with the sets as
they are now; a rough plan is made that starts from its value; another policy is proven only if
that plan promises more. The optimistic bound is about all policies and takes longer, so it is
proven at the end only, or always if the run is to stop at a gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.inner.protocol import OneSided
from rfmdp.learning.planner import Planner
from rfmdp.learning.sampling import Sampling
from rfmdp.learning.schedule import Watch
from rfmdp.learning.store import SetStore
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.outer.problem import Form
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Policy, Solution, Status
from rfmdp.policy_bound import (
    LEAST,
    initial_guarantee,
    initial_optimistic,
    nature_can_block,
    prove,
    prove_better,
    worst,
)
from rfmdp.solving import evaluate, solve
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner

WORTH = 1e-5  # share of the value: a plan must promise more than this to be proven
PATIENCE = 30.0  # seconds for a proof about a model with cycles
ROUGH = 1e-2  # share of the value: an optimistic bound this close to the plan is kept


class Evaluator:
    """Finds what the sets of a run prove."""

    def __init__(self, sets: SetStore, sampling: Sampling, watch: Watch) -> None:
        self.setup, self.learned = sampling.setup, sampling.learned
        self.spec, self._inner = self.learned.spec, self.setup.method.inner
        self._sets, self._sampling, self._watch = sets, sampling, watch
        self.warm: dict[str, FloatArray] = {}  # values of the last evaluation, by side
        self._cyclic = sampling.planner.endless
        self._planner: Planner | None = None
        episodes = self.setup.episodes
        self._truth = None if episodes is None else episodes.truth(self.learned.model)

    def guarantee(self, proven: float) -> Solution | None:
        """Return a solution against nature, None if none improves on what is proven."""
        model, spec = self.learned.pessimistic(self._sets.marginals())
        if self._watch.over():
            return None
        if not self._cyclic:
            return self._solve("pessimistic", model, spec, self._inner)
        return self._by_policy(model, spec, proven)

    def optimistic(self, proven: float) -> float:
        """Return a bound of the optimum on the other side, at worst the one that is proven."""
        needed = not self._cyclic or self._last() or self.setup.stop.gap is not None
        if self._watch.over() or not needed or (self._cyclic and self._close(proven)):
            return proven
        model, spec = self.learned.optimistic(self._sets.marginals())
        inner = OneSided(self._inner) if self._cyclic else self._inner
        solution = self._solve("optimistic", model, spec, inner)
        return initial_optimistic(solution)

    def performance(self, rows: IntArray) -> float:
        """Return the value of a policy on the truth; nan if it is not known, or not in time."""
        truth = self._truth
        if truth is None or self._watch.over():
            return float("nan")
        solution = evaluate(truth, Policy(rows), self.spec, limits=self._limits())
        if solution.status in (Status.TIME_LIMIT, Status.SWEEP_LIMIT):
            return float("nan")
        return worst(self.spec, solution.value[truth.initial])

    def _solve(self, side: str, model: FactoredMDP, spec: Spec, inner: Inner) -> Solution:
        """Solve from the value of the last evaluation; bounds are proven anew."""
        solution = solve(model, spec, inner=inner, limits=self._limits(), warm=self.warm.get(side))
        if solution.status is Status.INTERRUPTED:  # the solver caught Ctrl-C; the run must end, too
            raise KeyboardInterrupt
        if np.all(np.isfinite(solution.value)):
            self.warm[side] = solution.value
        return solution

    def _by_policy(self, model: FactoredMDP, spec: Spec, proven: float) -> Solution | None:
        """Return a proof of the last policy, or of another one if a plan promises more."""
        inner, sign = self._inner, spec.agent.sign
        last, proof = self._sampling.robust, None
        if last is None and nature_can_block(model, spec):
            return None
        if last is not None:
            warm = self.warm.get("pessimistic")
            proof = prove(model, spec, inner, last[0], self._limits(), warm)
            if sign * (initial_guarantee(proof) - proven) > 0.0:
                proven = initial_guarantee(proof)
        promise, value, rows = self._promise(proof)
        scale = max(1.0, abs(proven)) if np.isfinite(proven) else 0.0
        if sign * (promise - proven) > WORTH * scale:
            other = prove(model, spec, inner, rows, self._limits(), value)
            if proof is None or sign * (initial_guarantee(other) - initial_guarantee(proof)) > 0.0:
                proof = other
            proof = prove_better(proof, inner, self._limits())
        elif proof is None and self._last():
            return self._solve("pessimistic", model, spec, OneSided(inner))
        if proof is not None and np.all(np.isfinite(proof.value)):
            self.warm["pessimistic"] = proof.value
        return proof

    def _promise(self, proof: Solution | None) -> tuple[float, FloatArray, IntArray]:
        """Return what a rough plan promises, its value (S,) and policy (S,).

        The plan starts from the value of the policy that is proven. Without one it starts at 0;
        costs that are still growing when it ends are too small, and count as no promise.
        """
        if self._planner is None:
            self._planner = Planner(self.learned.model, self.spec, self._watch.deadline)
        planner, problem, start = self._planner, self._planner.problem, None
        low = self.spec.agent is MAX
        planner.pay(self.learned.paid(low))
        planner.choice[:] = planner.model.row_ptr[:-1]
        if proof is not None:
            planner.choice[:] = proof.policy.rows[0]
            if problem.agent is MAX or problem.form is Form.TO_TARGET:
                start = 1.0 - proof.guarantee if problem.flipped else proof.guarantee
        value, rows = planner.plan(self._sets.marginals(), problem.nature, start)
        promise = _initial(self.spec, planner, value)
        if start is None and problem.agent is MIN and not planner.settled:
            promise = -self.spec.agent.sign * np.inf
        return promise, 1.0 - value if problem.flipped else value, rows[0]

    def _limits(self) -> Limits:
        """Return limits for a solver: not longer than the run, and than `PATIENCE` with cycles."""
        limits = self.setup.limits
        patience = PATIENCE if self._cyclic else np.inf
        seconds = min(limits.seconds, max(self._watch.left, LEAST), patience)
        return replace(limits, seconds=seconds, progress=self._tell)

    def _tell(self, *_: object) -> None:
        self._watch.tell("evaluating", self._sampling.done)

    def _last(self) -> bool:
        """Return whether no evaluation follows, as far as can be known."""
        setup = self.setup
        return setup.records is not None or self._sampling.done >= setup.stop.trajectories

    def _close(self, proven: float) -> bool:
        """Return whether the bound is so near to the last optimistic plan that it may stand."""
        sampling, gap = self._sampling, self.setup.stop.gap
        if sampling.value is None or not np.isfinite(proven):
            return False
        planned = _initial(self.spec, sampling.planner, sampling.value)
        close = ROUGH * max(1.0, abs(proven))
        return abs(proven - planned) <= (close if gap is None else min(close, gap / 4.0))


def _initial(spec: Spec, planner: Planner, value: FloatArray) -> float:
    """Return the planned value of the initial state, in terms of the specification."""
    values = value[planner.model.initial]
    return worst(spec, 1.0 - values if planner.problem.flipped else values)


def trivial(spec: Spec, least: float) -> tuple[float, float]:
    """Return what holds without data: the worst and the best value of an objective for the agent.

    `least` is what a row pays at least.
    """
    low, high = 0.0, 1.0
    if spec.objective.rewarded:
        low = 0.0 if least >= 0.0 else -np.inf
        high = np.inf
    return (low, high) if spec.agent is MAX else (high, low)
