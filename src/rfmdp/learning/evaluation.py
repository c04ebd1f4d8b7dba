"""Evaluations: what the learned model, with its sets as they are now, proves.

Models without cycles are solved from both sides. A proof about one with cycles may take minutes
with almost no data, where nature may leave some states only once in millions of steps. So one bound
for one policy is proven: the last policy with the sets as they are now, and the policy of a rough
plan if that promises more. The optimistic bound is proven at the end only, or always if the run is
to stop at a gap. Effort is limited by sweeps, so that a seed fixes everything.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.inner.protocol import Inner, OneSided
from rfmdp.kernels.sweep import choose
from rfmdp.learning.confidence import SetStore
from rfmdp.learning.identifiers import Identifiers
from rfmdp.learning.methods import RewardRange
from rfmdp.learning.run import Watch
from rfmdp.learning.sampling import Planner, Sampling
from rfmdp.learning.setup import Setup, divided
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX, MIN, Spec
from rfmdp.outer.graph import Graph
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.task import Limits, Operator
from rfmdp.ragged import segment_lengths
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import evaluate, solve
from rfmdp.types import AnyArray, FloatArray, IntArray

WORTH = 1e-5  # share of the value: a plan must promise more than this to be proven
ROUGH = 1e-2  # share of the value: an optimistic bound this close to the plan is kept
LEAST = 0.01  # seconds that a solver is given at least
EFFORT = 20_000_000  # rows that a proof about a model with cycles may sweep, within
FEWEST = 50  # sweeps at least

# Of improving a policy that is proven
ROUNDS = 8
GAIN = 1e-3  # of the value: a smaller gain ends them
SLACK = 1e-9  # of the largest value: rows must be better by more
BARRIER = 1e6  # infinite states count this many times the largest finite value


class LearnedModel:
    """The learned model of a run; its sets are those of the identifiers of `model`.

    `arrays` are what was seen of unknown rewards: visits and payments (R,). A row that was never
    visited pays the end of the `range`, which is None if rewards are known.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.model, self.spec, self.range = ids.model, setup.spec, setup.rewards
        self.arrays: dict[str, AnyArray] = {}
        if self.range is None:
            return
        model, objective = self.model, self.spec.objective
        if not (objective.rewarded and objective.summed):
            raise UnsupportedError(
                "learn: with `rewards` the objective must be a reward to a target, of some steps, "
                f"discounted or total; found {type(objective).__name__}."
            )
        model.reward(objective.reward_name)  # raises ModelError if there is none
        self._reward = name = objective.reward_name or next(iter(model.rewards))
        open_states = ~pose(model, self.spec).terminal
        self._open = np.flatnonzero(np.repeat(open_states, segment_lengths(model.row_ptr)))
        self._delta = divided(setup.shares().reward, len(self._open))
        self._source, self._payer = setup.source, setup.source.payer(name)
        visits = np.zeros(model.rows, dtype=np.int64)
        self.arrays |= {"visits": visits, "paid": np.zeros(model.rows)}  # sums

    def trivial(self) -> tuple[float, float]:
        """Return what holds without data: the worst and the best value for the agent."""
        low, high = 0.0, 1.0
        if self.spec.objective.rewarded:
            problem = pose(self.model, self.spec)
            least = float(np.min([*problem.reward, *problem.start], initial=0.0))
            if self.range is not None:
                least = self.range.low
            low, high = 0.0 if least >= 0.0 else -np.inf, np.inf
        return (low, high) if self.spec.agent is MAX else (high, low)

    def with_sets(self, sets: Marginals, hopeful: bool = False) -> FactoredMDP:
        """Return the model with learned sets, and with the rewards of `paid`."""
        model, paid = self.model, self.paid(hopeful)
        model = model.with_marginals(sets).with_provenance(sets={"kind": "learned"})
        if paid is None:
            return model
        learned = Rewards(np.zeros(model.states), paid)
        return replace(model, rewards={**model.rewards, self._reward: learned})

    def paid(self, hopeful: bool = False) -> FloatArray | None:
        """Return bounds of what rows pay on average, (R,): the worst or best for the agent.

        Both sides are bounds of one event. None: rows pay what the model says.
        """
        if self.range is None:
            return None
        low = (self.spec.agent is MAX) is not hopeful
        sign = 1.0 if low else -1.0
        span = self.range if low else RewardRange(-self.range.high, -self.range.low)
        bounds, at = np.zeros(self.model.rows), self._open
        sums, visits = self.arrays["paid"][at], self.arrays["visits"][at]
        bounds[at] = sign * span.least_means(sign * sums, visits, self._delta)
        return bounds

    def take(self, visits: IntArray) -> None:
        """Take note of what new visits paid; `visits` (R,) are all so far.

        In states in which episodes were over nothing is paid, so nothing is learned: they pay the
        end of the range for ever. ModelError: a reward leaves its range, or rows must pay there.
        """
        if self.range is None:
            return
        span, model = self.range, self.model
        last = np.array(sorted(self._source.last), dtype=np.int64)
        fresh = visits - self.arrays["visits"]
        self.arrays["visits"] += fresh
        at = np.intersect1d(np.flatnonzero(fresh), self._open, assume_unique=True)
        paid = self._payer(at, fresh[at])
        span.require(paid.least)
        span.require(paid.most)
        self.arrays["paid"][at] += paid.sums
        over = last[np.isin(model.row_ptr[last], self._open)]
        if len(over) and not span.low <= 0.0 <= span.high:
            raise ModelError(
                f"Reward: an episode was over in {model.state_name(int(over[0]))}, where nothing "
                f"is paid, so the range must contain 0, found [{span.low:g}, {span.high:g}]; "
                "widen it."
            )


