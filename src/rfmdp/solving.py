"""Solve, evaluate, compare: all the orchestration there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import ModelError, RfmdpError, SolverError, UnsupportedError
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.restrict import restrict
from rfmdp.model.validate import require_valid
from rfmdp.objective import MAX, Direction, Spec, StateSet
from rfmdp.outer.horizon import Backward
from rfmdp.outer.operator import Operator
from rfmdp.outer.plain import pack_all
from rfmdp.outer.problem import Form, Problem, pose, where
from rfmdp.outer.settings import Clock, LimitReached, Limits
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.unbounded import Raw, nothing_proven, settle, solve_discounted, solve_unbounded
from rfmdp.rounding import one_minus
from rfmdp.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from rfmdp.answers.property import Property


def solve(
    model: FactoredMDP,
    spec: Spec | Property | str,
    *,
    inner: Inner | None = None,
    limits: Limits | None = None,
    states: StateSet = "init",
    warm: Solution | FloatArray | None = None,
) -> Solution:
    """Return certified bounds of the optimal value of a specification, with a policy.

    Parameters
    ----------
    model, spec
        What to solve; a property, parsed or as text, stands for its specification.
    inner
        How nature's choice in a row is solved; `Exact()` by default.
    limits
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
    >>> bounds = rf.solve(model, rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN)).at_initial()
    >>> bounds.lower <= 0.2 <= bounds.upper, bounds.width < 1e-6
    (True, True)
    """
    require_valid(model)
    asked = as_spec(spec, model)
    limits, method = limits or Limits(), inner or Exact()
    stats, clock = Stats(), Clock(limits)
    with stats.phase("prepare"):
        problem = pose(model, asked)
        prepared = method.prepare(model, problem.nature)
        operator = Operator(problem, prepared, stats)
    guess = _guess(model, warm)
    interest = where(model, states)
    with stats.phase("solve"):
        raw = _run(problem, operator, limits, clock, interest, guess)
    stats.rows_branched, stats.nodes = prepared.stats.branched, prepared.stats.nodes
    return to_solution(problem, asked, method, raw, limits, interest, stats)


def as_spec(wanted: Spec | Property | str, model: FactoredMDP) -> Spec:
    """Return the specification that a property, or its text, stands for with a model.

    Raises
    ------
    PrismError
        For a text that is not one property.
    UnsupportedError
        For a property that is more than one P or R, and for anything else.
    """
    if isinstance(wanted, Spec):
        return wanted
    if isinstance(wanted, str):
        from rfmdp.answers.property import parse_property  # the room above, for this line only

        wanted = parse_property(wanted)
    if not hasattr(wanted, "spec"):
        raise UnsupportedError(
            "A specification must be a Spec, a parsed property or its text, got a "
            f"{type(wanted).__name__}."
        )
    return wanted.spec(model)


def _guess(model: FactoredMDP, warm: Solution | FloatArray | None) -> FloatArray | None:
    """Return the values to start from; they must be those of a model of the same size."""
    if warm is None:
        return None
    value = np.asarray(warm.value if isinstance(warm, Solution) else warm)
    if value.shape != (model.states,) or value.dtype.kind not in "fiu" or np.isnan(value).any():
        raise ModelError(
            f"warm: must have one number per state of this model ({model.states}), got "
            f"{value.dtype} of shape {value.shape}; start without it, or solve the same states."
        )
    return value.astype(np.float64)


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
    try:
        clock.check_overdue()
        if problem.form is Form.DISCOUNTED:
            return solve_discounted(problem, operator, limits, clock, interest, warm)
        raw = solve_unbounded(problem, operator, limits, clock, interest, warm)
    except LimitReached as reached:  # before there was anything to prove
        raw = nothing_proven(problem, operator, limits, interest, reached.status)
    return _prefix(problem, operator, limits, clock, interest, raw) if problem.steps else raw


def _backward(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    policy: IntArray | None = None,
) -> Raw:
    """Solve a finite horizon: once for both sides, or side by side if that is too coarse."""
    assert problem.start is not None  # a STEPS problem is posed with one
    backward, status = Backward(problem, operator, clock), Status.CERTIFIED
    scale, complete = float(problem.probability), False
    packed = pack_all(problem) if policy is None else None
    try:
        if packed is not None:
            lower, upper = backward.run_plain(problem.start, packed)
        else:
            backward.run(problem.start, policy)
            lower, upper = backward.value - backward.error, backward.value + backward.error
        value, rules, complete = backward.value, backward.rules, True
        both = packed is None and operator.inner.proves == Side.BOTH
        if both and not limits.closed(lower, upper, interest, scale):
            rules = rules.copy()
            lower, upper, rules = _both_sides(backward, problem.start, problem.start, policy)
    except (LimitReached, KeyboardInterrupt) as stop:
        status = stop.status if isinstance(stop, LimitReached) else Status.INTERRUPTED
        if not complete:
            lower, upper = backward.hull()
            value, rules = np.clip(backward.value, lower, upper), backward.rules
    chosen = rules if policy is None else policy
    return settle(problem, operator, limits, interest, lower, upper, value, chosen, status)


def _both_sides(
    backward: Backward,
    low: FloatArray | None,
    high: FloatArray | None,
    policy: IntArray | None,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Step back from two bounds, 0 and 1 where one is missing; rules are of the guarantee."""
    model, sign = backward.problem.model, backward.operator.sign
    lower, upper = np.zeros(model.states), np.ones(model.states)
    rules = backward.rules
    if low is not None:
        lower = backward.run_side(low, -1.0, policy)
        rules = backward.rules.copy()
    if high is not None:
        backward.rules = np.tile(model.row_ptr[:-1], (len(rules), 1))
        upper = backward.run_side(high, 1.0, policy)
        if sign < 0.0 or low is None:
            rules = backward.rules
    return lower, upper, rules


