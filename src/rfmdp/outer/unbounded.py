"""Drive the solvers of unbounded problems to certified bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.outer.components import components
from rfmdp.outer.fixpoint import Iterate, Solver
from rfmdp.outer.general import ATTEMPTS, FLOOR, Found, solve_general, tight
from rfmdp.outer.graph import Graph
from rfmdp.outer.loops import settle_loops
from rfmdp.outer.operator import Operator
from rfmdp.outer.plain import general_components
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region, analyse, finish_policy
from rfmdp.outer.settings import Clock, LimitReached, Limits, excess_width
from rfmdp.outer.solution import Status
from rfmdp.outer.walk import Walk
from rfmdp.rounding import UNIT
from rfmdp.types import BoolArray, FloatArray, IntArray


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
        if not region.open.any():  # the graph knows it all
            found = Found(*(region.known,) * 3, region.choice, Status.CERTIFIED)
            return _finish(problem, region, found, operator, clock, limits, interest)
        general = general_components(problem, region)
    operator.stats.components = len(region.components.trivial)
    operator.stats.levels = len(region.components.level_ptr) - 1
    raw, both = None, operator.inner.proves == Side.BOTH  # a walk carries both sides
    # without cycles, levels are swept at once: a few plain components are not worth a walk
    most = general.all() or (not region.cyclic and 2 * np.count_nonzero(general) > len(general))
    if not general.any() or (both and not most):
        raw = _walk(Walk(problem, region, general, operator, clock, limits, interest, warm))
    if raw is not None:
        return raw
    clock.check_overdue()
    below = region.known, region.known
    found = solve_general(problem, region, below, operator, clock, limits, interest, warm)
    return _finish(problem, region, found, operator, clock, limits, interest)


def _walk(walk: Walk) -> Raw | None:
    """Walk through the components, again with less width each until the bounds are close."""
    problem, operator, limits, interest = walk.problem, walk.operator, walk.limits, walk.interest
    width = max(walk.share * limits.precision, FLOOR)
    status = Status.CERTIFIED
    try:
        for _ in range(ATTEMPTS):
            status = walk.run(width)
            if status is Status.GAP_OPEN:
                return None
            operator.stats.robust_sweeps += 1
            excess = excess_width(problem, limits, walk.low, walk.high, interest)
            if status is not Status.CERTIFIED or excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        walk.clock.tick("solve", width)
    except LimitReached as reached:
        status = reached.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    found = Found(walk.low, walk.high, walk.middle, walk.policy, status)
    return _finish(problem, walk.region, found, operator, walk.clock, limits, interest)


def _finish(
    problem: Problem,
    region: Region,
    found: Found,
    operator: Operator,
    clock: Clock,
    limits: Limits,
    interest: BoolArray,
) -> Raw:
    """Return what was found with its policy completed; loops that stayed open are tried again."""
    close = tight(operator, limits, interest, found.lower, found.upper, found.value)
    if found.status is Status.CERTIFIED and operator.inner.proves == Side.BOTH and not close:
        settle_loops(problem, region, clock, limits, found)
    rows = finish_policy(problem, region, found.choice)[None, :]
    bounds = found.lower, found.upper, found.value
    return settle(problem, operator, limits, interest, *bounds, rows, found.status)


def nothing_proven(
    problem: Problem, operator: Operator, limits: Limits, interest: BoolArray, status: Status
) -> Raw:
    """Return what holds if the time is over before any work: the range of all values."""
    size = problem.model.states
    lower = np.full(size, 0.0 if problem.form is not Form.DISCOUNTED else -np.inf)
    upper = np.full(size, 1.0 if problem.probability else np.inf)
    rows = problem.model.row_ptr[:-1][None, :].copy()
    return settle(problem, operator, limits, interest, lower, upper, np.zeros(size), rows, status)


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
            if tight(operator, limits, interest, lower, upper, guess.value):
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