class Evaluator:
    """Finds what the sets of a run prove."""

    def __init__(self, sets: SetStore, sampling: Sampling, watch: Watch) -> None:
        self.setup, self.learned = sampling.setup, sampling.learned
        self.spec, self._inner = self.learned.spec, self.setup.method.inner
        self._sets, self._sampling, self._watch = sets, sampling, watch
        self.warm: dict[str, FloatArray] = {}  # values of the last evaluation, by side
        self._cyclic = sampling.planner.endless
        self._planner: Planner | None = None
        self._truth = self.setup.source.truth(self.learned.model)

    def guarantee(self, proven: float) -> Solution | None:
        """Return a solution against nature, None if none improves on what is proven."""
        model = self.learned.with_sets(self._sets.marginals())
        if self._watch.left() < 0.0:
            return None
        if not self._cyclic:
            return self._solve("pessimistic", model, self.spec, self._inner)
        return self._by_policy(model, proven)

    def optimistic(self, proven: float) -> float:
        """Return a bound of the optimum on the other side, at worst the one that is proven."""
        needed = not self._cyclic or self._last() or self.setup.stop.gap is not None
        if self._watch.left() < 0.0 or not needed or (self._cyclic and self._close(proven)):
            return proven
        model = self.learned.with_sets(self._sets.marginals(), hopeful=True)
        spec = replace(self.spec, nature=self.spec.agent)
        inner = OneSided(self._inner) if self._cyclic else self._inner
        solution = self._solve("optimistic", model, spec, inner)
        return initial_bound(solution, lower=spec.agent is not MAX)

    def performance(self, rows: IntArray) -> float:
        """Return the value of a policy on the truth; nan if it is not known, or not in time."""
        truth = self._truth
        if truth is not None and not self._watch.left() < 0.0:
            solution = evaluate(truth, Policy(rows), self.spec, limits=self._limits(truth.states))
            if solution.status not in (Status.TIME_LIMIT, Status.SWEEP_LIMIT):
                return worst(self.spec, solution.value[truth.initial])
        return float("nan")

    def _solve(self, side: str, model: FactoredMDP, spec: Spec, inner: Inner) -> Solution:
        """Solve from the value of the last evaluation; bounds are proven anew."""
        limits = self._limits(model.rows)
        solution = solve(model, spec, inner=inner, limits=limits, warm=self.warm.get(side))
        if solution.status is Status.INTERRUPTED:  # the solver caught Ctrl-C; the run must end, too
            raise KeyboardInterrupt
        if np.all(np.isfinite(solution.value)):
            self.warm[side] = solution.value
        return solution

    def _by_policy(self, model: FactoredMDP, proven: float) -> Solution | None:
        """Return a proof of the last policy, or of another one if a plan promises more."""
        inner, spec, limits = self._inner, self.spec, self._limits(model.states)
        sign, last, proof = spec.agent.sign, self._sampling.robust, None
        if last is None:
            problem = pose(model, spec)
            if problem.form is Form.TO_TARGET and problem.agent is not MAX:
                sure = Graph(model).almost_sure(problem.target, agent=MAX, nature=MIN)
                if not sure[model.initial].all():  # nature can keep every policy from the target
                    return None
        else:
            proof = prove(model, spec, inner, last[0], limits, self.warm.get("pessimistic"))
            if sign * (initial_guarantee(proof) - proven) > 0.0:
                proven = initial_guarantee(proof)
        promise, value, rows = self._promise(proof)
        scale = max(1.0, abs(proven)) if np.isfinite(proven) else 0.0
        if sign * (promise - proven) > WORTH * scale:
            other = prove(model, spec, inner, rows, self._limits(model.states), value)
            if proof is None or sign * (initial_guarantee(other) - initial_guarantee(proof)) > 0.0:
                proof = other
            proof = prove_better(proof, inner, self._limits(model.states))
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
        planner.pay(self.learned.paid())
        planner.choice[:] = planner.model.row_ptr[:-1]
        if proof is not None:
            planner.choice[:] = proof.policy.rows[0]
            if problem.agent is MAX or problem.form is Form.TO_TARGET:
                start = 1.0 - proof.guarantee if problem.flipped else proof.guarantee
        value, rows = planner.plan(self._sets.marginals(), problem.nature, start)
        promise = _planned(self.spec, planner, value)
        if start is None and problem.agent is MIN and not planner.settled:
            promise = -self.spec.agent.sign * np.inf
        return promise, 1.0 - value if problem.flipped else value, rows[0]

    def _limits(self, rows: int) -> Limits:
        """Return limits for a solver that sweeps some rows: time of the run, sweeps with cycles."""

        def tell(*_: object) -> None:
            self._watch.tell("evaluating", self._sampling.done)

        limits = self.setup.limits
        seconds = min(limits.seconds, max(self._watch.left(), LEAST))
        sweeps = max(FEWEST, EFFORT // rows) if self._cyclic else limits.sweeps
        sweeps = min(limits.sweeps, sweeps)
        return replace(limits, seconds=seconds, sweeps=sweeps, progress=tell)

    def _last(self) -> bool:
        """Return whether no evaluation follows, as far as can be known."""
        setup = self.setup
        return setup.records is not None or self._sampling.done >= setup.stop.trajectories

    def _close(self, proven: float) -> bool:
        """Return whether the bound is so near to the last optimistic plan that it may stand."""
        sampling, gap = self._sampling, self.setup.stop.gap
        if sampling.value is None or not np.isfinite(proven):
            return False
        close = ROUGH * max(1.0, abs(proven))
        planned = _planned(self.spec, sampling.planner, sampling.value)
        return abs(proven - planned) <= (close if gap is None else min(close, gap / 4.0))


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
    result = solve(fixed, spec, inner=OneSided(inner), limits=limits, warm=warm)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(result, model=model, policy=Policy(rows[None, :].copy()))


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
    problem = operator.problem
    value = solution.guarantee.copy()
    finite = np.isfinite(value)
    largest = float(np.max(np.abs(value[finite]), initial=1.0))
    value[~finite] = BARRIER * largest
    value = 1.0 - value if problem.flipped else value
    operator.backup(value, np.arange(problem.model.rows))
    q = operator.below if problem.agent is MAX else operator.above
    rule: IntArray = solution.policy.rows[0].copy()
    states = np.flatnonzero(~problem.terminal)
    choose(q, problem.model.row_ptr, states, operator.sign, SLACK * largest, rule, value)
    return rule


def initial_guarantee(solution: Solution) -> float:
    """Return the guarantee in the worst initial state; it is infinite if nobody proved it."""
    return initial_bound(solution, lower=solution.spec.agent is MAX)


def initial_bound(solution: Solution, *, lower: bool) -> float:
    """Return a bound in the worst initial state; it is infinite if nobody proved it."""
    bounds = [solution.at(int(state)) for state in solution.model.initial]
    return worst(solution.spec, [one.lower if lower else one.upper for one in bounds])


def worst(spec: Spec, values: ArrayLike) -> float:
    """Return the value, of those of all initial states, that is the worst for the agent."""
    return float(np.min(values) if spec.agent is MAX else np.max(values))


def _planned(spec: Spec, planner: Planner, value: FloatArray) -> float:
    """Return the planned value of the initial state, in terms of the specification."""
    values = value[planner.model.initial]
    return worst(spec, 1.0 - values if planner.problem.flipped else values)
