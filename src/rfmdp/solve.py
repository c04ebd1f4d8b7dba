"""Solve, evaluate, compare: all the orchestration there is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.errors import ModelError, RfmdpError
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.restrict import restrict
from rfmdp.model.validate import validate
from rfmdp.objective import MAX, Direction, Spec, States
from rfmdp.outer.operator import Operator
from rfmdp.outer.problem import Form, Problem, pose, where
from rfmdp.outer.settings import Clock, LimitReached, Limits
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.unbounded import Raw, settle, solve_discounted, solve_unbounded
from rfmdp.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from rfmdp.prism.property import Property


def solve(
    model: FactoredMDP,
    spec: Spec | Property,
    *,
    inner: Inner | None = None,
    outer: Limits | None = None,
    states: States = "init",
    warm: Solution | FloatArray | None = None,
) -> Solution:
    """Return certified bounds of the optimal value of a specification, with a policy.

    Parameters
    ----------
    model, spec
        What to solve; a parsed property stands for its specification.
    inner
        How nature's choice in a row is solved; `Exact()` by default.
    outer
        Precision, limits and progress; `Limits()` by default.
    states
        Where the wanted precision has to be reached: the initial states by default.
    warm
        An earlier solution of a similar problem to start from. Bounds are proven anew.

    Returns
    -------
    Solution
        `lower` and `upper` per state are proven bounds of the exact robust value.

    Raises
    ------
    UnsupportedError
        Before any work, if the inner solver does not fit the model.

    Examples
    --------
    >>> import rfmdp as rf
    >>> move = rf.Interval([0.2, 0.4], [0.6, 0.8])
    >>> model = rf.FactoredMDP.from_rows(
    ...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [move],
    ...     labels={"goal": [False, True, False]})
    >>> rf.solve(model, rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN)).at_initial().lower
    0.2
    """
    validate(model).require_valid()
    asked = spec if isinstance(spec, Spec) else spec.spec()
    limits, method = outer or Limits(), inner or Exact()
    stats, clock, started = Stats(), Clock(limits), time.perf_counter()
    problem = pose(model, asked)
    prepared = method.prepare(model, problem.nature)
    operator = Operator(problem, prepared, stats)
    stats.seconds["prepare"] = time.perf_counter() - started
    guess = warm.value if isinstance(warm, Solution) else warm
    raw = _run(problem, operator, limits, clock, where(model, states), guess)
    stats.seconds["solve"] = time.perf_counter() - started - stats.seconds["prepare"]
    stats.rows_branched, stats.nodes = prepared.stats.branched, prepared.stats.nodes
    if problem.flipped:
        raw = _turn(raw)
    return Solution(
        model, asked, method.name, raw.status, raw.lower, raw.upper, raw.value,
        Policy(raw.rows), limits.precision, stats,
    )  # fmt: skip


def _run(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    warm: FloatArray | None,
) -> Raw:
    if warm is not None and problem.flipped:
        warm = 1.0 - warm
    if problem.form is Form.STEPS:
        return _backward(problem, operator, limits, clock, interest)
    if problem.form is Form.DISCOUNTED:
        return solve_discounted(problem, operator, limits, clock, interest, warm)
    raw = solve_unbounded(problem, operator, limits, clock, interest, warm)
    return _prefix(problem, operator, limits, interest, raw) if problem.steps else raw


def _backward(
    problem: Problem, operator: Operator, limits: Limits, clock: Clock, interest: BoolArray
) -> Raw:
    from rfmdp.outer.horizon import Backward

    assert problem.start is not None  # a STEPS problem is posed with one
    try:
        value, error, rules = Backward(problem, operator, clock).run(
            problem.start, 0.0, problem.steps
        )
    except LimitReached as reached:
        status = Status.TIME_LIMIT if reached.timed_out else Status.SWEEP_LIMIT
        rules = problem.model.row_ptr[:-1][None, :].copy()
        unknown = np.full(problem.model.states, np.inf)
        middle = np.zeros(problem.model.states)
        return settle(problem, operator, limits, interest, -unknown, unknown, middle, rules, status)
    lower, upper = value - error, value + error
    if not problem.reward.any() and problem.start.min() >= 0.0 and problem.start.max() <= 1.0:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    return settle(problem, operator, limits, interest, lower, upper, value, rules, Status.CERTIFIED)


def _prefix(
    problem: Problem, operator: Operator, limits: Limits, interest: BoolArray, raw: Raw
) -> Raw:
    """Run the steps before an unbounded until (`U>=k`) on its bounds."""
    from rfmdp.outer.horizon import Backward

    operator.allowed = np.ones(problem.model.rows, dtype=np.bool_)
    ends = [raw.lower, raw.upper]
    rules = raw.rows
    for side, bound in enumerate(ends):
        if bound is None:
            continue
        backward = Backward(problem, operator, Clock(Limits()))
        value, error, rules = backward.run(bound, 0.0, problem.steps)
        ends[side] = np.clip(value - error if side == 0 else value + error, 0.0, 1.0)
    lower, upper = ends
    value = lower if lower is not None else upper
    assert value is not None  # every inner solver proves a side
    missing = np.zeros(problem.model.states)
    return settle(
        problem, operator, limits, interest,
        missing if lower is None else lower, missing if upper is None else upper,
        value, np.concatenate([rules, raw.rows]), raw.status,
    )  # fmt: skip


def _turn(raw: Raw) -> Raw:
    """Return one minus a result."""
    lower = None if raw.upper is None else 1.0 - raw.upper
    upper = None if raw.lower is None else 1.0 - raw.lower
    return Raw(lower, upper, 1.0 - raw.value, raw.rows, raw.status)


def evaluate(
    model: FactoredMDP,
    policy: Policy,
    spec: Spec,
    *,
    nature: Direction | None = None,
    inner: Inner | None = None,
    outer: Limits | None = None,
) -> Solution:
    """Return certified bounds of the value of a given policy.

    Parameters
    ----------
    nature
        `MIN` or `MAX` picks the worst or best nature; by default the specification's. For the
        nominal value hand in `model.nominal()`.

    Raises
    ------
    ModelError
        If a time-dependent policy meets an objective without a matching number of steps.
    """
    wanted = replace(spec, nature=nature or spec.nature)
    if policy.stationary:
        return solve(restrict(model, policy.rows[0]), wanted, inner=inner, outer=outer)
    problem = pose(model, wanted)
    if problem.form is not Form.STEPS or len(problem.steps) != len(policy.rows):
        raise ModelError(
            f"A policy of {len(policy.rows)} steps fits objectives of as many steps only; "
            f"{type(spec.objective).__name__} has {len(problem.steps)}."
        )
    return _evaluate_steps(model, policy, wanted, problem, inner or Exact(), outer or Limits())


def _evaluate_steps(
    model: FactoredMDP, policy: Policy, spec: Spec, problem: Problem, inner: Inner, limits: Limits
) -> Solution:
    """Backward steps with the rows of a time-dependent policy, one restricted model per rule."""
    from rfmdp.outer.horizon import Backward

    assert problem.start is not None
    value, error, stats, clock = problem.start, 0.0, Stats(), Clock(limits)
    prepared = inner.prepare(model, problem.nature)
    operator = Operator(problem, prepared, stats)
    for number, step in enumerate(problem.steps):
        rows = policy.rows[len(policy.rows) - 1 - number]
        operator.allowed = np.zeros(model.rows, dtype=np.bool_)
        operator.allowed[rows] = True
        value, error, _ = Backward(problem, operator, clock).run(value, error, (step,))
    raw = settle(
        problem, operator, limits, where(model, "init"), value - error, value + error, value,
        policy.rows, Status.CERTIFIED,
    )  # fmt: skip
    raw = _turn(raw) if problem.flipped else raw
    return Solution(
        model, spec, inner.name, raw.status, raw.lower, raw.upper, raw.value, policy,
        limits.precision, stats,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of a table of methods."""

    method: str
    value: float  # the guarantee at the initial state
    lower: float
    upper: float
    gap_percent: float  # distance from the first method's value
    seconds: float
    status: str


def compare(
    model: FactoredMDP, spec: Spec, inners: Sequence[Inner], *, outer: Limits | None = None
) -> list[Comparison]:
    """Return one record per inner solver: the row of the paper's table.

    The gap is |first - value| / |value| in percent, the first solver being the reference. A solver
    that refuses the model has its reason as status.
    """
    records: list[Comparison] = []
    for inner in inners:
        try:
            solution = solve(model, spec, inner=inner, outer=outer)
        except RfmdpError as error:
            nothing = float("nan")
            records.append(Comparison(inner.name, *[nothing] * 5, status=str(error)))
            continue
        bounds = solution.at_initial()
        value = bounds.lower if spec.agent is MAX else bounds.upper
        if not np.isfinite(value):
            value = float(solution.value[model.initial[0]])
        first = records[0].value if records else value
        gap = 100.0 * abs(first - value) / abs(value) if value else 0.0
        seconds = sum(solution.stats.seconds.values())
        records.append(
            Comparison(
                inner.name, value, bounds.lower, bounds.upper, gap, seconds, solution.status.name
            )
        )
    return records


__all__ = ["Comparison", "Side", "compare", "evaluate", "solve"]
