"""Bounds of unbounded objectives, each proven by an inductive check; see the table.

form          lower L                          upper U
reach, total  strict: L < T(L) where L > 0     loose: U >= T(U)
to target     loose: L <= T(L)                 strict: U > T(U) where U is finite

Why: reach and total are least fixed points of T over [0, inf], so a loose U bounds them (Knaster
and Tarski). If L < T(L) where L > 0, then L <= g T(L) for some g < 1; unrolled n times, L is at
most the value plus g^n max L. For rewards to a target, L <= T(L) unrolls along all plays that
reach it, and the others cost infinitely much; and U > T(U) means that those who minimise have
answers by which U falls in every step by some d > 0: the target is reached after at most U / d
steps on average, and U unrolls likewise. A state of a group (`region`) may be equal instead, as
moves inside a group give the value itself. But the policy must lead it to a strict state, whatever
an opposed nature does: then a few steps together are strict.

On the side of the agent's guarantee, T is taken with its policy fixed: the policy is proven too.

A loose bound must be constant where those on its side can linger (`lingering`); a strict one may
be, if the policy walks to the way out. Candidates are the value plus or minus eps times w, the
expected sum of values along the chain at hand: T(V + eps w) is about V + eps P w = V + eps (w - V).

Where nature cannot empty an outcome, loose checks are enough on both sides: see `plain`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Side, successor_starts
from rfmdp.kernels.sweep import share_group
from rfmdp.objective import MAX, MIN
from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.graph.components import Groups
from rfmdp.outer.graph.region import Region
from rfmdp.outer.problem import Form
from rfmdp.outer.proofs.image import Image
from rfmdp.outer.proofs.lingering import lingering_groups
from rfmdp.outer.task import Task
from rfmdp.ragged import segment
from rfmdp.rounding import UNIT
from rfmdp.types import BoolArray, FloatArray, IntArray

TRIES = 10
ROUNDS, SWEEPS = 60, 500  # of chains


@dataclass(slots=True, eq=False)
class Plan:
    """How to widen a value: the chain to follow and what is shared or fixed."""

    side: float  # -1 lower, +1 upper
    rows: IntArray  # (S,) row of every state, perhaps another state's in a group
    nodes: Nodes  # the open states; those of a group are one
    answers: FloatArray  # to the rows of the nodes, concatenated
    policy: IntArray | None  # (S,) if the agent is fixed
    groups: Groups


class Certifier:
    """Looks for inductive bounds around a value, and checks them."""

    def __init__(self, task: Task, region: Region, below: tuple[FloatArray, FloatArray]) -> None:
        self.task, self.region, self._below = task, region, below
        self.operator, self.clock = task.operator, task.clock
        self.problem = problem = task.problem
        self.model = problem.model
        self.image = Image(region, task.operator)
        self.states, self._allowed = self.image.states, region.allowed
        self.strict_side = -problem.lingerer.sign
        self.guarantee = -problem.agent.sign

    def proves(self, side: float) -> bool:
        """Return whether the inner solver can prove a side."""
        return bool(self.task.proves & (Side.ABOVE if side > 0.0 else Side.BELOW))

    def bound(
        self, value: FloatArray, choice: IntArray, side: float, lead: FloatArray | None = None
    ) -> FloatArray | None:
        """Return a proven bound (S,) on a side (+1 upper), or None if none was found.

        `lead` (S,) may be a bound of the strict side: nature's answers to it do leave, where
        others that are as good at the value stay for ever.
        """
        if not self.proves(side):
            return None
        value = self.on_side(value, side)
        plan = self.plan(value, choice, side, lead)
        if plan is None:
            return None
        weight, steps = self._first_steps(value, plan)
        if steps is None:
            return None
        for attempt in range(TRIES):
            candidate = self._widen(value, plan, 4.0**attempt * steps)
            rows = (plan.rows if plan.policy is None else choice).copy()
            failing = self.failing(candidate, plan.side, plan.policy, plan.groups, rows)
            self.clock.tick("certify", float(np.max(steps)))
            if not failing.any():
                return self.with_known(candidate)
            plan, steps = self._replan(plan, steps, rows, candidate, weight)
        return None

    def on_side(self, value: FloatArray, side: float) -> FloatArray:
        """Return the value (S,), with the bounds of a side in states that are settled already."""
        below = self._below[1 if side > 0.0 else 0]
        if below is self.region.known:
            return value
        return np.where(self.region.open | np.isinf(below), value, below)

    def plan(
        self, value: FloatArray, choice: IntArray, side: float, lead: FloatArray | None = None
    ) -> Plan | None:
        """Return how to widen a value on a side, None if there is no way out of a group.

        Where a loose bound is looked for, all states of a group follow the best way out of it.
        On the strict side nature gives its answers to `lead`, see `bound`.
        """
        policy, groups = self.region.finish_policy(choice), self.region.groups
        rows, vertex = choice.copy(), np.full(self.model.rows, -1, dtype=np.int64)
        if side != self.strict_side:
            groups = lingering_groups(self.image, value, policy)
            if groups.count and not self._exits(value, policy, groups, rows, vertex):
                return None
        nodes = Nodes.joined(self.states, groups.label)
        mine = rows[nodes.states]
        asked = value if lead is None or side != self.strict_side else lead
        answers = self.operator.inner.respond(asked, mine)
        begin = successor_starts(self.model, mine)
        for i in np.flatnonzero(vertex[mine] >= 0):
            answers[segment(begin, i)] = self.image.faces.distribution(int(vertex[mine[i]]))
        fixed = policy if side == self.guarantee else None
        return Plan(side, rows, nodes, answers, fixed, groups)

    def _exits(
        self, value: FloatArray, policy: IntArray, groups: Groups, rows: IntArray, vertex: IntArray
    ) -> bool:
        """Let all states of a group follow the best way out, in place; return whether all have one.

        `vertex[r]` becomes nature's vertex where nature has to decide to leave.
        """
        image, region = self.image, self.region
        sign = self.problem.lingerer.sign
        members = np.flatnonzero(groups.label >= 0)
        leaving = region.finite_rows & ~groups.rows
        self.operator.backup_contenders(value, members, leaving)
        q = self.operator.middle(image.open_rows, self._allowed)
        q[~leaving] = -sign * np.inf
        if image.nature_lingers:
            stays, leave, found = image.leaving(value, sign, groups)
            listed = image.faces.rows[stays]
            q[listed], vertex[listed] = leave[stays], found[stays]
        best = np.zeros(self.model.states)
        if self.problem.agent is self.problem.lingerer:
            rows[members] = self.model.row_ptr[members]
            self.operator.choose(q, members, rows, best)
        else:
            rows[members] = policy[members]
            best[members] = q[policy[members]]
        share_group(*groups.members, q, sign, rows, best)
        return bool(np.isfinite(best[members]).all())

    def _first_steps(self, value: FloatArray, plan: Plan) -> tuple[FloatArray, FloatArray | None]:
        """Return weights (R,) that make up for the residual, and their sums along the chain (S,).

        Weights are the largest relative residual everywhere; or, if that adds up to too much, a
        little everywhere and the rest where the residual is.
        """
        states, limits = self.states, self.clock.limits
        size = np.abs(value)
        size += max(1e-12 * float(np.max(size[states], initial=0.0)), 1e-290)
        weight = size[self.image.row_state]
        steps = self._steps(plan, weight)
        if steps is None:
            return weight, None
        flat = self._widen(value, plan, 0.0 * value)
        image = self.image.of(flat, plan.side, plan.policy, plan.groups)
        gap = np.maximum(plan.side * (image - value[states]), 0.0)
        gap[~np.isfinite(gap)] = 0.0
        length = float(np.max(steps[states] / size[states], initial=1.0))
        with np.errstate(over="ignore"):  # too far apart to tell: no slack is enough
            eps = 2.0 * max(float(np.max(gap / size[states], initial=0.0)), 4.0 * UNIT)
        fair = max(0.1 * limits.precision / length, 8.0 * UNIT)
        if eps <= fair:
            return eps * weight, eps * steps
        size *= fair
        size[states] += 2.0 * gap
        weight = size[self.image.row_state]
        return weight, self._steps(plan, weight)

    def failing(
        self,
        candidate: FloatArray,
        side: float,
        policy: IntArray | None,
        groups: Groups,
        choice: IntArray | None = None,
    ) -> BoolArray:
        """Return which open states (N,) fail the check of a candidate (S,), see `Image.of`.

        If there is no policy (S,), `choice` (S,) becomes the best rows at the candidate, in place.
        """
        here = candidate[self.states]
        image = self.image.of(candidate, side, policy, groups)
        if choice is not None and policy is None:
            q = self.operator.middle(self.image.open_rows, self._allowed)
            q[groups.rows] = -self.operator.sign * np.inf
            self.operator.choose(q, self.states, choice, candidate.copy())
        loose: BoolArray = ~(side * (image - here) <= 0.0)  # not a number fails
        if side != self.strict_side or loose.any():
            return loose
        equal: BoolArray = here == image
        if side < 0.0:
            equal &= here > 0.0
        if groups.count and policy is not None and equal.any():
            stuck = np.zeros(self.model.states, dtype=np.bool_)
            stuck[self.states[equal]] = True
            graph = self.region.graph.with_rows(policy).with_rows(groups.rows)
            helps = MAX if self.problem.nature is self.problem.agent else MIN
            leaves = graph.positive(~stuck, agent=MAX, nature=helps)
            equal &= ~leaves[self.states]
        return equal

    def with_known(self, candidate: FloatArray) -> FloatArray:
        """Return the bound (S,) of all states, known values put back."""
        return np.where(self.region.open, candidate, self.region.known)

    def _widen(self, value: FloatArray, plan: Plan, step: FloatArray) -> FloatArray:
        """Return the candidate: value and step on open states, equal within groups."""
        bound = value.copy()
        bound[self.states] += plan.side * step[self.states]
        np.maximum(bound, 0.0, out=bound)
        if self.problem.form is Form.REACH:
            np.minimum(bound, 1.0, out=bound)
        if plan.groups.count:
            members = np.flatnonzero(plan.groups.label >= 0)
            label = plan.groups.label[members]
            extreme = np.full(plan.groups.count, -plan.side * np.inf)
            gather = np.maximum if plan.side > 0.0 else np.minimum
            gather.at(extreme, label, bound[members])
            bound[members] = extreme[label]
        return bound

    def _steps(self, plan: Plan, weight: FloatArray) -> FloatArray | None:
        """Return the expected sum of weights along the chain of a plan, None if endless."""
        steps = np.zeros(self.model.states)
        chain = Chain(self.model, plan.nodes, plan.rows, plan.answers, steps, weight)
        accuracy = 0.01 * weight[plan.rows[plan.nodes.states]]
        for attempt in range(ROUNDS):
            before = chain.x.copy()
            settled = chain.settle(self.clock, self.operator.stats, SWEEPS, accuracy)
            if not settled and not np.max((chain.x - before) / accuracy) < 1e15:
                return None
            if not settled and attempt == 0 and chain.direct:
                settled = chain.solve()
                if not settled:
                    return None
            if settled:
                break
        if not settled or chain.x.min(initial=0.0) < 0.0:
            return None
        chain.put(steps)
        return steps

    def _replan(
        self,
        plan: Plan,
        steps: FloatArray,
        rows: IntArray,
        candidate: FloatArray,
        weight: FloatArray,
    ) -> tuple[Plan, FloatArray]:
        """Return the plan at a candidate that fails, and the sum of weights along its chain (S,).

        The agent's rows (S,) are the best ones at the candidate, or those of its policy.

        Rows, answers and ways to linger that are equally good at the value are not at the
        candidate, and it is the candidate that has to be proven. An endless chain says nothing:
        then plan and steps stay.
        """
        other = self.plan(candidate, rows, plan.side)
        longer = None if other is None else self._steps(other, weight)
        return (plan, steps) if other is None or longer is None else (other, longer)