def _prefix(
    problem: Problem,
    operator: Operator,
    limits: Limits,
    clock: Clock,
    interest: BoolArray,
    raw: Raw,
    policy: IntArray | None = None,
) -> Raw:
    """Run the steps before an unbounded until (`U>=k`) on its bounds."""
    model, status = problem.model, raw.status
    operator.allowed = np.ones(model.rows, dtype=np.bool_)
    lower, upper = np.zeros(model.states), np.ones(model.states)
    backward = Backward(problem, operator, clock)
    rules = backward.rules
    try:
        lower, upper, rules = _both_sides(backward, raw.lower, raw.upper, policy)
        if status is Status.GAP_OPEN:
            status = Status.CERTIFIED  # the steps may have closed it
    except (LimitReached, KeyboardInterrupt) as stop:
        status = stop.status if isinstance(stop, LimitReached) else Status.INTERRUPTED
    value = lower if raw.lower is not None else upper
    rules = np.concatenate([rules if policy is None else policy, raw.rows])
    done = settle(problem, operator, limits, interest, lower, upper, value, rules, status)
    done.witness = raw.lower, raw.upper
    return done


def to_solution(
    problem: Problem,
    spec: Spec,
    inner: Inner,
    raw: Raw,
    limits: Limits,
    interest: BoolArray,
    stats: Stats,
) -> Solution:
    """Return a result as a `Solution`, turned back if the problem was the opposite one."""
    lower, upper, value, witness = raw.lower, raw.upper, raw.value, raw.witness
    if problem.flipped:
        if problem.form is Form.REACH and witness is None:
            witness = lower, upper
        lower = None if raw.upper is None else one_minus(raw.upper, -1.0)
        upper = None if raw.lower is None else one_minus(raw.lower, 1.0)
        value = 1.0 - raw.value
    _refuse_overflow(problem, lower, upper, value)
    return Solution(
        problem.model, spec, inner.name, raw.status, lower, upper, value, Policy(raw.rows),
        limits.precision, stats, witness, limits.measure.name, interest,
    )  # fmt: skip


def _refuse_overflow(
    problem: Problem, lower: FloatArray | None, upper: FloatArray | None, value: FloatArray
) -> None:
    """Raise SolverError if bounds left the floats: they would prove what is not so."""
    bounds = [b for b in (lower, upper, value) if b is not None]
    broken = any(np.isnan(b).any() for b in bounds)
    if problem.form in (Form.STEPS, Form.DISCOUNTED):  # no value of these is infinite
        broken = broken or (lower is not None and bool(np.any(lower == np.inf)))
        broken = broken or (upper is not None and bool(np.any(upper == -np.inf)))
    if broken:
        raise SolverError("The values are too large for floats; scale the rewards down.")


