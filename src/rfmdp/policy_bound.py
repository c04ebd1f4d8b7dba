"""One bound of one policy: guarantees of learned models with cycles.

To solve such a model is to prove both bounds for all policies, which takes minutes with almost no
data. A guarantee needs less: one bound for one policy, which has one row per state. The policy
comes from a rough plan. It is proven, improved where its own value shows a better row, and proven
again.

Probabilities to reach in large models are proven by discounting. A play that ends with probability
eta at every step reaches the target no more often than one that goes on. With eta > 0 the operator
(1 - eta) T contracts, so it has one fixed point, reached from any start, whatever lingers; and a
value v with (1 - eta) T(v) >= v - r makes L = max(v - r / eta, 0) inductive: L <= (1 - eta) T(L),
hence L < T(L) where L > 0, the strict check of `outer.proofs.certify`. Nothing has to be known of
the graph. What discounting costs is about eta times the expected steps, so eta falls until that no
longer counts.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from rfmdp.inner.protocol import Inner, OneSided
from rfmdp.kernels.sweep import choose
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import restrict
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.problem import Form, Problem, pose, where
from rfmdp.outer.settings import LimitReached, Limits
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.task import Operator, Task, prepare
from rfmdp.rounding import UNIT
from rfmdp.solving import solve
from rfmdp.types import FloatArray, IntArray

ROUNDS = 8  # of improving the policy
GAIN = 1e-3  # of the value: a smaller gain ends them
SLACK = 1e-9  # of the largest value: rows must be better by more
BARRIER = 1e6  # infinite states count this many times the largest finite value
LARGE = 3000  # states: above, probabilities to reach are proven by discounting, to GAIN of them
LEAST = 0.01  # seconds that a solver is given at least

# Of proofs by discounting
ETAS = (1e-2, 1e-4, 1e-6, 1e-7)  # the first ends what lingers; below the last rounding counts more
SETTLING = 60  # robust sweeps per eta
CHEAP = 200  # sweeps of a chain in between
STALLED = 4  # robust sweeps without a smaller residual: that is what rounding leaves
TRIES = 4
SHARE = 0.1  # of the gain that is looked for: what residuals may cost
RAREST = 1e-5  # smaller probabilities are proven as coarsely as this one


def prove(
    model: FactoredMDP,
    spec: Spec,
    inner: Inner,
    rows: IntArray,
    limits: Limits,
    warm: FloatArray | None = None,
) -> Solution:
    """Return a solution with the guarantee of one policy, rows (S,); the other bound is not proven.

    The solution is about the whole model: its optimum is at least as good as the policy.
    """
    fixed = restrict(model, rows)
    problem = pose(fixed, spec)
    if fixed.states > LARGE and _fits(problem):
        result = _discounted(problem, spec, inner, limits, warm)
    else:
        result = solve(fixed, spec, inner=OneSided(inner), limits=limits, warm=warm)
    if result.status is Status.INTERRUPTED:  # the solver caught Ctrl-C; the run must end, too
        raise KeyboardInterrupt
    return replace(result, model=model, policy=Policy(rows[None, :].copy()))


def _discounted(
    problem: Problem, spec: Spec, inner: Inner, limits: Limits, warm: FloatArray | None
) -> Solution:
    """Return a lower bound of the probability to reach with the only policy of a model."""
    task = prepare(problem, OneSided(inner), limits, where(problem.model, "init"))
    search = Discounting(task, warm)
    with task.stats.phase("solve"):
        status = search.run(max(GAIN, limits.precision))
    rule = np.arange(problem.model.states)[None, :]
    return Solution(
        problem.model, spec, inner.name, status, search.lower, None,
        np.maximum(search.value, search.lower), Policy(rule),
        limits.precision, task.stats, measure=limits.measure.name,
    )  # fmt: skip


def prove_better(best: Solution, inner: Inner, limits: Limits) -> Solution:
    """Return a proof for a policy that starts as the one of a proof and becomes better."""
    model, spec = best.explicit_model, best.spec
    end = time.monotonic() + limits.seconds
    problem = pose(model, spec)
    operator = Operator(problem, OneSided(inner).prepare(model, problem.nature), Stats())
    for _ in range(ROUNDS):
        better = improved(operator, best)
        seconds = end - time.monotonic()
        if seconds < LEAST or np.array_equal(better, best.policy.rows[0]):
            break
        guess = best.value if np.isfinite(best.value).all() else None
        result = prove(model, spec, inner, better, replace(limits, seconds=seconds), guess)
        gain = spec.agent.sign * (initial_guarantee(result) - initial_guarantee(best))
        if not gain > 0.0:
            break
        best = result
        if gain <= GAIN * abs(initial_guarantee(best)):
            break
    return best


def improved(operator: Operator, solution: Solution) -> IntArray:
    """Return the policy (S,) of a solution, with better rows where its guarantee shows some."""
    problem, flipped = operator.problem, operator.problem.flipped
    value = solution.guarantee.copy()
    finite = np.isfinite(value)
    largest = float(np.max(np.abs(value[finite]), initial=1.0))
    value[~finite] = BARRIER * largest
    value = 1.0 - value if flipped else value
    rows = np.arange(problem.model.rows)
    states = np.flatnonzero(~problem.terminal)
    operator.backup(value, rows)
    q = operator.below if problem.agent is MAX else operator.above
    rule: IntArray = solution.policy.rows[0].copy()
    choose(q, problem.model.row_ptr, states, operator.sign, SLACK * largest, rule, value)
    return rule


def nature_can_block(model: FactoredMDP, spec: Spec) -> bool:
    """Return whether nature can keep every policy from a target that it has to reach."""
    problem = pose(model, spec)
    if problem.form is not Form.TO_TARGET or problem.agent is MAX:
        return False
    sure = Graph(model).almost_sure(problem.target, agent=MAX, nature=MIN)
    return not bool(sure[model.initial].all())


def initial_guarantee(solution: Solution) -> float:
    """Return the guarantee in the initial state, of several ones the worst.

    It is infinite if nobody proved it.
    """
    return _initial_bound(solution, lower=solution.spec.agent is MAX)


def initial_optimistic(solution: Solution) -> float:
    """Return the bound of the optimum on the other side, likewise."""
    return _initial_bound(solution, lower=solution.spec.agent is not MAX)


def _initial_bound(solution: Solution, *, lower: bool) -> float:
    bound = solution.lower if lower else solution.upper
    if bound is None:
        return -np.inf if lower else np.inf
    return worst(solution.spec, bound[solution.model.initial])


def worst(spec: Spec, values: FloatArray) -> float:
    """Return the value, of those of all initial states, that is the worst for the agent."""
    return float(np.min(values) if spec.agent is MAX else np.max(values))


def _fits(problem: Problem) -> bool:
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
            rest = (now - before) * eta / (last - eta)
            if status is not Status.GAP_OPEN or (np.isfinite(last) and 0.0 < rest <= gain * now):
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
        for _ in range(SETTLING):
            image = self._image(value, eta)
            change = float(np.max(np.abs(image - value[states]), initial=0.0))
            self._clock.tick("solve", change)
            operator.stats.robust_sweeps += 1
            scale = float(value[self.problem.model.initial].min())
            enough = SHARE * gain * eta * max(scale, RAREST)
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
