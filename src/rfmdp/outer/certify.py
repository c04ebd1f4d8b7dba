"""Bounds of unbounded objectives, each proven by an inductive check; see the table.

form          lower L                          upper U
reach, total  strict: L < T(L) where L > 0     loose: U >= T(U)
to target     loose: L <= T(L)                 strict: U > T(U) where U is finite

Why stands in docs/soundness.md. A state of a group (`region`) may be equal to its strict bound, if
the policy leads it to a strict state, whatever an opposed nature does. On the side of the agent's
guarantee T is taken with its policy fixed: the policy is proven, too.

A loose bound must be constant where those on its side can linger (`backups`); a strict one may
be, if the policy walks to the way out. Candidates are the value plus or minus eps times w, the
expected sum of values along the chain at hand: T(V + eps w) is about V + eps P w = V + eps (w - V).

Where nature cannot empty an outcome, loose checks are enough on both sides: see `plain`.

If somebody may linger, policy iteration can settle on a fixed point that is not the value, around
which nothing is proven. `approach` then solves a game that is a little worse on the strict side,
in which every step costs those who linger, so that it has one fixed point only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels.sweep import share_group
from rfmdp.objective import MAX, MIN
from rfmdp.outer.backups import ProvenBackups, lingering_groups
from rfmdp.outer.policy_iteration import Chain, Nodes, PolicyIteration
from rfmdp.outer.problem import Form
from rfmdp.outer.region import Groups, Region, no_groups
from rfmdp.outer.task import Task, largest
from rfmdp.ragged import entries, segment
from rfmdp.rounding import UNIT
from rfmdp.types import BoolArray, FloatArray, IntArray

TRIES = 10
LADDER = 7  # worse games, each a bit better than the one before
ROUNDS, SWEEPS = 60, 500  # of chains


@dataclass(slots=True, eq=False)
class Widening:
    """How to widen a value: the chain to follow and what is shared or fixed."""

    side: float  # -1 lower, +1 upper
    choice: IntArray  # (S,) row of every state, perhaps another state's in a group
    nodes: Nodes  # the open states; those of a group are one
    answers: FloatArray  # to the rows of the nodes, concatenated
    fixed: IntArray | None  # (S,) the agent's choice, on the side of its guarantee
    groups: Groups


class Certifier:
    """Looks for inductive bounds around a value, and checks them."""

    def __init__(self, task: Task, region: Region) -> None:
        self.task, self.region = task, region
        self.problem = problem = task.problem
        self.model = problem.model
        self.backups = ProvenBackups(region, task)
        self.states, self._allowed = self.backups.states, region.allowed
        self.strict_side = -problem.lingerer.sign
        self.guarantee = -problem.agent.sign

    def bound(
        self, value: FloatArray, choice: IntArray, side: float, lead: FloatArray | None = None
    ) -> FloatArray | None:
        """Return a proven bound (S,) on a side (+1 upper), or None if none was found.

        `lead` (S,) may be a bound of the strict side: nature's answers to it do leave, where
        others that are as good at the value stay for ever.
        """
        if not self.task.can_prove(side):
            return None
        widening = self._widening(value, choice, side, lead)
        if widening is None:
            return None
        weight, steps = self._first_steps(value, widening)
        if steps is None:
            return None
        for attempt in range(TRIES):
            candidate = self._widen(value, widening, 4.0**attempt * steps)
            best = (widening.choice if widening.fixed is None else choice).copy()
            failing = self._failing(candidate, widening, best)
            self.task.clock.tick("certify", float(np.max(steps)))
            if not failing.any():
                return np.where(self.region.open, candidate, self.region.known)
            # rows, answers and ways to linger that are equally good at the value are not at the
            # candidate, and it is the candidate that has to be proven
            other = self._widening(candidate, best, side)
            longer = None if other is None else self._steps(other, weight)
            if other is not None and longer is not None:  # an endless chain says nothing
                widening, steps = other, longer
        return None

    def _widening(
        self, value: FloatArray, choice: IntArray, side: float, lead: FloatArray | None = None
    ) -> Widening | None:
        """Return how to widen a value on a side, None if there is no way out of a group.

        Where a loose bound is looked for, all states of a group follow the best way out of it.
        On the strict side nature gives its answers to `lead`, see `bound`.
        """
        finished = self.region.finish_policy(choice)
        groups = self.region.groups
        choice = choice.copy()
        vertex = np.full(self.model.rows, -1, dtype=np.int64)
        if side != self.strict_side:
            groups = lingering_groups(self.backups, value, finished)
            if groups.count and not self._exits(value, finished, groups, choice, vertex):
                return None
        nodes = Nodes.joined(self.states, groups.label)
        mine = choice[nodes.states]
        request = value if lead is None or side != self.strict_side else lead
        answers = self.task.inner.respond(request, mine)
        begin = successor_starts(self.model, mine)
        for i in np.flatnonzero(vertex[mine] >= 0):
            answers[segment(begin, i)] = self.backups.faces.distribution(int(vertex[mine[i]]))
        fixed = finished if side == self.guarantee else None
        return Widening(side, choice, nodes, answers, fixed, groups)

    def _exits(
        self,
        value: FloatArray,
        finished: IntArray,
        groups: Groups,
        choice: IntArray,
        vertex: IntArray,
    ) -> bool:
        """Let all states of a group follow the best way out, in place; return whether all have one.

        It goes to `choice` (S,); an agent who does not linger stays with its `finished` one (S,).
        `vertex[r]` becomes nature's vertex where nature has to decide to leave.
        """
        backups, region = self.backups, self.region
        sign = self.problem.lingerer.sign
        members = np.flatnonzero(groups.label >= 0)
        leaving = region.finite_rows & ~groups.rows
        rows = entries(self.model.row_ptr, members)
        self.task.backup(value, rows[leaving[rows]])
        q = self.task.middle(backups.open_rows, self._allowed)
        q[~leaving] = -sign * np.inf
        if backups.nature_lingers:
            stays, leave, result = backups.leaving(value, sign, groups)
            listed = backups.faces.rows[stays]
            q[listed], vertex[listed] = leave[stays], result[stays]
        best = np.zeros(self.model.states)
        if self.problem.agent is self.problem.lingerer:
            choice[members] = self.model.row_ptr[members]
            self.task.choose(q, members, choice, best)
        else:
            choice[members] = finished[members]
            best[members] = q[finished[members]]
        share_group(*groups.members, q, sign, choice, best)
        return bool(np.isfinite(best[members]).all())

    def _first_steps(
        self, value: FloatArray, widening: Widening
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return weights (R,) that make up for the residual, and their sums along the chain (S,).

        Weights are the largest relative residual everywhere; or, if that adds up to too much, a
        little everywhere and the rest where the residual is.
        """
        states, limits = self.states, self.task.clock.limits
        size = np.abs(value)
        size += max(1e-12 * float(np.max(size[states], initial=0.0)), 1e-290)
        weight = size[self.backups.row_state]
        steps = self._steps(widening, weight)
        if steps is None:
            return weight, None
        flat = self._widen(value, widening, 0.0 * value)
        image = self.backups.of(flat, widening.side, widening.fixed, widening.groups)
        gap = np.maximum(widening.side * (image - value[states]), 0.0)
        gap[~np.isfinite(gap)] = 0.0
        length = float(np.max(steps[states] / size[states], initial=1.0))
        with np.errstate(over="ignore"):  # too far apart to tell: no slack is enough
            eps = 2.0 * max(float(np.max(gap / size[states], initial=0.0)), 4.0 * UNIT)
        fair = max(0.1 * limits.precision / length, 8.0 * UNIT)
        if eps <= fair:
            return eps * weight, eps * steps
        size *= fair
        size[states] += 2.0 * gap
        weight = size[self.backups.row_state]
        return weight, self._steps(widening, weight)

    def _failing(self, candidate: FloatArray, widening: Widening, choice: IntArray) -> BoolArray:
        """Return which open states (N,) fail the check of a candidate (S,), see `ProvenBackups.of`.

        If no choice is fixed, `choice` (S,) becomes the best one at the candidate, in place.
        """
        side, fixed, groups = widening.side, widening.fixed, widening.groups
        here = candidate[self.states]
        image = self.backups.of(candidate, side, fixed, groups)
        if fixed is None:
            q = self.task.middle(self.backups.open_rows, self._allowed)
            q[groups.rows] = -self.task.sign * np.inf
            self.task.choose(q, self.states, choice, candidate.copy())
        loose: BoolArray = ~(side * (image - here) <= 0.0)  # not a number fails
        if side != self.strict_side or loose.any():
            return loose
        equal: BoolArray = here == image
        if side < 0.0:
            equal &= here > 0.0
        if groups.count and fixed is not None and equal.any():
            stuck = np.zeros(self.model.states, dtype=np.bool_)
            stuck[self.states[equal]] = True
            graph = self.region.graph.with_rows(fixed).with_rows(groups.rows)
            helps = MAX if self.problem.nature is self.problem.agent else MIN
            leaves = graph.positive(~stuck, agent=MAX, nature=helps)
            equal &= ~leaves[self.states]
        return equal

    def _widen(self, value: FloatArray, widening: Widening, step: FloatArray) -> FloatArray:
        """Return the candidate: value and step on open states, equal within groups."""
        bound = value.copy()
        bound[self.states] += widening.side * step[self.states]
        np.maximum(bound, 0.0, out=bound)
        if self.problem.form is Form.REACH:
            np.minimum(bound, 1.0, out=bound)
        if widening.groups.count:
            members = np.flatnonzero(widening.groups.label >= 0)
            label = widening.groups.label[members]
            extreme = np.full(widening.groups.count, -widening.side * np.inf)
            gather = np.maximum if widening.side > 0.0 else np.minimum
            gather.at(extreme, label, bound[members])
            bound[members] = extreme[label]
        return bound

    def _steps(self, widening: Widening, weight: FloatArray) -> FloatArray | None:
        """Return the expected sum of weights along the chain to follow, None if endless."""
        steps = np.zeros(self.model.states)
        chain = Chain(
            self.model, widening.nodes, widening.choice, widening.answers, steps, weight,
            self.problem.discount,
        )  # fmt: skip
        accuracy = 0.01 * weight[widening.choice[widening.nodes.states]]
        for attempt in range(ROUNDS):
            before = chain.x.copy()
            settled = chain.settle(self.task.clock, self.task.stats, SWEEPS, accuracy)
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


def approach(certifier: Certifier, eta: float) -> tuple[FloatArray, IntArray] | None:
    """Return a proven bound (S,) of the strict side, near the value, and its policy (S,).

    It is one of a worse game, in which a step to a target pays eta more (of the largest value), and
    what follows any other step counts for 1 - eta of it. None if nothing was proven.
    """
    problem, region, task = certifier.problem, certifier.region, certifier.task
    scale, guess, result = largest(problem.reward), None, None
    for less in np.geomspace(1.0, eta, LADDER):  # from far on the strict side
        if problem.form is Form.TO_TARGET:
            worse = replace(problem, reward=problem.reward + less * scale)
        else:
            worse = replace(problem, reward=(1.0 - less) * problem.reward, discount=1.0 - less)
        apart = replace(region, problem=worse, groups=no_groups(certifier.model))
        other = replace(task, problem=worse)
        search = PolicyIteration(other, apart)
        guess = guess or search.start(None)
        search.improve(guess, 1e-2 * less)
        scale = largest(guess.value[certifier.states])
        bound = Certifier(other, apart).bound(guess.value, guess.choice, certifier.strict_side)
        result = result if bound is None else (bound, guess.choice.copy())
    return result