def evaluate(
    model: FactoredMDP,
    policy: Policy,
    spec: Spec | Property | str,
    *,
    nature: Direction | None = None,
    inner: Inner | None = None,
    limits: Limits | None = None,
    states: StateSet = "init",
) -> Solution:
    """Return certified bounds of the value of a given policy.

    Parameters
    ----------
    policy
        Stationary, or with one rule per step of the objective (and one more for what follows
        the first steps of an unbounded until, as `solve` returns it).
    nature
        `MIN` or `MAX` picks the worst or best nature; by default the specification's. For the
        nominal value hand in `model.nominal()`.

    Returns
    -------
    Solution
        For a stationary policy that of the model with its rows only (`solution.model`); of others
        the `subject` says that the bounds are of the policy.

    Raises
    ------
    ModelError
        If a time-dependent policy meets an objective without a matching number of steps.
    """
    require_valid(model)
    asked = as_spec(spec, model)
    wanted = replace(asked, nature=nature or asked.nature)
    if policy.stationary:
        fixed = restrict(model, policy.rows[0])
        return solve(fixed, wanted, inner=inner, limits=limits, states=states)
    problem = pose(model, wanted)
    rules = len(problem.steps) + (problem.form is not Form.STEPS)
    if not problem.steps or rules != len(policy.rows):
        raise ModelError(
            f"A policy of {len(policy.rows)} rules fits objectives with as many; "
            f"{type(wanted.objective).__name__} here has {rules}."
        )
    method, limits, stats = inner or Exact(), limits or Limits(), Stats()
    operator = Operator(problem, method.prepare(model, problem.nature), stats)
    clock, interest = Clock(limits), where(model, states)
    if problem.form is Form.STEPS:
        raw = _backward(problem, operator, limits, clock, interest, policy.rows)
    else:
        fixed = restrict(model, policy.rows[-1])
        tail = Problem(
            fixed, Form.REACH, problem.agent, problem.nature, problem.target, problem.stay,
            np.zeros(fixed.rows),
        )  # fmt: skip
        below = Operator(tail, method.prepare(fixed, problem.nature), stats)
        raw = solve_unbounded(tail, below, limits, clock, np.ones_like(interest), None)
        raw.rows = policy.rows[-1:]
        raw = _prefix(problem, operator, limits, clock, interest, raw, policy.rows[:-1])
    found = to_solution(problem, wanted, method, raw, limits, interest, stats)
    return replace(found, subject="policy")


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
    model: FactoredMDP,
    spec: Spec | Property | str,
    inners: Sequence[Inner],
    *,
    limits: Limits | None = None,
) -> list[Comparison]:
    """Return one record per inner solver: the row of the paper's table.

    The gap is |first - value| / |value| in percent, the first solver being the reference. A solver
    that refuses the model has its reason as status.
    """
    require_valid(model)
    asked = as_spec(spec, model)
    records: list[Comparison] = []
    for inner in inners:
        try:
            solution = solve(model, asked, inner=inner, limits=limits)
        except RfmdpError as error:
            nothing = float("nan")
            records.append(
                Comparison(inner.name, nothing, nothing, nothing, nothing, nothing, str(error))
            )
            continue
        bounds = solution.at_initial()
        value = bounds.lower if asked.agent is MAX else bounds.upper
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


def tabulate(
    make: Callable[..., FactoredMDP],
    spec: Spec | Property | str,
    inners: Sequence[Inner] = (Exact(),),
    *,
    limits: Limits | None = None,
    **ranges: Iterable[Any],
) -> list[dict[str, Any]]:
    """Return a tidy table: one record per combination of values and inner solver.

    Parameters
    ----------
    make
        From values of the ranges to a model.
    ranges
        The values of every parameter of `make`, radii and constants for instance.

    Raises
    ------
    ModelError
        If the ranges are not those of the parameters of `make`.

    Examples
    --------
    >>> import rfmdp as rf
    >>> table = tabulate(lambda M, radius: rf.domain("chain", M=M).with_radius(radius),
    ...                  rf.domain_spec("chain"), M=[3, 4], radius=[0.0, 0.02])
    >>> [(line["M"], line["radius"], line["status"]) for line in table][:2]
    [(3, 0.0, 'CERTIFIED'), (3, 0.02, 'CERTIFIED')]
    """
    try:
        signature(make).bind(**ranges)
    except TypeError as error:
        takes = ", ".join(signature(make).parameters) or "nothing"
        raise ModelError(
            f"tabulate: the ranges ({', '.join(ranges) or 'none'}) must be named as the parameters "
            f"of `make`, which takes {takes}; {error}."
        ) from None
    for name, values in ranges.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ModelError(f"tabulate: {name} must be a list of values, got {values!r:.60}.")
    table = []
    for values in product(*ranges.values()):
        given = dict(zip(ranges, values, strict=True))
        for record in compare(make(**given), spec, inners, limits=limits):
            table.append(given | asdict(record))
    return table


__all__ = ["Comparison", "Side", "compare", "evaluate", "solve", "tabulate"]
