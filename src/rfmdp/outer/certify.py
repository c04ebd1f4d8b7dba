"""Bounds of unbounded objectives, each proven by an inductive check; see the table.

form       lower L                                        upper U
reach      maximisers fixed, L = 0 where the minimisers   U >= T(U)
           can dodge the target, else L <= T_fixed(L)
to target  L <= T(L)                                      minimisers fixed so that the target is
                                                          reached almost surely, U >= T_fixed(U)
total      maximisers fixed, L = 0 where the minimisers   U >= T(U)
           can dodge all reward, else L <= T_fixed(L)

Why: the value is a least fixed point of T over [0, inf], so U >= T(U) >= 0 bounds it (Knaster
and Tarski). With the maximisers fixed, the others cannot stay for ever among states where L > 0
without reaching the target (or collecting for ever), so L <= T_fixed(L) unrolls to L <= value.
With costs, L <= T(L) unrolls along every play that reaches the target, and the others cost
infinitely much; and if the minimisers are fixed such that all plays reach it, U unrolls likewise.
Everything is computed with margins for rounding, and structure is asked of the graph of the exact
product, so the bounds hold for the exact robust value, whatever relaxation filled the rows.

Candidates are the value plus or minus eps times the expected number of remaining steps w of
the chain at hand: T(V + eps w) <= V + residual + eps P w, and P w = w - 1.
"""

from __future__ import annotations

import numpy as np

from rfmdp.inner.bound import successor_starts
from rfmdp.inner.protocol import Side
from rfmdp.kernels import sweep as kernels
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.operator import Operator
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region, finish_policy, open_rows
from rfmdp.outer.settings import Clock
from rfmdp.types import BoolArray, FloatArray, IntArray

TRIES = 12


class Certifier:
    """Looks for inductive bounds around a value, and checks them."""

    def __init__(self, problem: Problem, region: Region, operator: Operator, clock: Clock) -> None:
        self.problem, self.region, self.operator, self.clock = problem, region, operator, clock
        self.states = np.flatnonzero(region.open)
        self.rows = open_rows(problem, region)
        self.model = problem.model

    def lower(self, value: FloatArray, choice: IntArray) -> FloatArray | None:
        """Return a proven lower bound per state, or None if none was found."""
        if not self.operator.inner.proves & Side.BELOW:
            return None
        return self._search(value, choice, -1.0)

    def upper(self, value: FloatArray, choice: IntArray) -> FloatArray | None:
        """Return a proven upper bound per state, or None if none was found."""
        if not self.operator.inner.proves & Side.ABOVE:
            return None
        return self._search(value, choice, 1.0)

    def _search(self, value: FloatArray, choice: IntArray, side: float) -> FloatArray | None:
        """Widen the value by eps * steps until the inductive check holds."""
        check = Check(self, value, choice, side)
        steps = self._steps(choice, check.answers)
        if steps is None:
            return None
        eps = check.first_eps(value)
        for _ in range(TRIES):
            bound = self._widen(value, side * eps * steps)
            failing = check.failing(bound)
            self.clock.tick("certify", float(np.max(eps * steps, initial=0.0)))
            if not failing.any():
                return check.settle(bound)
            if side * eps > 1e-3 * float(np.max(np.abs(value[self.states]), initial=1e-300)):
                return None
            eps *= 4.0
            steps = self._lengthen(steps, choice, bound, failing)
        return None

    def _widen(self, value: FloatArray, step: FloatArray) -> FloatArray:
        """Return the candidate: value + step on open states, exact on groups and known states."""
        bound = value.copy()
        bound[self.states] += step[self.states]
        if self.problem.form is Form.REACH:
            np.clip(bound, 0.0, 1.0, out=bound)
        np.maximum(bound, 0.0, out=bound)
        region = self.region
        for g in range(len(region.group_ptr) - 1):
            group = region.members[region.group_ptr[g] : region.group_ptr[g + 1]]
            bound[group] = bound[group].max()
        return bound

    def _steps(self, choice: IntArray, answers: FloatArray) -> FloatArray | None:
        """Return the expected steps of the chain of policy and answers, None if endless."""
        model, states = self.model, self.states
        steps = np.zeros(model.states)
        ones = np.ones(model.rows)
        begin = successor_starts(model, choice[states])
        for _ in range(60):
            before = steps[states].copy()
            done, change = kernels.evaluate_chain(
                states, choice, model.successor_ptr, model.successors, begin, answers, ones, 1.0,
                steps, 500, 0.01,
            )  # fmt: skip
            self.operator.stats.cheap_sweeps += done
            if change <= 0.01:
                return steps
            # extrapolate the geometric tail, which only has to be about right
            gain = steps[states] - before
            if not np.isfinite(gain).all() or float(gain.max(initial=0.0)) > 1e13:
                return None
        return steps

    def _lengthen(
        self, steps: FloatArray, choice: IntArray, bound: FloatArray, failing: BoolArray
    ) -> FloatArray:
        """Let the steps follow rows and answers that are best at the failing candidate."""
        model, states = self.model, self.states
        other = choice.copy()
        value = bound.copy()
        q = self.operator.middle(self.rows)
        kernels.choose(q, model.row_ptr, states, self.operator.sign, 0.0, other, value)
        region = self.region
        if len(region.members):
            kernels.share_group(
                region.group_ptr, region.members, q, self.operator.sign, other, value
            )
        answers = self.operator.inner.respond(bound, other[states])
        longer = self._steps(other, answers)
        del failing
        return steps if longer is None else np.maximum(steps, longer)


