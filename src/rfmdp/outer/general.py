"""Bounds of an open part in which nature has more than the choice of one box, or may linger.

`policy_iteration` finds a value, `certify` proves bounds around it, and where that fails the value
is approached from the strict side (`approach`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.objective import MIN
from rfmdp.outer.graph.region import Region
from rfmdp.outer.horizon import half_width
from rfmdp.outer.policy_iteration import Guess, PolicyIteration
from rfmdp.outer.proofs.approach import approach
from rfmdp.outer.proofs.certify import Certifier
from rfmdp.outer.settings import STOPS, LimitReached, status_of
from rfmdp.outer.solution import Status
from rfmdp.outer.task import StateBounds, Task
from rfmdp.ragged import entries
from rfmdp.types import FloatArray, IntArray

ATTEMPTS = 8
FLOOR = 2.0**-44  # of the relative residual that is asked for
NEAREST = 1e2 * FLOOR  # factors that the strict side is approached with differ from 1 by this
RESERVE = 0.3  # of the time, for a last proof


def solve_general(task: Task, region: Region, warm: FloatArray | None) -> StateBounds:
    """Solve the open part of a region, see the table of `unbounded`."""
    infinite = bool(np.isinf(region.known).any())
    by_levels = not region.cyclic and not (infinite and task.problem.nature is MIN)
    if not by_levels:
        region = region.with_first_policy()
    solver = PolicyIteration(task, region)
    guess = solver.start(warm)
    if by_levels:
        result = _acyclic(task, region, guess)
        closed = task.closed(result.lower, result.upper, result.value)
        if closed or result.stopped or task.proves != Side.BOTH:
            return result
        if not infinite:
            _sharpen(task, region, result)
            if task.closed(result.lower, result.upper, result.value):
                return result
    return _cyclic(solver, Certifier(task, region), guess)


def _acyclic(task: Task, region: Region, guess: Guess) -> StateBounds:
    """Return bounds from one sweep over the levels; errors add up by level (see `horizon`)."""
    operator, allowed, total = task.operator, region.allowed, 0.0
    lower, upper = region.trivial_bounds()
    value = np.where(region.open, 0.0, region.known)
    result = StateBounds(lower, upper, value, guess.choice)
    try:
        for states, rows in _levels(task, region, guess.value):
            q = operator.middle(rows, allowed)
            total += half_width(operator, rows[allowed[rows]], q)
            operator.choose(q, states, guess.choice, guess.value)
            value[states] = guess.value[states]
            lower[states], upper[states] = value[states] - total, value[states] + total
        task.clock.tick("solve", total)
    except STOPS as stop:
        result.stopped = status_of(stop)
    return result


def _levels(task: Task, region: Region, value: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield states and rows of the levels, bottom first, whose rows are backed up from a value."""
    for states in region.components.levels():
        rows = entries(task.problem.model.row_ptr, states)
        task.operator.backup(value, rows)
        yield states, rows
        task.clock.check()
    task.stats.robust_sweeps += 1


def _sharpen(task: Task, region: Region, result: StateBounds) -> None:
    """Sweep over the levels once per side.

    The error of a row then counts as often as the row is met: a row with a large error that is
    hardly ever met no longer makes all bounds above it wide.
    """
    operator, q = task.operator, np.empty(task.problem.model.rows)
    with suppress(LimitReached):
        for side in (-1.0, 1.0):
            value = np.where(region.open, 0.0, region.known)
            choice = result.choice.copy()
            for states, rows in _levels(task, region, value):
                q[rows] = operator.side(side)[rows]
                operator.forbid(q, rows, region.allowed)
                operator.choose(q, states, choice, value)
            if side == -operator.sign:  # the guarantee is that of one policy
                result.choice = choice
            result.side(side)[region.open] = value[region.open]


