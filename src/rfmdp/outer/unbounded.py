"""Drive the solvers of unbounded problems to certified bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.objective import MAX
from rfmdp.outer.certify import Certifier
from rfmdp.outer.components import components
from rfmdp.outer.fixpoint import Iterate, Solver
from rfmdp.outer.graph import Graph
from rfmdp.outer.horizon import half_width
from rfmdp.outer.operator import Operator, rows_of
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region, analyse, finish_policy
from rfmdp.outer.settings import Clock, LimitReached, Limits
from rfmdp.outer.solution import Status
from rfmdp.types import BoolArray, FloatArray, IntArray

ATTEMPTS = 8


@dataclass(slots=True, eq=False)
class Raw:
    """Result of a solver before it is dressed as a `Solution`."""

    lower: FloatArray | None
    upper: FloatArray | None
    value: FloatArray
    rows: IntArray  # (1, S) or (steps, S)
    status: Status


def solve_unbounded(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    warm: FloatArray | None,
) -> Raw:
    """Solve a reachability, reward-to-target or total-reward problem."""
    region = analyse(problem)
    operator.stats.components = len(region.components.trivial)
    operator.stats.levels = len(region.components.level_ptr) - 1
    solver = Solver(problem, region, operator, clock)
    guess = solver.start(warm)
    if not region.cyclic and not (np.isinf(region.known).any() and problem.nature is not MAX):
        return _acyclic(problem, region, operator, clock, guess, limits, interest)
    certifier = Certifier(problem, region, operator, clock)
    return _cyclic(problem, region, solver, certifier, guess, limits, interest)


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
    error, status = np.zeros(model.states), Status.CERTIFIED
    total = 0.0
    try:
        for level in range(len(parts.level_ptr) - 1):
            states = parts.level(level)
            rows = rows_of(model.row_ptr, states)
            operator.backup(guess.value, rows)
            q = operator.middle(rows)
            total += half_width(operator, rows, q)
            choose(q, model.row_ptr, states, operator.sign, 0.0, guess.choice, guess.value)
            error[states] = total
        operator.stats.robust_sweeps += 1
        clock.tick("solve", total)
    except LimitReached as reached:
        status = Status.TIME_LIMIT if reached.timed_out else Status.SWEEP_LIMIT
    lower = np.where(region.open, guess.value - error, region.known)
    upper = np.where(region.open, guess.value + error, region.known)
    value = np.where(region.open, guess.value, region.known)
    rows = finish_policy(problem, region, guess.choice)[None, :]
    return settle(problem, operator, limits, interest, lower, upper, value, rows, status)


def _cyclic(
    problem: Problem,
    region: Region,
    solver: Solver,
    certifier: Certifier,
    guess: Iterate,
    limits: Limits,
    interest: BoolArray,
) -> Raw:
    """Improve and certify in turn, until the bounds are close or a limit is reached."""
    lower, upper = trivial_bounds(problem, region)
    status, residual = Status.CERTIFIED, 1e-2 * limits.precision
    try:
        for _ in range(ATTEMPTS):
            solver.improve(guess, residual)
            lower, upper = _certify(certifier, guess, lower, upper)
            if _tight(solver.operator, limits, interest, lower, upper, guess.value):
                break
            residual = max(residual * 1e-2, 2.0**-52)
    except LimitReached as reached:
        status = Status.TIME_LIMIT if reached.timed_out else Status.SWEEP_LIMIT
        certifier.clock = Clock(Limits())
        lower, upper = _certify(certifier, guess, lower, upper)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    value = np.where(region.open, guess.value, region.known)
    rows = finish_policy(problem, region, guess.choice)[None, :]
    operator = solver.operator
    return settle(problem, operator, limits, interest, lower, upper, value, rows, status)


def _certify(
    certifier: Certifier, guess: Iterate, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds, made better by what can be proven around the guess."""
    found = certifier.lower(guess.value, guess.choice)
    if found is not None:
        lower = np.maximum(lower, found)
    found = certifier.upper(guess.value, guess.choice)
    if found is not None:
        upper = np.minimum(upper, found)
    return lower, upper


def _tight(
    operator: Operator,
    limits: Limits,
    interest: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    value: FloatArray,
) -> bool:
    """Tell whether the proven bounds are close to each other, or the only one to the value."""
    proves = operator.inner.proves
    low = lower if proves & Side.BELOW else np.where(np.isinf(upper), upper, value)
    high = upper if proves & Side.ABOVE else np.where(np.isinf(lower), lower, value)
    return limits.closed(low[interest], high[interest])


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
    if problem.form is Form.REACH:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    proves = operator.inner.proves
    if status is Status.CERTIFIED and not (
        proves == Side.BOTH and limits.closed(lower[interest], upper[interest])
    ):
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
        graph, np.zeros(model.states), everywhere, ~everywhere, ~none,
        components(graph, everywhere), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64),
        none, model.row_ptr[:-1].copy(),
    )  # fmt: skip
    solver = Solver(problem, region, operator, clock)
    guess = solver.start(warm)
    status, residual = Status.CERTIFIED, 1e-1 * limits.precision * (1.0 - problem.discount)
    lower = upper = np.empty(0)
    try:
        for _ in range(ATTEMPTS):
            solver.improve(guess, residual)
            lower, upper = contraction_bounds(problem, operator, guess.value)
            if _tight(operator, limits, interest, lower, upper, guess.value):
                break
            residual = max(residual * 1e-2, 2.0**-52)
    except LimitReached as reached:
        status = Status.TIME_LIMIT if reached.timed_out else Status.SWEEP_LIMIT
        lower, upper = contraction_bounds(problem, operator, guess.value)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        lower, upper = contraction_bounds(problem, operator, guess.value)
    rows = guess.choice[None, :]
    return settle(problem, operator, limits, interest, lower, upper, guess.value, rows, status)


def contraction_bounds(
    problem: Problem, operator: Operator, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds from one sweep: value plus or minus its one-sided residual / (1 - discount)."""
    states, rows = np.arange(problem.model.states), np.arange(problem.model.rows)
    operator.backup(value, rows)
    low = operator.best(operator.below, states)
    high = operator.best(operator.above, states)
    slack = 8.0 * 2.0**-53 * float(np.max(np.abs(value), initial=0.0))
    rest = 1.0 - problem.discount
    down = (max(float(np.max(value - low, initial=0.0)), 0.0) + slack) / rest
    up = (max(float(np.max(high - value, initial=0.0)), 0.0) + slack) / rest
    return value - down * (1 + 1e-12), value + up * (1 + 1e-12)
