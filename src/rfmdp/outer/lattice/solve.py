"""Bounds of a specification on a lattice: finite horizons, and discounted rewards.

Values are one array and two errors that hold in all states: T does not expand, so a step passes
the errors on and adds its own. A discounted value is iterated until one more step moves it so
little that it is closer than wanted to the only fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.memory import require_memory
from rfmdp.model.lattice import LatticeMDP
from rfmdp.objective import Direction, Spec
from rfmdp.outer.lattice.sweep import Errors, Payments, Sweep
from rfmdp.outer.problem import where
from rfmdp.outer.settings import STOPS, Clock, Limits, status_of
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.rounding import UNIT, one_minus
from rfmdp.types import AnyArray, BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Fixed:
    """States whose value is the same before every step."""

    states: BoolArray  # (S,)
    value: FloatArray  # (S,)


@dataclass(slots=True, eq=False)
class _Horizon:
    """A finite horizon as a start and what is fixed before each step, last step first."""

    start: FloatArray
    payments: Payments
    agent: Direction
    nature: Direction
    steps: list[_Fixed | None]
    discount: float = 1.0
    flipped: bool = False  # the answer is one minus the value
    probability: bool = False
    rules: AnyArray = field(default_factory=lambda: np.empty((0, 0), np.uint8))


def solve_lattice(model: LatticeMDP, spec: Spec, limits: Limits, interest: BoolArray) -> Solution:
    """Return bounds of a specification in all states of a lattice, with a policy.

    A row of the policy is the number of an action.

    Raises
    ------
    UnsupportedError
        For objectives without a horizon and without a discount.
    """
    stats = Stats()
    with stats.phase("prepare"):
        horizon = _posed(model, spec)
        sweep = Sweep(model, horizon.agent, horizon.nature, horizon.payments, horizon.discount)
    with stats.phase("solve"):
        run = _run if horizon.steps or spec.objective.span[1] is not None else _discounted
        value, errors, rules, stopped = run(model, horizon, sweep, Clock(limits), stats, interest)
    lower, upper = value - errors.above, value + errors.below
    if horizon.probability:
        np.clip(lower, 0.0, 1.0, out=lower)
        np.clip(upper, 0.0, 1.0, out=upper)
    if horizon.flipped:
        lower, upper, value = one_minus(upper, -1.0), one_minus(lower, 1.0), 1.0 - value
    close = limits.excess(lower, upper, interest, float(horizon.probability)) <= 1.0
    status = Status.CERTIFIED if close else stopped or Status.GAP_OPEN
    precision = limits.reached(lower, upper, interest) if close else limits.precision
    return Solution(
        model, spec, "exact", status, lower, upper, np.clip(value, lower, upper), Policy(rules),
        precision, stats, measure=limits.measure.name, interest=interest,
    )  # fmt: skip


def _posed(model: LatticeMDP, spec: Spec) -> _Horizon:
    """Bring a specification into the form of backward steps."""
    objective = spec.objective
    _, last = objective.span
    if last is None and not (objective.rewarded and objective.factor < 1.0):
        raise UnsupportedError(
            f"A model that is not written out ({model.states:,} states) is solved for horizons and "
            f"discounts only; {spec} has neither. Ask with a bound of steps, as in F<=100."
        )
    require_memory(float(model.states) * (last or 1), f"A policy with a rule per step ({last})")
    if not objective.rewarded:
        return _until(model, spec)
    start = np.zeros(model.states)
    rewards = model.reward(objective.reward_name)
    if not objective.summed:
        if rewards.state is not None:
            start = model.evaluate(rewards.state)
        payments = Payments.nothing(model)
    else:
        payments = Payments.of(model, rewards)
    steps: list[_Fixed | None] = [None] * (last or 0)
    return _Horizon(start, payments, spec.agent, spec.nature, steps, objective.factor)


def _until(model: LatticeMDP, spec: Spec) -> _Horizon:
    """Return the steps to reach a target through some states within some steps."""
    objective = spec.objective
    sets = {name: where(model, s) for name, s in objective.sets.items()}
    agent, nature = spec.agent, spec.nature
    if objective.complement:
        agent, nature = agent.opposite, nature.opposite
        sets = {"target": ~sets["stay"]}
    target = sets["target"]
    outside = ~sets["stay"] if "stay" in sets else np.zeros(model.states, dtype=np.bool_)
    first, last = objective.span
    assert last is not None
    goal = target.astype(np.float64)
    inside = _Fixed(target | outside, goal)
    before = _Fixed(outside, np.zeros(model.states)) if outside.any() else None
    steps: list[_Fixed | None] = [*[inside] * (last - first), *[before] * first]
    return _Horizon(
        goal, Payments.nothing(model), agent, nature, steps, flipped=objective.complement,
        probability=True,
    )  # fmt: skip


def _run(
    model: LatticeMDP, horizon: _Horizon, sweep: Sweep, clock: Clock, stats: Stats, _: BoolArray
) -> tuple[FloatArray, Errors, AnyArray, Status | None]:
    """Step back from the start; after a stop the errors are those of all that could follow."""
    count = len(horizon.steps)
    rules = np.zeros((max(count, 1), model.states), dtype=np.uint8)
    value, errors, stopped = horizon.start, Errors(), None
    done = 0
    try:
        for fixed in horizon.steps:
            after, choice, more = sweep.back(value)
            if fixed is not None:
                np.copyto(after, fixed.value, where=fixed.states)
            rules[count - 1 - done] = choice
            # one assignment: an interrupt finds all three of the same step
            value, errors, done = after, errors.after(horizon.discount, more), done + 1
            stats.robust_sweeps += 1
            stats.rows += sweep.rows
            stats.rows_branched += sweep.mixed
            if done < count:
                clock.tick("steps", errors.above + errors.below)
    except STOPS as stop:
        stopped = status_of(stop)
        low, high = _hull(horizon, value, errors, done)
        middle = 0.5 * (low + high)
        value, errors = np.full(model.states, middle), Errors(high - low, high - low)
    return value, errors, rules, stopped


def _hull(horizon: _Horizon, value: FloatArray, errors: Errors, done: int) -> tuple[float, float]:
    """Return the least and largest value that all steps can lead to."""
    low, high = float(value.min()) - errors.above, float(value.max()) + errors.below
    pays = horizon.payments.pays
    least, most = float(pays.min()), float(pays.max())
    for fixed in horizon.steps[done:]:
        low, high = horizon.discount * low + least, horizon.discount * high + most
        if fixed is not None:
            low, high = min(low, float(fixed.value.min())), max(high, float(fixed.value.max()))
        slack = 8.0 * UNIT * max(abs(low), abs(high))
        low, high = low - slack, high + slack
    return low, high


def _discounted(
    model: LatticeMDP, horizon: _Horizon, sweep: Sweep, clock: Clock, stats: Stats,
    interest: BoolArray,
) -> tuple[FloatArray, Errors, AnyArray, Status | None]:  # fmt: skip
    """Iterate until a step moves the value so little that the fixed point is close."""
    value, stopped = np.zeros(model.states), None
    rules = np.zeros((1, model.states), dtype=np.uint8)
    errors = Errors(np.inf, np.inf)
    try:
        for after, choice, more in _steps(sweep, value):
            around = _around_fixed_point(value, after, more, horizon.discount)
            rules[0] = choice
            value, errors = after, around  # one assignment, see `_run`
            stats.robust_sweeps += 1
            stats.rows += sweep.rows
            low, high = value - errors.above, value + errors.below
            if clock.limits.excess(low, high, interest) <= 0.5:
                break
            clock.tick("discounted", errors.above + errors.below)
    except STOPS as stop:
        stopped = status_of(stop)
    return value, errors, rules, stopped


def _steps(sweep: Sweep, value: FloatArray) -> Iterator[tuple[FloatArray, AnyArray, Errors]]:
    while True:
        value, choice, errors = sweep.back(value)
        yield value, choice, errors


def _around_fixed_point(
    before: FloatArray, after: FloatArray, errors: Errors, discount: float
) -> Errors:
    """Return how far the fixed point may be from `after` = T(before), computed with errors.

    V* - T(before) <= discount / (1 - discount) * max(T(before) - before), and the other way round.
    """
    rise = float(np.max(after - before)) + errors.below
    fall = float(np.max(before - after)) + errors.above
    ratio = discount / (1.0 - discount) * (1.0 + 8.0 * UNIT)
    slack = 4.0 * UNIT * float(np.max(np.abs(after)))
    return Errors(
        max(ratio * (fall + slack), 0.0) + errors.above + slack,
        max(ratio * (rise + slack), 0.0) + errors.below + slack,
    )