def _cyclic(solver: PolicyIteration, certifier: Certifier, guess: Guess) -> StateBounds:
    """Improve and certify in turn, until the bounds are close or a limit is reached.

    Policy iteration goes on as long as it leads to proofs. Where it does not, it may have settled
    on a wrong fixed point; then the value is approached from the strict side.
    """
    task, region, clock = certifier.task, certifier.region, certifier.clock
    result = StateBounds(*region.trivial_bounds(), guess.value, guess.choice.copy())
    clock.reserve = RESERVE
    try:
        eta = _iterate(solver, certifier, guess, result)
        while not task.closed(result.lower, result.upper, guess.value):
            lead = _approach(certifier, solver, guess, result, eta)
            if lead is None:
                break
            _certify(certifier, guess, result, lead=lead)
            if eta <= NEAREST:
                break
            eta = max(1e-2 * eta, NEAREST)
        clock.reserve = 0.0
    except STOPS as stop:
        result.stopped = status_of(stop)
        if result.stopped is not Status.INTERRUPTED:
            clock.last_chance()
            with suppress(LimitReached):  # the guarantee first
                _certify(certifier, guess, result, (certifier.guarantee, -certifier.guarantee))
    result.value = np.where(region.open, guess.value, region.known)
    return result


def _iterate(
    solver: PolicyIteration, certifier: Certifier, guess: Guess, result: StateBounds
) -> float:
    """Improve and certify while that makes bounds better; return how near to approach next.

    Where a proof fails the residual may be too large yet: in a long chain it adds up to a lot.
    """
    task, eta = certifier.task, NEAREST
    residual, failed = 1e-2 * task.limits.precision, False
    for _ in range(ATTEMPTS):
        reached = solver.improve(guess, residual)
        proven = _certify(certifier, guess, result)
        if task.closed(result.lower, result.upper, guess.value):
            break
        least = min(residual, reached)
        if not proven and not failed:
            failed = True
            eta = max(least, NEAREST)
        if residual <= FLOOR or (not proven and reached > residual):
            break
        residual = max(1e-2 * least, FLOOR) if proven else FLOOR
    return eta


def _approach(
    certifier: Certifier, solver: PolicyIteration, guess: Guess, result: StateBounds, eta: float
) -> FloatArray | None:
    """Take a bound found from the strict side and go on from there; None if there is no way.

    Returns that bound (S,).
    """
    side = certifier.strict_side
    better = approach(certifier, (1e3 * eta, eta)) if certifier.task.can_prove(side) else None
    if better is None:
        return None
    guess.value, guess.choice = better
    lead = guess.value.copy()
    _take(certifier, result, certifier.with_known(guess.value), side, guess.choice)
    _certify(certifier, guess, result, (-side,))
    solver.improve(guess, FLOOR)
    return lead


def _certify(
    certifier: Certifier,
    guess: Guess,
    result: StateBounds,
    sides: tuple[float, ...] = (-1.0, 1.0),
    lead: FloatArray | None = None,
) -> bool:
    """Make bounds better by what is proven around the guess; return whether all sides were.

    `lead` as in `Certifier.bound`.
    """
    proven = True
    for side in sides:
        with certifier.operator.stats.phase("certify"):
            bound = certifier.bound(guess.value, guess.choice, side, lead)
        if bound is not None:
            _take(certifier, result, bound, side, guess.choice)
        proven = proven and (bound is not None or not certifier.task.can_prove(side))
    return proven


def _take(
    certifier: Certifier, result: StateBounds, bound: FloatArray, side: float, choice: IntArray
) -> None:
    """Make a side better by another bound of it; the guarantee stays that of one policy."""
    if side == certifier.guarantee:
        now = np.minimum(result.side(side), 1e100)  # infinite ones count much
        size = np.minimum(bound, 1e100) - now
        if side * float(size[certifier.task.interest].sum()) > 0.0:
            return
        result.choice = choice.copy()
    else:
        bound = (np.minimum if side > 0.0 else np.maximum)(result.side(side), bound)
    result.put(side, bound)
