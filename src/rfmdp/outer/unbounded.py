"""Reachability, reward to a target and total reward: graph, components, proofs.

The graph says where the value is 0, 1 or infinite. The components of the open part are settled
bottom first. How is said by this table, and nowhere else; the first line that fits is taken:

open part                                engine                    proof of its bounds
every row plain, nature cannot keep a    `PlainWalk`, compiled,    loose checks, see `plain`
play for ever at no reward, nor has to   component by component
dodge infinite states
without cycles, nothing to dodge         one sweep                 errors add up level by level
any other                                `policy_iteration`        `certify`; where that fails,
                                                                   its `approach`

Rewards of both signs to a target are the values of games that pay a little more, or less: see
`Shifted`.

Compiled code hands proven bounds from one component to the next, and goes through them in rounds,
each with less width, until the bounds are close. If it cannot settle a component, the open part is
one for policy iteration.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.protocol import Side
from rfmdp.objective import MIN
from rfmdp.outer.backups import ProvenBackups
from rfmdp.outer.certify import Certifier, approach
from rfmdp.outer.horizon import half_width
from rfmdp.outer.plain import FLOOR, RESERVE, Rounds, is_plain
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.region import Region, analyse
from rfmdp.outer.solution import Status
from rfmdp.outer.task import STOPS, LimitReached, StateBounds, Task, largest, status_of
from rfmdp.ragged import entries
from rfmdp.rounding import UNIT
from rfmdp.types import FloatArray, IntArray

ATTEMPTS = 8
NEAREST = 1e2 * FLOOR  # of the shares by which the strict side is approached
SHIFTS, FAILURES = 12, 3  # of what a step pays, for rewards of both signs
FIRST_SHIFT = 1e-4  # of the largest reward: what a step pays more or less at first
LEAST_SHIFT = 1e4 * UNIT  # of the largest value: less would drown in rounding


def solve_unbounded(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values."""
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
        if not region.open.any():  # the graph knows it all
            return StateBounds(region.known, region.known, region.known, region.choice)
        rounds = Rounds(task, region, warm) if is_plain(region) else None
    task.stats.components = len(region.components.trivial)
    task.stats.levels = len(region.components.level_ptr) - 1
    if rounds is None:
        task.clock.check_overdue()
        result = solve_general(task, region, warm)
    else:
        rounds.settle()
        result = rounds.result
        if rounds.stuck and not result.stopped:
            everywhere = replace(task, interest=region.open)  # as compiled code takes it
            result = solve_general(everywhere, region, result.value)
    result.choice = region.finish_policy(result.choice)
    return result


def solve_general(task: Task, region: Region, warm: FloatArray | None) -> StateBounds:
    """Solve an open part that is not for compiled code, see the table above."""
    infinite = bool(np.isinf(region.known).any())
    by_levels = not region.cyclic and not (infinite and task.problem.nature is MIN)
    if not by_levels:
        region = region.with_first_policy()
    solver = PolicyIteration(task, region)
    guess = solver.start(warm)
    if by_levels:
        result = _sweep_levels(task, region, guess, infinite)
        closed = task.closed(result.lower, result.upper, result.value)
        if closed or result.stopped or task.proves != Side.BOTH:
            return result
    return Search(solver, Certifier(task, region), guess).run()


def _sweep_levels(task: Task, region: Region, guess: Guess, infinite: bool) -> StateBounds:
    """Return bounds from one sweep over the levels; errors add up by level (see `horizon`).

    If they are too wide, from one sweep per side: the error of a row then counts as often as the
    row is met, and one that is hardly ever met no longer makes all bounds above it wide.
    """
    allowed, total = region.allowed, 0.0
    value = np.where(region.open, 0.0, region.known)
    result = StateBounds(*region.trivial_bounds(), value, guess.choice)
    levels = [(s, entries(task.model.row_ptr, s)) for s in region.components.levels()]
    try:
        for states, rows in levels:
            task.backup(guess.value, rows)
            q = task.middle(rows, allowed)
            total += half_width(task, rows[allowed[rows]], q)
            task.choose(q, states, guess.choice, guess.value)
            here = result.value[states] = guess.value[states]
            result.lower[states], result.upper[states] = here - total, here + total
            task.clock.check()
        task.stats.robust_sweeps += 1
        task.clock.tick("solve", total)
    except STOPS as stop:
        result.stopped = status_of(stop)
    closed = task.closed(result.lower, result.upper, result.value)
    if closed or result.stopped or infinite or task.proves != Side.BOTH:
        return result
    with suppress(LimitReached):
        for side in (-1.0, 1.0):
            choice = result.choice.copy()
            for states, rows in levels:
                task.backup(guess.value, rows)
                q[rows] = task.side(side)[rows]
                task.choose(task.forbid(q, rows, allowed), states, choice, guess.value)
                task.clock.check()
            task.stats.robust_sweeps += 1
            if side == -task.sign:  # the guarantee is that of one policy
                result.choice = choice
            result.side(side)[region.open] = guess.value[region.open]
    return result


