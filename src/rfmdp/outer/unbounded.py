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

Compiled code hands proven bounds from one component to the next, and goes through them in rounds,
each with less width, until the bounds are close. If it cannot settle a component, the open part is
one for policy iteration.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.objective import MAX, MIN
from rfmdp.outer.certify import Certifier, approach
from rfmdp.outer.horizon import half_width
from rfmdp.outer.plain import PlainWalk, is_plain, pack
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.region import Region, analyse
from rfmdp.outer.solution import Status
from rfmdp.outer.task import STOPS, LimitReached, StateBounds, Task, status_of
from rfmdp.ragged import entries, segment_any
from rfmdp.types import FloatArray

ATTEMPTS = 8
COARSE = 1.0  # relative width of bounds that are better than none
FLOOR = 2.0**-44  # of the relative residual that is asked for
NEAREST = 1e2 * FLOOR  # of the shares by which the strict side is approached
RESERVE = 0.3  # of the time, for a last proof


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
        _settle(rounds)
        result = rounds.result
        if rounds.stuck and not result.stopped:
            everywhere = replace(task, interest=region.open)  # as compiled code takes it
            result = solve_general(everywhere, region, result.value)
    result.choice = region.finish_policy(result.choice)
    return result


class Rounds:
    """Walks through plain components; `result` is what is proven, `stuck` says that one cannot be.

    `share` is the part of a precision that the width of one component may take.
    """

    def __init__(self, task: Task, region: Region, warm: FloatArray | None) -> None:
        self.task, self.region, self.packed = task, region, pack(region)
        # widths add up over levels with components that are more than one node
        levels = segment_any(~self.packed.single, region.components.level_ptr)
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        lower, upper = region.trivial_bounds()
        self.result = StateBounds(lower, upper, lower, region.choice)
        self.stuck = False
        self._proven = False
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            self._value[self.packed.node[region.open]] = warm[region.open]

    def run(self, width: float) -> None:
        """Settle all components to about a relative width each.

        What a stopped round has proven is kept only if nothing was proven before.
        """
        walk = PlainWalk(self.packed, self.task.problem, self._value)
        try:
            walk.run(width, self.task.clock)
            self.stuck = not walk.done
        finally:
            if walk.done or not self._proven:
                self._keep(walk)
        self.task.stats.robust_sweeps += 1

    def _keep(self, walk: PlainWalk) -> None:
        """Take the bounds of all settled components; the guarantee is that of one round."""
        packed, region, bounds, before = self.packed, self.region, walk.bounds, self.result
        node = packed.node
        settled = region.open & (node < packed.component_ptr[walk.component])
        settled &= np.isfinite(bounds.lower[node])
        lower = np.where(settled, bounds.lower[node], before.lower)
        upper = np.where(settled, bounds.upper[node], before.upper)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, before.upper)
        else:
            lower = np.maximum(lower, before.lower)
        value = np.where(settled, bounds.value[node], before.lower)
        choice = region.choice.copy()
        choice[settled] = packed.origin[bounds.choice[node[settled]]]
        self._proven, self.result = True, StateBounds(lower, upper, value, choice)


def _settle(rounds: Rounds) -> None:
    """Settle all components, again with less width each until the bounds are close."""
    task = rounds.task
    width = max(rounds.share * task.limits.precision, FLOOR)
    try:
        for attempt in range(ATTEMPTS):
            _first_round(rounds, width) if attempt == 0 else rounds.run(width)
            excess = task.excess(rounds.result.lower, rounds.result.upper)
            if rounds.stuck or excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        task.clock.tick("solve", width)
    except STOPS as stop:
        rounds.result.stopped = status_of(stop)


def _first_round(rounds: Rounds, width: float) -> None:
    """Settle all components; if most of the time is over before that, coarsely first.

    Sweeps keep their values, so coarse bounds take a fraction of the time that precise ones take.
    """
    clock = rounds.task.clock
    clock.reserve = RESERVE
    try:
        rounds.run(width)
    except LimitReached as stop:
        clock.last_chance()
        rounds.run(COARSE)
        if stop.status is Status.SWEEP_LIMIT:
            raise
        rounds.run(width)
    clock.reserve = 0.0


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