class Check:
    """One side's inductive check, with the strategies that it fixes."""

    def __init__(
        self, certifier: Certifier, value: FloatArray, choice: IntArray, side: float
    ) -> None:
        self.c = certifier
        self.problem, self.side = certifier.problem, side
        self.operator, self.model = certifier.operator, certifier.model
        self.states = certifier.states
        self.value = value
        self.choice = choice
        self.policy = finish_policy(self.problem, certifier.region, choice)
        self.answers = self.operator.inner.respond(value, choice[self.states])
        fixed = self._fixed_direction()
        self.fix_agent = self.problem.agent is fixed
        self.fix_nature = self.problem.nature is fixed
        if self.fix_agent:
            self.rows = self.policy[self.states]
        else:
            self.rows = certifier.rows
        self.begin = successor_starts(self.model, self.rows)
        self.fixed_answers = np.empty(0)
        if self.fix_nature:
            self.fixed_answers = self._fixed_answers(value)
        self.blocked = self._structure()

    def _fixed_direction(self) -> Direction | None:
        """Return which players have to be fixed for this side, by the table."""
        if self.problem.form is Form.TO_TARGET:
            return MIN if self.side > 0.0 else None
        return MAX if self.side < 0.0 else None

    def _fixed_answers(self, value: FloatArray) -> FloatArray:
        """Return nature's fixed distributions of the checked rows."""
        answers = self.operator.inner.respond(value, self.rows)
        # a stray ulp on an infinite state would count as a leak
        answers[answers < 1e-15] = 0.0
        return answers

    def _structure(self) -> BoolArray:
        """Return states whose bound must stay trivial because the structure does not hold."""
        problem, graph = self.problem, self.c.region.graph
        fixed = self._fixed_direction()
        none = np.zeros(self.model.states, dtype=np.bool_)
        if fixed is None:
            return none
        if self.fix_agent:
            graph = graph.with_rows(self.policy)
        if self.fix_nature:
            graph = graph.with_support(self._support())
        agent, nature = problem.agent, problem.nature
        if problem.form is Form.REACH:
            # states that the graph proved sure count as reached
            target = problem.target | self.c.region.sure
            return ~graph.positive(target, problem.stay, agent=agent, nature=nature)
        if problem.form is Form.TOTAL:
            return graph.zero_total(problem.reward > 0.0, agent=agent, nature=nature)
        finite = graph.almost_sure(problem.target, agent=agent.opposite, nature=nature.opposite)
        return ~finite

    def _support(self) -> BoolArray:
        """Return the transitions of the fixed nature; all of them in rows that are not checked."""
        support = np.ones(self.model.transitions, dtype=np.bool_)
        sizes = np.diff(self.begin)
        starts = np.repeat(self.model.successor_ptr[self.rows], sizes)
        within = np.arange(self.begin[-1]) - np.repeat(self.begin[:-1], sizes)
        support[starts + within] = self.fixed_answers > 0.0
        return support

    def first_eps(self, value: FloatArray) -> float:
        """Return the residual of the value on this side, the least eps that can work."""
        gap = self.side * (self._image(value) - value[self.states])
        scale = float(np.max(np.abs(value[self.states]), initial=0.0))
        return 2.0 * max(float(np.max(gap, initial=0.0)), 4.0 * 2.0**-53 * scale)

    def failing(self, bound: FloatArray) -> BoolArray:
        """Return which open states fail the check at a candidate."""
        given = self._given(bound)
        image = self._image(given)
        excess = self.side * (image - given[self.states])
        bad: BoolArray = (excess > 0.0) & ~self.blocked[self.states]
        return bad

    def settle(self, bound: FloatArray) -> FloatArray:
        """Return the bound of all states, known values put back."""
        region = self.c.region
        out = np.where(region.open, self._given(bound), region.known)
        if self.problem.form is Form.TO_TARGET and self.side > 0.0:
            out[self.blocked & region.open] = np.inf
        return out

    def _given(self, bound: FloatArray) -> FloatArray:
        """Return the candidate with blocked states trivial."""
        given = bound.copy()
        if self.side < 0.0:
            given[self.blocked & self.c.region.open] = 0.0
        return given

    def _image(self, value: FloatArray) -> FloatArray:
        """Return T(value) on the open states: its proven upper or lower side, as checked."""
        side = np.empty(self.model.rows)
        if self.fix_nature:
            below, above = self.operator.expectation(
                value, self.rows, self.begin, self.fixed_answers
            )
            side[self.rows] = above if self.side > 0.0 else below
        else:
            self.operator.backup(value, self.rows)
            source = self.operator.above if self.side > 0.0 else self.operator.below
            side[self.rows] = source[self.rows]
            self._clip(side, value)
        if self.fix_agent:
            return side[self.policy[self.states]]
        if self.problem.agent is (MAX if self.side < 0.0 else MIN):
            # one row is enough for the agent: those that must not be taken do not help
            side = np.where(self.operator.allowed, side, -self.operator.sign * np.inf)
        return self.operator.best(side, self.states)

    def _clip(self, side: FloatArray, value: FloatArray) -> None:
        """Without reward, a row's value lies between those of its successors, margins or not."""
        free = self.rows[self.problem.reward[self.rows] == 0.0]
        if not len(self.c.region.members) or not len(free):
            return
        low, high = np.empty(len(free)), np.empty(len(free))
        kernels.row_span(free, self.model.successor_ptr, self.model.successors, value, low, high)
        side[free] = np.clip(side[free], low, high)