class Search:
    """Improves a guess and certifies it in turn; `result` has the bounds that are proven."""

    def __init__(self, solver: PolicyIteration, certifier: Certifier, guess: Guess) -> None:
        self.solver, self.certifier, self.guess = solver, certifier, guess
        self.task, self.region = certifier.task, certifier.region
        bounds = self.region.trivial_bounds()
        self.result = StateBounds(*bounds, guess.value, guess.choice.copy())

    @property
    def closed(self) -> bool:
        """Whether the bounds are close."""
        return self.task.closed(self.result.lower, self.result.upper, self.guess.value)

    def run(self) -> StateBounds:
        """Search until the bounds are close or a limit is reached.

        Policy iteration goes on as long as it leads to proofs. Where it does not, it may have
        settled on a wrong fixed point; then the value is approached from the strict side.
        """
        clock, certifier, result = self.task.clock, self.certifier, self.result
        clock.reserve = RESERVE
        try:
            eta = self._iterate()
            while not self.closed and self._approach(eta) and eta > NEAREST:
                eta = max(1e-2 * eta, NEAREST)
            clock.reserve = 0.0
        except STOPS as stop:
            result.stopped = status_of(stop)
            if result.stopped is not Status.INTERRUPTED:
                clock.last_chance()
                with suppress(LimitReached):  # the guarantee first
                    self._certify((certifier.guarantee, -certifier.guarantee))
        result.value = np.where(self.region.open, self.guess.value, self.region.known)
        return result

    def _iterate(self) -> float:
        """Improve and certify while that makes bounds better; return how near to approach next.

        Where a proof fails the residual may be too large yet: in a long chain it adds up to a lot.
        """
        residual, failed, eta = 1e-2 * self.task.limits.precision, False, NEAREST
        for _ in range(ATTEMPTS):
            reached = self.solver.improve(self.guess, residual)
            proven = self._certify()
            if self.closed:
                break
            least = min(residual, reached)
            if not proven and not failed:
                failed = True
                eta = max(least, NEAREST)
            if residual <= FLOOR or (not proven and reached > residual):
                break
            residual = max(1e-2 * least, FLOOR) if proven else FLOOR
        return eta

    def _approach(self, eta: float) -> bool:
        """Take a bound of the strict side and the other one around it; return whether one is."""
        side, guess = self.certifier.strict_side, self.guess
        better = approach(self.certifier, eta) if self.task.can_prove(side) else None
        if better is None:
            return False
        bound, guess.choice = better
        guess.value = np.where(self.region.open, bound, guess.value)
        self._take(bound, side)
        self._certify((-side,))
        if not self.closed:
            self.solver.improve(guess, FLOOR)
            self._certify(lead=bound)
        return True

    def _certify(
        self, sides: tuple[float, ...] = (-1.0, 1.0), lead: FloatArray | None = None
    ) -> bool:
        """Make bounds better by what is proven around the guess; return whether all sides were.

        `lead` as in `Certifier.bound`.
        """
        proven = True
        for side in sides:
            with self.task.stats.phase("certify"):
                bound = self.certifier.bound(self.guess.value, self.guess.choice, side, lead)
            if bound is not None:
                self._take(bound, side)
            proven = proven and (bound is not None or not self.task.can_prove(side))
        return proven

    def _take(self, bound: FloatArray, side: float) -> None:
        """Make a side better by another bound of it; the guarantee stays that of one policy."""
        result = self.result
        if side == self.certifier.guarantee:
            now = np.minimum(result.side(side), 1e100)  # infinite ones count much
            size = np.minimum(bound, 1e100) - now
            if side * float(size[self.task.interest].sum()) > 0.0:
                return
            result.choice = self.guess.choice.copy()
        else:
            bound = (np.minimum if side > 0.0 else np.maximum)(result.side(side), bound)
        result.put(side, bound)


