"""Bounds of components in which nature has more than the choice of one box, or may linger.

What lies below is settled: known, or between proven bounds, of which each side of a proof takes
its own. Policy iteration (`fixpoint`) finds a value, `certify` proves bounds around it, and where
that fails the value is approached from the strict side (`monotone`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels.sweep import choose
from rfmdp.objective import MAX
from rfmdp.outer.certify import Certifier
from rfmdp.outer.fixpoint import Iterate, Solver
from rfmdp.outer.horizon import half_width
from rfmdp.outer.monotone import approach
from rfmdp.outer.operator import Operator, rows_of
from rfmdp.outer.problem import Problem
from rfmdp.outer.region import Region, trivial_bounds, with_first_policy
from rfmdp.outer.settings import Clock, LimitReached, Limits, excess_width
from rfmdp.outer.solution import Status
from rfmdp.types import BoolArray, FloatArray, IntArray

ATTEMPTS = 8
FLOOR = 2.0**-44  # of the relative residual that is asked for
RESERVE = 0.3  # of the time, for a last proof


@dataclass(slots=True, eq=False)
class Found:
    """Proven bounds of the open states, the value between them, and the policy that keeps them."""

    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    value: FloatArray  # (S,)
    choice: IntArray  # (S,)
    status: Status


def solve_general(
    problem: Problem,
    region: Region,
    below: tuple[FloatArray, FloatArray],
    operator: Operator,
    clock: Clock,
    limits: Limits,
    interest: BoolArray,
    warm: FloatArray | None,
) -> Found:
    """Solve the open part of a region; `below` are bounds (S,) of all that is not open."""
    by_levels = not region.cyclic
    by_levels = by_levels and not (np.isinf(region.known).any() and problem.nature is not MAX)
    if not by_levels:
        region = with_first_policy(problem, region)
    solver = Solver(problem, region, operator, clock)
    guess = solver.start(warm)
    if by_levels:
        found = _acyclic(problem, region, below, operator, clock, guess)
        closed = tight(operator, limits, interest, found.lower, found.upper, found.value)
        stopped = found.status is not Status.CERTIFIED
        if closed or stopped or operator.inner.proves != Side.BOTH:
            return found
        if not np.isinf(region.known).any():
            _sharpen(problem, region, below, operator, clock, found)
            if tight(operator, limits, interest, found.lower, found.upper, found.value):
                return found
    certifier = Certifier(problem, region, below, operator, clock)
    return _cyclic(problem, region, solver, certifier, guess, limits, interest)


def _acyclic(
    problem: Problem,
    region: Region,
    below: tuple[FloatArray, FloatArray],
    operator: Operator,
    clock: Clock,
    guess: Iterate,
) -> Found:
    """One sweep over the levels; errors add up level by level (see `horizon`)."""
    model, parts = problem.model, region.components
    lower, upper = trivial_bounds(problem, region)
    value = np.where(region.open, 0.0, region.known)
    status, total = Status.CERTIFIED, _half_gap(region, below)
    try:
        for level in range(len(parts.level_ptr) - 1):
            states = parts.level(level)
            rows = rows_of(model.row_ptr, states)
            operator.backup(guess.value, rows)
            q = operator.middle(rows)
            total += half_width(operator, rows, q)
            choose(q, model.row_ptr, states, operator.sign, 0.0, guess.choice, guess.value)
            value[states] = guess.value[states]
            lower[states], upper[states] = value[states] - total, value[states] + total
            clock.check()
        operator.stats.robust_sweeps += 1
        clock.tick("solve", total)
    except LimitReached as reached:
        status = reached.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Found(lower, upper, value, guess.choice, status)


def _sharpen(
    problem: Problem,
    region: Region,
    below: tuple[FloatArray, FloatArray],
    operator: Operator,
    clock: Clock,
    found: Found,
) -> None:
    """Sweep over the levels once per side, each from its own bounds below.

    The error of a row then counts as often as it is met: one of wide span that is hardly ever
    reached no longer makes all bounds above it wide.
    """
    model, parts, q = problem.model, region.components, np.empty(problem.model.rows)
    with suppress(LimitReached):
        for side, start in zip((-1.0, 1.0), below, strict=True):
            value, choice = np.where(region.open, 0.0, start), found.choice.copy()
            for level in range(len(parts.level_ptr) - 1):
                states = parts.level(level)
                rows = rows_of(model.row_ptr, states)
                operator.backup(value, rows)
                q[rows] = (operator.below if side < 0.0 else operator.above)[rows]
                operator.forbid(q, rows)
                choose(q, model.row_ptr, states, operator.sign, 0.0, choice, value)
                clock.check()
            operator.stats.robust_sweeps += 1
            if side == -operator.sign:  # the guarantee is that of one policy
                found.choice = choice
            bound = found.lower if side < 0.0 else found.upper
            bound[region.open] = value[region.open]


def _half_gap(region: Region, below: tuple[FloatArray, FloatArray]) -> float:
    """Return the most that the values of settled states are off."""
    settled = ~region.open & np.isfinite(region.known)
    low, value, high = below[0][settled], region.known[settled], below[1][settled]
    return float(np.max(np.maximum(high - value, value - low), initial=0.0))


class Best:
    """The best bounds so far, and the policy that attains the one of the guarantee."""

    def __init__(self, problem: Problem, region: Region, interest: BoolArray) -> None:
        self.lower, self.upper = trivial_bounds(problem, region)
        self.choice = region.choice
        self._guarantee = -problem.agent.sign
        self._interest = interest

    def take(self, bound: FloatArray, side: float, choice: IntArray) -> None:
        """Make a side better by another bound of it; the guarantee stays that of one policy."""
        if side == self._guarantee:
            now = self.upper if side > 0.0 else self.lower
            size = np.minimum(bound, 1e100) - np.minimum(now, 1e100)  # infinite ones count much
            if side * float(size[self._interest].sum()) > 0.0:
                return
            self.choice = choice.copy()
        elif side > 0.0:
            bound = np.minimum(self.upper, bound)
        else:
            bound = np.maximum(self.lower, bound)
        if side > 0.0:
            self.upper = bound
        else:
            self.lower = bound


def _cyclic(
    problem: Problem,
    region: Region,
    solver: Solver,
    certifier: Certifier,
    guess: Iterate,
    limits: Limits,
    interest: BoolArray,
) -> Found:
    """Improve and certify in turn, until the bounds are close or a limit is reached.

    Policy iteration goes on as long as it leads to proofs. Where it does not, it may have settled
    on a wrong fixed point; then the value is approached from the strict side.
    """
    best, clock = Best(problem, region, interest), certifier.clock
    best.choice = guess.choice.copy()
    status, plain = Status.CERTIFIED, True
    residual = reached = 1e-2 * limits.precision
    clock.reserve = RESERVE
    try:
        for _ in range(ATTEMPTS):
            if plain:
                reached = solver.improve(guess, residual)
            elif not _approach(certifier, solver, guess, best, 1e2 * residual):
                break
            proven = _certify(certifier, guess, best)
            if tight(solver.operator, limits, interest, best.lower, best.upper, guess.value):
                break
            plain = plain and proven and residual > FLOOR
            residual = max(1e-2 * min(residual, reached), FLOOR)
        clock.reserve = 0.0
    except LimitReached as limit:
        status = limit.status
        _last_proof(certifier, guess, best)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    value = np.where(region.open, guess.value, region.known)
    return Found(best.lower, best.upper, value, best.choice, status)


def _approach(certifier: Certifier, solver: Solver, guess: Iterate, best: Best, eta: float) -> bool:
    """Take a bound found from the strict side and go on from there; False if there is no way."""
    side = certifier.strict_side
    found = approach(certifier, (1e3 * eta, eta)) if certifier.proves(side) else None
    if found is None:
        return False
    guess.value, guess.choice = found
    best.take(certifier.settle(guess.value), side, guess.choice)
    _certify(certifier, guess, best, (-side,))
    solver.improve(guess, FLOOR)
    return True


def _certify(
    certifier: Certifier, guess: Iterate, best: Best, sides: tuple[float, ...] = (-1.0, 1.0)
) -> bool:
    """Make the bounds better by what can be proven around the guess; tell whether all can."""
    proven = True
    for side in sides:
        with certifier.operator.stats.phase("certify"):
            found = certifier.bound(guess.value, guess.choice, side)
        if found is not None:
            best.take(found, side, guess.choice)
        proven = proven and (found is not None or not certifier.proves(side))
    return proven


def _last_proof(certifier: Certifier, guess: Iterate, best: Best) -> None:
    """Prove what can be proven in the time that is left, the guarantee first."""
    certifier.clock.last_chance()
    with suppress(LimitReached):
        _certify(certifier, guess, best, (certifier.guarantee, -certifier.guarantee))


def tight(
    operator: Operator,
    limits: Limits,
    interest: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    value: FloatArray,
) -> bool:
    """Return whether the proven bounds are close to each other, or the only one to the value."""
    proves = operator.inner.proves
    low = lower if proves & Side.BELOW else np.where(np.isinf(upper), upper, value)
    high = upper if proves & Side.ABOVE else np.where(np.isinf(lower), lower, value)
    return excess_width(operator.problem, limits, low, high, interest) <= 1.0
