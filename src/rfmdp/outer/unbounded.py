"""Drive the solvers of unbounded problems to certified bounds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.objective import MAX
from rfmdp.outer.certify import Certifier
from rfmdp.outer.components import components
from rfmdp.outer.fixpoint import Iterate, Solver
from rfmdp.outer.graph import Graph
from rfmdp.outer.horizon import half_width
from rfmdp.outer.monotone import approach
from rfmdp.outer.operator import Operator, rows_of
from rfmdp.outer.plain import Packed, Walk, pack
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region, analyse, finish_policy, with_first_policy
from rfmdp.outer.settings import Clock, LimitReached, Limits
from rfmdp.outer.solution import Status
from rfmdp.ragged import segment_any
from rfmdp.rounding import UNIT
from rfmdp.types import BoolArray, FloatArray, IntArray

ATTEMPTS = 8
FLOOR = 2.0**-44  # of the relative residual that is asked for
RESERVE = 0.3  # of the time, for a last proof


@dataclass(slots=True, eq=False)
class Raw:
    """Result of a solver before it is turned into a `Solution`."""

    lower: FloatArray | None
    upper: FloatArray | None
    value: FloatArray
    rows: IntArray  # (1, S) or (steps, S)
    status: Status
    witness: tuple[FloatArray | None, FloatArray | None] | None = None


def solve_unbounded(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    warm: FloatArray | None,
) -> Raw:
    """Solve a reachability, reward-to-target or total-reward problem."""
    with operator.stats.phase("graph"):
        region = analyse(problem, clock)
    operator.stats.components = len(region.components.trivial)
    operator.stats.levels = len(region.components.level_ptr) - 1
    packed = pack(problem, region)
    if packed is not None:
        raw = _plain(problem, region, packed, operator, clock, limits, interest)
        if raw is not None:
            return raw
    clock.check_overdue()
    region = with_first_policy(problem, region)
    solver = Solver(problem, region, operator, clock)
    guess = solver.start(warm)
    if not region.cyclic and not (np.isinf(region.known).any() and problem.nature is not MAX):
        raw = _acyclic(problem, region, operator, clock, guess, limits, interest)
        if raw.status is not Status.GAP_OPEN or operator.inner.proves != Side.BOTH:
            return raw
    certifier = Certifier(problem, region, operator, clock)
    return _cyclic(problem, region, solver, certifier, guess, limits, interest)


def _plain(
    problem: Problem,
    region: Region,
    packed: Packed,
    operator: Operator,
    clock: Clock,
    limits: Limits,
    interest: BoolArray,
) -> Raw | None:
    """Walk through the components, again with less width each until the bounds are close."""
    low, high = trivial_bounds(problem, region)
    walk = Walk(problem, packed, clock, 1.0 if problem.form is Form.REACH else np.inf)
    cyclic = segment_any(~packed.single, region.components.level_ptr)  # widths add up over these
    share = 0.5 / max(int(np.count_nonzero(cyclic)), 2)
    status, width = Status.CERTIFIED, max(share * limits.precision, FLOOR)
    try:
        for _ in range(ATTEMPTS):
            if not walk.run(width):
                return None
            operator.stats.robust_sweeps += 1
            low, high = walk.spread(region, low, high)
            excess = excess_width(problem, limits, low, high, interest)
            if excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        clock.tick("solve", width)
    except LimitReached as reached:
        status = reached.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    choice, node = region.choice.copy(), packed.node[region.open]
    choice[region.open] = packed.origin[walk.choice[node]]
    rows = finish_policy(problem, region, choice)[None, :]
    value = np.where(region.open, walk.value[packed.node], region.known)
    return settle(problem, operator, limits, interest, low, high, value, rows, status)


def _acyclic(
    problem: Problem,
    region: Region,
    operator: Operator,
    clock: Clock,
    guess: Iterate,
    limits: Limits,
    interest: BoolArray,
) -> Raw:
    """One sweep over the levels; errors add up level by level (see `horizon`)."""
    from rfmdp.kernels.sweep import choose

    model, parts = problem.model, region.components
    lower, upper = trivial_bounds(problem, region)
    value = np.where(region.open, 0.0, region.known)
    status, total = Status.CERTIFIED, 0.0
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
    choice = finish_policy(problem, region, guess.choice)[None, :]
    return settle(problem, operator, limits, interest, lower, upper, value, choice, status)


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
) -> Raw:
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
            if _tight(solver.operator, limits, interest, best.lower, best.upper, guess.value):
                break
            plain = plain and proven and residual > FLOOR
            residual = max(1e-2 * min(residual, reached), FLOOR)
    except LimitReached as limit:
        status = limit.status
        _last_proof(certifier, guess, best)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    value = np.where(region.open, guess.value, region.known)
    rows = finish_policy(problem, region, best.choice)[None, :]
    operator = solver.operator
    return settle(problem, operator, limits, interest, best.lower, best.upper, value, rows, status)


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


def _tight(
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


def excess_width(
    problem: Problem, limits: Limits, lower: FloatArray, upper: FloatArray, interest: BoolArray
) -> float:
    """Return how many times too wide the bounds of the answer are."""
    if problem.flipped:
        lower, upper = 1.0 - upper, 1.0 - lower
    return limits.excess(lower, upper, interest, float(problem.probability))


def nothing_proven(
    problem: Problem, operator: Operator, limits: Limits, interest: BoolArray, status: Status
) -> Raw:
    """Return what holds if the time is over before any work: the range of all values."""
    size = problem.model.states
    lower = np.full(size, 0.0 if problem.form is not Form.DISCOUNTED else -np.inf)
    upper = np.full(size, 1.0 if problem.probability else np.inf)
    rows = problem.model.row_ptr[:-1][None, :].copy()
    return settle(problem, operator, limits, interest, lower, upper, np.zeros(size), rows, status)


def trivial_bounds(problem: Problem, region: Region) -> tuple[FloatArray, FloatArray]:
    """Return what holds without any computation."""
    top = 1.0 if problem.form is Form.REACH else np.inf
    return np.where(region.open, 0.0, region.known), np.where(region.open, top, region.known)


def settle(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    interest: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    value: FloatArray,
    rows: IntArray,
    status: Status,
) -> Raw:
    """Drop sides that nobody proved, clip probabilities, and say how it ended."""
    if problem.probability:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    proves = operator.inner.proves
    if proves == Side.BOTH and excess_width(problem, limits, lower, upper, interest) <= 1.0:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:
        status = Status.GAP_OPEN
    if proves == Side.BOTH:
        value = np.clip(value, lower, upper)
    return Raw(
        lower if proves & Side.BELOW else None,
        upper if proves & Side.ABOVE else None,
        value,
        rows,
        status,
    )


def solve_discounted(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    warm: FloatArray | None,
) -> Raw:
    """Solve a discounted problem: T contracts, so a residual d bounds the error by d/(1-discount).

    Here, and only here, a residual proves something; it is taken from proven sides.
    """
    model = problem.model
    everywhere = np.ones(model.states, dtype=np.bool_)
    graph = Graph(model)
    none = np.zeros(model.rows, dtype=np.bool_)
    region = Region(
        graph, np.zeros(model.states), everywhere, ~everywhere, ~none, ~none,
        components(graph, everywhere), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64),
        none, model.row_ptr[:-1].copy(),
    )  # fmt: skip
    solver = Solver(problem, region, operator, clock)
    guess = solver.start(warm)
    status, residual = Status.CERTIFIED, 1e-1 * limits.precision * (1.0 - problem.discount)
    try:
        for _ in range(ATTEMPTS):
            solver.improve(guess, residual)
            lower, upper = contraction_bounds(problem, operator, guess)
            if _tight(operator, limits, interest, lower, upper, guess.value):
                break
            residual = max(residual * 1e-2, 2.0**-52)
    except (LimitReached, KeyboardInterrupt) as stop:
        status = stop.status if isinstance(stop, LimitReached) else Status.INTERRUPTED
        lower, upper = contraction_bounds(problem, operator, guess)
    rows = guess.choice[None, :]
    return settle(problem, operator, limits, interest, lower, upper, guess.value, rows, status)


def contraction_bounds(
    problem: Problem, operator: Operator, guess: Iterate
) -> tuple[FloatArray, FloatArray]:
    """Return bounds from one sweep: value plus or minus its one-sided residual / (1 - discount).

    The policy becomes the best rows of the guarantee's side, so that the bound there is proven for
    it: with T_p the operator of its rows, V - c <= T_p(V - c) if c (1 - discount) >= V - T_p(V).
    """
    states, rows = np.arange(problem.model.states), np.arange(problem.model.rows)
    operator.backup(guess.value, rows)
    value, sign = guess.value, operator.sign
    guarantee = operator.below if sign > 0.0 else operator.above
    if np.isfinite(guarantee).all():
        guess.choice = operator.choose(guarantee, states, guess.choice)
    slack = 8.0 * UNIT * float(np.max(np.abs(value), initial=0.0))
    bounds = []
    for side, q in ((-1.0, operator.below), (1.0, operator.above)):
        image = operator.best(q, states)
        off = max(float(np.max(side * (image - value), initial=0.0)), 0.0) + slack
        bounds.append(value + side * off / (1.0 - problem.discount) * (1.0 + 1e-12))
    return bounds[0], bounds[1]