def solve_mixed(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values; see `Shifted`.

    Refuses if those who minimise may go round for ever at no mean cost: nothing is proven then.
    """
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
    lower, upper = region.trivial_bounds()
    result = StateBounds(lower, upper, np.where(region.open, 0.0, region.known), region.choice)
    if not region.open.any():
        return result
    sides = [Shifted(task, region.with_first_policy(), side, warm) for side in (1.0, -1.0)]
    paid = largest(task.problem.reward[entries(task.problem.model.row_ptr, sides[0].states)])
    shift, failures = FIRST_SHIFT * paid, 0
    try:
        for _ in range(SHIFTS):
            proven = [side.prove(shift, result) for side in sides]
            excess = task.excess(result.lower, result.upper)
            least = LEAST_SHIFT * max(largest(result.value), paid)
            failures += not all(proven)
            if excess <= 1.0 or shift <= least or failures == FAILURES:
                break
            step = max(0.3 / excess, 1e-4) if all(proven) else 1e-2
            shift = max(shift * min(step, 0.5), least)
    except STOPS as stop:
        result.stopped = status_of(stop)
    if task.proves == Side.BOTH and result.stopped is None:
        for side, bound in zip(sides, (result.upper, result.lower), strict=True):
            if np.isinf(bound[side.states]).any():
                side.refuse()
    return result


class Shifted:
    """The search for one side (+1 upper) of rewards of both signs to a target.

    A play that misses the target is worth plus infinity, whatever it pays. So those who minimise
    have to force the target, and the graph says where they can. There the value is between

        a lower bound L   if  L + d <= T(L)  in all open states, for some d > 0
        an upper bound U  if  T(U) + d <= U  in all open states, for some d > 0

    Why stands in docs/soundness.md. Where U is the guarantee of a policy, the policy itself must
    force the target, with the help of a nature that minimises. Candidates are values of the same
    game in which each step pays d more, or less.
    """

    def __init__(self, task: Task, region: Region, side: float, warm: FloatArray | None) -> None:
        self.task, self.region, self.side = task, region, side
        self.backups = ProvenBackups(region, task)
        self.states, self.warm = self.backups.states, warm
        self.guess: Guess | None = None

    def prove(self, shift: float, result: StateBounds) -> bool:
        """Take a candidate as the bound of the side, if that is proven; return whether it is."""
        task, region, side = self.task, self.region, self.side
        if not task.can_prove(side):
            return True
        problem = replace(task.problem, reward=task.problem.reward + side * shift)
        search = PolicyIteration(replace(task, problem=problem), replace(region, problem=problem))
        self.guess = self.guess or search.start(self.warm)
        scale = max(largest(self.guess.value[self.states]), largest(problem.reward))
        search.improve(self.guess, max(0.1 * shift / scale, 4.0 * UNIT))
        result.value = np.where(region.open, self.guess.value, region.known)
        fixed = None
        if side == -task.sign:  # the guarantee, of one policy
            fixed = np.where(region.open, self.guess.choice, region.choice)
        with task.stats.phase("certify"):
            if not self._holds(result.value, fixed):
                return False
        result.put(side, result.value.copy())
        if fixed is not None:
            result.choice = fixed
        return True

    def _holds(self, bound: FloatArray, fixed: IntArray | None) -> bool:
        """Return whether numbers (S,) are a bound of the side, the choice (S,) perhaps fixed."""
        problem, region = self.task.problem, self.region
        image = self.backups.of(bound, self.side, fixed, region.groups)
        if not np.all(self.side * (image - bound[self.states]) < 0.0):  # not a number fails
            return False
        if self.side < 0.0 or fixed is None:
            return True
        ends = region.graph.with_rows(fixed).almost_sure(
            problem.target, agent=problem.agent.opposite, nature=problem.nature.opposite
        )
        return bool(ends[self.states].all())

    def refuse(self) -> None:
        """Raise ModelError with a state where nothing is proven, that of the least value."""
        model, guess = self.task.model, self.guess
        least = 0 if guess is None else int(np.argmin(guess.value[self.states]))
        state = int(self.states[least])
        who = "the agent" if self.task.problem.agent is MIN else "nature"
        side = "below" if self.side < 0.0 else "above"
        raise ModelError(
            f"The reward to a target has no proven bound from {side}: with rewards of both signs "
            f"{who} must not be able to go round for ever at a mean reward <= 0, as it seems to "
            f"from {model.state_name(state)}. Use C<=k (Cumulative) or C{{discount=0.9}}."
        )
